"""Optuna: a callback reports the loss of every round to the trial, and ends the fit of a trial that is pruned."""

import numpy as np
import optuna

import empirisk as er
from clients._rows import T, X
from empirisk.optuna import PruningCallback

optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial):
    """The score of a machine with the rate of the trial; a fit that was ended is a trial that is pruned."""
    machine = er.BoostingRegressor(n_estimators=30, learning_rate=trial.suggest_float("rate", 1e-3, 1.0, log=True))
    machine.set_callbacks(PruningCallback(trial, X[80:], T[80:], "neg_mean_squared_error")).fit(X[:80], T[:80])
    if machine.stopped_ == "callback":
        raise optuna.TrialPruned
    return -float(np.mean((machine.predict(X[80:]) - T[80:]) ** 2))


study = optuna.create_study(
    direction="maximize", sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner(2)
)
study.optimize(objective, n_trials=15)
states = [trial.state for trial in study.trials]
assert study.best_value > -np.var(T)
assert optuna.trial.TrialState.PRUNED in states
shortest = min(len(trial.intermediate_values) for trial in study.trials)
assert shortest < 30
print(f"{states.count(optuna.trial.TrialState.PRUNED)} of 15 trials pruned, the first after {shortest} rounds")
