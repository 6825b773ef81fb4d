"""The workbench in a real browser: from a dropped file to a downloaded prediction."""

import os
import shutil
import signal
import time

import numpy as np
import polars as pl
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from empirisk.studio.workbench import routes
from empirisk.studio.workbench.folder import StudioFolder
from empirisk.studio.workbench.opening import in_browser, open_source
from tests.studio.browsers import (
    by_id,
    drop,
    is_clean,
    is_legible,
    is_narrow_enough,
    is_told,
    sized,
    text,
    until,
    walk_by_tab,
)
from tests.studio.studios import learned_runs, process_of, running

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


def look_at_errors(driver):
    """Sort, filter and look at one: sorting keeps the filter."""

    def rows():
        return [row.text for row in driver.find_elements(By.CSS_SELECTOR, "#panel tbody tr")]

    whole = until(driver, rows)
    search = driver.find_element(By.CSS_SELECTOR, "#panel input[type=search]")
    part = whole[0].split()[0]
    search.send_keys(part)
    kept = until(driver, lambda: len(rows()) < len(whole) and rows())
    driver.find_element(By.XPATH, "//*[@id='panel']//th/button[text()='Truth']").click()
    assert sorted(rows()) == sorted(kept)
    driver.find_element(By.CSS_SELECTOR, "#panel tbody tr button").send_keys(Keys.ENTER)
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
    assert by_id(driver, "tab-whatif").get_attribute("aria-selected") == "true"


@pytest.mark.long
def test_from_a_file_to_a_prediction(page, table, tmp_path):
    driver, address = page
    sized(driver, 1300, 900)
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    driver.get(f"{address}/")
    until(driver, lambda: driver.find_elements(By.ID, "choose"))
    drop(driver, ".drop", table)
    until(driver, lambda: "240 rows, 4 columns" in text(driver, "view"))
    assert EVIL in text(driver, "view")
    # The target, by keyboard alone.
    target = by_id(driver, "target")
    target.send_keys("label")
    until(driver, lambda: "2 classes" in text(driver, "notes"))
    driver.find_element(By.CSS_SELECTOR, "details:has(#machines) summary").send_keys(Keys.ENTER)
    for box in driver.find_elements(By.CSS_SELECTOR, "#machines input"):
        if box.get_attribute("value") not in ("logistic", "tree"):
            box.send_keys(Keys.SPACE)
    until(driver, lambda: "--machines logistic,tree" in text(driver, "view"))
    is_told(driver)
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
    assert "the model is right about label" in text(driver, "summary")
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
    look_at_errors(driver)
    by_id(driver, "tab-errors").click()
    by_id(driver, "tab-threshold").click()
    until(driver, lambda: "false alarms" in text(driver, "panel"))
    by_id(driver, "tab-files").click()
    until(driver, lambda: driver.find_elements(By.ID, "predict-file"))
    drop(driver, "[data-drop=predict-file]", table)
    written = tmp_path / "sizes.predictions.csv"
    until(driver, written.exists)
    time.sleep(0.2)
    assert pl.read_csv(written).height == 240
    drop(driver, "[data-drop=score-file]", table)
    until(driver, lambda: "240 rows" in text(driver, "scored"))
    # On a phone, and in the list.
    sized(driver, 400, 850, dark=True)
    for name in ("whatif", "matter", "errors", "threshold", "files", "learn"):
        by_id(driver, f"tab-{name}").click()
        until(driver, lambda: text(driver, "panel") not in ("", "…"))
        is_narrow_enough(driver)
    driver.get(f"{address}/#")
    until(driver, lambda: "sizes.csv: label" in text(driver, "view"))
    is_narrow_enough(driver)
    assert driver.title == "Workbench · Empirisk studio"  # the markup in a name did nothing
    is_clean(driver, address)


@pytest.fixture(scope="module")
def runs(home):
    return learned_runs(home)


def views(runs, model):
    """Every view of the workbench that stands still, and what tells that it is there."""
    yield "", ".tiles"
    yield "#table=tickets", "#notes .warnings li"
    yield f"#run={runs[0]}", "#answer .says"
    yield f"#run={model}", "#answer .says"  # which came without its table
    yield f"#compare={','.join(runs)}", "#difference"


