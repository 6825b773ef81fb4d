"""What must be true of every fit; each check tells what it found wrong, in a word and a sentence."""

import io
import pickle
import re
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.kernels.base import Kernel
from tests.fuzz import data, equation, rivals, undecided
from tests.fuzz.cases import EVERY, SOLVERS, Case
from tests.fuzz.parts import MISSING
from tests.fuzz.undecided import CLOSE, DIGITS, DRAWN, ROUGH

Finding = tuple[str, str]
MANY_WARNINGS = 3
#: Seconds that a fit may take beyond ``max_time``, and the limit for a fit that has none but takes long.
OVERTIME_SECONDS, LIMIT = 1.0, 1.0
#: Seconds of a fit that has no time.
HURRY = 1e-3
#: Fits that may each have to compile a loop which the one before was ended too soon to reach.
LOADING = 3
#: A fit that took less than this share of ``max_time`` was not ended by it; the choice of C has half of it.
UNHURRIED = 0.4
#: After a fit that took so many seconds one of the checks that fit again is enough.
SLOW = 0.5
#: The gap of the fits by which a C is judged, of their objective; rows held out differ by its root.
SCORED = 1e-4
#: How often another solver's point is a rival: it costs a fit.
OTHER_SOLVER = 0.3
#: What does not depend on the numbers of clusters, the signs of directions, or the way through equal values; and what
#: its rounding is measured by: squares of distances, weight. The ways of mixtures, dictionaries and metrics are not
#: those of convex problems: rounding may send them elsewhere, so what is compared is where they begin.
Essence = Callable[[Any, float, float], tuple[Any, float]]
ESSENCES: dict[type, Essence] = {
    er.Hierarchical: lambda its, squares, weight: (its.linkage_[:, 2].sum(), _lost_in_heights(its, squares, weight)),
    er.KMeans: lambda its, squares, weight: (its.inertia_, weight * squares),
    # Rows that stand twice have as many directions more, without variance, where all are asked for.
    er.PCA: lambda its, squares, weight: ([*its.explained_variance_, *NO_VARIANCE][: len(NO_VARIANCE)], squares),
    er.GaussianMixture: lambda its, squares, weight: (its.history_["log_likelihood"][0], _lost_in_floor(its)),
    er.Dictionary: lambda its, squares, weight: (its.history_["objective"][0], weight * squares),
    er.ContrastiveMetric: lambda its, squares, weight: (its.history_["objective"][0], squares),
    er.LargeMarginMetric: lambda its, squares, weight: (its.history_["objective"][0], weight * weight * squares),
}
#: Components of the rows that are fuzzed, those of the maps of them included.
NO_VARIANCE = np.zeros(512)
#: The share of all weight with which a row has a say in directions behind features.
COUNTING = 1e-8
#: The share of all weight that rounding of sums of squares may take.
LIGHT = 1e-12
#: The share of all variance along a direction that its rounding may take.
VARYING = 1e-14
#: What is added to rows of zeros and ones, so that none is as far from two centres.
APART = 1e-7
#: The share of its square that is rounding of the place of a row.
PLACED = 1e-24
#: What a hard margin may miss in a row.
SEPARATED = 1e-6
#: Checks of rows that stand where they stood.
SAME_PLACES = ("format", "container")
#: What leaves the choice of C alone: folds take rows by their places, and a row that is left out has all of its weight.
CHOOSES_ALIKE = {"cv": SAME_PLACES, "loo": (*SAME_PLACES, "order")}


def _lost_in_floor(machine: Any) -> float:
    """How much of a log-density is rounding: variances as small as the floor have that many digits fewer."""
    return 1.0 + machine.n_features_in_ / max(machine.reg_covar, 1e-14)


def _lost_in_heights(machine: Any, squares: float, weight: float) -> float:
    """What heights lose where their squares are differences of such squares: the more, the lower they are."""
    heights = machine.linkage_[:, 2]
    heavy = weight if machine.linkage == "ward" else 1.0  # whose heights grow with the weights
    return float(weight * np.sqrt(squares) + heavy * np.sum(squares / heights[heights > 0]))


