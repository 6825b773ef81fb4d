"""The playground in a real browser."""

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from empirisk.studio.playground.address import PORT, link
from empirisk.studio.playground.points import DATASETS
from tests.studio.browsers import (
    by_id,
    is_clean,
    is_legible,
    is_narrow_enough,
    is_told,
    sized,
    text,
    until,
    walk_by_tab,
)


@pytest.fixture
def open_page(page):
    driver, address = page
    sized(driver, 1300, 900)
    driver.get("about:blank")
    driver.get(f"{address}/playground")
    until(driver, lambda: "er.Classifier" in text(driver, "code") and text(driver, "certificate"))
    yield driver, address
    is_clean(driver, address)


def settled(driver, before):
    """The address after the next redraw."""
    return until(driver, lambda: driver.current_url != before and driver.current_url)


def slide(driver, name, value):
    driver.execute_script(
        "const it = document.getElementById(arguments[0]); it.value = arguments[1];"
        "it.dispatchEvent(new Event('input', {bubbles: true}));",
        name,
        value,
    )


def test_change_play_link_and_copy(open_page, tmp_path, monkeypatch):
    driver, _ = open_page
    assert "hinge" in text(driver, "equation")
    assert "proved optimal" in text(driver, "certificate")
    before = driver.current_url
    slide(driver, "control-C", 2)
    settled(driver, before)
    assert "C=100" in until(driver, lambda: "C=100" in text(driver, "code") and text(driver, "code"))
    # The steps forward and back.
    by_id(driver, "forward").click()
    first = until(driver, lambda: "iteration 1" in text(driver, "step-label") and text(driver, "step-label"))
    by_id(driver, "back").click()
    until(driver, lambda: "start" in text(driver, "step-label"))
    assert first.startswith("decomposition")
    by_id(driver, "play").click()
    until(driver, lambda: "solution" in text(driver, "step-label"))
    # The copied script is run, and gives the machine that the page shows.
    by_id(driver, "copy").click()
    script = until(driver, lambda: text(driver, "script"))
    names = {}
    exec(
        compile(script.replace("figure.savefig", "figure.get_size_inches; (lambda *a, **k: None)"), "copied", "exec"),
        names,
    )
    assert names["machine"].certificate_.primal == pytest.approx(shown_primal(driver), rel=1e-6)
    driver.find_element(By.CSS_SELECTOR, "#script-dialog form button:last-child").click()
    # The address reopens the same.
    link, code, proof = driver.current_url, text(driver, "code"), shown_primal(driver)
    driver.get("about:blank")
    driver.get(link)
    until(driver, lambda: text(driver, "code") == code)
    assert shown_primal(driver) == proof
    # A machine that is not known here is none of the link's, and no error.
    driver.execute_script("location.hash = location.hash.replace('family=equation', 'family=oracle')")
    until(driver, lambda: text(driver, "code") == 'er.Classifier(loss="hinge", penalty="l2", C=1)')
    assert "Thin lines" in text(driver, "legend")
    slide(driver, "control-C", 1)
    driver.execute_script(
        "for (const [name, value] of [['loss', 'logistic'], ['features', 'kernel']]) {"
        "const it = document.getElementById(`control-${name}`);"
        "it.value = value; it.dispatchEvent(new Event('change')); }"
    )
    until(driver, lambda: "logistic" in text(driver, "code") and "kernels" in text(driver, "code"))
    until(driver, lambda: "Thin lines" not in text(driver, "legend"))  # that are not drawn
    # A mistake in a kernel is a sentence, and the page lives on.
    field = by_id(driver, "control-kernel")
    field.clear()
    field.send_keys("Gausian(1)")
    until(driver, lambda: "did you mean 'Gaussian'?" in text(driver, "problem"))
    field.clear()
    field.send_keys("Linear() + Gaussian(1)")
    until(driver, lambda: "er.kernels.Linear() + er.kernels.Gaussian(1)" in text(driver, "code"))
    assert not by_id(driver, "problem").is_displayed()


def shown_primal(driver):
    return float(driver.find_element(By.CSS_SELECTOR, "#certificate dd").text.replace(",", ""))


def test_points_by_mouse_and_by_keyboard_alone(open_page):
    driver, _ = open_page
    before = driver.current_url
    by_id(driver, "clear").click()
    until(driver, lambda: "at least 4 points" in text(driver, "problem"))
    canvas, step = by_id(driver, "plane"), 60
    for key, side in (("1", -1), ("2", 1)):
        canvas.send_keys(key)
        for k in range(3):
            place = ActionChains(driver).move_to_element_with_offset(canvas, side * 2 * step, (k - 1) * step)
            place.click().perform()
    until(driver, lambda: "of 4" in text(driver, "certificate") or "of 5" in text(driver, "certificate"))
    count = len(points(driver))
    assert count == 6
    # By keys: the cursor goes to the right, a point is added, and erased again.
    canvas.send_keys(Keys.ARROW_RIGHT * 3, Keys.ENTER)
    until(driver, lambda: len(points(driver)) == 7)
    canvas.send_keys(Keys.DELETE)
    until(driver, lambda: len(points(driver)) == 6)
    # A point is dragged.
    left = ActionChains(driver).move_to_element_with_offset(canvas, -2 * step, 0).click_and_hold()
    left.move_by_offset(0, 3 * step).release().perform()
    until(driver, lambda: any(y < -1.5 for _, y, _ in points(driver)))
    assert driver.current_url != before


