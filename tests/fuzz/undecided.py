"""What rounding may decide in the answers of a machine: the fits, and the rows, that are not compared; and why."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.kernels.base import Kernel
from tests.fuzz import data
from tests.fuzz.cases import Case
from tests.fuzz.parts import classes_in

#: What two objectives may differ by.
CLOSE = 1e-6
#: A gap of a millionth of the objective leaves weights a thousandth of their size.
ROUGH = 1e-3
#: The rounding of an angle.
TURNED = 1e-3
#: Rounding of sums of squares, with digits to spare.
DIGITS = 1e-13
#: Other people's transformers know no weights, landmarks are drawn from the rows as they stand, and of several metrics
#: that are as good rounding finds one.
LEARNS_FROM_ROWS = (er.maps.Nystrom, StandardScaler, er.ContrastiveMetric, er.LargeMarginMetric)
#: What the random machines draw depends on the order and the number of the rows.
DRAWN = (er.ForestClassifier, er.ForestRegressor, er.BaggingClassifier, er.BaggingRegressor)
#: Machines whose answers depend on where the rows stand, and why: in another format they stand where they stood.
BY_PLACES: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("members see rows drawn by their places", lambda its: isinstance(its, DRAWN)),
    ("rows are held out by their places", lambda its: _has(its, "early_stopping")),
    ("every tree sees rows drawn by their places", lambda its: _has(its, "subsample", 1.0)),
    ("a fold takes a row whole, whatever its weight", lambda its: getattr(its, "ccp_alpha", 0.0) == "cv"),
    ("columns are drawn once for every node, equal gains or not", lambda its: _has(its, "max_features")),
)
#: Machines whose answers are no function of the weighted set of rows, and why.
NO_FUNCTION_OF_ROWS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    *BY_PLACES,
    ("a weight is zero or not by the rounding of its solver", lambda its: isinstance(its, er.selection.L1Selection)),
    ("noise is drawn for what is stored", lambda its: _has(its, "jitter", 0.0)),
    ("equal distances differ by the rounding of waves", lambda its: isinstance(its, er.Hierarchical) and _waves(its)),
    ("landmarks are drawn from the rows as they stand", lambda its: isinstance(its, er.maps.Nystrom)),
    ("a fold takes a row whole, whatever its weight", lambda its: _has(its, "cv", among=FOLDED)),
    ("its objective has several minima, and rounding decides for one", lambda its: isinstance(its, er.Parametric)),
    ("columns of equal merit are taken in their order", lambda its: isinstance(its, BY_MERIT)),
    ("networks come near a minimum, and rounding decides to which", lambda its: "Network" in repr(its)),
    # Rows are weighed such that the last member was no better than a guess: classes come to be as probable as others.
    ("of classes as probable the rounding of a minimum takes one", lambda its: _boosts_proven_members(its)),
)
#: What keeps the columns, or combinations of columns, of most merit.
BY_MERIT = (er.selection.InformationSelection, er.selection.CombinedColumns)
#: Machines that judge by folds of the rows, and the parameters for which others do.
FOLDED = (er.selection.GreedySelection, er.selection.Search, er.selection.Threshold)


def _waves(machine: Any) -> bool:
    """Whether features are trigonometric functions of the columns."""
    return isinstance(machine.get_params().get("features"), (er.maps.RandomFourier, er.maps.Periodic))


def _has(machine: Any, name: str, none: Any = None, among: tuple[type, ...] = (object,)) -> bool:
    """Whether a machine has a parameter that is set to something."""
    return isinstance(machine, among) and machine.get_params(deep=False).get(name, none) not in (none, False)


def members_are_proven(machine: Any) -> bool:
    """Whether it is made of machines that minimise up to the gap which their certificates allow."""
    return any(issubclass(cls, (er.Classifier, er.Regressor)) for cls in classes_in(machine) - {type(machine)})


def _boosts_proven_members(machine: Any) -> bool:
    return isinstance(machine, er.AdaBoostClassifier) and members_are_proven(machine)


def learns_from_rows(case: Case, moved: bool = True) -> bool:
    """Whether the answer depends on how often, and where if they are moved, the rows stand; or on rounding."""
    features = case.machine.get_params().get("features")
    reasons = NO_FUNCTION_OF_ROWS if moved else [reason for reason in NO_FUNCTION_OF_ROWS if reason not in BY_PLACES]
    known = any(holds(case.machine) for _, holds in reasons)
    decided = begins_anywhere(case) or _links_means(case) or _turns_at_random(case)
    return isinstance(features, LEARNS_FROM_ROWS) or known or decided


def _turns_at_random(case: Case) -> bool:
    """Whether numbers are so large that their trigonometric functions are rounding: those of a row then depend on the
    rows with which it is multiplied."""
    if not _waves(case.machine):
        return False
    X = data.plain(case.X).astype(float)
    return bool(np.nanmax(np.abs(X), initial=0.0) * np.finfo(float).eps > TURNED * CLOSE)


def _links_means(case: Case) -> bool:
    """Whether the rounding of the means of cells, which are sums of rows, decides between equal distances."""
    if not isinstance(case.machine, er.Hierarchical) or case.machine.cells is None:
        return False
    return _distances_tie(np.unique(data.plain(case.X).astype(float), axis=0))


def _distances_tie(X: np.ndarray) -> bool:
    """Whether a row is as far from two others."""
    distances = np.sort(np.sum((X[:, None] - X) ** 2, axis=2), axis=1)
    return bool(np.any(np.diff(distances, axis=1) <= CLOSE * distances[:, 1:]))


def begins_anywhere(case: Case) -> bool:
    """Whether a metric of fewer components has no unique start.

    Of principal directions of equal variance any may come first, and of neighbours at equal distances any may be the
    target, which a metric of fewer directions tells apart.
    """
    count = case.machine.get_params().get("n_components")
    if not isinstance(case.machine, (er.ContrastiveMetric, er.LargeMarginMetric)) or count is None:
        return False
    X = data.plain(case.X).astype(float)
    times = np.random.default_rng([13, case.seed]).integers(1, 4, len(X))
    for weights in (np.ones(len(X)) if case.weights is None else np.asarray(case.weights, dtype=float), times):
        share = weights / max(weights.sum(), np.finfo(float).tiny)
        values = np.linalg.svd((X - share @ X) * np.sqrt(share)[:, None], compute_uv=False)
        if count < len(values) and values[count - 1] - values[count] <= CLOSE * values[0]:
            return True
    return isinstance(case.machine, er.LargeMarginMetric) and _distances_tie(X)


def decided(case: Case, outcome: Any) -> Any:
    """The rows about which rounding decides nothing: all, but for neighbours behind a kernel and for hard votes."""
    machine = outcome.machine
    if outcome.fitted and hasattr(machine, "kneighbors") and isinstance(machine.features, Kernel):
        return _decided_neighbours(case, machine)
    if outcome.fitted and isinstance(machine, (er.VoteClassifier, er.BaggingClassifier)) and machine.voting == "hard":
        return _decided_votes(case, machine)
    return slice(None)


def _decided_neighbours(case: Case, machine: Any) -> np.ndarray:
    """The rows whose neighbours behind a kernel are known.

    There squares of distances are differences of products, and neighbours whose squares differ by no more than their
    rounding may come in any order, and those not farther than it have any weight by distance; where k is chosen, by all
    rows, one such row may change it for all.
    """
    distances, _ = machine.kneighbors(case.X, len(machine.positions_))
    level = machine.features_.diagonal(case.X)[:, None] + machine.norms_.max()
    squares, rounding = distances**2, 1e3 * DIGITS * level
    decided = np.all(np.diff(squares, axis=1) > rounding, axis=1) & np.all(
        (squares == 0) | (squares > rounding), axis=1
    )
    return decided if machine.n_neighbors != "loo" or decided.all() else np.zeros_like(decided)


def _decided_votes(case: Case, machine: Any) -> np.ndarray:
    """The rows for which every member has one most probable class: of two that are as probable its rounding, or the gap
    that its certificate allows, takes one, and the vote with it. Members of bagging see some of the columns."""
    decided = np.ones(len(case.y), dtype=bool)
    whole = [np.arange(machine.n_features_in_)] * len(machine.estimators_)
    X = case.X.tocsr() if sparse.issparse(case.X) else data.plain(case.X)
    for member, columns in zip(machine.estimators_, getattr(machine, "estimators_features_", whole), strict=True):
        shares = np.sort(member.predict_proba(X[:, columns]), axis=1)
        if shares.shape[1] > 1:
            decided &= shares[:, -1] - shares[:, -2] > ROUGH
    return decided
