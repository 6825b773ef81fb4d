"""Choosing C: exact leave-one-out for the squared loss, cross-validation along warm-started paths for the rest."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from empirisk import state
from empirisk.errors import EmpiriskError, TooFewRows, Unsuitable
from empirisk.fits.constraint import Constraint
from empirisk.fits.fit import Fit, SolverRun
from empirisk.fits.leave_one_out import LeftOutInPasses, decompose, is_tall
from empirisk.linalg.design import design_of
from empirisk.linalg.rowspace import RowVector
from empirisk.losses.base import Loss
from empirisk.maps.seeds import seeded_clone
from empirisk.messages import coded
from empirisk.problem import Array, Point, Problem
from empirisk.protocols import is_learning_map
from empirisk.stop import REMEDIES, Deadline, Ending, Stopped, cut_by, stopping, warn_of

#: Of each value in turn: the fits of the problems, and the sum of the losses of the held-out rows.
Judged = Iterator[tuple[list[Fit], float]]
#: Of each problem the samples to learn from, and those to judge by.
Parts = list[tuple[RowVector, ...]]
WAYS = ("loo", "cv")
RULES = ("best", "1se")
SCORING_TOL = 1e-4  # a score of held-out rows needs no more than four digits of the fit
#: Held-out losses that differ by no more than this share are equal but for rounding.
LOSS_ROUNDING = 1e-12
#: Held-out losses are capped here: their squares are still finite.
MAX_LOSS = 1e150
#: A natural C is smaller: beyond, products with it may be no numbers.
LARGEST = 1e150
#: The share of ``max_time`` in which C is chosen.
JUDGING_SHARE = 0.5
#: Seconds that features get to learn where none are left.
SHORTEST = 0.01


@dataclass(frozen=True)
class Choice:
    """How a number was chosen: C, or the k of neighbours.

    Attributes
    ----------
    values : array
        The values tried, increasing.
    losses : array, samples or folds x values
        Held-out loss: of each row (leave-one-out; of rows that are not in memory the mean) or of each fold (mean over
        its rows).
    mean, error : arrays
        Mean held-out loss of each value, and its standard error.
    chosen : float
        The value chosen.
    rule : str
        "best", or "1se": the simplest model, of the smallest C or the largest k, whose mean is within one standard
        error of the best.
    cut : bool
        Whether time was over before all values were tried on all folds.
    """

    _state = state.State(chosen=state.number(0, finite=False), cut=state.optional(state.flag()))  # older files: no cut

    values: Array
    losses: Array
    mean: Array
    error: Array
    chosen: float
    rule: str
    cut: bool = False

    def __repr__(self) -> str:
        tried = f"{self.values.min():.4g} to {self.values.max():.4g}"
        return f"Choice({self.chosen:.4g} of {len(self.values)} values from {tried}, {self.rule})"


class ChoosesC(Protocol):
    """The parameters of a machine by which C is chosen, and its features."""

    C: Any
    Cs: Any
    rule: str
    cv: Any
    random_state: Any
    max_time: float | None
    features: Any


def is_given(C: Any) -> bool:
    """Whether C is a number rather than a way to find one."""
    return not isinstance(C, (str, Constraint))


def check_way(C: Any, rule: Any) -> None:
    """Raise a sentence for text that is no way to choose C, and for a constraint that has no meaning."""
    if isinstance(C, Constraint):
        C.limit  # noqa: B018 - it says what is wrong with the radius
        return
    if C not in WAYS:
        raise EmpiriskError(f"C={C!r} must be a positive number, 'loo' or 'cv', or an er.Constraint.")
    check_rule(rule)


def check_rule(rule: Any) -> None:
    """Raise a sentence for what is no rule."""
    if rule not in RULES:
        raise EmpiriskError(f"rule={rule!r} must be 'best' or '1se'.")


@np.errstate(all="ignore")  # losses beyond all numbers are as bad as `MAX_LOSS`
def choose_C(machine: ChoosesC, X: Any, problems: list[Problem], y: NDArray, run: SolverRun) -> Choice:
    """The choice that the machine's parameters ask for."""
    if problems[0].penalty.zero:
        raise Unsuitable(
            f"C={machine.C!r} has nothing to choose without a penalty: every C gives the same fit; give a number as C, "
            "or a penalty."
        )
    if machine.C == "loo":
        try:
            with stopping(run.deadline):
                return _leave_one_out(problems, machine.Cs, machine.rule)
        except Stopped:
            if run.deadline.reason != Ending.MAX_TIME:
                raise  # an interrupt: without a C there is no fit to keep
            raise EmpiriskError(
                coded(
                    "ER002",
                    f"max_time={machine.max_time!r} s were over before C='loo' had tried any value; raise it, "
                    "give a number as C, or use fewer rows.",
                )
            ) from None
    again = is_learning_map(machine.features)
    judged = partial(_learning_again, machine, X, y, run) if again else partial(_along_a_path, _judging(run))
    return _cross_validate(machine, problems, y, judged, _judging(run).deadline)


