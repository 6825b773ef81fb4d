"""k-means as such: starts, rounds of two half-steps, empty clusters, restarts. How rows are stored is up to `rows`.

Rows come as an object with the half-steps ``assign`` and ``move``; see `DenseRows`, `DesignRows` and `GramRows`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import TooFewRows
from empirisk.linalg.threads import parallel_map
from empirisk.stop import Stopped, stopping

Array = NDArray[np.float64]

SMALL = 1 << 20  # entries: below, a round is so short that the threads take a restart each
SPLIT_ROUNDS = 3  # rounds between two splits: the next split needs no more than a rough fit
WORTHWHILE = 1e-6  # the share by which a shift must help
EQUAL_KEYS = 1e-13  # how far apart the keys of equal rows may be by rounding
BETTER = 1e-10  # a later restart must be better by this share: of equal ones the first wins, whatever their rounding


@dataclass
class LloydRun:
    """One restart: the rows in their last state, and how it went."""

    rows: Any
    inertia: float = np.inf
    rounds: int = 0
    converged: bool = False
    history: dict[str, list[float]] = field(default_factory=lambda: {"inertia": [], "changes": []})
    _settled: dict[str, Any] = field(default_factory=dict)

    def go(self, start: Callable[[Any], None], max_iter: int, ends: "Ends") -> None:
        """Half-steps from a start until no row changes its cluster."""
        rows = self.rows
        start(rows)
        while self.rounds < max_iter and not self.converged:
            changes = rows.assign()
            # The labels alone are written over; what else a half-step changes is made anew.
            self._settled = {name: getattr(rows, name) for name in rows.settled} | {"labels": rows.labels.copy()}
            self.rounds += 1
            self.converged = changes == 0
            self.history["changes"].append(float(changes))
            if not self.converged:
                rows.move()
                fill_empty(rows)
            self.history["inertia"].append(rows.inertia_of_means())
            if ends.tell(self) or ends.stop():
                break
        if self.converged:
            rows.renew()
        else:
            # The labels are those of the centres, also where the centres would still move.
            rows.assign()
        self.inertia = float(rows.weights @ rows.own_squares())

    def go_back(self) -> None:
        """To the last labels that are those of their centres, out of a round that was given up; `Stopped` if none."""
        if not self._settled:
            raise Stopped
        vars(self.rows).update(self._settled)
        self.inertia, self.converged = float(self.rows.weights @ self.rows.settled_squares()), False
        if len(self.history["inertia"]) < self.rounds:
            self.history["inertia"].append(self.inertia)


@dataclass
class Ends:
    """What may end a run: ``stop`` between two rounds, ``give_up`` within one; ``tell`` is called after each round."""

    stop: Callable[[], bool]
    give_up: Callable[[], bool]
    tell: Callable[[LloydRun], bool]


def run_lloyd(rows: Any, start: Callable[[Any], None], max_iter: int, ends: Ends) -> LloydRun:
    """A run from a start; `Stopped` where it is given up before every row had a cluster."""
    run = LloydRun(rows)
    try:
        with stopping(ends.give_up):
            run.go(start, max_iter, ends)
    except Stopped:
        run.go_back()
    return run


def fill_empty(rows: Any, clusters: int | None = None) -> None:
    """Move centres without rows to the rows that are fitted worst; ``clusters`` are asked for, if more than there are.

    Rows that are equal to all others of their cluster are fitted exactly, whatever the rounding of their mean says.
    """
    exact = np.zeros(rows.count, dtype=bool)
    while not rows.filled.all():
        squares = np.where(exact, 0.0, rows.own_squares())
        worst = int(squares.argmax())
        if not squares[worst] > 0:
            raise TooFew(clusters or len(rows.filled), int(rows.filled.sum()))
        left, taken = int(rows.labels[worst]), int(np.flatnonzero(~rows.filled)[0])
        rows.relabel(worst, taken)
        if not rows.filled[left]:
            exact |= rows.labels == taken


def best_run(rows: Any, starts: list[Callable[[Any], None]], max_iter: int, ends: Ends) -> LloydRun:
    """The best of several restarts: side by side where the rows are few, else one after the other."""
    best: LloydRun | None = None
    together = len(starts) if rows.count * rows.width <= SMALL else 1
    inside = ends if together == 1 else replace(ends, tell=lambda run: False)
    for first in range(0, len(starts), together):

        def one(number: int) -> LloydRun | None:
            # The first restart always runs, so that there is a result.
            if number and ends.stop():
                return None
            try:
                return run_lloyd(rows.begin(), starts[number], max_iter, inside)
            except Stopped:
                return None

        for run in parallel_map(one, range(first, min(first + together, len(starts)))):
            if run is None:
                continue
            if best is None or run.inertia < best.inertia * (1 - BETTER):
                best = run
            if together > 1 and ends.tell(best):
                return best
    if best is None:
        raise Stopped
    return best


def shift_means(best: LloydRun, most: int, max_iter: int, ends: Ends) -> LloydRun:
    """Move means from where two are close to where the rows are fitted worst, as long as that helps."""
    for _ in range(most):
        try:
            run = _run_from_shifted(best, max_iter, ends) if best.converged and not ends.stop() else None
        except Stopped:
            break
        if run is None or not (run.converged and run.inertia < best.inertia * (1 - WORTHWHILE)):
            break
        # Of the rounds between two shifts only the end is told: the first of them may be above what was reached.
        run.history = {
            "inertia": [*best.history["inertia"], run.inertia],
            "changes": [*best.history["changes"], float(np.count_nonzero(run.rows.labels != best.rows.labels))],
        }
        run.rounds += best.rounds
        best = run
    return best


def _run_from_shifted(best: LloydRun, max_iter: int, ends: Ends) -> LloydRun | None:
    with stopping(ends.give_up):
        labels = _shifted(best.rows)
    if labels is None:
        return None
    clusters = len(best.rows.filled)
    return run_lloyd(best.rows.begin(), lambda rows: rows.start_from_labels(labels, clusters), max_iter, ends)


def _shifted(rows: Any) -> NDArray[np.int32] | None:
    """Clusters in which the two that are cheapest to join are one, and the one with the largest loss is two."""
    squares = rows.own_squares()
    losses = np.bincount(rows.labels, rows.weights * squares, minlength=len(rows.filled))
    worst = int(losses.argmax())
    # What the sum of squares rises by when two clusters become one.
    costs = rows.squares_between_means() * rows.totals[:, None] * rows.totals / (rows.totals[:, None] + rows.totals)
    costs[np.diag_indices(len(costs))] = costs[worst] = costs[:, worst] = np.inf
    first, second = np.unravel_index(costs.argmin(), costs.shape)
    if not costs[first, second] < losses[worst]:
        return None
    labels = np.where(rows.labels == second, first, rows.labels)
    farthest = int(np.where(rows.labels == worst, squares, -1.0).argmax())
    # The half of it on the side of its farthest row: <x - m, farthest - m> > 0.
    apart = squares + squares[farthest] - rows.exact_squares(np.array([farthest]))
    beyond = (rows.labels == worst) & (apart > 0)
    return np.where(beyond, second, labels).astype(np.int32)


# --- starts ---------------------------------------------------------------------------------------------------------


def draw_rows(
    rows: Any, clusters: int, random: np.random.Generator, greedy: bool, stop: Callable[[], bool]
) -> NDArray[np.intp]:
    """Rows to start from: drawn alike, or by their squared distance to those drawn before (k-means++).

    The greedy form draws a few candidates for each and keeps the one that leaves the least. Rows equal to one that
    is drawn are not drawn again. Once it must stop, all that are missing are drawn at once.
    """
    trials = 2 + int(np.log(clusters)) if greedy else 1
    closest, memory = np.full(rows.count, np.inf, rows.floats), np.empty((trials, rows.count), rows.floats)
    candidates = _draw(rows, rows.weights, None, random.random(1))
    chosen: list[int] = []
    while True:
        squares = memory[: len(candidates)]
        totals = rows.squares_to(candidates, closest, squares)
        best = int(totals[:, 0].sum(axis=0).argmin())
        closest[:] = squares[best]
        chosen.append(int(candidates[best]))
        if len(chosen) == clusters:
            return np.array(chosen)
        shares = totals[:, 0 if greedy else 1, best]
        if shares.sum() > 0:
            amounts = rows.weights * (closest if greedy else closest > 0)
            missing = clusters - len(chosen)
            if missing > 1 and stop() and np.count_nonzero(amounts) > missing:
                rest = random.choice(rows.count, missing, replace=False, p=amounts / amounts.sum())
                return np.concatenate([chosen, rest])
            candidates = _draw(rows, amounts, shares, random.random(trials))
        else:
            # float32 sees no difference any more; float64 may.
            left = rows.exact_squares(np.array(chosen))
            if not left.max() > 0:
                raise TooFew(clusters, len(chosen))
            candidates = left.argmax()[None]


def _draw(rows: Any, amounts: Array, shares: Array | None, luck: Array) -> NDArray[np.intp]:
    """Rows with chances in proportion to their amounts, whose totals by share may be known."""
    if shares is None:
        shares = np.array([amounts[slice(*span)].sum() for span in rows.shares])
    edges = np.cumsum(shares)
    found = []
    for target in luck * edges[-1]:
        share = min(int(np.searchsorted(edges, target, side="right")), int(np.flatnonzero(shares)[-1]))
        start, stop = rows.shares[share]
        within = np.cumsum(amounts[start:stop], dtype=np.float64)
        place = int(np.searchsorted(within, target - (edges[share] - shares[share]), side="right"))
        found.append(start + min(place, int(np.flatnonzero(amounts[start:stop])[-1])))
    return np.array(found)


def distinct_rows(keys: Array, clusters: int) -> NDArray[np.intp]:
    """The number of every row among those that differ, of which there must be as many as clusters.

    ``keys`` increase, and are equal for equal rows up to rounding.
    """
    steps = np.diff(keys, prepend=-np.inf) > EQUAL_KEYS * np.abs(keys).max(initial=0.0)
    numbers = np.cumsum(steps) - 1
    if numbers[-1] + 1 < clusters:
        raise TooFew(clusters, int(numbers[-1]) + 1)
    return numbers


def random_labels(keys: Array, clusters: int, random: np.random.Generator) -> NDArray[np.int32]:
    """A cluster drawn for every row, as evenly as can be; equal rows, which stand together, get the same."""
    numbers = distinct_rows(keys, clusters)
    return random.permutation(np.arange(numbers[-1] + 1) % clusters)[numbers].astype(np.int32)


def split(rows: Any, clusters: int) -> None:
    """Start from one mean, and split the clusters that are worst fitted, each towards its farthest row.

    Those with at least the average loss are split at once: far fewer passes than with one split each, and a cluster
    that is fitted well beside the others is left whole.
    """
    rows.start_from_labels(np.zeros(rows.count, np.int32), 1)
    while len(rows.centres) < clusters:
        for _ in range(SPLIT_ROUNDS):
            rows.assign()
            rows.move()
            fill_empty(rows, clusters)
        rows.assign()
        squares = rows.own_squares()
        losses = np.bincount(rows.labels, rows.weights * squares, minlength=len(rows.centres))
        centres = list(rows.centres)
        for cluster in np.argsort(-losses, kind="stable")[: clusters - len(centres)]:
            if losses[cluster] < losses.mean() or not losses[cluster] > 0:
                break
            inside = np.where(rows.labels == cluster, squares, -1.0)
            step = 0.5 * (rows.row(int(inside.argmax())) - rows.centres[cluster])
            centres[cluster] = rows.centres[cluster] - step
            centres.append(rows.centres[cluster] + step)
        if len(centres) == len(rows.centres):
            raise TooFew(clusters, len(centres))
        rows.start_at(np.array(centres))


class TooFew(TooFewRows):
    """There are fewer distinct rows than clusters."""

    def __init__(self, clusters: int, distinct: int, name: str = "n_clusters"):
        super().__init__(
            f"{name}={clusters} exceeds the {distinct} distinct rows of X that have a positive weight; ask for at most "
            f"{distinct}."
        )
        self.distinct = distinct
