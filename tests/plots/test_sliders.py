"""Pictures to choose from with a slider: all drawn before, one shown, in a page that needs nothing."""

import re
from functools import partial

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.browser import browsing

pytestmark = pytest.mark.row("P1")

X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")


def drawn(C):
    return er.plots.losses([er.losses.SoftHinge(temperature=C)])


def test_every_value_is_drawn_in_its_order():
    seen = []
    choice = er.plots.slider(lambda C: seen.append(C) or drawn(C), C=[1.0, 0.1, 0.5])
    assert seen == choice.values == [1.0, 0.1, 0.5]
    assert len(choice.figures) == 3
    page = choice._repr_html_()
    assert re.findall(r'<div data-value="([^"]*)"', page) == ["1", "0.1", "0.5"]
    assert re.findall(r'data-value="([^"]*)"> *<svg', page) == ["0.1"]  # the others are hidden
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert page == er.plots.slider(drawn, C=[1.0, 0.1, 0.5])._repr_html_()


def test_names_and_values_are_text_and_no_markup():
    page = er.plots.slider(lambda loss: er.plots.losses(["hinge"]), loss=['<b>"', "b"])._repr_html_()
    assert 'data-value="&lt;b&gt;&quot;"' in page
    assert "<b>" not in page


def test_what_is_no_slider_is_refused():
    with pytest.raises(EmpiriskError, match="one parameter with its values"):
        er.plots.slider(drawn)
    with pytest.raises(EmpiriskError, match="not 2"):
        er.plots.slider(drawn, C=[1.0], width=[1.0])
    with pytest.raises(EmpiriskError, match=r"C=\[\] has no values"):
        er.plots.slider(drawn, C=[])
    with pytest.raises(EmpiriskError, match="not float; end it with a view"):
        er.plots.slider(lambda C: C, C=[1.0])


@pytest.mark.long  # a browser is its subject
def test_keys_move_the_slider_in_a_page_without_network(tmp_path):
    page = tmp_path / "page.html"
    choice = er.plots.slider(drawn, C=[0.1, 0.5, 1.0])
    page.write_text(f"<!DOCTYPE html><body>{choice._repr_html_()}{choice._repr_html_()}", encoding="utf-8")
    with browsing(tmp_path / "profile", logged=True) as browser:
        browser.get(page.as_uri())
        one, other = browser.find_elements(By.TAG_NAME, "figure")
        shown = partial(lambda figure: [f.get_attribute("data-value") for f in
                        figure.find_elements(By.CSS_SELECTOR, "[data-value]") if f.is_displayed()])  # fmt: skip
        assert shown(one) == ["0.5"]
        handle = one.find_element(By.TAG_NAME, "input")
        handle.send_keys(Keys.ARROW_RIGHT)
        assert (shown(one), shown(other)) == (["1"], ["0.5"])
        assert one.find_element(By.TAG_NAME, "output").text == "1"
        assert handle.get_attribute("aria-valuetext") == "1"
        handle.send_keys(Keys.HOME)
        assert shown(one) == ["0.1"]
        assert handle.accessible_name == "C"