def grid(Cs: Any, smallest: float, largest: float) -> Array:
    """The values to try: as given, or that many between the limits, evenly in the logarithm."""
    if np.ndim(Cs) == 0:
        if not Cs >= 2:
            raise EmpiriskError(f"Cs={Cs!r} must be at least 2 values, or an array of values.")
        return np.geomspace(smallest, largest, int(Cs))
    values = np.unique(np.asarray(Cs, dtype=float))
    if len(values) == 0 or not np.all(np.isfinite(values)) or values[0] <= 0:
        raise EmpiriskError("Cs must hold positive, finite numbers.")
    return values


def choice_of(values: Array, losses: Array, weights: Array, rule: str, simplest: int = 0) -> Choice:
    """Apply the rule to the table of held-out losses; the simplest value is the first, or with -1 the last.

    A row of the table counts as many rows as its weight says.
    """
    share, bounded = weights / weights.sum(), np.fmin(losses, MAX_LOSS)
    mean = share @ bounded
    error = np.sqrt(np.maximum(share @ (bounded - mean) ** 2, 0.0) / max(weights.sum() - 1, 1))
    return _by_rule(values, losses, mean, error, rule, simplest)


def _by_rule(values: Array, losses: Array, mean: Array, error: Array, rule: str, simplest: int = 0) -> Choice:
    best = int(np.argmax(mean <= (1 + LOSS_ROUNDING) * mean.min()))  # rounding decides between none
    chosen = best if rule == "best" else int(np.flatnonzero(mean <= mean[best] + error[best])[simplest])
    return Choice(values, losses, mean, error, float(values[chosen]), rule)


def _leave_one_out(problems: list[Problem], Cs: Any, rule: str) -> Choice:
    first = problems[0]
    steep = [problem.loss for problem in problems if not problem.loss.quadratic]
    if steep or not first.penalty.ridge:
        raise Unsuitable(
            "C='loo' has a closed form for the squared loss with the l2 penalty only, not for "
            f"{(steep or [first.loss])[0]!r} with {first.penalty!r}; use C='cv'."
        )
    if any(problem.design is not first.design for problem in problems):
        raise Unsuitable("C='loo' needs every machine to use the same rows; use multiclass='one_vs_rest' or C='cv'.")
    if len(first.y) < 2:
        raise TooFewRows("C='loo' leaves a row out, and X has 1 sample only; give a number as C.")
    targets, tall = [problem.y for problem in problems], is_tall(*first.design.shape)
    if not (first.design.in_memory or tall):  # no more than a few numbers of the matrix of the columns
        targets, first = [first.rowspace.gathered(y) for y in targets], first.part(slice(None))
    parts = decompose(first) if first.design.in_memory else LeftOutInPasses.of(first)
    # Rows that are all alike leave only rounding; every C is then the same.
    rounding = len(first.y) * np.finfo(float).eps * float(first.weights @ first.design.squared_rows())
    largest = float(parts.values.max(initial=0.0))
    scale = largest if largest > rounding else 1.0
    # From where the largest direction is shrunk to a tenth to where ones ten million times smaller count nearly fully.
    values = grid(Cs, 0.05 / scale, 5e7 / scale)
    # The penalty of the machine is l2/2 |w|^2: an elastic net without l1 scales C.
    scaled = values / first.penalty.l2
    if isinstance(parts, LeftOutInPasses):
        mean, error = parts.losses(targets, scaled, MAX_LOSS)
        return _by_rule(values, mean[None], mean, error, rule)
    losses = np.zeros((len(first.y), len(values)))
    for y in targets:
        losses += parts.residuals(y, scaled) ** 2
    return choice_of(values, losses, first.weights, rule)


