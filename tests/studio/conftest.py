"""One studio and one browser for all tests in a browser."""

import pytest

from tests.browser import browsing
from tests.studio.studios import running


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """A browser that has entered a studio, and the address of the studio."""
    parent, profile = tmp_path_factory.mktemp("studio"), tmp_path_factory.mktemp("profile")
    with running(parent) as (port, announced), browsing(profile, logged=True) as driver:
        driver.get(announced[0])
        yield driver, f"http://127.0.0.1:{port}"
