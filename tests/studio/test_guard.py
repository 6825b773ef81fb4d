"""Who may use the studio."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from empirisk.studio.workbench.job import OPTIONS
from tests.studio.studios import ask, enter, running


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with running(tmp_path_factory.mktemp("studio")) as found:
        yield found


def test_nobody_enters_without_the_token(studio):
    port, announced = studio
    for path in ("/", "/playground", "/static/studio.css", "/playground/about", "/?token=guess"):
        assert ask(port, path)[0] == 403
    assert "key" in ask(port, "/")[2]
    before = len(announced)
    cookie = enter(studio)
    assert ask(port, "/playground", cookie)[0] == 200
    # The address is worth one visit; another was announced.
    assert len(announced) == before + 1
    assert ask(port, announced[before - 1].partition(str(port))[2])[0] == 403


def test_the_cookie_is_for_this_studio_alone(studio):
    port, announced = studio
    _, headers, _ = ask(port, announced[-1].partition(str(port))[2])
    assert {"httponly", "samesite=lax"} <= {part.strip().lower() for part in headers["set-cookie"].split(";")}
    assert ask(port, "/playground", {"Cookie": f"empirisk_studio_{port}=guess"})[0] == 403


def test_other_hosts_and_origins_are_refused(studio):
    port, _ = studio
    cookie = enter(studio)
    assert ask(port, "/playground", cookie | {"Host": f"evil.example:{port}"})[0] == 421
    question = {"points": [], "task": "classes"}
    strange = cookie | {"Origin": "http://evil.example"}
    assert ask(port, "/playground/fit", strange, question)[0] == 403
    own = cookie | {"Origin": f"http://127.0.0.1:{port}"}
    _, _, text = ask(port, "/playground/fit", own, question)
    assert "at least 4 points" in json.loads(text)["error"]


def test_answers_are_safe(studio):
    port, _ = studio
    status, headers, _ = ask(port, "/playground", enter(studio))
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert ask(port, "/static/../guard.py", enter(studio))[0] == 404
    assert ask(port, "/nothing", enter(studio))[0] == 404


def test_large_and_broken_bodies(studio):
    port, _ = studio
    cookie = enter(studio)
    for body, status in (("x" * 2_000_000, 413), (b"{", 400), ([1, 2], 400)):
        assert json.loads(ask(port, "/playground/fit", cookie, body)[2])["status"] == status


#: Whatever JSON knows, where something else is expected.
ODD = (None, 5, True, "x", [1], [["x"]], {"a": 1}, {"a": ["x"]})


def test_parts_of_questions_that_are_something_else_are_sentences(studio):
    """Whatever stands for a part of a question, no view fails over it, and no run begins."""
    port, _ = studio
    cookie, options = enter(studio), {"target": "species"}
    whole = {"name": "iris", "options": options, "types": {}, "runs": ["x", "y"], "task": "classes", "points": []}
    parts = {
        "/table": ["name", "types"],
        "/table/names": ["name", "part"],
        "/table/notes": ["name", "options"],
        "/table/do": ["name", "do", "to"],
        "/upload/fits": ["name", "size"],
        "/compare": ["runs"],
        "/playground/data": ["task", "name", "count", "noise", "seed"],
        "/playground/fit": ["task", "family", "held", "settings", "points"],
    }
    asked = [(view, whole | {name: odd}) for view, names in parts.items() for name in names for odd in ODD]
    asked += [("/table/notes", whole | {"options": options | {name: odd}}) for name in OPTIONS for odd in ODD]
    for view, body in asked:
        status, _, text = ask(port, view, cookie, body)
        assert status == 200, (view, body, text)
    for view, part in (("/table", "types"), ("/table/notes", "options"), ("/learn", "options"), ("/compare", "runs")):
        found = json.loads(ask(port, view, cookie, whole | {part: 5})[2])
        assert (found["status"], found["error"].startswith(f"{part} must be ")) == (400, True)
    for option, odd in (("test", "x"), ("types", [1]), ("drop", 5)):
        found = json.loads(ask(port, "/learn", cookie, whole | {"options": options | {option: odd}})[2])
        assert found["error"].startswith(f"{option}={odd!r} must ")


@pytest.mark.long
def test_the_command_prints_an_address_that_opens_a_table(tmp_path):
    """On the loopback alone, worth one visit, not on the command line of the browser, and ended by Ctrl-C."""
    words = [sys.executable, "-m", "empirisk", "studio", "iris"]
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/cmdline > started\n")
    browser.chmod(0o700)
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env=os.environ | {"BROWSER": f"{browser} %s"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        line = next(line for line in process.stdout if "token=" in line)
        address = urlsplit(line.split()[-1])
        assert (address.hostname, address.fragment) == ("127.0.0.1", "table=iris")
        deadline = time.monotonic() + 30
        while True:
            try:
                status, headers, _ = ask(address.port, f"/?{address.query}")
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert status == 303
        assert ask(address.port, "/", {"Cookie": headers["set-cookie"].partition(";")[0]})[0] == 200
        assert ask(address.port, f"/?{address.query}")[0] == 403
        started = (tmp_path / "started").read_text()
        assert "token" not in started
        opened = Path(urlsplit(started.split()[-1]).path)
        assert opened.stat().st_mode & 0o777 == 0o600
        assert f"url={line.split()[-1]}" in opened.read_text()
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert not opened.parent.exists()
