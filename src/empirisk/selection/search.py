"""Search over parts: losses, kernels, widths, C, whatever ``set_params`` reaches."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.model_selection import ParameterGrid, ParameterSampler

from empirisk import state
from empirisk.contract.meta import Delegating, Whole, transformed
from empirisk.contract.progress import reported
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.evaluation.data import Array, Data, fit, read_data, seeded
from empirisk.evaluation.metrics import Metric, find_metrics
from empirisk.evaluation.splits import Split
from empirisk.notebook import html
from empirisk.protocols import has_problems, learns_with_machine
from empirisk.runs.journal import Journal, fingerprint
from empirisk.runs.parallel import parallel_fits
from empirisk.selection.path import machines_along

SHOWN = 10  # settings in a notebook


@dataclass(eq=False, repr=False)
class Search(Whole, Delegating):
    """The best of many settings of a machine, by cross-validation.

    Settings that differ in C alone are fitted as one path, each C started where the one before ended, also as the last
    step of a pipeline; behind a kernel they share its values. A setting whose parts have no meaning together is left
    out. Inside `evaluate` the search is done anew in every split.

    Parameters
    ----------
    estimator : classifier or regressor
        Of Empirisk or any that keeps scikit-learn's contract.
    space : dict or list of dict
        Values by the name of a parameter, reaching into parts: ``{"C": [0.1, 1], "loss": ["hinge", "logistic"]}`` or
        ``{"features__width": [1, 2]}``. Lists, or distributions of ``scipy.stats`` with ``candidates``.
    cv : int, "loo", "holdout", "random", splitter or pairs
        As for `evaluate`.
    time : bool
        Whether rows are in the order of time, and later rows judge.
    scoring : name or scorer
        As for `evaluate`; accuracy for classes and R^2 for numbers by default.
    candidates : int or None
        How many settings to draw at random; None tries all of them.
    random_state : int, RandomState or None
        Draws folds and settings, and seeds machines whose ``random_state`` is None.
    journal : path
        A file in which finished fits are noted: the same search goes on where it was killed.

    Attributes
    ----------
    estimator_ : machine
        The machine with the best setting, fitted to all rows.
    best_params_, best_index_, best_score_ : dict, int, float
        The best setting, its place among the settings, and its mean score: an optimistic one, since the best was
        picked; `evaluate` the search for an honest one.
    cv_results_ : dict of arrays
        ``params``, ``mean_test_score``, ``std_test_score``, ``rank_test_score`` and the score of each split.
    refused_ : dict
        Settings by number that were left out, and why.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> space = {"C": [0.01, 1.0], "features": [None, er.maps.Polynomial(2)]}
    >>> found = er.selection.Search(er.SVM(), space).fit(X, (X**2).sum(axis=1) > 1)
    >>> found.best_params_
    {'C': 1.0, 'features': Polynomial()}
    """

    _state = state.State(
        refused_=state.anything(),
        best_index_=state.whole(),
        best_params_=state.anything(),
        best_score_=state.number(finite=False),
        cv_results_=state.anything(),
    )

    estimator: Any
    space: Any
    _: KW_ONLY
    cv: Any = 5
    time: bool = False
    scoring: Any = None
    candidates: int | None = None
    random_state: Any = 0
    journal: Any = None

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Search:
        """Try every setting in every split, and fit the best to all rows."""
        data = read_data(self.estimator, X, y, sample_weight, groups)
        metric = find_metrics(self.scoring, data.classes, self.estimator)[0]
        settings = self._settings()
        splits = data.splits(self.cv, time=self.time, random_state=self.random_state)
        table = self._table_of_scores(data, metric, settings, splits)
        self._keep(settings, table)
        self.estimator_ = fit(self._with(settings[self.best_index_]), data)
        return self

    @property
    def chosen_(self) -> dict[str, Any]:
        """The best setting."""
        return self.best_params_

    def _html_repr(self) -> str:
        """For notebooks: the settings, best first, and below them the machine as scikit-learn draws it."""
        drawn = super()._html_repr()
        if not hasattr(self, "cv_results_"):
            return drawn
        found, best = self.cv_results_, np.argsort(self.cv_results_["rank_test_score"], kind="stable")[:SHOWN]
        settings = [", ".join(f"{name}={value!r}" for name, value in found["params"][k].items()) for k in best]
        scores = [(f"{found['mean_test_score'][k]:.4g}", f"{found['std_test_score'][k]:.2g}") for k in best]
        rows = [(setting, *score) for setting, score in zip(settings, scores, strict=True)]
        count, names = len(found["params"]), ("setting", "mean score", "deviation")
        return html(f"The best of {count} settings", names, rows) + drawn

    def _settings(self) -> list[dict[str, Any]]:
        if self.candidates is not None:
            return list(ParameterSampler(self.space, self.candidates, random_state=self.random_state))
        try:
            settings = list(ParameterGrid(self.space))
        except (TypeError, ValueError) as error:
            raise EmpiriskError(
                f"space={self.space!r} must map names of parameters to lists of values; with distributions, say how "
                f"many settings to draw in candidates= ({error})."
            ) from error
        if not settings:
            raise EmpiriskError("space holds no setting; give lists of values by the name of a parameter.")
        return settings

    def _with(self, setting: dict[str, Any]) -> Any:
        seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else 0
        # A part of the space is cloned: a fit must not write into it.
        fresh = {name: clone(value, safe=False) for name, value in setting.items()}
        return seeded(clone(self.estimator).set_params(**fresh), int(seed))

    def _table_of_scores(
        self, data: Data, metric: Metric, settings: list[dict[str, Any]], splits: list[Split]
    ) -> Array:
        """Scores, settings x splits, larger is better; minus infinity where a setting was refused."""
        runs = plan(self.estimator, settings)
        notes = Journal(
            self.journal,
            lambda: fingerprint("search", self.estimator, settings, splits, data.X, data.y, data.weights, metric.name),
        )
        tasks = [(run, split) for run in range(len(runs)) for split in range(len(splits))]

        def work(task: tuple[int, int]) -> Any:
            run, (inside, outside) = runs[task[0]], data.split(*splits[task[1]])
            try:
                return run.scores(self._with(run.setting), inside, outside, metric)
            except Unsuitable as refusal:
                return str(refusal)

        def note(task: tuple[int, int], value: Any) -> None:
            notes.add(f"{task[0]} {task[1]}", value)

        left = [task for task in tasks if f"{task[0]} {task[1]}" not in notes.done]
        parallel_fits(work, left, alone=len(tasks) == 1, note=note)
        table, self.refused_ = np.full((len(settings), len(splits)), -np.inf), {}
        for run, split in tasks:
            value = notes.done[f"{run} {split}"]
            if isinstance(value, str):
                self.refused_ |= dict.fromkeys(runs[run].places, value)
            else:
                table[runs[run].places, split] = value
        return table

    def _keep(self, settings: list[dict[str, Any]], table: Array) -> None:
        means = table.mean(axis=1)
        if not np.any(means > -np.inf):
            reason = next(iter(self.refused_.values()), "every score is NaN")
            raise EmpiriskError(f"space holds no setting that can be fitted: {reason}")
        means = np.where(np.isnan(means), -np.inf, means)
        self.best_index_ = int(np.argmax(means))
        self.best_params_, self.best_score_ = settings[self.best_index_], float(means[self.best_index_])
        ranks = np.array([1 + int(np.sum(means > mean)) for mean in means])
        with np.errstate(invalid="ignore"):
            spreads = table.std(axis=1)
        self.cv_results_ = {
            "params": settings,
            **{f"split{k}_test_score": table[:, k] for k in range(table.shape[1])},
            "mean_test_score": means,
            "std_test_score": spreads,
            "rank_test_score": ranks,
        }


@dataclass(frozen=True)
class SettingsGroup:
    """Settings that are fitted together: one, or a path over C.

    Attributes
    ----------
    setting : dict
        The parameters that all of them share.
    places : list of int
        Their numbers, in the order of ``Cs``.
    Cs : list of float
        The values of C, increasing; empty where there is no path.
    """

    setting: dict[str, Any]
    places: list[int]
    Cs: list[float]

    def scores(self, machine: Any, train: Data, test: Data, metric: Metric) -> list[float]:
        """Fit to the training rows and score the test rows, larger is better."""
        if not self.Cs:
            return [float(test.score(fit(machine, train), metric.scorer))]
        if hasattr(machine, "steps") and len(machine.steps) > 1:
            before = machine[:-1]
            train = replace(train, X=before.fit_transform(train.X, train.y))
            test = replace(test, X=transformed(before.steps, test.X))
        last = machine.steps[-1][1] if hasattr(machine, "steps") else machine
        if learns_with_machine(last.features):  # the features change along C
            fitted = (fit(clone(last).set_params(C=C), train) for C in self.Cs)
        else:
            problems = clone(last).set_params(C=1.0).problems(train.X, train.y, train.weights)
            fitted = machines_along(problems, self.Cs)
        return [float(test.score(one, metric.scorer)) for one in fitted]


def plan(machine: Any, settings: list[dict[str, Any]]) -> list[SettingsGroup]:
    """Settings put together into paths over C where the machine has them.

    >>> [run.Cs for run in plan(er.SVM(), [{"C": 1.0}, {"C": 0.1}, {"C": 2.0, "tol": 0.1}])]
    [[0.1, 1.0], [2.0]]
    """
    last = machine.steps[-1] if hasattr(machine, "steps") else None
    name, owner = (f"{last[0]}__C", last[1]) if last else ("C", machine)
    if not has_problems(owner):
        return [SettingsGroup(setting, [place], []) for place, setting in enumerate(settings)]
    runs: list[SettingsGroup] = []
    together: dict[str, list[int]] = {}
    for place, setting in enumerate(settings):
        rest = {key: value for key, value in setting.items() if key != name}
        C = setting.get(name)
        finite = isinstance(C, Real) and 0 < float(C) < np.inf
        if finite and (last is None or last[0] not in setting):
            together.setdefault(repr(sorted(rest.items(), key=lambda pair: pair[0])), []).append(place)
        else:
            runs.append(SettingsGroup(setting, [place], []))
    for places in together.values():
        places.sort(key=lambda place: settings[place][name])
        shared = {key: value for key, value in settings[places[0]].items() if key != name}
        runs.append(SettingsGroup(shared, places, [float(settings[place][name]) for place in places]))
    return runs


def search(estimator: Any, space: Any, X: Any, y: ArrayLike, **options: Any) -> Search:
    """Find the best setting of a machine, and fit it: ``Search(estimator, space, **options).fit(X, y)``.

    Parameters
    ----------
    estimator, space
        As for `Search`.
    X, y : table and targets
        Rows and targets, as ``machine.fit`` takes them.
    **options
        The other parameters of `Search`, and ``sample_weight`` and ``groups`` of its ``fit``.

    Returns
    -------
    Search
        Fitted.

    Examples
    --------
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> found = er.selection.search(er.Ridge(), {"C": [1e-3, 1e3]}, X, 2 * X[:, 0])
    >>> found.best_params_, found.predict([[0.5]]).round(2)
    ({'C': 1000.0}, array([1.]))
    """
    rows = {name: options.pop(name) for name in ("sample_weight", "groups") if name in options}
    return Search(estimator, space, **options).fit(X, y, **rows)