def _cross_validate(
    machine: ChoosesC, problems: list[Problem], y: NDArray, judged: Callable[..., Judged], deadline: Deadline
) -> Choice:
    splits = _folds(machine, problems, y)
    values = grid(machine.Cs, *natural_range(problems))
    table = np.full((len(splits), len(values)), np.nan)
    sizes = np.zeros(len(splits))
    for number, split in enumerate(splits):
        parts = [tuple(_standing_in(problem, rows) for rows in split) for problem in problems]
        sizes[number] = _judging_weight(problems, parts)
        to_come = (len(splits) - number) * len(values)
        for column, (fits, lost) in enumerate(judged(problems, parts, values, to_come)):
            cut = any(fit.certificate.status in (Ending.MAX_TIME, Ending.INTERRUPTED) for fit in fits)
            if not cut or number == column == 0:  # the first value of the first fold is all there is if it is cut
                table[number, column] = lost / sizes[number]
            # Fits that end at once never ask for the time; thousands of them take long.
            if cut or (deadline() and np.isnan(table).any()):
                return _pick_in_haste(machine, values, table, sizes)
    return choice_of(values, table, sizes / sizes.mean(), machine.rule)


def _judging_weight(problems: list[Problem], parts: Parts) -> float:
    """The weight of the rows that one fold is judged by, for all problems; each must have some on both sides."""
    weights = [
        [problem.rowspace.take(problem.weights, chosen).sum() for chosen in part]
        for problem, part in zip(problems, parts, strict=True)
    ]
    if not np.min(weights) > 0:
        raise EmpiriskError("C='cv': a fold holds no row of some class or target; use fewer folds or a stratified cv.")
    return float(np.sum(weights, axis=0)[1])


def _along_a_path(run: SolverRun, problems: list[Problem], parts: Parts, values: Array, to_come: int) -> Judged:
    """The fits of one fold for each value, begun where the last ones ended, and the losses of its held-out rows."""
    pairs = list(zip(problems, parts, strict=True))
    inside = [problem.part(train) for problem, (train, _) in pairs]
    outside = [problem.part(test, train).with_C(1.0) for problem, (train, test) in pairs]
    for fits in along(inside, values, run, max(run.limits.tol, SCORING_TOL)):
        yield fits, sum(part.loss_sum(part.predict(fit.point)) for part, fit in zip(outside, fits, strict=True))


def _learning_again(
    machine: ChoosesC, X: Any, y: NDArray, run: SolverRun,
    problems: list[Problem], parts: Parts, values: Array, to_come: int,
) -> Judged:  # fmt: skip
    """The same where the features learn with the machine: they begin again for each value, on the rows of the fold."""
    for number, C in enumerate(values):
        # They are shown all rows, but the problems point to those of the fold alone.
        features = seeded_clone(machine.features, machine.random_state).fit(X, y)
        inside = [problem.part(train).with_C(float(C)) for problem, (train, _) in zip(problems, parts, strict=True)]
        left = _judging(run).deadline.left()
        seconds = None if left is None else max(left / (to_come - number), SHORTEST)
        limits = replace(run.limits, max_time=seconds)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the fit on all rows will tell
            alone = replace(run, progress=None, learning=None, limits=limits, deadline=Deadline(seconds))
            learned, fits = alone.learn(inside, features)
        phi, lost = design_of(features.transform(X)), 0.0
        for problem, (_, kept), found, fit in zip(problems, parts, learned, fits, strict=True):
            rows = problem.places[kept]
            judged = replace(problem, design=phi.rows(rows), y=problem.y[kept], weights=problem.weights[kept], C=1.0)
            lost += judged.loss_sum(judged.predict(Point(fit.point.w, found.constants(fit.point))))
        yield fits, lost


