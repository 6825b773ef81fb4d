"""Systems without POSIX: what only some systems have is asked for before it is used."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import empirisk as er
from empirisk.cli import outputs

SOURCE = Path(er.__file__).parent
#: Names of `os`, `signal`, `socket` and `time` that Windows does not have, from Python's documentation.
POSIX = set(
    re.findall(
        r"\w+",
        """
        chown fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpgrp getpriority getsid
        getuid killpg lchown mkfifo nice openpty posix_fallocate posix_spawn pread preadv pwrite pwritev readv
        register_at_fork sched_getaffinity sched_setaffinity sendfile setsid setuid statvfs sync sysconf uname wait3
        writev alarm pthread_kill pthread_sigmask setitimer sigtimedwait sigwait SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE
        SIGPROF SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 SIGVTALRM AF_UNIX SO_REUSEPORT clock_gettime O_CLOEXEC O_DIRECTORY
        O_NOFOLLOW O_NONBLOCK O_SYNC
        """,
    )
)
#: Modules that Windows does not have.
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
#: Where each such name may stand: after it was asked for, as the next test tries.
GUARDED = {
    "league/contest/precompile.py": {"nice"},
    "linalg/threads.py": {"register_at_fork"},
    "places.py": {"getuid"},
    "runs/journal.py": {"fcntl"},
    "settings.py": {"sched_getaffinity", "sysconf"},
    "state.py": {"register_at_fork"},
}
#: A process that has lost all of it, but for what others need to be imported.
WITHOUT = f"""
import asyncio, concurrent.futures, multiprocessing, subprocess, tempfile, os, sys, time
import joblib, numba, scipy.stats, sklearn.pipeline, sklearn.svm, matplotlib.figure, polars
import signal, socket
for module in (os, signal, socket, time):
    for name in {sorted(POSIX - {"statvfs", "uname"})!r}:  # Python itself asks for these two here
        if hasattr(module, name):
            delattr(module, name)
for name in {sorted(MODULES)!r}:
    sys.modules[name] = None
import numpy as np
import empirisk as er
from empirisk.places import private_folder
from empirisk.settings import settings
os.chdir(sys.argv[1])
X = np.random.default_rng(0).normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
with open("t.csv", "w") as file:
    file.write("a,b,c,y\\n" + "".join(f"{{row[0]}},{{row[1]}},{{row[2]}},{{k}}\\n" for row, k in zip(X, y)))
forest = er.ForestClassifier(n_estimators=5).fit(X, y)
er.save(forest, "a.model")
same = np.array_equal(er.load("a.model").predict(X), forest.predict(X))
there = er.Ridge().fit(er.scan("t.csv", target="y"))
with er.config(memory="3MB"):
    there.predict(er.scan("t.csv", target="y")).frame()
found = er.learn("t.csv", "y", machines=["logistic"], out="t.model", seed=0)
print(settings().threads >= 1, settings().memory, private_folder().name, same, there.coef_.shape, found.winner)
"""


def test_names_that_windows_lacks_are_guarded():
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = set()
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = {node.attr} & POSIX if node.value.id in ("os", "signal", "socket", "time") else set()
            elif isinstance(node, ast.Import):
                names = {alias.name for alias in node.names} & MODULES
            elif isinstance(node, ast.ImportFrom):
                names = ({node.module} & MODULES) | ({alias.name for alias in node.names} & POSIX)
            if names:
                found.setdefault(str(file.relative_to(SOURCE).as_posix()), set()).update(names)
    assert found == GUARDED


def test_text_has_an_encoding():
    command = [sys.executable, "-m", "ruff", "check", "--preview", "--select", "PLW1514", "-q", SOURCE]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""


def test_a_system_without_posix(tmp_path):
    place = os.environ | {"TMPDIR": str(tmp_path)}
    code = [sys.executable, "-W", "error", "-c", WITHOUT, str(tmp_path)]
    ended = subprocess.run(code, capture_output=True, text=True, check=False, env=place)
    assert (ended.stdout, ended.stderr) == ("True 2000000000 empirisk True (3,) logistic\n", "")


def test_a_console_of_windows_keeps_its_stream(monkeypatch):
    class Console:
        isatty = staticmethod(lambda: True)

    monkeypatch.setattr(sys, "platform", "win32")
    console = Console()
    assert outputs._enduring(console, 1) is console
