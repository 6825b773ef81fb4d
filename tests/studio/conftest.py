"""One studio and one browser for all tests in a browser."""

import pytest

from tests.browser import browsing
from tests.studio.browsers import count_questions
from tests.studio.studios import running


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Where the studio of the browser was started."""
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="session")
def page(tmp_path_factory, home):
    """A browser that has entered a studio, and the address of the studio."""
    profile = tmp_path_factory.mktemp("profile")
    with running(home) as (port, announced), browsing(profile, logged=True) as driver:
        count_questions(driver)
        driver.get(announced[0])
        yield driver, f"http://127.0.0.1:{port}"
