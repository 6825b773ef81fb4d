"""One fit of the playground, and how well it does on points that it has not seen."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import t as student

from empirisk.fits.fit import solve
from empirisk.plots.fits import dual_sizes
from empirisk.protocols import has_problems, learns_with_machine
from empirisk.stop import listening_to
from empirisk.studio.playground.points import Array, dataset
from empirisk.studio.playground.question import Question
from empirisk.theory.luck import error_interval

#: Seconds that a fit may take: the first network is compiled, which takes ten; what needs longer is shown as it is.
SECONDS = 30.0
KEPT = 32  # fits that are kept: going back and forth with a slider costs nothing


@dataclass(frozen=True, eq=False)
class PlaygroundFit:
    """A fitted machine.

    Attributes
    ----------
    machine : machine
        It.
    duals : array or None
        The size of the dual variable of every point that was learned from, of the fits that have a dual problem.
    seconds : float
        Of the fit alone.
    """

    machine: Any
    duals: Array | None
    seconds: float


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fits in here end after so many seconds, and warn of nothing: their certificate is shown."""
    end = time.perf_counter() + seconds
    with warnings.catch_warnings(action="ignore"), listening_to(lambda: time.perf_counter() > end):
        yield


def is_convex(machine: Any) -> bool:
    """Whether its fit is one convex problem, or several, on features that stay as they are."""
    return has_problems(machine) and not learns_with_machine(machine.features)


@lru_cache(maxsize=KEPT)
def fit(question: Question) -> PlaygroundFit:
    """Fit the machine of a question."""
    question.require_enough()
    machine, (X, y) = question.machine(), question.data()
    begin = time.perf_counter()
    with at_most(SECONDS):
        if not is_convex(machine):
            fitted = machine.fit(X) if y is None else machine.fit(X, y)
            return PlaygroundFit(fitted, None, time.perf_counter() - begin)
        problems = machine.problems(X, y)
        limits = {"tol": machine.tol, "max_iter": machine.max_iter}
        fits = [solve(problem, problems.machine.solver, **limits) for problem in problems]
        seconds = time.perf_counter() - begin
        sizes = dual_sizes(problems, [one.point for one in fits], len(X))
        return PlaygroundFit(problems.fitted(fits), sizes, seconds)


def load_loops() -> None:
    """Fit a kernel machine and a forest, whose compiled loops take seconds to load, or minutes to compile, once."""
    for asked in ({"settings": {"features": "kernel"}}, {"family": "forest"}):
        fit(Question.from_dict({**asked, "points": dataset("classes", "moons", 20, 0.2, 0)}))


def error(machine: Any, X: Array, y: Array, task: str) -> dict[str, Any] | None:
    """How often it is wrong, or by how much it is off on average, with an interval; None without points.

    The interval is Clopper and Pearson's for shares and Student's for means.
    """
    if not len(X):
        return None
    said = machine.predict(X)
    if task == "classes":
        wrong = int(np.sum(said != y))
        found = error_interval(wrong, len(y))
        return {"value": wrong / len(y), "low": found.low, "high": found.high, "wrong": wrong, "of": len(y)}
    off = np.abs(said - y)
    half = student.ppf(0.975, len(y) - 1) * off.std(ddof=1) / np.sqrt(len(y)) if len(y) > 1 else np.inf
    mean = float(off.mean())
    return {"value": mean, "low": max(mean - half, 0.0), "high": mean + half, "of": len(y)}


def errors(question: Question, machine: Any) -> dict[str, Any]:
    """The errors on the points that were learned from, and on those that were held out."""
    if question.task == "clusters":
        return {}
    parts = {"train": question.data(), "test": question.data(held=True)}
    return {name: error(machine, *part, question.task) for name, part in parts.items()}