def _judging(run: SolverRun) -> SolverRun:
    """The run for the fits that a C is judged by: half of the time is left for the fit itself."""
    return replace(run, progress=None, deadline=run.deadline.share(JUDGING_SHARE), resisted=[])


def _pick_in_haste(machine: ChoosesC, Cs: Array, table: Array, sizes: Array) -> Choice:
    """The choice of one that was cut: by the folds that are complete, or by the values that the first one has tried."""
    folds = np.flatnonzero(~np.isnan(table).any(axis=1))
    tried = np.ones(len(Cs), dtype=bool)
    if len(folds) == 0:
        folds, tried = np.arange(1), ~np.isnan(table[0])
    ending = cut_by()
    warn_of(
        ending,
        f"C='cv' was stopped ({ending}) and chosen from {tried.sum()} of {len(Cs)} values by {len(folds)} of "
        f"{len(table)} folds",
        REMEDIES | {Ending.MAX_TIME: "raise max_time, or give fewer Cs or folds"},
    )
    found = choice_of(Cs[tried], table[np.ix_(folds, tried)], sizes[folds] / sizes[folds].mean(), machine.rule)
    return replace(found, cut=True)


def _folds(machine: ChoosesC, problems: list[Problem], y: RowVector) -> list[tuple[RowVector, RowVector]]:
    """The rows to learn from and those to judge by, of every fold; a number of folds is shuffled by ``random_state``.

    It divides the rows that count, of which some problem has a sample: a row of weight zero could as well be absent.
    Without a seed the folds are those of seed 0, as in `evaluate`: the same data gives the same C.
    """
    if not problems[0].design.in_memory:
        return _folds_elsewhere(machine, y)
    stratified, cv = is_classifier(machine) and np.ndim(y) == 1, machine.cv
    counting = np.unique(np.concatenate([problem.places for problem in problems]))
    if stratified:
        classes, counts = np.unique(y[counting], return_counts=True)
        _require_two_of_each(classes, counts)
    try:
        if isinstance(cv, Integral):
            seed = _seed(machine)
            folds = (StratifiedKFold if stratified else KFold)(int(cv), shuffle=True, random_state=seed)
            return [(counting[train], counting[test]) for train, test in folds.split(counting, y[counting])]
        return list(check_cv(cv, y, classifier=stratified).split(np.zeros((len(y), 1)), y))
    except ValueError as error:
        raise EmpiriskError(
            f"C='cv' with cv={machine.cv!r} cannot split {len(counting)} rows: {error} "
            "Give fewer folds, or a number as C."
        ) from error


def _folds_elsewhere(machine: Any, codes: RowVector) -> list[tuple[RowVector, RowVector]]:
    """The same as masks of rows that are not in memory, which are dealt out class by class as they come."""
    cv, rows = machine.cv, codes.place
    if not isinstance(cv, Integral):
        raise Unsuitable(f"cv={cv!r} divides rows in memory; give a number of folds.")
    counts = rows.class_weights(codes, rows.constant(1.0), len(machine.classes_) if is_classifier(machine) else 1)
    if is_classifier(machine):
        _require_two_of_each(machine.classes_, counts)
    if not 2 <= int(cv) <= counts.max():
        raise EmpiriskError(
            f"C='cv' with cv={cv!r} cannot split {rows.count} rows: give two folds or more, and no "
            "more than a class has rows, or a number as C."
        )
    folds = rows.dealt(codes, len(counts), int(cv), _seed(machine))
    return [(folds != number, folds == number) for number in range(int(cv))]


