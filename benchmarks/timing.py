"""Time ours and the rivals in one process, in turns, so that only ratios matter."""

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

OURS = "empirisk"
#: Objectives that are equal, up to this share of them.
CLOSE = 1e-9


@dataclass
class Timing:
    """One contestant: the first call (compilation included), the later calls, and the objective it reached."""

    first: float
    seconds: list[float] = field(default_factory=list)
    objective: float | None = None

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def fastest(self) -> float:
        return min(self.seconds)


@dataclass
class Comparison:
    """The timings of one problem, and what they say."""

    problem: str
    timings: dict[str, Timing]
    tolerance: float

    @property
    def rivals(self) -> dict[str, Timing]:
        return {name: timing for name, timing in self.timings.items() if name != OURS}

    @property
    def ratio(self) -> float:
        """Median of the fastest rival over ours: above 1 we are faster."""
        return min(timing.median for timing in self.rivals.values()) / self.timings[OURS].median

    @property
    def flags(self) -> list[str]:
        """The contestants whose objective is worse than the best by more than the tolerance."""
        reached = {name: t.objective for name, t in self.timings.items() if t.objective is not None}
        if not reached:
            return []
        best = min(reached.values())
        allowed = best + self.tolerance * max(abs(best), 1e-300)
        # Written so that a NaN is flagged too.
        return [
            f"{name} objective worse by {(value - best) / max(abs(best), 1e-300):.0e}"
            for name, value in reached.items()
            if not value <= allowed
        ]

    def row(self) -> str:
        """One line: problem, ours, each rival, ratio, objectives, and a warning where they differ."""
        times = "  ".join(f"{name} {timing.median:.3g}s" for name, timing in self.timings.items())
        reached = [f"{name} {t.objective:.9g}" for name, t in self.timings.items() if t.objective is not None]
        parts = [
            f"{self.problem:<36}",
            f"ratio {self.ratio:5.2f}" if OURS in self.timings and self.rivals else "",
            times,
        ]
        parts += [f"first {self.timings[OURS].first:.2g}s"] if OURS in self.timings else []
        parts += ["objective: " + ", ".join(reached)] if reached else []
        return " | ".join(part for part in [*parts, *(f"! {flag}" for flag in self.flags)] if part)


def compare(
    problem: str,
    contestants: Mapping[str, Callable[[], Any]],
    repeats: int = 5,
    objective: Callable[[Any], float] | None = None,
    tolerance: float = 1e-6,
) -> Comparison:
    """Time each contestant once to warm up, then ``repeats`` times in turns; print one row and return the timings.

    ``objective`` grades what a contestant returns, off the clock; without it a contestant may return its objective
    itself. A contestant worse than the best by more than ``tolerance`` (relative) is flagged: its time is no equal.
    """
    timings = {}
    for name, run in contestants.items():
        seconds, result = timed(run)
        value = objective(result) if objective is not None else result
        timings[name] = Timing(first=seconds, objective=None if value is None else float(value))
    for _ in range(repeats):
        for name, run in contestants.items():
            timings[name].seconds.append(timed(run)[0])
    comparison = Comparison(problem, timings, tolerance)
    print(comparison.row(), flush=True)
    return comparison


def loosest(
    run: Callable[[float], Any], tolerances: Sequence[float], objective: Callable[[Any], float], aim: float
) -> float:
    """The first of the tolerances, the loosest first, that reaches the aim or a better one; else the last of them."""
    for tol in tolerances[:-1]:
        if objective(run(tol)) <= aim + CLOSE * abs(aim):
            return tol
    return tolerances[-1]


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, and what it returned."""
    gc.collect()  # nobody pays for the garbage of the contestant before
    start = perf_counter()
    result = run()
    return perf_counter() - start, result