class Outcome:
    """How a fit of a case went: the machine, or the error; the warnings; the seconds, and those of the processor."""

    def __init__(self, machine: Any, X: Any, y: Any, weights: Any):
        self.machine, self.error, self.trace = machine, None, ""
        self.weight = float(len(y) if weights is None else np.sum(np.asarray(weights, dtype=float)))
        begin, used = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                machine.fit(X, y) if weights is None else machine.fit(X, y, sample_weight=weights)
            except Exception as error:  # noqa: BLE001 - which ones are allowed is what is being tested
                self.error, self.trace = error, traceback.format_exc()
        self.seconds, self.used = time.perf_counter() - begin, time.process_time() - used
        self.warnings = caught

    @property
    def fitted(self) -> bool:
        return self.error is None

    @property
    def settled(self) -> bool:
        """Whether another fit of the same data must come to the same end: no clock has ended a part of this one."""
        limit = self.machine.get_params().get("max_time")
        return self.fitted and (limit is None or self.seconds < UNHURRIED * limit)

    @property
    def proof(self) -> Any:
        """The certificate of the machine, or of the one that it is around."""
        inner = getattr(self.machine, "estimator_", None)
        return getattr(self.machine, "certificate_", getattr(inner, "certificate_", None))

    @property
    def exact(self) -> bool:
        """Whether it came to its end, and so did every member of it: one that stalls may do so anywhere."""
        members = getattr(self.machine, "estimators_", [])
        proofs = [self.proof, *(getattr(member, "certificate_", None) for member in members)]
        return self.settled and all(proof is None or proof.converged for proof in proofs)


def fit(case: Case, **changes: Any) -> Outcome:
    """Fit a clone of the machine to the data of the case, or to others; weights where it takes them."""
    given = {"X": case.X, "y": case.y, "weights": case.weights} | changes
    if not has_fit_parameter(case.machine, "sample_weight"):
        given["weights"] = None
    return Outcome(clone(case.machine), **given)


def run(case: Case, timed: bool = False, extras: int = 3) -> tuple[str, list[Finding]]:
    """How the fit of a case ended ("fitted" or "refused"), and everything that is wrong with it."""
    before = _contents(case)
    outcome = fit(case)
    found = list(_ends(case, outcome, timed))
    if before != _contents(case):
        found.append(("changed", "the fit wrote into what it was given"))
    if not outcome.fitted:
        return "refused", found + list(_says_why(outcome))
    found += _speaks_little(outcome)
    # Each seed looks at the certificate and at some of the rest: many seeds see everything.
    random = np.random.default_rng([11, case.seed])
    known = EXTRA if case.seed < EVERY else ALL_EXTRA
    chosen = random.permutation(len(known))[: 1 if outcome.used > SLOW else extras]
    for check in (_is_finite, _is_certified, *(known[number] for number in chosen)):
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found += check(case, outcome)
            if check is not _is_certified:  # the rivals there are other people's
                found += _says_nothing_foreign(caught, check.__name__)
        except Exception as error:  # noqa: BLE001 - an error in what follows a fit is a finding
            if not _is_sentence(error):
                found.append(("unclear", f"{check.__name__.strip('_')}: {_last_line(traceback.format_exc())}"))
    return "fitted", found


def _contents(case: Case) -> tuple[Any, ...]:
    """What the user holds: the data, and the parameters."""
    X = repr(case.X) if case.takes == "items" else data.plain(case.X).tolist()
    return repr(X), repr(case.y), repr(case.weights), repr(case.machine)


def _ends(case: Case, outcome: Outcome, timed: bool) -> Iterator[Finding]:
    parameters = case.machine.get_params()
    limit = parameters.get("max_time") or LIMIT
    # Seconds of the processor: on a busy machine others take the rest.
    if not timed or "max_time" not in parameters or outcome.used <= limit + OVERTIME_SECONDS:
        return
    limited = replace(case, machine=clone(case.machine).set_params(max_time=limit))
    for _ in range(LOADING):
        seconds = fit(limited).used
        if seconds <= limit + OVERTIME_SECONDS:
            return
    yield "late", f"max_time={limit} and {seconds:.1f} s"


