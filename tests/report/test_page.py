"""The report, opened in a real browser and read as a person would."""

from html.parser import HTMLParser

import pytest
from selenium.webdriver.common.by import By

import empirisk as er
from empirisk import report
from tests.browser import browsing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def learned(folder):
    return er.learn("breast_cancer", machines=["centroid", "logistic"], out=folder / "cells")


@pytest.fixture(scope="module")
def numbers(folder):
    return er.learn("diabetes", machines=["ridge"], out=folder / "numbers")


@pytest.fixture(scope="module")
def browser(folder):
    with browsing(folder / "profile") as driver:
        yield driver


def shown(browser, place):
    return browser.find_element(By.CSS_SELECTOR, place).text


def test_what_a_reader_sees(browser, learned, folder):
    browser.set_window_size(1200, 900)
    browser.get((folder / "cells.report.html").as_uri())
    assert browser.title == "breast_cancer: diagnosis"
    assert shown(browser, "#summary") == learned.summary()
    assert f"{learned.test.scores[0].value:.3g}" in shown(browser, ".cards")
    winner = shown(browser, "#leaderboard tr.winner")
    assert winner.startswith("Logistic regression")
    assert "chosen" in winner
    assert len(browser.find_elements(By.CSS_SELECTOR, "#leaderboard tbody tr")) == 3
    assert "hardly luck" in shown(browser, "#test")
    assert "loss = logistic" in shown(browser, "#machine")
    assert "Certificate of the fit: converged" in shown(browser, "#machine")
    assert "mean_radius" in shown(browser, "#data")
    assert "er.load('cells.model')" in shown(browser, "#use")
    pictures = browser.find_elements(By.CSS_SELECTOR, "figure svg")
    assert len(pictures) == 6
    assert all(picture.is_displayed() and picture.size["width"] > 200 for picture in pictures)


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_sticks_out_on_a_phone_or_a_desk(browser, learned, folder, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.get((folder / "cells.report.html").as_uri())
    page = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert page[0] <= page[1]


def test_it_prints(browser, learned, folder):
    browser.get((folder / "cells.report.html").as_uri())
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(pdf) > 10_000


def test_numbers_have_residuals(browser, numbers, folder):
    browser.get((folder / "numbers.report.html").as_uri())
    assert "off by" in shown(browser, "#summary")
    assert "Predictions against the truth" in shown(browser, "#test")


class Links(HTMLParser):
    """Everything in a page that would be fetched."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [
            value
            for name, value in attrs
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#")
        ]


def test_the_page_needs_no_network(learned):
    links = Links()
    links.feed(report.page(learned))
    assert [link for link in links.found if link and not link.startswith("data:")] == []


def test_names_from_the_table_are_text_and_not_markup():
    table = {"<script>alert(1)</script>": [float(i % 7) for i in range(60)], "y": ["<b>", "&"] * 30}
    page = report.page(er.learn(table, "y", machines=["centroid"]))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_the_same_result_gives_the_same_page(learned):
    assert report.page(learned) == report.page(learned)
