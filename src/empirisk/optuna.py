"""A callback that reports fits to Optuna: trials that do worse than others end in the middle of a fit."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import check_scoring


class PruningCallback:
    """Reports a score on rows held out after each round of a fit, and ends the fit where the trial is to be pruned.

    ``machine.stopped_`` is then "callback", and the objective raises ``optuna.TrialPruned``. For machines that learn in
    rounds: forests, boosting, bagging, AdaBoost, and the iterations of others.

    Parameters
    ----------
    trial : optuna.Trial
        To which scores are reported.
    X, y : rows and targets
        On which the model so far is scored.
    scoring : str or callable, optional
        A score of scikit-learn, the higher the better: the study maximises. None is the machine's own.
    every : int
        Rounds between two scores.

    Examples
    --------
    >>> class Trial:
    ...     def report(self, value, step): print(step, round(value, 1))
    ...     def should_prune(self): return False
    >>> X, y = np.arange(40.0)[:, None], np.arange(40.0)
    >>> machine = er.ForestRegressor(2, random_state=0).set_callbacks(PruningCallback(Trial(), X, y)).fit(X, y)
    0 1.0
    1 1.0
    """

    def __init__(self, trial: Any, X: Any, y: Any, scoring: Any = None, every: int = 1):
        self.trial, self.X, self.y, self.scoring, self.every = trial, X, y, scoring, every

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be set up."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is to be closed."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing is known before a round."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> bool:
        """Report the model after a round, and say whether to stop."""
        if context.parent is None or context.task_id % self.every or fitted_estimator is None:
            return False
        score = check_scoring(fitted_estimator, self.scoring)(fitted_estimator, self.X, self.y)
        self.trial.report(float(score), context.task_id)
        return bool(self.trial.should_prune())