def _require_two_of_each(classes: NDArray, counts: NDArray) -> None:
    """Raise where a class has rows on one side of every fold alone."""
    if counts.min() < 2:
        raise EmpiriskError(
            f"C='cv': y holds one row of the class {classes[counts.argmin()]!r}, which no fold can both learn from "
            "and judge by; drop the row, or give a number as C."
        )


def _seed(machine: Any) -> int:
    """The seed of the folds: any whole number of 31 bits."""
    return check_random_state(0 if machine.random_state is None else machine.random_state).randint(2**31)


def _standing_in(problem: Problem, rows: RowVector) -> RowVector:
    """The samples of a problem that stand in the given rows of the user's data."""
    return problem.rowspace.standing_in(problem.rows, rows)


def natural_range(problems: list[Problem], reach: float = 1e4) -> tuple[float, float]:
    """From the C at which the model wakes up to where it hardly changes any more.

    With l1, ten thousand times the C at which the first weight wakes up leaves hardly any shrinking.
    """
    first = problems[0]
    smallest = 0.0 if first.penalty.smooth else min(problem.critical_C for problem in problems)
    if 0 < smallest < LARGEST:
        return smallest, reach * smallest
    energy = _energy(first)
    energy = energy if energy > 1 / LARGEST else 1.0  # rows that are zero but for rounding
    # From a penalty as heavy as all rows together to one that only rounding and dependent columns feel.
    smallest = min(_unit(problems) / energy, LARGEST)
    return smallest, 1e8 * smallest


def _unit(problems: list[Problem]) -> float:
    """What the targets deviate over the slopes of their losses, as a power of ten: the scale of C where y has one.

    A prediction is as large as C times the slopes; those of the squared loss are as large as the targets themselves.
    """
    total = np.zeros(2)
    for problem in problems:
        if problem.classes or problem.loss.margin_form:
            return 1.0  # margins are about one
        loss = problem.loss

        def sums(s: Array, y: Array, f: Array, loss: Loss = loss) -> Array:
            # The logarithms that deviances predict deviate by about one.
            away = np.abs(y - f) if loss.residual_form else np.ones(len(f))
            return np.array([s @ away, s @ np.abs(loss.derivative(y, f))])

        total += problem.rowspace.sum(sums, problem.weights, problem.y, problem.constant_predictions)
    deviations, slopes = total
    ratio = deviations / slopes if slopes > 0 else 1.0
    return 10.0 ** np.round(np.log10(ratio)) if 1 / LARGEST < ratio < LARGEST else 1.0


def _energy(problem: Problem) -> float:
    """sum_i c_i |phi(x_i)|^2: beside an intercept of the rows around their mean, where phi is explicit."""
    design, weights = problem.design, problem.weights
    if design.implicit or not problem.intercept:
        return float(weights @ design.squared_rows())
    squares = design.squared_columns(weights)
    around = squares - design.tdot(weights) ** 2 / weights.sum()
    # Of a constant column of a design that is not shifted, rounding is left.
    return float(around[around > len(weights) * np.finfo(float).eps * squares].sum())


def along(
    problems: list[Problem], Cs: Iterable[float], run: SolverRun, tol: float | None = None, each: bool = False
) -> Iterator[list[Fit]]:
    """Fits of the problems at each C in turn, each started where the one before ended.

    The time limit is that of all of them together or, with ``each``, of each.
    """
    starts: list[Point] | None = None
    shared: dict = {}
    for C in Cs:
        now = [problem.with_C(float(C)) for problem in problems]
        fits = (run.again() if each else run)(now, starts, tol, shared)
        starts = [fit.point for fit in fits]
        yield fits
