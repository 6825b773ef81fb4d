"""Kernels that learn their metric: against the plain kernel on five tables, and leaves against Nystrom on many rows.

``python -m benchmarks learned`` prints both; ``learned --tables`` and ``learned --leaves`` one of them. The variables
EMPIRISK_LEARNED=kin8nm,letter choose tables, and EMPIRISK_BENCH_SHARE=0.2 takes that share of their rows. Of the rows
a fifth tests, a fifth of the others chooses the settings, and at most 12 800 of the rest are learned from. On more rows
there is nothing to choose: all settings are those of `learn`, and all rows that do not test are learned from.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

import empirisk as er
from benchmarks.problems import DATA
from benchmarks.tables import TABLES as KNOWN

TABLES = ("california_housing", "kin8nm", "protein_casp", "letter", "spambase")
MANY = ("california_housing", "protein_casp", "letter")
#: Rows that are learned from at the most, and values of C of which the best on rows held out is taken.
MOST, CS = 12_800, (2.0, 20.0, 200.0)
#: The C with which `learn` begins.
C = 20.0
SHARE = float(os.environ.get("EMPIRISK_BENCH_SHARE", "1"))


@dataclass
class Part:
    """Standardised rows and their targets."""

    X: np.ndarray
    y: np.ndarray

    def error(self, machine: Any) -> float:
        """The root of the mean squared error, or the share of wrong answers in percent."""
        said = machine.predict(self.X)
        if self.y.dtype.kind == "f":
            return float(np.sqrt(np.mean((said - self.y) ** 2)))
        return 100 * float(np.mean(said != self.y))

    def fit(self, features: Any, strength: float) -> Any:
        """A machine of squares on so many rows."""
        numbers = self.y.dtype.kind == "f"
        machine = er.Ridge() if numbers else er.Classifier(loss="squared")
        return machine.set_params(C=strength, features=features).fit(self.X, self.y)


def parts(name: str, most: int | None = MOST) -> tuple[Part, Part, Part]:
    """Rows to learn from, to choose by and to test on."""
    target, make = KNOWN[name]
    assert target is not None  # as of all that come from beside the repository
    assert make is not None
    table = make()
    X, y = table.drop(target).to_numpy().astype(float), table[target].to_numpy()
    y = y.astype(float) if y.dtype.kind in "iuf" and len(np.unique(y)) > 2 else y.astype(str)
    order = np.random.default_rng(0).permutation(len(y))[: round(SHARE * len(y))]
    test, rest = np.split(order, [len(order) // 5])
    choose, learn = np.split(rest, [len(rest) // 5]) if most else (rest[:0], rest)
    learn = learn[:most]
    scaler = StandardScaler().fit(X[learn])
    found = [Part(scaler.transform(X[rows]) if len(rows) else X[rows], y[rows]) for rows in (learn, choose, test)]
    return found[0], found[1], found[2]


def metrics() -> Iterator[tuple[str, Any]]:
    """The plain kernel, and those that learn their metric."""
    yield "plain", er.LearnedKernel(rounds=0, leaf_size=None)
    for metric in ("full", "diagonal"):
        yield "learned", er.LearnedKernel(metric=metric, leaf_size=None)


def table_of(name: str) -> None:
    """The test errors of the settings that are the best on the rows to choose by."""
    learn, choose, test = parts(name)
    best: dict[str, tuple[float, float, str]] = {}
    begin = time.process_time()
    for kind, features in metrics():
        for strength in CS:
            machine = learn.fit(features, strength)
            words = f"C={strength:g}, {machine.features_!r}, round {machine.features_.n_rounds_}"
            found = choose.error(machine), test.error(machine), words
            best[kind] = min(best.get(kind, found), found)
    chosen = min(best.values())
    for kind, (_, error, words) in best.items():
        print(f"{name:20} {len(learn.y):6} rows  {kind:8} {error:10.5g}  {words}")
    seconds = time.process_time() - begin
    print(f"{name:20} {len(learn.y):6} rows  chosen   {chosen[1]:10.5g}  {seconds:.0f} s of the processor", flush=True)


def leaves_of(name: str) -> None:
    """Test errors and processor seconds of trees with leaves of some sizes, and of Nystrom features."""
    learn, _, test = parts(name, None)
    ways = {f"leaves of {size}": er.LearnedKernel(leaf_size=size) for size in (3_000, 6_000, 12_000)}
    for rank in (1_000, 3_000):
        ways[f"Nystrom {rank}"] = er.maps.Nystrom(er.LearnedKernel(), rank=rank, random_state=0)
    for way, features in ways.items():
        begin = time.process_time()
        machine = learn.fit(features, C)
        seconds = time.process_time() - begin
        print(f"{name:20} {len(learn.y):6} rows  {way:16} {test.error(machine):10.5g}  {seconds:6.0f} s", flush=True)


def run(options: list[str] | None = None) -> None:
    if not DATA.is_dir():
        print(f"the tables are not there: {DATA}")
        return
    chosen = os.environ.get("EMPIRISK_LEARNED", "").split(",")
    for option, names, show in (("--tables", TABLES, table_of), ("--leaves", MANY, leaves_of)):
        for name in names if not options or option in options else ():
            if chosen == [""] or name in chosen:
                show(name)