def _is_sentence(error: Exception) -> bool:
    """Whether an error is a sentence for the user: ours, or scikit-learn's check of what it was given."""
    if isinstance(error, EmpiriskError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    checks = any("sklearn/utils" in frame.filename for frame in frames[-3:])
    return checks and isinstance(error, (ValueError, TypeError))


def _last_line(trace: str) -> str:
    lines = [line.strip() for line in trace.strip().splitlines()]
    places = [line for line in lines if line.startswith("File") and "empirisk" in line]
    return f"{lines[-1][:200]} [{places[-1][-90:] if places else ''}]"


def _says_why(outcome: Outcome) -> Iterator[Finding]:
    if not _is_sentence(outcome.error):
        yield "unclear", _last_line(outcome.trace)
    if any(name.endswith("_") and not name.startswith("_") for name in vars(outcome.machine)):
        yield "damaged", "a refused fit left attributes behind"


def _speaks_little(outcome: Outcome) -> Iterator[Finding]:
    yield from _says_nothing_foreign(outcome.warnings, "fit")
    # What fits other machines hands on what each of them says: those that differ in figures alone are one.
    around = outcome.machine.get_params().keys() & {"estimator", "estimators"}
    said = {re.sub(r"[-+.e\d]+", "", str(one.message)) if around else id(one) for one in outcome.warnings}
    if len(said) > MANY_WARNINGS:
        yield "flood", f"{len(outcome.warnings)} warnings such as {outcome.warnings[0].message}"


def _says_nothing_foreign(caught: list[warnings.WarningMessage], where: str) -> Iterator[Finding]:
    for one in caught:
        # A scaler that overflows scales nothing and says so: that is its user's to hear.
        of_a_map = "/sklearn/" in one.filename and issubclass(one.category, RuntimeWarning)
        # SciPy ignores it for the whole process while it searches: of two searches one undoes that for the other.
        of_a_race = where == _two_at_once.__name__ and one.category.__name__ == "LineSearchWarning"
        if not (of_a_map or of_a_race) and not issubclass(one.category, (ConvergenceWarning, UserWarning)):
            yield "warning", f"{where}: {one.category.__name__}: {one.message} [{one.filename[-60:]}:{one.lineno}]"
            return


def _answers(machine: Any, X: Any) -> np.ndarray:
    """What a machine says of rows: scores where it has them, else predictions."""
    for name in ("score_samples", "decision_function", "predict_proba", "predict", "transform"):
        if hasattr(machine, name):
            found = data.plain(getattr(machine, name)(X))
            return _where_known(X, found) if isinstance(machine, er.selection.CombinedColumns) else found
    return machine.linkage_[:, 2]


def _where_known(X: Any, answers: np.ndarray) -> np.ndarray:
    """Zero in place of NaN in rows that miss something: columns that are handed on miss it too."""
    missing = np.isnan(data.plain(X).astype(float)).any(axis=1)
    return np.where(missing[:, None] & np.isnan(answers), 0.0, answers)


def _essence(case: Case, outcome: Outcome) -> tuple[np.ndarray, float]:
    """What equal data must agree in, and the size of its rounding."""
    for kind, essence in ESSENCES.items():
        if isinstance(outcome.machine, kind):
            value, unit = essence(outcome.machine, _squares(case, outcome.machine), outcome.weight)
            return np.atleast_1d(value), DIGITS * unit
    answers = _answers(outcome.machine, case.X)
    if isinstance(outcome.machine, er.GaussianDensity):
        return answers, DIGITS * _lost_in_floor(outcome.machine) * np.abs(answers).max()
    # Steps of boosting are of the order of one: where classes weigh the same they cancel, and their rounding is left.
    return answers, DIGITS if isinstance(outcome.machine, er.BoostingClassifier) else 0.0


def _squares(case: Case, machine: Any) -> float:
    """The largest square of a row: around the mean, but where only products are known, behind a kernel or sparse."""
    features = case.machine.get_params().get("features")
    if isinstance(features, Kernel):
        return float(np.max(features.diagonal(data.plain(case.X).astype(float))))
    mapped = case.X if features is None or case.seed < EVERY else machine.features_.transform(case.X)
    X = data.plain(mapped).astype(float)
    lost = len(X) * np.finfo(float).eps * np.abs(X).max(axis=0)  # of a mean, even where all rows are equal
    X = X if sparse.issparse(case.X) else X - X.mean(axis=0)
    return max(float(np.max(np.sum(X * X, axis=1))), float(lost @ lost) / DIGITS)


def _rows_that_count(case: Case, machine: Any) -> np.ndarray:
    """The rows that have a say in the directions of a PCA.

    Others may lie off those along which the rest varies, where the density is zero: rows of hardly any weight, and
    those whose weighted square off the directions is below the rounding of the sum of all.
    """
    weights = np.asarray(case.weights, dtype=float)
    if case.machine.features is not None:
        return weights > COUNTING * weights.sum()
    moved = data.plain(case.X).astype(float) - machine.mean_
    varying = machine.explained_variance_ > VARYING * np.max(machine.explained_variance_, initial=0)
    directions = machine.components_[varying]
    off = moved - moved @ directions.T @ directions
    squares, left = (np.sum(part * part, axis=1) for part in (moved, off))
    counts = weights * left > VARYING * np.sum(weights * squares)
    return (weights > LIGHT * weights.sum()) & (counts | (left <= PLACED * squares))


def _is_finite(case: Case, outcome: Outcome) -> Iterator[Finding]:
    answers = _answers(outcome.machine, case.X)
    if isinstance(outcome.machine, er.PCA) and case.weights is not None:
        answers = answers[_rows_that_count(case, outcome.machine)]
    if answers.dtype.kind == "f" and not np.all(np.isfinite(answers)):
        yield "not finite", f"answers such as {answers[~np.isfinite(answers)].flat[0]}"
    for name in ("coef_", "intercept_", "dual_coef_"):
        if not np.all(np.isfinite(getattr(outcome.machine, name, 0.0))):
            yield "not finite", name
    certificate = getattr(outcome.machine, "certificate_", None)
    claimed = certificate is not None and certificate.converged
    convex = not isinstance(outcome.machine, er.Parametric)  # else there is no bound from below
    values = [certificate.primal, certificate.dual, certificate.gap][: 3 if convex else 1] if claimed else []
    if not np.all(np.isfinite(values)):
        yield "false certificate", f"converged with {certificate}"


def _is_certified(case: Case, outcome: Outcome) -> Iterator[Finding]:
    parts = equation.pieces(outcome.machine, case.X, case.y, case.weights)
    if parts is None:
        return
    certificate = outcome.machine.certificate_
    if not np.isfinite(certificate.gap):
        return
    if isinstance(outcome.machine.C, er.Constraint):
        yield from _holds_within_the_radius(outcome.machine.C.limit, parts, certificate)
        return
    stored = [part.value(part.found) for part in parts]
    if np.isinf(outcome.machine.C_):  # any of its rivals would have to keep all margins
        kept = SEPARATED * sum(len(part.y) for part in parts)
        if certificate.converged and sum(stored) > certificate.primal + certificate.gap + kept * max(sum(stored), 1.0):
            yield "false certificate", f"a hard margin of {sum(stored):.10g} where {certificate}"
        return
    best = [min(part.value(point) for point in rivals.points(part)) for part in parts]
    for position, point in enumerate(_other_solvers_points(case)):
        best[position] = min(best[position], parts[position].value(point))
    rounding = equation.DIGITS * sum(part.magnitude(value) for part, value in zip(parts, stored, strict=True))
    if sum(stored) > certificate.primal + certificate.gap + rounding:
        yield "false certificate", f"stored {sum(stored):.10g} where {certificate}"
    if sum(min(pair) for pair in zip(best, stored, strict=True)) < certificate.primal - certificate.gap - rounding:
        yield "false certificate", f"{sum(best):.10g} is attained where {certificate}"


def _holds_within_the_radius(radius: float, parts: list[equation.Piece], certificate: Any) -> Iterator[Finding]:
    """The weights keep to the radius, and nothing within it has a smaller sum of losses than the certificate allows."""
    size = sum(part.size(part.found) for part in parts)
    if not size <= radius * (1 + CLOSE):
        yield "false certificate", f"R(w) = {size:.10g} of {certificate}"
    stored = [part.loss_sum(part.found) for part in parts]
    rounding = equation.DIGITS * sum(part.magnitude(value) for part, value in zip(parts, stored, strict=True))
    if sum(stored) > certificate.primal + certificate.gap + rounding:
        yield "false certificate", f"stored {sum(stored):.10g} where {certificate}"
    constants = [part.constant() for part in parts]
    for points in ([min(rivals.points(part), key=part.value) for part in parts], constants):
        larger = sum(part.size(point) for part, point in zip(parts, points, strict=True))
        # R is convex and zero at zero: so much smaller weights are within the radius.
        share = min(1.0, radius / larger) if larger else 1.0
        inside = [(share * w, b) for w, b in points]
        best = sum(part.loss_sum(point) for part, point in zip(parts, inside, strict=True))
        if best < certificate.primal - certificate.gap - rounding:
            yield "false certificate", f"{best:.10g} is attained where {certificate}"


def _other_solvers_points(case: Case) -> list[equation.Point]:
    """What a solver of ours that was not asked for makes of the same problems; nothing where it refuses them."""
    random = np.random.default_rng([19, case.seed])
    if isinstance(case.machine.C, (str, er.Constraint)) or random.random() > OTHER_SOLVER:
        return []
    machine = clone(case.machine).set_params(solver=str(random.choice(SOLVERS)), max_time=0.2)
    other = Outcome(machine, case.X, case.y, case.weights)
    parts = equation.pieces(machine, case.X, case.y, case.weights) if other.fitted else None
    return [part.found for part in parts or []]


def _objective_is_that_of(
    case: Case, outcome: Outcome, other: Outcome, word: str, rows: Any = slice(None)
) -> Iterator[Finding]:
    """Compare two fits that stand for the same data by what their certificates say, or by their answers to rows."""
    if other.fitted != outcome.fitted:
        # A clock may have ended the proof of a refusal; what a map has learned may be too small for one of the two.
        if case.machine.get_params().get("max_time") is None and "features(X) holds" not in str(other.error):
            yield word, f"refused: {other.error}"
        return
    if not (outcome.exact and other.exact):
        return
    if case.machine.get_params().get("C") in ("cv", "loo"):
        if word in CHOOSES_ALIKE[case.machine.C]:
            yield from _chooses_alike(outcome, other, word)
        return
    first, second = outcome.proof, other.proof
    if first is not None and second is not None:
        allowed = first.gap + second.gap + CLOSE * max(abs(first.primal), abs(second.primal))
        if isinstance(outcome.machine, er.selection.BestSubset):  # its sums of squares are known to so many digits
            allowed += DIGITS * outcome.weight * float(np.max(np.square(np.asarray(case.y, dtype=float))))
        if not abs(first.primal - second.primal) <= allowed:
            yield word, f"primal {first.primal:.10g} and {second.primal:.10g}"
    elif word in SAME_PLACES or not isinstance(outcome.machine, DRAWN):
        (one, rounding), (two, _) = _essence(case, outcome), _essence(case, other)
        one, two = one[rows], two[rows]
        close = ROUGH if undecided.members_are_proven(outcome.machine) else CLOSE
        same = one.shape == two.shape and (
            np.allclose(one, two, rtol=close, atol=close * np.abs(one).max(initial=0.0) + rounding)
            if one.dtype.kind == "f"
            else np.array_equal(one, two)
        )
        if not same:
            yield word, f"{one.ravel()[:4]} and {two.ravel()[:4]}"


def _chooses_alike(outcome: Outcome, other: Outcome, word: str) -> Iterator[Finding]:
    """Compare what two choices of C have tried, and by which losses of held-out rows."""
    one, two = outcome.machine.choice_, other.machine.choice_
    if not (one.values.shape == two.values.shape and np.allclose(one.values, two.values, rtol=CLOSE, atol=0)):
        yield word, f"C from {one.values} and {two.values}"
    elif not np.allclose(one.mean, two.mean, rtol=np.sqrt(max(SCORED, outcome.machine.tol)), atol=0):
        yield word, f"held-out losses {one.mean} and {two.mean}"


def _taken(case: Case, rows: np.ndarray) -> Any:
    """Some of the rows; of a Gram matrix with their columns."""
    if case.takes == "items":
        return [case.X[row] for row in rows]
    if case.takes == "gram":
        return case.X[np.ix_(rows, rows)]
    if hasattr(case.X, "iloc"):
        return case.X.iloc[rows]
    return case.X.tocsr()[rows] if sparse.issparse(case.X) else data.plain(case.X)[rows]


def _weights_count_rows(case: Case, outcome: Outcome) -> Iterator[Finding]:
    if undecided.learns_from_rows(case) or not has_fit_parameter(case.machine, "sample_weight"):
        return
    times = np.random.default_rng([13, case.seed]).integers(1, 4, len(case.y))
    rows = np.repeat(np.arange(len(case.y)), times)
    y = np.asarray(case.y)
    weighted, repeated = fit(case, weights=times), fit(case, X=_taken(case, rows), y=y[rows], weights=None)
    if not weighted.fitted:
        yield from _says_why(weighted)
    # A fold takes a row whole, whatever its weight: a class of one row has no folds, that row twice has.
    if weighted.fitted or case.machine.get_params().get("C") != "cv":
        yield from _objective_is_that_of(case, weighted, repeated, "weights", undecided.decided(case, weighted))


def _order_does_not_matter(case: Case, outcome: Outcome) -> Iterator[Finding]:
    if undecided.learns_from_rows(case):
        return
    order = np.random.default_rng([17, case.seed]).permutation(len(case.y))
    weights = None if case.weights is None else np.asarray(case.weights)[order]
    other = fit(case, X=_taken(case, order), y=np.asarray(case.y)[order], weights=weights)
    yield from _objective_is_that_of(case, outcome, other, "order", undecided.decided(case, outcome))


def _format_does_not_matter(case: Case, outcome: Outcome) -> Iterator[Finding]:
    X = data.plain(case.X) if case.takes == "rows" else np.empty(0, dtype=object)
    if X.dtype.kind not in "biuf":
        return
    found = list(_agrees_in_the_other_form(case, outcome, X))
    tied = isinstance(case.machine, er.KMeans) and np.array_equal(X, X.astype(bool))
    if tied and any("refused" not in sentence for _, sentence in found):
        # Rows of zeros and ones are as far from several centres: the rounding of distances, which sparse rows take from
        # products, decides for one of them, and so between local minima. With a little noise none is.
        moved = replace(case, X=X + APART * np.random.default_rng([31, case.seed]).normal(size=X.shape))
        found = list(_agrees_in_the_other_form(moved, fit(moved), moved.X))
    yield from found


def _agrees_in_the_other_form(case: Case, outcome: Outcome, X: np.ndarray) -> Iterator[Finding]:
    """Compare a fit with that of the rows in sparse form, or in dense form where they are sparse."""
    thin = sparse.csr_matrix(X if X.dtype == np.float32 else X.astype(float))
    was_thin = sparse.issparse(case.X)
    other = fit(case, X=X if was_thin else thin)
    words = str(other.error)
    refused = not other.fitted and _is_sentence(other.error) and ("parse" in words or "csr" in words) and not was_thin
    # Single precision is kept for dense rows alone where a map goes through trigonometric functions.
    if not (undecided.learns_from_rows(case, moved=False) or refused) and X.dtype != np.float32:
        yield from _objective_is_that_of(
            replace(case, X=thin), outcome, other, "format", undecided.decided(case, outcome)
        )


def _container_does_not_matter(case: Case, outcome: Outcome) -> Iterator[Finding]:
    """Rows in an array of floats, or in CSR form where they are sparse, give the same fit; a mask means missing."""
    if case.takes != "rows" or "words)" in case.words:
        return
    X = data.plain(case.X)
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype == np.float32 else float)
    X = sparse.csr_matrix(X) if sparse.issparse(case.X) else X
    other = fit(case, X=X, y=np.asarray(case.y), weights=None if case.weights is None else np.asarray(case.weights))
    yield from _objective_is_that_of(replace(case, X=X), outcome, other, "container", undecided.decided(case, outcome))


