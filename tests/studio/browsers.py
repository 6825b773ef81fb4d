"""What tests in a browser share: waiting, and what must be true of every page."""

import json
from urllib.parse import urlsplit

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 60  # that a page may take to show something: other tests run at the same time


def until(driver, condition):
    """What a condition gives once it is true."""
    # The page is drawn anew while it is looked at.
    ignored = [StaleElementReferenceException]
    return WebDriverWait(driver, SECONDS, 0.05, ignored).until(lambda _: condition())


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
    wide = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], wide
