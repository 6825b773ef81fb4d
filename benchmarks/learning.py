"""`learn` against tuned machines of scikit-learn and LightGBM on the same split: test error and seconds."""

import time
import warnings

import numpy as np
import polars as pl
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

import empirisk as er
from benchmarks.problems import DATA
from empirisk.league.split import Wishes, plan

TABLES = {"breast_cancer": None, "wine": None, "digits": None, "diabetes": None, "tickets": None, "titanic": "Survived"}
LEAVES = {"num_leaves": [7, 31], "learning_rate": [0.05, 0.1], "n_estimators": [100, 400]}
CLASSIFIERS = {
    "logistic regression": (LogisticRegression(max_iter=2000), {"C": [0.01, 0.1, 1.0, 10.0]}),
    "SVC": (SVC(), {"C": [1.0, 10.0], "gamma": ["scale", 0.01]}),
    "random forest": (RandomForestClassifier(300, random_state=0), {}),
    "LightGBM": (LGBMClassifier(verbose=-1, random_state=0), LEAVES),
}
REGRESSORS = {
    "ridge": (RidgeCV(np.logspace(-3, 3, 20)), {}),
    "SVR": (SVR(), {"C": [1.0, 10.0, 100.0]}),
    "random forest": (RandomForestRegressor(300, random_state=0), {}),
    "LightGBM": (LGBMRegressor(verbose=-1, random_state=0), LEAVES),
}


def run() -> None:
    warnings.simplefilter("ignore")
    for name, target in TABLES.items():
        file = DATA / name / f"{name}.csv.gz"
        if target is not None and not file.is_file():
            print(f"  {name}: no data, left out")
            continue
        table = name if target is None else pl.read_csv(file)
        begin = time.perf_counter()
        learned = er.learn(table, target)
        seconds = time.perf_counter() - begin
        rivals, others = _rivals(plan(table, Wishes(target)))
        shown = ", ".join(f"{rival} {error:.4g}" for rival, error in rivals.items())
        ours = _error(learned.test.truth, learned.test.predictions)
        print(f"  {name}: {learned.winner} {ours:.4g} in {seconds:.0f} s; {shown} in {others:.0f} s")
        print(f"    ratio {others / seconds:.2g}")


def _error(truth, said) -> float:
    """Error rate, or root mean squared error."""
    return float(np.sqrt(np.mean((truth - said) ** 2))) if truth.dtype.kind == "f" else float(np.mean(truth != said))


def _rivals(found) -> tuple[dict[str, float], float]:
    begin = time.perf_counter()
    encoder = er.tables.TableEncoder(found.schema)
    X, y = encoder.fit_transform(found.frame[found.train], found.y[found.train]), found.y[found.train]
    X_test, truth = encoder.transform(found.frame[found.test]), found.y[found.test]
    errors = {}
    for name, (machine, grid) in (CLASSIFIERS if found.classes is not None else REGRESSORS).items():
        tuned = GridSearchCV(machine, grid, cv=5, n_jobs=2).fit(X, y)
        errors[name] = _error(truth, tuned.predict(X_test))
    return errors, time.perf_counter() - begin