def _same_bits(case: Case, outcome: Outcome, other: Any, word: str) -> Iterator[Finding]:
    one, two = _answers(outcome.machine, case.X), _answers(other, case.X)
    if not np.array_equal(one, two, equal_nan=one.dtype.kind == "f"):
        yield word, "other answers"


def _clones_alike(case: Case, outcome: Outcome) -> Iterator[Finding]:
    again = fit(case)
    if outcome.settled and again.settled:
        yield from _same_bits(case, outcome, again.machine, "clone")


def _pickles(case: Case, outcome: Outcome) -> Iterator[Finding]:
    yield from _same_bits(case, outcome, pickle.load(io.BytesIO(pickle.dumps(outcome.machine))), "pickle")


def _saves(case: Case, outcome: Outcome) -> Iterator[Finding]:
    if np.asarray(case.y).dtype == object or hasattr(outcome.machine.get_params().get("features"), "with_mean"):
        return  # labels of any Python type, and transformers of others, have no place in a model file
    if "polars" in MISSING:
        return  # model files may hold tables
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.model"
        er.save(outcome.machine, path)
        yield from _same_bits(case, outcome, er.load(path), "save")


def _threads_agree(case: Case, outcome: Outcome) -> Iterator[Finding]:
    with er.config(threads=3):
        other = fit(case)
    if outcome.settled and other.settled:
        yield from _same_bits(case, outcome, other.machine, "threads")


