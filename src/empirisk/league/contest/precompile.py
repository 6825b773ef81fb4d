"""What the contest is going to need is compiled ahead by other processes, while its first machines run.

Numba keeps what it has compiled in files, so whoever comes second only loads it. A process has low priority and fits
each machine to a few rows; it ends when the contest does, between two functions, so that what it has compiled is kept
and no file is left half-way. On a computer where nothing was compiled yet it is started before the table is read, so
that it is ready when the first machine plays.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.league.candidates.everyone import Size, candidates_for
from empirisk.league.contest.compiling import CompilationListener, listening_to_numba
from empirisk.league.rows.encoded_folds import sample
from empirisk.settings import settings
from empirisk.trees.binned.alone import grow_alone

#: Processes at most: each takes a quarter of a gigabyte, and with more of them the longest decides.
MAX_PROCESSES = 3
#: Candidates whose compiled code is kept in no file: JAX's.
NOT_CACHED = ("network",)
#: Rows that machines are fitted to, as many as the landmarks of a Nystrom map at least.
ROWS = 400
#: Added to the niceness of a process, so that the contest comes first.
NICENESS = 5


class PrecompileProcesses:
    """Processes that compile ahead; they are told to end at the end of a ``with`` block, and not waited for.

    Attributes
    ----------
    running : list
        The processes that were started.
    asked : bool
        Whether they were told what to compile.

    Examples
    --------
    >>> with PrecompileProcesses() as processes:
    ...     size = Size(20, 1, 1.0, 2, False, 0)
    ...     processes.compile([("svm", "numbers")], {"numbers": (size, np.arange(20.0)[:, None], np.arange(20) % 2)})
    """

    def __init__(self):
        self.running: list[subprocess.Popen] = []
        self.asked = False

    def start(self) -> None:
        """Start the processes, which load what they need and wait for work."""
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for _ in range(min(settings().threads - 1, MAX_PROCESSES) if sys.executable else 0):
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-P", "-c", f"from {__name__} import main; main()"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                )
            )

    def compile(self, names: Sequence[tuple[str, str]], parts: Mapping[str, tuple[Size, Any, NDArray]]) -> None:
        """Compile what the candidates of these names need, in order; once.

        Beside each name stands the encoding that it reads; of each there are the size of its table, and its rows.
        """
        self.asked = True
        if not self.running:
            self.start()
        few = {}
        for encoding, (size, X, y) in parts.items():
            rows = sample(y, ROWS, size.seed, np.arange(len(y)))
            few[encoding] = size, X[rows], y[rows]
        jobs = [(name, *few[encoding]) for name, encoding in names if name not in NOT_CACHED]
        for place, process in enumerate(self.running):
            Thread(target=_send, args=(process, jobs[place :: len(self.running)]), daemon=True).start()

    def __enter__(self) -> "PrecompileProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            with suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
            Thread(target=process.wait, daemon=True).start()  # so that nothing is left of it


def nothing_compiled() -> bool:
    """Whether no file holds the loop that grows the trees of boosting: this computer has not run a contest yet."""
    folder = getattr(grow_alone.stats, "cache_path", None)
    name = grow_alone.__name__
    return not (folder and os.path.isdir(folder) and any(f".{name}-" in file for file in os.listdir(folder)))


def _send(process: subprocess.Popen, jobs: list[tuple]) -> None:
    """Hand the jobs over."""
    with suppress(OSError, ValueError):  # it has ended, or is to end
        pickle.dump(jobs, process.stdin)  # type: ignore[arg-type]
        process.stdin.flush()  # type: ignore[union-attr]


def main() -> None:
    """What such a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the contest, which then closes the pipe
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    try:
        jobs = pickle.load(sys.stdin.buffer)
    except EOFError:  # the run ended before it came to its machines
        os._exit(0)
    over = Event()
    Thread(target=lambda: (sys.stdin.buffer.read(), over.set()), daemon=True).start()
    with listening_to_numba(CompilationListener(lambda: None, lambda: os._exit(0) if over.is_set() else "")):
        for name, size, X, y in jobs:
            candidate = candidates_for(size.classes > 0, [name])[-1]
            machines = [] if candidate.reason_not_to_run(size) else [*candidate.quick(size), *candidate.machines(size)]
            for machine in machines[:1] + machines[1:][-1:]:  # settings differ most there
                with suppress(Exception):  # the contest will say what is wrong
                    machine.fit(X, y).predict(X)
    os._exit(0)  # the thread still reads