def test_every_view_by_keyboard_and_by_ear(page, runs, home):
    driver, address = page
    _, start = open_source(home, home / "empirisk-studio" / "runs" / runs[0] / "result.model")
    sized(driver, 1300, 900)
    for hash_, there in views(runs, start.partition("=")[2]):
        driver.get("about:blank")
        driver.get(f"{address}/{hash_}")
        until(driver, lambda there=there: driver.find_elements(By.CSS_SELECTOR, there))
        is_told(driver)
        walk_by_tab(driver)
        is_legible(driver)
    driver.get(f"{address}/#run={runs[0]}")
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
    for name in ("matter", "errors", "threshold", "files", "learn"):
        by_id(driver, f"tab-{name}").click()
        until(driver, lambda: text(driver, "panel") not in ("", "…"))
        found = is_told(driver)
        is_legible(driver)
        assert ("tab", {"matter": "What matters", "learn": "The same elsewhere"}.get(name, "New files")) in found
    # The curve of a column is told in words.
    by_id(driver, "tab-matter").click()
    effect = "//*[@id='importances']//button[text()='earlier_tickets']"
    until(driver, lambda: driver.find_elements(By.XPATH, effect))[0].click()
    until(
        driver,
        lambda: any("average probability of yes" in name for role, name in is_told(driver) if role in ("img", "image")),
    )
    is_clean(driver, address)


def test_runs_are_renamed_compared_and_deleted(page, runs, home):
    driver, address = page
    sized(driver, 400, 850)
    copied = home / "empirisk-studio" / "runs" / "0123456789ab"
    shutil.copytree(home / "empirisk-studio" / "runs" / runs[0], copied)
    driver.get("about:blank")
    driver.get(f"{address}/")
    until(driver, lambda: driver.find_elements(By.ID, "compare"))
    is_narrow_enough(driver)
    driver.execute_script("window.prompt = () => 'mine <b>'; window.confirm = () => true")
    row = f"//tr[.//a[@href='#run={copied.name}']]"
    driver.find_element(By.XPATH, f"{row}//button[text()='Rename']").click()
    until(driver, lambda: "mine <b>" in text(driver, "view"))
    for run in runs:
        driver.find_element(By.XPATH, f"//tr[.//a[@href='#run={run}']]//input").click()
    by_id(driver, "compare").click()
    until(driver, lambda: "test rows that both have" in text(driver, "view"))
    assert "empirisk score" in text(driver, "view")
    assert "The first: " in text(driver, "view")  # runs of one table and target have the same name
    is_narrow_enough(driver)
    driver.back()
    until(driver, lambda: driver.find_elements(By.XPATH, row))
    driver.execute_script("window.confirm = () => true")
    driver.find_element(By.XPATH, f"{row}//button[text()='Delete']").click()
    until(driver, lambda: not driver.find_elements(By.XPATH, row))
    assert not copied.exists()
    is_clean(driver, address)


def test_numbers_and_moments_of_a_result(page, runs, home):
    """Columns of numbers are sorted by their size, and moments have a slider and a curve."""
    driver, address = page
    sized(driver, 1300, 900)
    (numbers,) = learned_runs(home, "diabetes", "progress", ["ridge"])
    driver.get(f"{address}/#run={numbers}")
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
    by_id(driver, "tab-errors").click()
    until(driver, lambda: "largest errors" in text(driver, "panel"))
    for name in ("Off by", "bmi"):  # numbers like 9.5 and 10.2, and below zero
        head = driver.find_element(By.XPATH, f"//*[@id='panel']//th/button[text()='{name}']")
        head.click()
        place = "return [...arguments[0].closest('tr').children].indexOf(arguments[0].parentElement)"
        column = driver.execute_script(place, head) + 1
        cells = driver.find_elements(By.CSS_SELECTOR, f"#panel tbody td:nth-child({column})")
        sizes = [float(cell.text.replace(",", "")) for cell in cells]
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]
        assert {head.value_of_css_property("text-align"), cells[0].value_of_css_property("text-align")} == {"right"}
    driver.get(f"{address}/#run={runs[0]}")
    until(driver, lambda: driver.find_elements(By.ID, "field-opened") and "opened" in text(driver, "adds"))
    assert not by_id(driver, "toast").is_displayed()  # what a run said long ago is no news
    driver.execute_script(
        "const it = document.getElementById('field-opened'); it.value = Date.UTC(2024, 1, 29) * 1000;"
        "it.dispatchEvent(new Event('input'));"
    )
    until(driver, lambda: "2024-02-29" in driver.find_element(By.CSS_SELECTOR, ".lines").get_attribute("textContent"))
    assert by_id(driver, "field-opened").get_attribute("aria-valuetext") == "2024-02-29"
    by_id(driver, "tab-matter").click()
    effect = "//*[@id='importances']//button[text()='opened']"
    until(driver, lambda: driver.find_elements(By.XPATH, effect))[0].click()
    until(driver, lambda: "-01" in driver.find_element(By.CSS_SELECTOR, "#effect svg").text)  # the first of a month
    # A file that is too large is not even sent.
    with (home / "huge.csv").open("wb") as file:
        file.truncate(routes.MAX_UPLOAD_BYTES + 1)  # without a byte on the disk
    for name, place in (("", "file"), (f"run={runs[0]}", "predict-file")):
        driver.get(f"{address}/#{name}")
        if name:
            until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
            by_id(driver, "tab-files").click()
        until(driver, lambda place=place: driver.find_elements(By.ID, place))[0].send_keys(str(home / "huge.csv"))
        until(driver, lambda: "there is room for" in text(driver, "problem"))
    # A file without what the model needs is a sentence, and no error of the page.
    by_id(driver, "tab-files").click()
    until(driver, lambda: driver.find_elements(By.ID, "predict-file"))
    wrong = home / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    drop(driver, "[data-drop=predict-file]", wrong)
    until(driver, lambda: "lacks the column" in text(driver, "problem"))
    is_clean(driver, address)