def _two_at_once(case: Case, outcome: Outcome) -> Iterator[Finding]:
    """Two fits in two threads at the same time give what one alone gives."""
    if case.machine.get_params().get("max_time") is not None:
        return  # the clock may end one of them

    def fitted(_: int) -> Any:
        machine, weights = clone(case.machine), {} if case.weights is None else {"sample_weight": case.weights}
        known = has_fit_parameter(machine, "sample_weight")
        return machine.fit(case.X, case.y, **weights if known else {})

    with ThreadPoolExecutor(2) as pool:  # what they warn of goes to the one who called
        for machine in pool.map(fitted, range(2)):
            yield from _same_bits(case, outcome, machine, "two at once")


def _fits_again(case: Case, outcome: Outcome) -> Iterator[Finding]:
    """A machine that was fitted to other rows before gives what a fresh one gives."""
    half = np.arange(len(case.y))[: (len(case.y) + 1) // 2]
    before = fit(case, X=_taken(case, half), y=np.asarray(case.y)[half], weights=None)
    weights = case.weights if has_fit_parameter(case.machine, "sample_weight") else None
    again = Outcome(before.machine, case.X, case.y, weights)
    if not again.fitted:
        if outcome.settled:  # else the clock may have ended the search for the reason of the refusal
            yield "refit", f"refused: {again.error}"
    elif outcome.settled and again.settled:
        yield from _same_bits(case, outcome, again.machine, "refit")


def _hurries(case: Case, outcome: Outcome) -> Iterator[Finding]:
    """A fit that has no time ends with an answer, or with a sentence."""
    if "max_time" in case.machine.get_params():
        hurried = replace(case, machine=clone(case.machine).set_params(max_time=HURRY))
        other = fit(hurried)
        if not other.fitted:
            yield from _says_why(other)
        else:
            yield from _speaks_little(other)
            yield from _is_finite(hurried, other)


EXTRA: tuple[Callable[[Case, Outcome], Iterator[Finding]], ...] = (
    _weights_count_rows,
    _order_does_not_matter,
    _format_does_not_matter,
    _clones_alike,
    _pickles,
    _saves,
    _threads_agree,
)
ALL_EXTRA = (*EXTRA, _container_does_not_matter, _two_at_once, _fits_again, _hurries)
