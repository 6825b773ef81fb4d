"""The workbench in a real browser: from a dropped file to a downloaded prediction."""

import time

import numpy as np
import polars as pl
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.studio.browsers import by_id, is_clean, is_narrow_enough, sized, text, until

EVIL = "<img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table with a column that matters, one that does not, and a name that is markup."""
    random = np.random.default_rng(0)
    size = random.normal(size=240)
    columns = {"size": size.round(3), "noise": random.normal(size=240).round(3), EVIL: ["a", "b"] * 120}
    frame = pl.DataFrame({**columns, "label": np.where(size + 0.3 * random.normal(size=240) > 0, "large", "small")})
    path = tmp_path_factory.mktemp("tables") / "sizes.csv"
    frame.write_csv(path)
    return path


def hidden_input(driver, name, path):
    """Choose a file, as a drop does."""
    driver.execute_script("document.getElementById(arguments[0]).style.display = 'block'", name)
    by_id(driver, name).send_keys(str(path))


@pytest.mark.long
def test_from_a_file_to_a_prediction(page, table, tmp_path):
    driver, address = page
    sized(driver, 1300, 900)
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    driver.get(f"{address}/")
    until(driver, lambda: driver.find_elements(By.ID, "choose"))
    hidden_input(driver, "file", table)
    until(driver, lambda: "240 rows, 4 columns" in text(driver, "view"))
    assert EVIL in text(driver, "view")
    # The target, by keyboard alone.
    target = by_id(driver, "target")
    target.send_keys("label")
    until(driver, lambda: "2 classes" in text(driver, "notes"))
    machines = by_id(driver, "option-machines")
    machines.send_keys("logistic, tree", Keys.TAB)
    until(driver, lambda: "--machines logistic,tree" in text(driver, "view"))
    by_id(driver, "learn").send_keys(Keys.ENTER)
    until(driver, lambda: driver.find_elements(By.ID, "league"))
    # Reload in the middle, and a second tab: both show the run where it is.
    run, first = driver.current_url, driver.current_window_handle
    driver.refresh()
    driver.switch_to.new_window("tab")
    driver.get(run)
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
    driver.close()
    driver.switch_to.window(first)
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
    assert "the model names the right label" in text(driver, "summary")
    # What if: the size decides.
    said = []
    for value in (-2, 2):
        driver.execute_script(
            "const it = document.getElementById('field-size'); it.value = arguments[0];"
            "it.dispatchEvent(new Event('input'));",
            value,
        )
        wanted = "small" if value < 0 else "large"
        until(driver, lambda wanted=wanted: driver.find_element(By.CSS_SELECTOR, "#answer .says").text == wanted)
        said.append(wanted)
    by_id(driver, "find-nearest").click()
    until(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, "#nearest tbody tr")) == 5)
    by_id(driver, "tab-matter").click()
    until(driver, lambda: text(driver, "importances").startswith("size"))
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#effect svg path"))
    by_id(driver, "tab-errors").click()
    until(driver, lambda: "test rows are wrong" in text(driver, "panel"))
    by_id(driver, "tab-threshold").click()
    until(driver, lambda: "false alarms" in text(driver, "panel"))
    by_id(driver, "tab-files").click()
    until(driver, lambda: driver.find_elements(By.ID, "predict-file"))
    hidden_input(driver, "predict-file", table)
    written = tmp_path / "sizes.predictions.csv"
    until(driver, written.exists)
    time.sleep(0.2)
    assert pl.read_csv(written).height == 240
    hidden_input(driver, "score-file", table)
    until(driver, lambda: "240 rows" in text(driver, "scored"))
    # On a phone, and in the list.
    sized(driver, 400, 850, dark=True)
    for name in ("whatif", "matter", "errors", "threshold", "files", "lines"):
        by_id(driver, f"tab-{name}").click()
        until(driver, lambda: text(driver, "panel") not in ("", "…"))
        is_narrow_enough(driver)
    driver.get(f"{address}/#")
    until(driver, lambda: "sizes.csv: label" in text(driver, "view"))
    is_narrow_enough(driver)
    assert driver.title == "Workbench · Empirisk studio"  # the markup in a name did nothing
    is_clean(driver, address)