def test_a_number_can_be_missing(page, runs):
    """Of a column that had missing values, by a box beside its slider; and the nearest rows come with their lines."""
    driver, address = page
    sized(driver, 400, 850)
    driver.get("about:blank")
    driver.get(f"{address}/#run={runs[0]}")
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
    assert not driver.find_elements(By.ID, "missing-monthly_fee")  # which is always known
    box, slider = by_id(driver, "missing-customer_age"), by_id(driver, "field-customer_age")

    def asked_as_missing():
        lines = driver.find_element(By.CSS_SELECTOR, ".lines").get_attribute("textContent")
        return "'customer_age': None" in lines

    slider.send_keys(Keys.ARROW_RIGHT)
    until(driver, lambda: not asked_as_missing())
    assert not box.is_selected()
    box.send_keys(Keys.SPACE)
    until(driver, asked_as_missing)
    assert slider.get_attribute("aria-valuetext") == "missing"
    assert ("checkbox", "customer_age is missing") in is_told(driver)
    box.click()
    until(driver, lambda: not asked_as_missing())
    assert slider.get_attribute("aria-valuetext") != "missing"
    box.click()
    until(driver, asked_as_missing)
    slider.send_keys(Keys.ARROW_LEFT)
    until(driver, lambda: not asked_as_missing())
    assert not box.is_selected()
    by_id(driver, "find-nearest").click()
    until(driver, lambda: "The same in Python" in text(driver, "nearest"))
    assert ".sort('distance').head(5)" in by_id(driver, "nearest").get_attribute("textContent")
    is_narrow_enough(driver)
    is_clean(driver, address)


TOAST = """
import("/static/common.js").then(({toast}) => {
  const later = window.setTimeout;
  window.setTimeout = () => 0;  // it would go by itself
  toast("Reading sizes.csv …");
  window.setTimeout = later;
  arguments[0]();
});
"""


def test_a_toast_goes_with_its_view(page):
    driver, address = page
    driver.get("about:blank")
    driver.get(f"{address}/")
    until(driver, lambda: driver.find_elements(By.ID, "choose"))
    driver.execute_async_script(TOAST)
    assert by_id(driver, "toast").is_displayed()
    driver.execute_script("location.hash = 'table=iris'")
    until(driver, lambda: "150 rows" in text(driver, "view") and not by_id(driver, "toast").is_displayed())
    is_clean(driver, address)


CHART = """
import("/static/common.js").then(({make, chart}) => {
  const svg = make("svg:svg", {class: "chart", id: "drawn"}), path = () => svg.querySelector("path").getAttribute("d");
  document.getElementById("view").replaceChildren(svg);
  chart(svg, {series: [{x: [0, 1], y: [.8, .8]}], zero: false});
  const flat = [...svg.querySelectorAll("text")].map(one => Number(one.textContent)).filter(Number.isFinite);
  chart(svg, {series: [{x: [0, 1, 2], y: [9, 0, 9]}], top: 1});
  const cut = path();
  chart(svg, {series: [{x: [16, 20].map(year => Date.UTC(2000 + year) * 1000), y: [0, 1]}], dates: true});
  arguments[0]([Math.max(...flat), cut, svg.textContent]);
});
"""


def test_charts_say_what_is_so(page):
    """A share stays below one, a curve is no line where it leaves the picture, and years begin where they begin."""
    driver, address = page
    driver.get(f"{address}/#")
    until(driver, lambda: driver.find_elements(By.ID, "choose"))
    highest, cut, years = driver.execute_async_script(CHART)
    assert highest <= 1
    assert "L" not in cut
    assert "2017-01-01" in years
    is_clean(driver, address)


