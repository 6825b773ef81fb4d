"""What tests in a browser share: waiting, and what must be true of every page."""

import json
from urllib.parse import urlsplit

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 180  # that a page may take to show something: other tests run at the same time


def until(driver, condition):
    """What a condition gives once it is true."""
    # The page is drawn anew while it is looked at.
    ignored = [StaleElementReferenceException]
    return WebDriverWait(driver, SECONDS, 0.05, ignored).until(lambda _: condition())


#: Counts the questions of a page that are on their way; an answer is given to the page when all of it is there.
COUNTED = """
window.asked = 0;
const ask = window.fetch;
window.fetch = async (...given) => {
  window.asked += 1;
  try {
    const reply = await ask(...given);
    await reply.clone().arrayBuffer();
    return reply;
  } finally { window.asked -= 1; }
};
"""
CALM = """
let frames = 0;
const look = () => {
  frames = window.asked ? 0 : frames + 1;
  frames > 3 ? arguments[0]() : requestAnimationFrame(look);
};
look();
"""


def count_questions(driver):
    """Let every page that is opened from now on count its questions; see `calm`."""
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTED})
    driver.set_script_timeout(SECONDS)


def calm(driver):
    """Wait until the page has drawn all that it has asked for: nothing is replaced while it is looked at."""
    driver.execute_async_script(CALM)


def text(driver, name):
    return driver.find_element(By.ID, name).text


def by_id(driver, name):
    return driver.find_element(By.ID, name)


def sized(driver, width, height, dark=False):
    """Give the page a size and a colour scheme."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def is_clean(driver, address, expected=()):
    """No error in the console, and no request beyond the studio since the last call."""
    errors = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert [message for message in errors if not any(part in message for part in expected)] == []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            assert url.startswith((address, "data:", "blob:", "chrome:")) or urlsplit(url).scheme == "about", url


def is_narrow_enough(driver):
    """Nothing is wider than the page."""
    calm(driver)
    wide = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], wide


#: Texts that stand out too little from the ground behind them, whose layers are laid over one another.
FAINT = """
const dot = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
const pen = dot.getContext("2d", {willReadFrequently: true});
const read = colour => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].map(v => v / 255); };
const over = (top, below) => below.map((v, k) => k === 3 ? 1 : top[k] * top[3] + v * (1 - top[3]));
const ground = it => it ? over(read(getComputedStyle(it).backgroundColor), ground(it.parentElement)) : [1, 1, 1, 1];
const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
const contrast = it => {
  const style = getComputedStyle(it), below = ground(it);
  const ends = [light(over(read(it instanceof SVGElement ? style.fill : style.color), below)), light(below)];
  return (Math.max(...ends) + .05) / (Math.min(...ends) + .05);
};
const written = it => [...it.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
const shown = it => it.checkVisibility() && !it.closest(":disabled, option, .skip, .hidden");
for (const change of document.getAnimations()) change.finish();  // from day to night
return [...document.querySelectorAll("body *")].filter(it => shown(it) && written(it) && contrast(it) < 4.5)
  .map(it => [it.tagName, it.textContent.slice(0, 40), contrast(it)]);
"""


def is_legible(driver):
    """All letters stand out from their ground, by day and by night, as the accessibility guidelines (WCAG, AA) ask."""
    calm(driver)
    for dark in (False, True):
        sized(driver, 1300, 900, dark)
        faint = driver.execute_script(FAINT)
        assert not faint, (dark, faint)


DROP = """
const [selector, name, text] = arguments, target = document.querySelector(selector), data = new DataTransfer();
data.items.add(new File([text], name));
for (const kind of ["dragover", "drop"])
  target.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
"""


def drop(driver, selector, path):
    """Drop a file on an element."""
    driver.execute_script(DROP, selector, path.name, path.read_text())


#: What the keyboard must reach: everything that can be used, but for the others of a group that arrow keys walk along.
REACHED = """
const usable = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
window.toReach = usable.filter(it => !it.disabled && it.tabIndex >= 0 && it.checkVisibility({visibilityProperty: true})
  && it.getClientRects().length && !it.closest(".skip"));
return window.toReach.length;
"""
FOCUSED = """
const it = document.activeElement, style = getComputedStyle(it), place = window.toReach.indexOf(it);
const box = it.getBoundingClientRect(), seen = box.bottom > 0 && box.top < innerHeight;
return [place, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0, seen, it.outerHTML.slice(0, 90)];
"""


def walk_by_tab(driver):
    """Press Tab through the page: everything usable is reached, is on the screen, and shows that it has the focus."""
    calm(driver)
    count = driver.execute_script(REACHED)
    driver.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    reached, poor = set(), []
    for _ in range(count + 6):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        place, outlined, seen, what = driver.execute_script(FOCUSED)
        if place >= 0:
            reached.add(place)
            if not outlined or not seen:
                poor.append(what)
    missed = driver.execute_script(
        "return arguments[0].map(k => window.toReach[k].outerHTML.slice(0, 120))", sorted(set(range(count)) - reached)
    )
    assert (missed, poor) == ([], [])


#: Roles that say nothing without a name.
NAMED_ROLES = """
    button link textbox searchbox combobox slider spinbutton checkbox radio tab tabpanel image img application
    DisclosureTriangle radiogroup toolbar tablist table region dialog
"""


def is_told(driver):
    """What a screen reader is given, as (role, name): a main part, one title, no control or picture without a name."""
    calm(driver)
    shown = until(driver, lambda: tree(driver))
    found = [(told(node, "role"), told(node, "name")) for node in shown]
    assert [role for role, name in found if role in NAMED_ROLES.split() and not name.strip()] == []
    roles = [role for role, _ in found]
    assert (roles.count("main"), roles.count("navigation")) == (1, 1)
    headings = [node for node in shown if told(node, "role") == "heading"]
    levels = [prop["value"]["value"] for node in headings for prop in node["properties"] if prop["name"] == "level"]
    assert levels.count(1) == 1
    return set(found)


def tree(driver):
    """The nodes of the accessibility tree; none while the browser is still making it."""
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    shown = [node for node in nodes if not node.get("ignored")]
    return shown if any(told(node, "role") == "main" for node in shown) else []


def told(node, what):
    """A value of a node of the accessibility tree."""
    return str(node.get(what, {}).get("value", ""))
