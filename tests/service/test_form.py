"""The form of the service, filled in a real browser."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import browsing
from tests.service.serving import serving, table_model


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def fill(browser, name, text):
    field = browser.find_element(By.NAME, name)
    if field.tag_name != "select":
        field.clear()
    field.send_keys(text)


def answer(browser):
    browser.find_element(By.TAG_NAME, "button").click()
    place = browser.find_element(By.ID, "answer")
    WebDriverWait(browser, 20).until(lambda _: place.text not in ("", "..."))
    return place.text


def test_a_person_asks_the_model(browser, tmp_path):
    model, table = table_model()
    row = table.row(0, named=True)
    with serving(model) as port:
        browser.get(f"http://127.0.0.1:{port}/")
        assert browser.title == "Predict escalated"
        for name in model.schema.of_kind("number", "date", "category", "text", "boolean"):
            fill(browser, name, str(row[name]))
        expected = model.answers([row])
        assert answer(browser).splitlines()[0] == f"escalated: {expected['escalated'][0]}"
        share = 100 * max(expected["P(escalated=no)"][0], expected["P(escalated=yes)"][0])
        assert f"{share:.1f} %" in browser.find_element(By.ID, "answer").text
        browser.get(f"http://127.0.0.1:{port}/")
        fill(browser, "customer_age", "old")
        assert "customer_age: 'old' is not a number" in answer(browser)
        browser.find_element(By.ID, "example").click()
        assert browser.find_element(By.NAME, "customer_age").get_attribute("value")
        for field in browser.find_elements(By.CSS_SELECTOR, "[data-example]"):
            assert field.get_attribute("value") == field.get_attribute("data-example")
        assert answer(browser).startswith("escalated: ")
        file = tmp_path / "new.csv"
        table.head(5).write_csv(file)
        browser.find_element(By.ID, "file").send_keys(str(file))
        said = browser.find_element(By.ID, "said")
        WebDriverWait(browser, 20).until(lambda _: "Save new.predicted.csv" in said.text)
        browser.get(f"http://127.0.0.1:{port}/docs")
        assert "not sent, or is null, is missing" in browser.find_element(By.TAG_NAME, "body").text
        assert "POST /predict" in browser.find_element(By.TAG_NAME, "body").text
    assert [
        entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE" and "422" not in entry["message"]
    ] == []