def test_learn_stands_in_reach(page):
    """However many options are open, the button stays on the screen, and covers what is behind it."""
    driver, address = page
    for width, height in ((1300, 900), (400, 850)):
        sized(driver, width, height)
        driver.get("about:blank")
        driver.get(f"{address}/#table=tickets")
        until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#machines input"))
        for summary in driver.find_elements(By.CSS_SELECTOR, ".options summary"):
            driver.execute_script("arguments[0].click()", summary)
        found = driver.execute_script(
            "const box = document.getElementById('learn').getBoundingClientRect();"
            "const at = x => document.elementFromPoint(box.left + x, box.top + 9).id;"
            "return [at(10), at(box.width - 10), box.bottom]"
        )
        assert found[:2] == ["learn", "learn"]
        assert found[2] <= height
    is_clean(driver, address)


@pytest.mark.long
def test_stop_kill_go_on_and_finish(page, home):
    driver, address = page
    sized(driver, 1300, 900)
    driver.get("about:blank")
    driver.get(f"{address}/#table=digits")
    until(
        driver,
        lambda: driver.find_elements(By.CSS_SELECTOR, "#learn:enabled") and "10 classes" in text(driver, "notes"),
    )
    by_id(driver, "learn").click()
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#league tr"))
    by_id(driver, "stop").click()
    until(driver, lambda: "stopped before it had a result" in text(driver, "result"))
    by_id(driver, "resume").click()
    until(driver, lambda: "s so far" in text(driver, "clock"))
    # Nothing jumps while the league grows.
    tops = set()
    for count in (1, 2, 3):
        until(driver, lambda count=count: len(driver.find_elements(By.CSS_SELECTOR, "#league tr")) >= count)
        tops.add(driver.execute_script("return document.querySelector('.league thead').getBoundingClientRect().top"))
    assert len(tops) == 1
    assert driver.find_elements(By.CSS_SELECTOR, "#streaming svg path")
    found = is_told(driver)
    assert {("button", "Finish now"), ("button", "Stop"), ("table", "The league")} <= found
    run = home / "empirisk-studio" / "runs" / driver.current_url.partition("#run=")[2]
    os.kill(process_of(run), signal.SIGKILL)
    until(driver, lambda: "cut off" in text(driver, "result"))
    by_id(driver, "resume").click()
    until(driver, lambda: "s so far" in text(driver, "clock") and driver.find_elements(By.CSS_SELECTOR, "#league tr"))
    by_id(driver, "finish").click()
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#answer .says"))
    is_clean(driver, address)


def test_a_column_that_is_not_shown_is_the_target(page, home):
    """Of a table with more columns than the page shows, the name is typed."""
    driver, address = page
    StudioFolder(home).place("wide.csv").write_text(
        "\n".join(
            [
                ",".join(f"column {k}" for k in range(400)),
                *(",".join(str(j * k % 97) for k in range(400)) for j in range(60)),
            ]
        )
    )
    sized(driver, 400, 850)
    driver.get(f"{address}/#table=wide.csv")
    until(driver, lambda: "150 of the columns are shown" in text(driver, "view"))
    target = by_id(driver, "target")
    target.send_keys("n 271")
    offered = "return [...document.querySelectorAll('#names option')].map(one => one.value)"
    until(driver, lambda: driver.execute_script(offered) == ["column 271"])
    target.clear()
    target.send_keys("column 271", Keys.ENTER)
    until(driver, lambda: "column 271: a number" in text(driver, "notes"))
    assert "--target 'column 271'" in text(driver, "view")
    is_narrow_enough(driver)
    is_told(driver)
    is_clean(driver, address)


def test_a_file_leads_the_browser_into_the_studio(page, tmp_path, monkeypatch):
    """The cookie counts also for who comes from elsewhere; the file is there no longer than the studio."""
    driver, _ = page
    monkeypatch.setattr("webbrowser.open", driver.get)
    with running(tmp_path) as (_, announced), in_browser(StudioFolder(tmp_path), f"{announced[0]}#table=iris"):
        until(driver, lambda: driver.find_elements(By.ID, "view") and "150 rows, 5 columns" in text(driver, "view"))
        assert len(announced) == 2
    assert not list(tmp_path.iterdir())
    driver.get("about:blank")
    for kind in ("browser", "performance"):  # the other tests look at requests to their studio alone
        driver.get_log(kind)
