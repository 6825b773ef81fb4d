"""Which machine is better, and is the difference real?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from scipy.stats import t as student

from empirisk.errors import EmpiriskError
from empirisk.evaluation.data import Array, read_data
from empirisk.evaluation.evaluate import evaluate
from empirisk.evaluation.intervals import corrected_t
from empirisk.evaluation.metrics import find_metrics
from empirisk.evaluation.results import EvaluationResult
from empirisk.notebook import html
from empirisk.theory.bound import check_open


@dataclass(frozen=True)
class Difference:
    """How two machines differ.

    Attributes
    ----------
    better, worse : str
        Their names, by mean score.
    value : float
        Mean difference of the scores, never negative.
    interval : (float, float)
        Its corrected interval.
    p : float
        Probability of such a difference between equal machines.
    adjusted : float
        The same, after Holm's correction for the number of pairs.
    real : bool
        Whether it is below 1 - confidence.

    Examples
    --------
    >>> X = np.arange(60.0)[:, None] % 7
    >>> found = er.compare({"line": er.Ridge(), "tree": er.TreeRegressor()}, X, np.sin(X[:, 0]))
    >>> found.differences[0].better, found.differences[0].real
    ('tree', True)
    """

    better: str
    worse: str
    value: float
    interval: tuple[float, float]
    p: float
    adjusted: float
    real: bool

    def __str__(self) -> str:
        verdict = "real" if self.real else "could be luck"
        return f"{self.better} over {self.worse}: {self.value:.4g} better, p = {self.adjusted:.2g}: {verdict}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found; printed, it is a table and a sentence for every pair.

    Attributes
    ----------
    names : list of str
        The machines, best first.
    results : dict of EvaluationResult
        The evaluation of each.
    ranks : dict of float
        Mean rank over the splits: 1 is the best.
    differences : list of Difference
        Every pair.
    metric : str
        The score compared.

    Examples
    --------
    >>> X = np.arange(60.0)[:, None] % 7
    >>> found = er.compare({"line": er.Ridge(), "tree": er.TreeRegressor()}, X, np.sin(X[:, 0]))
    >>> found.names, found.ranks["tree"]
    (['tree', 'line'], 1.0)
    """

    names: list[str]
    results: dict[str, EvaluationResult]
    ranks: dict[str, float]
    differences: list[Difference]
    metric: str

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"{'':{width}}  rank  {self.metric}"]
        for name in self.names:
            score = self.results[name].score
            low, high = score.interval
            lines.append(f"{name:{width}}  {self.ranks[name]:4.2f}  {score.value:.4g} [{low:.4g}, {high:.4g}]")
        return "\n".join([*lines, *map(str, self.differences)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        scores = [(name, self.results[name].score) for name in self.names]
        rows = [
            [name, f"{self.ranks[name]:.2f}", f"{one.value:.4g}", f"{one.interval[0]:.4g} to {one.interval[1]:.4g}"]
            for name, one in scores
        ]
        return html("Comparison", ["machine", "rank", self.metric, "interval"], rows, map(str, self.differences))


def compare(
    machines: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = 5,
    repeats: int | None = 3,
    test_size: float = 0.25,
    groups: ArrayLike | None = None,
    time: bool | ArrayLike = False,
    scoring: Any = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Comparison:
    """Rank machines on the same splits, and say which differences are real.

    The test is the corrected resampled t test of Nadeau and Bengio: with differences d over J splits,

        t = mean(d) / ( s sqrt(1/J + test rows / training rows) ),     J - 1 degrees of freedom,

    since splits share training rows; p values of several pairs are corrected after Holm.

    Parameters
    ----------
    machines : dict
        Machines by name, all classifiers or all regressors.
    X, y, cv, repeats, test_size, groups, time, sample_weight, random_state
        As for `evaluate`; folds are drawn three times.
    scoring : name or scorer
        As for `evaluate`.
    confidence : float
        A difference is real where its corrected p is below 1 - confidence.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> X = np.arange(60.0)[:, None] % 7
    >>> print(er.compare({"line": er.Ridge(), "tree": er.TreeRegressor()}, X, np.sin(X[:, 0])).differences[0])
    tree over line: 0.7248 better, p = 0.00018: real
    """
    if not isinstance(machines, Mapping) or len(machines) < 2:
        raise EmpiriskError("machines must be a dictionary of at least two machines by name.")
    confidence = check_open("confidence", confidence)
    first = next(iter(machines.values()))
    data = read_data(first, X, y, sample_weight, groups)
    for name, machine in machines.items():
        if (read_data(machine, X, y).classes is None) != (data.classes is None):
            raise EmpiriskError(f"machines: {name!r} solves another task than the first; compare like with like.")
    metric = find_metrics(scoring, data.classes, first)[0]
    in_order = time is not False or not isinstance(cv, (int, str)) or cv in ("loo", "holdout")
    rules = {"repeats": None if in_order else repeats, "test_size": test_size, "time": time}
    splits = data.splits(cv, random_state=random_state, **rules)
    if len(splits) < 2 or min(len(test) for _, test in splits) < 2:
        raise EmpiriskError(f"cv={cv!r} cannot compare machines; use folds or random splits of two test rows or more.")
    shared: dict[str, Any] = {"sample_weight": sample_weight, "confidence": confidence, "random_state": random_state}
    results = {
        name: evaluate(machine, X, y, cv=splits, groups=groups, scoring=metric, **shared)
        for name, machine in machines.items()
    }
    scores = {name: metric.sign * result.score.folds for name, result in results.items()}
    names = sorted(scores, key=lambda name: -scores[name].mean())
    share = sum(len(test) for _, test in splits) / sum(len(train) for train, _ in splits)
    table = rankdata(-np.array([scores[name] for name in names]), axis=0).mean(axis=1)
    ranks = dict(zip(names, map(float, table), strict=True))
    return Comparison(names, results, ranks, _differences(names, scores, share, confidence), metric.name)


def corrected_p(differences: Array, share: float) -> float:
    """The p value of the corrected resampled t test, both sides; one split proves nothing."""
    count = len(differences)
    if count < 2:
        return 1.0
    mean, spread = float(np.mean(differences)), float(np.std(differences, ddof=1))
    # All differences are equal up to rounding: there is no variance to divide by, and any common difference is real.
    if spread <= 1e-12 * abs(mean) or spread == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * student.sf(abs(mean) / (spread * np.sqrt(1 / count + share)), count - 1))


def holm(p: ArrayLike) -> Array:
    """p values corrected for their number, after Holm.

    >>> holm([0.01, 0.04, 0.03]).round(6)
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values)
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    out = np.empty(len(values))
    out[order] = np.minimum(stepped, 1.0)
    return out


def judge_gaps(gaps: Sequence[Array], share: float, confidence: float) -> list[tuple[float, float, bool]]:
    """For each of several differences over the splits: its p value, that after Holm, and whether it is real.

    >>> judge_gaps([np.array([0.1, 0.11, 0.12]), np.array([-0.1, 0.1, 0.0])], share=0.5, confidence=0.95)[0][2]
    True
    """
    p = [corrected_p(gap, share) for gap in gaps]
    return [(raw, fixed, fixed < 1 - confidence) for raw, fixed in zip(p, map(float, holm(p)), strict=True)]


def _differences(names: list[str], scores: dict[str, Array], share: float, confidence: float) -> list[Difference]:
    pairs = list(combinations(names, 2))
    gaps = [scores[better] - scores[worse] for better, worse in pairs]
    return [
        Difference(*pair, float(gap.mean()), corrected_t(gap, share, confidence), *verdict)
        for pair, gap, verdict in zip(pairs, gaps, judge_gaps(gaps, share, confidence), strict=True)
    ]
