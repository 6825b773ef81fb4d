"""A real browser without a window."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # there is no network beyond this machine
)


@contextmanager
def browsing(profile, logged: bool = False) -> Iterator[Chrome]:
    """Chromium with a profile of its own; ``logged`` keeps a log of what it asks the network for."""
    options = ChromeOptions()
    if logged:
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
