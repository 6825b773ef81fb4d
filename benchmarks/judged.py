"""One side on one table of a bundle, in whichever environment has it.

``python benchmarks/judged.py DIR TABLE SIDE SECONDS`` prints one line of JSON: the loss of every test row, the seconds,
and what it chose. Rivals run in an environment of their own, so that this imports nothing but what its side needs.
"""

import importlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CORES = 2  # what a laptop of some years has, for each side


def ours(folder: Path, about: dict, seconds: float) -> tuple[str, Any]:
    """Our winner, and what it says of the test rows."""
    er, pl = (importlib.import_module(name) for name in ("empirisk", "polars"))
    train, test = (pl.read_parquet(folder / f"{part}.parquet") for part in ("train", "test"))
    target, metric = about["target"], {"numbers": "rmse", "classes": "accuracy", "rare": "log_loss"}[about["task"]]
    found = er.learn(train, target, test_file=test, time=seconds, metric=metric, jobs=CORES)
    rows = test.drop(target)
    if about["task"] != "rare":
        return found.winner, found.predict(rows)
    return found.winner, found.predict_proba(rows)[:, found.model.classes.index(about["rare"])]


def lightgbm(folder: Path, about: dict, seconds: float) -> tuple[str, Any]:
    """LightGBM with its defaults, words as its own categories."""
    package = importlib.import_module("lightgbm")
    make = package.LGBMRegressor if about["task"] == "numbers" else package.LGBMClassifier
    X, y, new = _parts(folder, about, "category")
    return "defaults", _said(make(verbose=-1, random_state=0, n_jobs=CORES).fit(X, y), new, about)


def catboost(folder: Path, about: dict, seconds: float) -> tuple[str, Any]:
    """CatBoost with its defaults, words as its own categories."""
    package = importlib.import_module("catboost")
    make = package.CatBoostRegressor if about["task"] == "numbers" else package.CatBoostClassifier
    X, y, new = _parts(folder, about, "str")
    words = list(X.select_dtypes("object"))
    machine = make(verbose=0, random_seed=0, thread_count=CORES, cat_features=words, allow_writing_files=False)
    return "defaults", _said(machine.fit(X, y), new, about)


def flaml(folder: Path, about: dict, seconds: float) -> tuple[str, Any]:
    """FLAML within the seconds."""
    machine = importlib.import_module("flaml").AutoML()
    X, y, new = _parts(folder, about)
    task = "regression" if about["task"] == "numbers" else "classification"
    metric = {"numbers": "rmse", "classes": "accuracy", "rare": "log_loss"}[about["task"]]
    machine.fit(X, y, task=task, metric=metric, time_budget=seconds, n_jobs=CORES, verbose=0, seed=0)
    return str(machine.best_estimator), _said(machine, new, about)


def autogluon(folder: Path, about: dict, seconds: float, presets: str) -> tuple[str, Any]:
    """AutoGluon within the seconds."""
    package = importlib.import_module("autogluon.tabular")
    X, y, new = _parts(folder, about)
    metric = {"numbers": "rmse", "classes": "accuracy", "rare": "log_loss"}[about["task"]]
    with tempfile.TemporaryDirectory() as place:
        machine = package.TabularPredictor("the target", path=place, eval_metric=metric, verbosity=0)
        machine.fit(X.assign(**{"the target": y}), time_limit=seconds, presets=presets, num_cpus=CORES, num_gpus=0)
        if about["task"] != "rare":
            return machine.model_best, machine.predict(new).to_numpy()
        return machine.model_best, machine.predict_proba(new)[about["rare"]].to_numpy()


#: Who plays, and whether in the environment of the rivals.
SIDES: dict[str, Callable[[Path, dict, float], tuple[str, Any]]] = {
    "ours": ours,
    "LightGBM": lightgbm,
    "CatBoost": catboost,
    "FLAML": flaml,
    "AutoGluon medium": lambda *given: autogluon(*given, presets="medium_quality"),
    "AutoGluon best": lambda *given: autogluon(*given, presets="best_quality"),
}


def _parts(folder: Path, about: dict, words: str = "") -> tuple[Any, Any, Any]:
    """Training columns, their target, and test columns; words as a kind of column, where one is named."""
    pandas, target = importlib.import_module("pandas"), about["target"]
    train, test = (pandas.read_parquet(folder / f"{part}.parquet") for part in ("train", "test"))
    both = pandas.concat([train, test], ignore_index=True).drop(columns=target)
    names = both.select_dtypes("object").columns
    both[names] = both[names].fillna("missing").astype(str) if words == "str" else both[names].astype(words or object)
    y = train[target].to_numpy()
    return both.iloc[: len(train)], y, both.iloc[len(train) :].reset_index(drop=True)


def _said(machine: Any, rows: Any, about: dict) -> Any:
    """Predictions, or the probabilities of the class that is rare."""
    if about["task"] != "rare":
        return np.ravel(machine.predict(rows))
    return machine.predict_proba(rows)[:, list(machine.classes_).index(about["rare"])]


def losses(truth: np.ndarray, said: Any, about: dict) -> np.ndarray:
    """Squared errors of numbers and of the probability of a rare class; else whether it is wrong."""
    if about["task"] == "classes":
        return (truth.astype(str) != np.asarray(said).astype(str)).astype(float)
    truth = (truth == about["rare"]).astype(float) if about["task"] == "rare" else truth
    return (truth - np.asarray(said, dtype=float)) ** 2


def main(folder: Path, side: str, seconds: float) -> dict:
    """What a side reaches on a table."""
    warnings.simplefilter("ignore")
    about = json.loads((folder / "about.json").read_text())
    truth = np.array(json.loads((folder / "truth.json").read_text()))
    begin, work = time.perf_counter(), time.process_time()
    winner, said = SIDES[side](folder, about, seconds)
    took = {"seconds": time.perf_counter() - begin, "work": time.process_time() - work, "winner": winner}
    return {"table": folder.name, "side": side, "losses": losses(truth, said, about).round(9).tolist(), **took}


if __name__ == "__main__":
    place, table, player, limit = sys.argv[1:]
    told = main(Path(place, "tables", table), player, float(limit))
    print("\n" + json.dumps(told))