def points(driver):
    decode = "import('/static/address.js').then(it => arguments[0](it.decode(location.hash, {}).points))"
    return driver.execute_async_script(decode)


def test_all_families_on_a_narrow_dark_page(open_page):
    driver, _ = open_page
    sized(driver, 400, 850, dark=True)
    for task, family in (("numbers", "boosting"), ("clusters", "mixture"), ("classes", "forest")):
        by_id(driver, "tasks").find_element(By.CSS_SELECTOR, f"[data-name={task}]").click()
        by_id(driver, "families").find_element(By.CSS_SELECTOR, f"[data-name={family}]").click()
        name = {"boosting": "er.Boosting", "mixture": "er.GaussianMixture", "forest": "er.Forest"}[family]
        until(driver, lambda name=name: name in text(driver, "code"))
        is_narrow_enough(driver)


def test_the_playground_by_keyboard_and_by_ear(open_page):
    driver, _ = open_page
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#path path"))
    found = is_told(driver)
    assert ("slider", "C") in found
    assert any(role == "application" and "Arrow keys" in name for role, name in found)
    assert "support vectors" in driver.execute_script("return document.getElementById('described').textContent")
    walk_by_tab(driver)
    is_legible(driver)
    # The path over C is a strip to drag along, and a slider for the keyboard.
    strip = by_id(driver, "path")
    strip.send_keys(Keys.PAGE_UP)
    until(driver, lambda: "C=10," in text(driver, "code"))
    ActionChains(driver).move_to_element(strip).click_and_hold().move_by_offset(-60, 0).release().perform()
    until(driver, lambda: "C=10," not in text(driver, "code"))
    # Where the cursor is, is told.
    by_id(driver, "plane").send_keys(Keys.ARROW_UP)
    assert driver.execute_script("return document.getElementById('cursor').textContent").startswith("0, 0.1")


HOLD = """
const ask = window.fetch;
window.fetch = (...given) => new Promise(answer => {
  window.letGo = () => { window.fetch = ask; answer(ask(...given)); };
});
"""


def test_a_fit_that_takes_long_says_so(open_page):
    """While its answer is on its way, and no longer."""
    driver, _ = open_page
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#path path"))
    assert not by_id(driver, "busy").is_displayed()
    driver.execute_script(HOLD)
    slide(driver, "control-C", 2)
    until(driver, lambda: by_id(driver, "busy").is_displayed())
    assert text(driver, "busy") == "fitting …"
    driver.execute_script("letGo()")
    until(driver, lambda: "C=100" in text(driver, "code") and not by_id(driver, "busy").is_displayed())


def test_what_has_no_path_shows_none(open_page):
    """The strip goes at once, before the path would be computed, and comes back with a machine that has one."""
    driver, _ = open_page
    until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#path path"))
    later = "window.later ??= setTimeout; window.setTimeout = (work, after) => after === 260 ? 0 : later(work, after)"
    driver.execute_script(later)
    choose = "#families [data-name={}]".format
    driver.find_element(By.CSS_SELECTOR, choose("tree")).click()
    until(driver, lambda: "er.Tree" in text(driver, "code"))
    until(driver, lambda: not by_id(driver, "path-card").is_displayed())
    driver.execute_script("window.setTimeout = later")
    driver.find_element(By.CSS_SELECTOR, choose("equation")).click()
    until(driver, lambda: by_id(driver, "path-card").is_displayed())


def test_a_toast_goes_by_itself(open_page):
    driver, _ = open_page
    by_id(driver, "link").click()
    until(driver, lambda: by_id(driver, "toast").is_displayed())
    until(driver, lambda: not by_id(driver, "toast").is_displayed())


def test_data_sets_and_noise(open_page):
    driver, _ = open_page
    shapes = {}
    for task in ("numbers", "clusters", "classes"):
        before = driver.current_url
        by_id(driver, "tasks").find_element(By.CSS_SELECTOR, f"[data-name={task}]").click()
        settled(driver, before)
        for name in DATASETS[task]:
            before = driver.current_url
            by_id(driver, "datasets").find_element(By.CSS_SELECTOR, f"[data-name={name}]").click()
            settled(driver, before)
            shapes[task, name] = points(driver)
            assert not text(driver, "problem")
    assert len({str(one) for one in shapes.values()}) == len(shapes)
    # Points that were changed by hand take noise too, and their number is theirs.
    before = driver.current_url
    by_id(driver, "plane").send_keys(Keys.ENTER)
    settled(driver, before)
    mine = points(driver)
    assert len(mine) == 151
    assert not by_id(driver, "count").is_enabled()
    slide(driver, "noise", 0.4)
    until(driver, lambda: points(driver) != mine)
    slide(driver, "noise", 0)
    until(driver, lambda: points(driver) == mine)


def test_links_of_the_documentation_open_their_points_and_machine(open_page):
    driver, address = open_page
    X, y = [[-1.5, 0.25], [-1.0, 0.0], [1.0, 0.5], [1.5, -2.0]], ["left", "left", "right", "right"]
    led = link(X, y, loss="logistic", C=10.0, features="kernel", kernel="Gaussian(0.5)").address
    driver.get("about:blank")
    driver.get(led.replace(f"http://127.0.0.1:{PORT}", address))
    code = until(driver, lambda: "er.kernels.Gaussian(0.5)" in text(driver, "code") and text(driver, "code"))
    assert 'loss="logistic"' in code
    assert "C=10" in code
    assert "4 points" in until(driver, lambda: text(driver, "described"))
