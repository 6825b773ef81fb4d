"""Runs of ``empirisk learn`` that are killed and started again: their models equal those of undisturbed runs.

``python -m tests.files.kills`` runs all of `CASES`, says of each where it was killed, how many results the journal held
by then, and whether the model is the same to the byte; the suite runs some of them.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

#: The command, but SIGKILL comes from within at a moment: so long after something was begun for the n-th time, or where
#: a file is whole but not yet in its place. What it does it says, a line each.
COMMAND = """
import os, signal, sys, threading
from empirisk.cli.learn import Screen
from empirisk.cli.main import app

begun, count, wait = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
real, replace = Screen.doing, os.replace

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def meets(what):
    global count
    count -= bool(begun) and begun in what
    return bool(begun) and begun in what and count == 0

def doing(screen, what):
    print("doing", what, flush=True)
    if meets(what):
        threading.Timer(wait, kill).start() if wait else kill()
    real(screen, what)

def put(source, place):
    if meets(f"putting {place}"):
        kill()
    replace(source, place)

Screen.doing, os.replace = doing, put
sys.argv = ["empirisk", "learn", *sys.argv[4:]]
app()
"""


class Moment(NamedTuple):
    """When to kill: a part of what is said to begin, how often it has to, and the seconds from then on."""

    begun: str
    count: int = 1
    wait: float = 0.0


class Case(NamedTuple):
    """A table, and the moments at which the runs that follow each other are killed."""

    table: str
    moments: tuple[Moment, ...]


class Ended(NamedTuple):
    """What came of a case: whether each kill was one, results in the journal at each, and whether the model is equal.

    ``matches`` are those that the run from end to end played, and the last one of those that were killed and resumed.
    """

    killed: list[bool]
    kept: list[int]
    matches: tuple[int, int]
    equal: bool
    tidy: bool

    @property
    def resumed(self) -> bool:
        """Whether it was a true resume: every kill met a run at work, and what was kept was not made again."""
        return all(self.killed) and any(self.kept) and self.matches[1] < self.matches[0]


NEVER, FOLD, READ = Moment(""), Moment("fold", 8), Moment("reading")
CASES = [
    Case("classes", (FOLD,)),
    Case("classes", (Moment("fold", 6, 0.02), READ)),
    Case("classes", (Moment("on all"),)),
    Case("classes", (Moment("report.html"),)),
    Case("numbers", (Moment("fold", 12, 0.01), Moment("fold", 2))),
    Case("numbers", (Moment("on all", 1, 0.005),)),
    Case("numbers", (Moment(".model"),)),
    Case("texts", (Moment("fold", 7, 0.02),)),
    Case("texts", (Moment("drawing"),)),
    Case("gaps", (Moment("fold", 9, 0.05), READ, Moment("the test"))),
    Case("gaps", (Moment("importances", 1, 0.05),)),
    Case("gaps", (Moment("drawing", 1, 0.3), Moment(".model"))),
]
MACHINES = {
    "classes": "centroid,logistic,svm",
    "numbers": "ridge,tree,boosting",
    "texts": "centroid,logistic,svm",
    "gaps": "logistic,forest,boosting",
}


def tables() -> dict[str, pl.DataFrame]:
    """Tables of several kinds with the target y: scikit-learn's, texts, and passengers with gaps."""
    from sklearn.datasets import load_diabetes, load_wine

    random, frames = np.random.default_rng(0), {}
    for name, (X, y) in {"classes": load_wine(return_X_y=True), "numbers": load_diabetes(return_X_y=True)}.items():
        frames[name] = pl.DataFrame({f"x{k}": X[:, k] for k in range(X.shape[1])} | {"y": y})
    words = ["the", "room", "was", "clean", "dirty", "staff", "friendly", "rude", "breakfast", "good", "bad", "again"]
    texts = [" ".join(random.choice(words, 9)) for _ in range(200)]
    kinds = ["complaint" if ("rude" in text) + ("dirty" in text) + ("bad" in text) > 1 else "praise" for text in texts]
    frames["texts"] = pl.DataFrame({"said": texts, "stars": random.integers(1, 6, 200), "y": kinds})
    age, fare, sex = random.normal(30, 12, 300), random.exponential(30, 300), random.choice(["male", "female"], 300)
    lived = (sex == "female") + fare / 60 - age / 60 + random.normal(0, 0.4, 300) > 0.5
    frames["gaps"] = pl.DataFrame(
        {
            "age": [None if random.random() < 0.2 else value for value in age.round(1)],
            "fare": fare.round(2),
            "sex": [None if random.random() < 0.05 else str(value) for value in sex],
            "deck": [str(value) if random.random() < 0.3 else None for value in random.choice(list("ABC"), 300)],
            "y": lived.astype(int),
        }
    )
    return frames


def learn(table: Path, out: Path, moment: Moment) -> subprocess.CompletedProcess:
    arguments = [table, "--target", "y", "--machines", MACHINES[table.stem], "--out", out, "--jobs", "1"]
    command = [sys.executable, "-c", COMMAND, *moment, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def matches(run: subprocess.CompletedProcess) -> int:
    """The matches that a run has played; what is compiled on the way is said too."""
    lines = run.stdout.splitlines()
    return sum(line.startswith("doing") and " fold " in line and "compiling" not in line for line in lines)


def whole(table: Path, out: Path) -> tuple[bytes, int]:
    """The model of an undisturbed run, and the matches that it took."""
    run = learn(table, out, NEVER)
    assert run.returncode == 0, run.stderr
    return out.with_name(f"{out.name}.model").read_bytes(), matches(run)


def killed(table: Path, out: Path, case: Case, undisturbed: tuple[bytes, int]) -> Ended:
    """Run, kill, and run again until nobody kills."""
    model = out.with_name(f"{out.name}.model")
    deaths, kept = [], []
    for moment in case.moments:
        run = learn(table, out, moment)
        deaths.append(run.returncode == -signal.SIGKILL and not model.exists())
        kept.append(sum(max(len(path.read_bytes().splitlines()) - 1, 0) for path in out.parent.glob("*.journal")))
    run = learn(table, out, NEVER)
    assert run.returncode == 0, run.stderr
    tidy = {path.name for path in out.parent.iterdir()} == {model.name, f"{out.name}.report.html"}
    return Ended(deaths, kept, (undisturbed[1], matches(run)), model.read_bytes() == undisturbed[0], tidy)


def main() -> int:
    true, wrong, undisturbed = 0, 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in tables().items():
            frame.write_csv(Path(folder) / f"{name}.csv")
        for number, case in enumerate(CASES):
            table, place = Path(folder) / f"{case.table}.csv", Path(folder) / str(number)
            if case.table not in undisturbed:
                os.mkdir(place.with_name(case.table))
                undisturbed[case.table] = whole(table, place.with_name(case.table) / "out")
            os.mkdir(place)
            ended = killed(table, place / "out", case, undisturbed[case.table])
            true, wrong = true + ended.resumed, wrong + (not ended.equal or not ended.tidy)
            moments = ", then ".join(f"{begun!r} {count} + {wait:g} s" for begun, count, wait in case.moments)
            print(f"{case.table:<8} {moments}: {ended}", flush=True)
    print(f"{len(CASES)} cases: {true} true resumes, {wrong} whose model or files differ")
    return 1 if wrong or true < len(CASES) else 0


if __name__ == "__main__":
    sys.exit(main())
