"""Model files that must load for ever, and the answers they must give.

Each version has a folder; ``python -m tests.files.golden`` writes those files of this version that are not there yet. A
file that is there is never written again: a new version of the library must read what the old one wrote.
"""

import json
from operator import attrgetter
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import empirisk as er
from tests.files.cases import answers, built, fitted, public_estimators, rows
from tests.files.subjects import series, small
from tests.service.serving import table_model

FOLDER = Path(__file__).parent / "data"
#: Where files of this version stand.
OURS = FOLDER / er.__version__


def machines() -> dict:
    """One small fitted machine of each family."""
    X = rows(40)
    three = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    mapped = er.SVM(features=make_pipeline(StandardScaler(), er.maps.Polynomial(2)), C=0.5)
    steps = make_pipeline(SimpleImputer(), StandardScaler(), er.LogisticRegression())
    return {
        "svm": fitted(er.SVM(C=0.5), X),
        "softmax": er.LogisticRegression().fit(X, three),
        "centroid": er.NearestCentroid().fit(X, three),
        "perceptron": fitted(er.Perceptron(random_state=0), X),
        "map": fitted(mapped, X),
        "ridge": fitted(er.Ridge(C="loo"), X),
        "lasso": fitted(er.Lasso(C=3.0), X),
        "svr": fitted(er.SVR(), X),
        "kernel_svm": fitted(er.SVM(features=er.kernels.Gaussian(2.0) + 0.1 * er.kernels.Linear()), X),
        "kernel_ridge": fitted(er.Ridge(features=er.kernels.Polynomial(2)), X),
        "nystrom": fitted(er.SVM(features=er.maps.Nystrom(er.kernels.Gaussian(2.0), 8, random_state=0)), X),
        "neighbours": fitted(er.KNNClassifier("loo"), X),
        "tree": fitted(er.TreeClassifier(max_depth=3), X),
        "forest": fitted(er.ForestClassifier(n_estimators=3, max_depth=3, random_state=0), X),
        "forest_numbers": fitted(er.ForestRegressor(n_estimators=3, max_depth=3, random_state=0), X),
        "boosting": fitted(er.BoostingRegressor(n_estimators=3, max_leaf_nodes=4, random_state=0), X),
        "boosting_classes": er.BoostingClassifier(n_estimators=3, max_leaf_nodes=4, random_state=0).fit(X, three),
        "adaboost": fitted(er.AdaBoostClassifier(n_estimators=3), X),
        "bagging": fitted(er.BaggingClassifier(er.LogisticRegression(), n_estimators=2, random_state=0), X),
        "steps": fitted(steps, X),
        "one_hot": fitted(make_pipeline(OneHotEncoder(handle_unknown="ignore"), er.Ridge()), X.round(0)),
        "calibrated": fitted(CalibratedClassifierCV(er.SVM(), cv=2), X),
    }


def estimators() -> dict:
    """One small fitted machine, map or transformer of every public class that learns from rows and has no file."""
    lacking = [name for name in public_estimators() if not (OURS / f"estimator-{name}.model").exists()]
    return {name: fitted(small(built(attrgetter(name)(er)))) for name in lacking}


def new_rows():
    return rows(6)


def as_json(found: dict) -> dict:
    return {name: value.tolist() for name, value in found.items()}


def write() -> None:
    """Write the files that are not there."""
    OURS.mkdir(exist_ok=True)
    named = machines() | {f"estimator-{name}": machine for name, machine in estimators().items()}
    for name, machine in named.items():
        place = OURS / f"{name}.model"
        if not place.exists():
            er.save(machine, place, durations=False)
            place.with_suffix(".json").write_text(json.dumps(as_json(answers(machine, new_rows()))))
    place = OURS / "table.model"
    if not place.exists():
        model, table = table_model()
        er.save(model, place)
        found = {"rows": table.head(5).to_dicts(), "proba": model.predict_proba(table.head(5)).tolist()}
        place.with_suffix(".json").write_text(json.dumps(found))
    place = OURS / "series.model"
    if not place.exists():
        model, table = series()
        er.save(model, place)
        found = {"rows": table.to_dicts(), "predictions": model.predict(table).tolist()}
        place.with_suffix(".json").write_text(json.dumps(found, default=str))


if __name__ == "__main__":
    write()
