"""The report, opened in a real browser and read as a person would."""

import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from selenium.webdriver.common.by import By

import empirisk as er
from empirisk import formats, plots
from empirisk.league.unsupervised import describe
from empirisk.plots import histograms
from empirisk.plots import report as views
from empirisk.report import data, machine, unsupervised, verdict
from empirisk.report.page import page as page_of
from empirisk.report.page_blocks import NO_TIME, Figure, Figures, Section, sections
from empirisk.tables.kinds import KINDS
from tests.browser import browsing

RANDOM = np.random.default_rng(0)
LIMIT = 2_000_000  # bytes of a report, whatever the table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def learned(folder):
    return er.learn("breast_cancer", machines=["centroid", "logistic"], out=folder / "cells")


@pytest.fixture(scope="module")
def numbers(folder):
    return er.learn("diabetes", machines=["ridge"], out=folder / "numbers")


def rich(rows=400):
    """Every kind of column, names in several scripts, holes, and a class that is hard to see in one group."""
    random = np.random.default_rng(0)  # the same whatever ran before
    age, town = random.normal(40, 10, rows), random.choice(["北京", "القاهرة", "<Ulm>"], rows)
    noise = np.where(town == "<Ulm>", 30, 1)
    return pl.DataFrame(
        {
            "年龄": pl.Series(np.where(random.random(rows) < 0.1, np.nan, age)).fill_nan(None),
            "town & <b>": town,
            "seen": pl.Series(np.arange(rows) * 86_400_000_000).cast(pl.Datetime("us")),
            "member": random.random(rows) < 0.5,
            "y": np.where(age + 12 * (town == "北京") + noise * random.normal(size=rows) > 44, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def grown(folder):
    return er.learn(rich(), "y", machines=["tree"], out=folder / "tree")


@pytest.fixture(scope="module")
def browser(folder):
    with browsing(folder / "profile") as driver:
        yield driver


def shown(browser, place):
    return browser.find_element(By.CSS_SELECTOR, place).text


def opened(browser, folder, name):
    browser.get((folder / f"{name}.report.html").as_uri())


def test_what_a_reader_sees(browser, learned, folder):
    browser.set_window_size(1200, 900)
    opened(browser, folder, "cells")
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
    assert len(pictures) == 3 + 6 + 5 + 1  # of the test, effects, pairs, the learning curve
    sizes = {tuple(picture.size.values()) for picture in pictures if picture.is_displayed()}
    assert len(sizes) == 1
    assert max(next(iter(sizes))) > 400
    assert browser.get_log("browser") == []


def test_where_it_comes_from(learned, numbers, folder):
    text = unescape((folder / "cells.report.html").read_text())
    origin = learned.origin
    assert origin.source == "breast_cancer"
    assert origin.command.startswith("er.learn('breast_cancer', machines=['centroid', 'logistic'], out=")
    for held in (f"{origin.moment:%-d %B %Y}", origin.command, er.__version__, f"numpy {np.__version__}"):
        assert held in text


#: Words of usual length in the heads of rows that are on two lines.
BROKEN_WORDS = """
return [...document.querySelectorAll("tbody th")].flatMap(cell => {
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    for (const word of node.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (word[0].length <= 16 && lines.size > 1) found.push(word[0]);
    }
  return found;
});
"""


@pytest.mark.parametrize("name", ["cells", "tree"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out_on_a_phone_or_a_desk(browser, learned, grown, folder, name, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    opened(browser, folder, name)
    page = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    broken = browser.execute_script(BROKEN_WORDS)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert page[0] <= page[1]
    assert broken == []


CONTRAST = """
const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const parts = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(v => linear(v / 255));
const light = colour => { const [r, g, b] = parts(colour); return .2126 * r + .7152 * g + .0722 * b; };
const ground = light(getComputedStyle(document.body).backgroundColor);
const places = "h1, h2, h3, p, th, td, li, li b, li span, figcaption, a, figure:not(.full) svg text";
return Math.min(...[...document.querySelectorAll(places)].filter(e => e.textContent.trim()).map(e => {
  const ink = light(e.tagName === "text" ? getComputedStyle(e).fill : getComputedStyle(e).color);
  return (Math.max(ink, ground) + .05) / (Math.min(ink, ground) + .05);
}));
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_by_day_and_by_night(browser, learned, folder, scheme):
    scheme_is = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_is)
    opened(browser, folder, "cells")
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    contrast = browser.execute_script(CONTRAST)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert contrast >= 4.5  # the least of the accessibility guidelines (WCAG, AA)


def test_it_prints(browser, learned, folder):
    opened(browser, folder, "cells")
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(pdf) > 10_000


def cells(browser, table, column):
    return browser.execute_script(
        "return [...arguments[0].tBodies[0].rows].filter(row => !row.hidden)"
        ".map(row => row.cells[arguments[1]].textContent.trim())",
        table,
        column,
    )


def test_tables_are_sorted_and_filtered(browser, learned, folder):
    browser.set_window_size(1200, 900)
    opened(browser, folder, "cells")
    table = browser.find_element(By.CSS_SELECTOR, "#data .long table")
    before = cells(browser, table, 0)
    head = table.find_element(By.CSS_SELECTOR, "thead th button")
    browser.execute_script("arguments[0].click()", head)
    assert cells(browser, table, 0) == sorted(before)
    assert table.find_element(By.CSS_SELECTOR, "thead th").get_attribute("aria-sort") == "ascending"
    browser.execute_script("arguments[0].click()", head)
    assert cells(browser, table, 0) == sorted(before, reverse=True)
    browser.find_element(By.CSS_SELECTOR, "#data .filter input").send_keys("worst_a")
    assert cells(browser, table, 0) == ["worst_area"]
    distinct = table.find_elements(By.CSS_SELECTOR, "thead th button")[4]
    browser.find_element(By.CSS_SELECTOR, "#data .filter input").clear()
    browser.find_element(By.CSS_SELECTOR, "#data .filter input").send_keys("mean")
    browser.execute_script("arguments[0].click()", distinct)
    found = [int(text.replace(",", "")) for text in cells(browser, table, 4)]
    assert len(found) == 10
    assert found == sorted(found)


def test_the_threshold_is_chosen_by_its_costs(browser, learned, folder):
    opened(browser, folder, "cells")
    chances, there = learned.test.probabilities[:, 1], learned.test.truth == "malignant"
    assert shown(browser, "#hits") == f"{int((there & (chances >= 0.5)).sum())} of {int(there.sum())}"
    assert shown(browser, "#alarms") == str(int((~there & (chances >= 0.5)).sum()))
    cost = browser.find_element(By.ID, "miss-cost")
    cost.clear()
    cost.send_keys("1000")
    browser.find_element(By.ID, "cheapest").click()
    limit = float(shown(browser, "#threshold"))
    assert limit < 0.5
    assert shown(browser, "#misses") == "0"
    alarms = int(shown(browser, "#alarms"))
    # No threshold finds them all with fewer false alarms.
    assert alarms == int((~there & (chances >= chances[there].min())).sum())
    assert shown(browser, "#cost") == f"{alarms:,}"


def test_the_calibration_of_a_rare_class_shows_its_corner():
    chances = RANDOM.uniform(0, 0.05, 2000)
    truth = np.where(RANDOM.random(2000) < chances, "yes", "no")
    axes = views.canvas()
    views.calibration(axes, truth, chances, "yes")
    assert axes.get_xlim()[1] < 0.2
    assert axes.lines[0].get_xydata().max() < axes.get_xlim()[1]
    assert axes.texts[0].get_text() == "200"  # a tenth of the rows
    whole = views.canvas()
    views.calibration(whole, truth, 20 * chances, "yes")
    assert whole.get_xlim()[1] > 1


def test_numbers_have_residuals_and_one_measure_of_errors(browser, numbers, folder):
    opened(browser, folder, "numbers")
    error = np.sqrt(np.mean((numbers.test.truth - numbers.test.predictions) ** 2))
    assert f"off by {error:.3g} (root mean squared error)" in shown(browser, "#summary")
    assert f"root mean squared error is {error:.3g}" in shown(browser, "#test")
    assert "mean absolute" not in shown(browser, "#summary")
    assert "Truth and prediction" in shown(browser, "#test")
    worst = np.abs(numbers.test.truth - numbers.test.predictions).max()
    assert shown(browser, "#errors tbody tr").split()[3] == f"{worst:.4g}"
    assert "more" in shown(browser, "#learned")


@pytest.mark.parametrize("apart", [False, True])
def test_rows_have_the_numbers_of_the_file(apart):
    """Also where rows without a target, and of a class that is too small, were left out before them."""
    table = rich().with_columns(y=pl.Series(["alone", None, *rich()["y"][2:]]), number=RANDOM.normal(size=400))
    tests = table.reverse() if apart else None
    found = er.learn(table, "y", machines=["centroid"], test_file=tests)
    worst = verdict.worst(found)
    place = worst.head.index(verdict.leading(found)[0])
    for row in worst.rows:
        there = (tests if apart else table)[verdict.leading(found)[0]][row[0].key]
        assert row[place] == formats.shown(there)
        assert row[0].text == str(row[0].key + 1)


def test_mean_absolute_errors_where_they_decide():
    found = er.learn("diabetes", machines=["ridge"], metric="mae", test=0.3)
    assert "(mean absolute error)" in found.summary()
    page = page_of(found)
    assert f"mean absolute error is {np.mean(np.abs(found.test.truth - found.test.predictions)):.3g}" in page


def test_precision_and_recall_of_each_class(learned):
    table = verdict.by_class(learned)
    truth, said = learned.test.truth, learned.test.predictions
    row = next(row for row in table.rows if row[0] == "malignant")
    assert row[2].key == np.mean(said[truth == "malignant"] == "malignant")
    assert row[3].key == np.mean(truth[said == "malignant"] == "malignant")


def test_a_linear_machine_in_words(learned):
    section = machine.learned_what(learned)
    table = next(block for block in section.blocks if getattr(block, "caption", "").startswith("How it says malignant"))
    name, weight, words = table.rows[0]
    encoder, fitted = learned.model.pipeline[0], learned.model.machine
    k = int(np.argmax(np.abs(fitted.coef_)))
    assert name == encoder.names_[k]
    assert weight.key == np.ravel(fitted.coef_)[k]
    assert words.endswith(f"odds of malignant times {np.exp(np.ravel(fitted.coef_)[k]):.3g}")
    assert words.startswith(f"{encoder.numbers_.scale[k]:.3g} more")


def test_words_of_texts_for_machines_that_are_no_sum():
    words = RANDOM.choice(["now", "tea", "rain", "sun"], (400, 6))
    words[::2, 0] = "gold"
    table = pl.DataFrame(
        {"text": [" ".join([*row, str(k)]) for k, row in enumerate(words)], "y": ["spam", "ham"] * 200}
    )
    found = er.learn(table, "y", machines=["neighbours"], types={"text": "text"})
    [block] = machine.words_of_texts(found)
    word, rows, held, others = block.rows[0]
    there = np.array(["gold" in text for text in found.plan.frame["text"][found.plan.test]])
    chances = found.test.probabilities[:, 1]
    assert word == "gold"
    assert rows.key == there.sum()
    assert held.key == pytest.approx(chances[there].mean())
    assert others.key == pytest.approx(chances[~there].mean())
    assert "Words that go with the prediction" in page_of(found)


def test_the_tree_is_drawn_in_the_units_of_the_table(grown, browser, folder):
    opened(browser, folder, "tree")
    drawn = shown(browser, "#learned figure.full svg")
    limit = float(re.search(r"年龄 <= ([\d.]+)", drawn)[1])
    assert 30 < limit < 50  # years, and not standard deviations
    assert grown.winner == "tree"


def test_names_in_every_script_are_text_in_the_pictures(grown, browser, folder):
    opened(browser, folder, "tree")
    drawn = " ".join(one.text for one in browser.find_elements(By.CSS_SELECTOR, "figure svg"))
    for name in ("年龄", "北京", "القاهرة", "<Ulm>"):
        assert name in drawn


def test_truth_values_of_rows_are_words():
    table = rich(600).with_columns(sold=pl.Series(["yes", "no", "no"] * 200))
    table = table.with_columns(y=pl.when(pl.col("sold") == "yes").then(pl.lit("a")).otherwise(pl.col("y")))
    found = er.learn(table, "y", machines=["logistic"])
    worst = verdict.worst(found)
    assert {row[worst.head.index("sold")] for row in worst.rows} <= {"yes", "no"}


def test_groups_that_are_harder_are_found(grown):
    table = verdict.subgroups(er.learn(rich(2000), "y", machines=["tree"]))
    assert table.rows[0][0] == "town & <b> is <Ulm>"
    assert table.rows[0][2].key > table.rows[0][3].key


def test_headings_are_in_order_and_pictures_have_words(browser, grown, folder):
    opened(browser, folder, "tree")
    levels = [int(one.tag_name[1]) for one in browser.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for one in browser.find_elements(By.CSS_SELECTOR, "figure .drawing"):
        assert one.get_attribute("role") == "img"
        assert len(one.get_attribute("aria-label")) > 3
    for one in browser.find_elements(By.CSS_SELECTOR, "table"):
        assert one.get_attribute("aria-label")
        assert one.find_elements(By.CSS_SELECTOR, "th[scope=row]")
    for one in browser.find_elements(By.CSS_SELECTOR, "#chooser input[type=number]"):
        assert one.find_element(By.XPATH, "..").tag_name == "label"


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


def test_the_page_needs_no_network(learned, numbers, grown, folder):
    for name in ("cells", "numbers", "tree"):
        links = Links()
        page = (folder / f"{name}.report.html").read_text()
        links.feed(page)
        assert [link for link in links.found if link and not link.startswith("data:")] == []
        assert "@import" not in page
        assert not re.findall(r"url\((?!#|data:)", page)


def test_names_from_the_table_are_text_and_not_markup():
    evil = "</script><script>alert(1)</script>"
    table = {evil: [float(i % 7) for i in range(60)], "y": [evil, "&"] * 30, "w": [evil, "<b>a", "b"] * 20}
    page = page_of(er.learn(table, "y", machines=["logistic"]))
    assert "<script>alert" not in page
    assert "<b>a" not in page
    assert "&lt;script&gt;alert" in page


def test_the_same_result_gives_the_same_page(learned, folder):
    assert page_of(learned, "cells.model") == (folder / "cells.report.html").read_text()


def test_a_section_that_fails_is_left_out_and_named(learned, monkeypatch):
    def broken(*_, **__):
        raise TypeError("no <such> thing")

    monkeypatch.setattr(verdict, "worst", broken)
    monkeypatch.setattr(plots, "roc", broken)
    page = page_of(learned)
    assert 'id="errors"' not in page
    assert "The section “Where it errs” could not be made (TypeError: no &lt;such&gt; thing)." in page
    assert "This picture could not be drawn (TypeError: no &lt;such&gt; thing)." in page
    assert 'id="leaderboard"' in page


def test_pictures_for_which_there_was_no_time_are_counted():
    def told(*titles):
        late = [Figures([Figure("", title, NO_TIME) for title in titles])]
        return sections({"part": lambda: Section("part", "Part", late)})[1]

    assert told() == []
    assert told("More rows") == ["The time given left no room for the picture More rows. [ER033]"]
    assert told("ROC", "Errors") == ["The time given left no room for 2 pictures: ROC, Errors. [ER033]"]


def test_a_report_without_pictures_does_not_load_what_draws():
    code = (
        "import sys, empirisk as er; from empirisk import stop; from empirisk.report.page import page\n"
        "found = er.learn('iris', machines=['tree'])\n"
        "with stop.stopping(lambda: True): text = page(found)\n"
        "print(text.split('left no room for ')[1].split()[0], 'matplotlib' in sys.modules)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pictures, drawn = child.stdout.split()
    assert int(pictures) > 5
    assert drawn == "False"


def test_bars_of_a_small_histogram_hold_as_many_whole_numbers_each():
    for width, values in ((1, range(12)), (2, range(24))):
        bars = data.spark_counts(pl.Series("visits", [*values] * 3), KINDS["number"])
        assert bars.tolist() == [3 * width] * 12


def test_a_histogram_has_no_room_beside_its_numbers():
    values = 10_000 + np.random.default_rng(0).random(500)
    edges = histograms.bins(values)
    assert values.min() <= edges[0] < edges[-1] <= values.max()
    assert len(edges) == histograms.BINS + 1
    assert histograms.bins(np.append(values, [np.inf] * 50)) == edges
    low, high = histograms.bins(np.full(3, 0.5))[:: histograms.BINS]
    assert low < 0.5 < high


def wide(rows, columns, classes):
    codes = np.arange(rows) % classes
    X = RANDOM.normal(size=(rows, columns))
    X[:, :classes] += 4 * np.eye(classes)[codes]
    table = pl.DataFrame({f"column {k}": X[:, k] for k in range(columns)})
    return table, np.array([f"class {k}" for k in codes]), X[:, :3].sum(axis=1)


@pytest.mark.long  # three hundred columns
def test_no_report_is_large_for_its_columns_or_classes():
    table, classes, _ = wide(1500, 300, 60)
    found = er.learn(table.with_columns(y=classes), "y", machines=["centroid"], test=0.5)
    page = page_of(found)
    assert "The most frequent mistakes" in page
    assert len(page) < LIMIT


def test_every_kind_of_column_beside_a_number_is_drawn():
    rows = 300
    table = (
        rich(rows)
        .drop("y")
        .with_columns(
            steps=pl.Series([np.inf if k % 50 == 0 else float(k % 13) for k in range(rows)]),
            nothing=pl.lit(None, dtype=pl.Float64),
            y=pl.col("年龄").fill_null(0) + 20 * pl.col("town & <b>").str.len_chars(),
        )
    )
    page = page_of(er.learn(table, "y", machines=["tree"]))
    assert "could not be" not in page
    for name in ("年龄", "town &amp; &lt;b&gt;"):
        assert f"<b>{name} and y</b>" in page


def test_no_report_is_large_for_its_rows():
    table, _, numbers = wide(20_000, 3, 3)
    found = er.learn(table.with_columns(y=numbers + RANDOM.normal(size=20_000)), "y", machines=["ridge"], test=0.5)
    page = page_of(found)
    clouds = re.findall(r'<marker id="([^"]*)".*?style="([^"]*)".*?url\(#([^)]*)\)" points="([^"]*)"', page)
    assert len(clouds) >= 3
    assert "<image" not in page  # dots would not follow the colours of the page
    for marker, look, drawn, points in clouds:
        assert drawn == marker
        assert ("var(--mark)" in look) == (len(points.split()) == plots.style.MOST_POINTS)  # one colour, or shades
    assert len(page) < LIMIT / 4


def test_the_page_without_a_target_looks_the_same(browser, folder):
    table = rich().drop("y")
    (folder / "groups.report.html").write_text(unsupervised.page(describe(table)))
    opened(browser, folder, "groups")
    assert "clusters" in shown(browser, "#summary")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#clusters figure svg")) == 1
    assert "er.describe(table)" in shown(browser, "#use")
    assert browser.get_log("browser") == []
