"""`learn` on the same split as others: LightGBM's defaults, FLAML and AutoGluon at 60 s each, then tuned machines.

FLAML and AutoGluon are compared with where they are installed: ``pip install 'empirisk[automatic]'``. The tables, the
seconds, and whether tuned machines of scikit-learn and LightGBM play, are read from EMPIRISK_TABLES=adult,prices,
EMPIRISK_SECONDS=60 and EMPIRISK_TUNED=no. On a machine of many cores the runs go side by side, each on its own pair:
``taskset -c 0,1 python -m benchmarks.learning adult FLAML >> lines``, and in the end ``... < lines`` compares them.
"""

import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from joblib import parallel_backend
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC

import empirisk as er
from benchmarks.problems import DATA, sparse_labels
from empirisk.league.request import Request
from empirisk.league.rows.split import plan, rare_class

ROWS = 10_000  # of the larger tables, drawn at random: more would take the rivals hours
LEAVES = {"num_leaves": [7, 31], "learning_rate": [0.05, 0.1], "n_estimators": [100, 400]}
#: Every round grows a tree for each class: where they are many, the whole grid would take an hour.
MANY_CLASSES, FEW_LEAVES = 10, {"num_leaves": [7, 31], "n_estimators": [60]}
CLASSIFIERS = {
    "logistic": (LogisticRegression(max_iter=2000), {"C": [0.01, 0.1, 1.0, 10.0]}),
    "SVC": (SVC(), {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01]}),
    "neighbours": (KNeighborsClassifier(), {"n_neighbors": [1, 5, 15], "weights": ["uniform", "distance"]}),
    "forest": (RandomForestClassifier(300, random_state=0), {"max_features": ["sqrt", 0.5]}),
    "LightGBM": (LGBMClassifier(verbose=-1, random_state=0, n_jobs=1), LEAVES),
}
REGRESSORS = {
    "ridge": (RidgeCV(np.logspace(-3, 3, 20)), {}),
    "SVR": (SVR(), {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01]}),
    "neighbours": (KNeighborsRegressor(), {"n_neighbors": [1, 5, 15], "weights": ["uniform", "distance"]}),
    "forest": (RandomForestRegressor(300, random_state=0), {"max_features": [0.33, 1.0]}),
    "LightGBM": (LGBMRegressor(verbose=-1, random_state=0, n_jobs=1), LEAVES),
}
WORDS = TfidfVectorizer(sublinear_tf=True)
TEXTS = {
    "words, logistic": (
        make_pipeline(WORDS, LogisticRegression(max_iter=2000)),
        {"logisticregression__C": [1, 10, 100]},
    ),
    "words, linear SVM": (make_pipeline(WORDS, LinearSVC()), {"linearsvc__C": [0.1, 1.0, 10.0]}),
    "word pairs, linear SVM": (
        make_pipeline(TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), LinearSVC()),
        {"linearsvc__C": [0.1, 1.0, 10.0]},
    ),
}


class Result(NamedTuple):
    """What one side reached: the loss of every test row, seconds, seconds of processors, and its best machine."""

    losses: np.ndarray
    seconds: float
    work: float
    numbers: bool
    winner: str = ""


def _arrays(name: str) -> pl.DataFrame:
    with np.load(DATA / name / f"{name}.npz") as file:
        X, y = file["X"], file["y"]
    return pl.DataFrame({f"x{k}": column for k, column in enumerate(X.T)} | {"y": y})


def _file(name: str) -> pl.DataFrame:
    return pl.read_csv(DATA / name / f"{name}.csv.gz", infer_schema_length=None)


def _digits(name: str) -> pl.DataFrame:
    """The training images of a file, a column for each pixel that is not the same in all."""
    with np.load(DATA / name / f"{name}.npz") as file:
        X, y = file["X_train"].reshape(len(file["X_train"]), -1), file["y_train"]
    X = X[:, X.std(axis=0) > 0]
    return pl.DataFrame({f"x{k}": column for k, column in enumerate(X.T)} | {"y": [f"digit {k}" for k in y]})


def _sparse(name: str) -> pl.DataFrame:
    data = sparse_labels(name)
    if data is None:
        raise FileNotFoundError(name)
    X = data.X.toarray()
    return pl.DataFrame({f"x{k}": column for k, column in enumerate(X.T)} | {"y": np.where(data.y > 0, "yes", "no")})


def _positions(name: str) -> pl.DataFrame:
    """A column for each place of a sequence, as this table is known."""
    table = _file(name)
    letters = zip(*table["sequence"], strict=True)
    return pl.DataFrame({f"x{k}": column for k, column in enumerate(letters)} | {"label": table["label"]})


def _hundred() -> pl.DataFrame:
    random = np.random.default_rng(0)
    kind, centres = random.integers(0, 100, 5000), 2 * random.normal(size=(100, 10))
    X = centres[kind] + random.normal(size=(5000, 10))
    return pl.DataFrame({f"x{k}": column for k, column in enumerate(X.T)} | {"y": [f"kind {k}" for k in kind]})


def _prices() -> pl.DataFrame:
    """Skewed prices of houses: words of many values, areas with outliers, dates, missing cells."""
    random, rows = np.random.default_rng(1), 6000
    area = np.exp(random.normal(4.4, 0.5, rows))
    town, kind = random.integers(0, 80, rows), random.integers(0, 5, rows)
    worth, built = random.normal(0, 0.4, 80), random.integers(1900, 2024, rows)
    old = 0.004 * np.abs(built - 1960) * (kind < 3)
    price = np.exp(9 + 0.9 * np.log(area) + worth[town] + 0.1 * kind + old + random.normal(0, 0.2, rows))
    return pl.DataFrame(
        {
            "area": np.where(random.random(rows) < 0.05, np.nan, area),
            "town": [f"town {k}" for k in town],
            "kind": [f"kind {k}" for k in kind],
            "built": built,
            "garden": random.random(rows) < 0.3,
            "noise": random.normal(size=rows),
            "price": price.round(-2),
        }
    )


def _visits() -> pl.DataFrame:
    """Counts: many zeros, a rate that depends on an interaction."""
    random, rows = np.random.default_rng(2), 8000
    X, day = random.normal(size=(rows, 6)), random.integers(0, 7, rows)
    rate = np.exp(0.5 * X[:, 0] + 0.8 * X[:, 1] * (X[:, 2] > 0) + 0.6 * (day >= 5) - 0.2)
    words = pl.Series([("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")[k] for k in day])
    return pl.DataFrame(
        {f"x{k}": column for k, column in enumerate(X.T)} | {"day": words, "visits": random.poisson(rate)}
    )


def _faults() -> pl.DataFrame:
    """A class of about two per cent, by interactions of numbers and words."""
    random, rows = np.random.default_rng(3), 12000
    X, maker = random.normal(size=(rows, 8)), random.integers(0, 12, rows)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 1.2 * np.isin(maker, [3, 7]) + np.abs(X[:, 3]) - 6.2
    fault = random.random(rows) < 1 / (1 + np.exp(-1.3 * score))
    table = {f"x{k}": column for k, column in enumerate(X.T)} | {"maker": [f"m{k}" for k in maker]}
    return pl.DataFrame(table | {"fault": np.where(fault, "yes", "no")})


def _customers() -> pl.DataFrame:
    """Three classes, mixed columns, correlated numbers, missing cells."""
    random, rows = np.random.default_rng(4), 5000
    Z = random.normal(size=(rows, 3))
    X = np.column_stack([Z @ random.normal(size=3) + 0.3 * random.normal(size=rows) for _ in range(10)])
    region, plan_of = random.integers(0, 15, rows), random.integers(0, 4, rows)
    scores = np.column_stack([Z[:, 0] + 0.5 * (plan_of == 1), Z[:, 1] * Z[:, 2] + 0.4 * (region < 4), np.zeros(rows)])
    label = (scores + random.gumbel(size=scores.shape) * 0.6).argmax(axis=1)
    X[random.random(X.shape) < 0.03] = np.nan
    words = {"region": [f"r{k}" for k in region], "plan": [f"p{k}" for k in plan_of]}
    return pl.DataFrame(
        {f"x{k}": column for k, column in enumerate(X.T)} | words | {"kind": [("low", "mid", "top")[k] for k in label]}
    )


#: The target and how to get the table; None for bundled tables.
TABLES: dict[str, tuple[str | None, Callable[[], Any] | None]] = {
    "breast_cancer": (None, None),
    "wine": (None, None),
    "digits": (None, None),
    "diabetes": (None, None),
    "tickets": (None, None),
    "hundred classes": ("y", _hundred),
    "titanic": ("Survived", lambda: _file("titanic")),
    "spambase": ("y", lambda: _arrays("spambase")),
    "sms_spam": ("label", lambda: _file("sms_spam")),
    "adult": ("income", lambda: _file("adult").drop("split")),
    "letter": ("y", lambda: _arrays("letter")),
    "kin8nm": ("y", lambda: _arrays("kin8nm")),
    "california_housing": ("medianHouseValue", lambda: _file("california_housing")),
    "protein_casp": ("y", lambda: _arrays("protein_casp")),
    "dna_promoters": ("label", lambda: _positions("dna_promoters")),
    "usps": ("y", lambda: _digits("usps")),
    "mnist": ("y", lambda: _digits("mnist")),
    "a9a": ("y", lambda: _sparse("a9a")),
    "prices": ("price", _prices),
    "visits": ("visits", _visits),
    "faults": ("fault", _faults),
    "customers": ("kind", _customers),
}
#: Those on which automatic rivals get the same seconds, with all their rows.
TIMED = (
    "titanic",
    "spambase",
    "sms_spam",
    "adult",
    "letter",
    "kin8nm",
    "california_housing",
    "protein_casp",
    "dna_promoters",
    "usps",
    "mnist",
    "a9a",
    "prices",
    "visits",
    "faults",
    "customers",
)
SECONDS = float(os.environ.get("EMPIRISK_SECONDS", "60"))
BETTER, WORSE = "ours is better", "OURS IS WORSE"


def run() -> None:
    chosen = os.environ.get("EMPIRISK_TABLES", "").split(",") if os.environ.get("EMPIRISK_TABLES") else [*TABLES]
    for name in chosen:
        if name in TIMED:
            run_timed(name)
    if os.environ.get("EMPIRISK_TUNED", "yes") != "no":
        for name in chosen:
            run_table(name)


def run_timed(name: str) -> None:
    """Print what ours and every automatic rival that is installed reach on one table in the same seconds."""
    try:
        there = [side for side, (package, _) in SIDES.items() if importlib.util.find_spec(package.partition(".")[0])]
        results = {side: play(name, side) for side in there}
    except FileNotFoundError:
        print(f"  {name}: no data, left out")
        return
    for rival in SIDES.keys() - results.keys():
        print(f"    {rival} is not installed")
    compare(name, results)


def play(name: str, side: str) -> Result:
    """What one side reaches on the test rows of a table, the same rows for all."""
    warnings.simplefilter("ignore")
    target, make = TABLES[name]
    assert make is not None
    table = make()
    found = plan(Request(table, target))
    importlib.import_module(SIDES[side][0])
    watch = _Watch()
    winner, said = SIDES[side][1](table, found)
    truth, rare = found.y[found.test], _rare(found)
    truth = truth if rare is None else (truth == rare).astype(float)
    numbers = truth.dtype.kind == "f"
    return Result(_losses(truth, np.asarray(said, dtype=truth.dtype)), *watch.read(), numbers, winner)


def compare(name: str, results: dict[str, Result]) -> list[str]:
    """Print every side with its interval, and how ours does beside each rival, which is returned too."""
    print(f"  {name}, {len(results['ours'].losses):,} test rows, {SECONDS:g} s: {_shown(results['ours'])}")
    rivals = [
        (rival, result, _verdict(results["ours"], result)) for rival, result in results.items() if rival != "ours"
    ]
    for rival, result, verdict in rivals:
        print(f"    {rival} {_shown(result)}, {verdict}", flush=True)
    return [verdict for *_, verdict in rivals]


def compare_lines(lines: Iterator[str]) -> None:
    """Compare what runs of one side each have printed."""
    tables: dict[str, dict[str, Result]] = {}
    for line in map(json.loads, lines):
        result = Result(np.array(line.pop("losses"), dtype=float), **line.pop("rest"))
        tables.setdefault(line["table"], {})[line["side"]] = result
    verdicts = [compare(name, results) for name, results in tables.items() if "ours" in results]
    for verdict, said in (("better than every rival", BETTER), ("worse than a rival", WORSE)):
        count = sum((all if said == BETTER else any)(one == said for one in table) for table in verdicts)
        print(f"  {verdict} on {count} of {len(verdicts)} tables")


def _ours(table: pl.DataFrame, found: Any) -> tuple[str, Any]:
    """Our winner, and what it predicts for the test rows."""
    rare = _rare(found)
    metric = None if found.classes is None or rare is not None else "accuracy"
    learned = er.learn(table, found.target.name, time=SECONDS, metric=metric)
    assert np.isin(learned.plan.test, found.test).all()
    tests = found.frame[found.test]
    if rare is not None:
        return learned.winner, learned.predict_proba(tests)[:, learned.model.classes.index(rare)]
    return learned.winner, learned.predict(tests)


def _rare(found: Any) -> Any:
    """The class whose probability is judged, where one is so rare that errors are few whatever a machine says."""
    return None if found.classes is None else rare_class(found.y[found.train])


def _lightgbm(_: pl.DataFrame, found: Any) -> tuple[str, Any]:
    """LightGBM with its defaults, words as its own categories."""
    frame, words = _pandas(found.frame), found.schema.named(lambda kind: kind.dtype == pl.String)
    frame = frame.astype(dict.fromkeys(words, "category"))
    make = LGBMRegressor if found.classes is None else LGBMClassifier
    machine = make(verbose=-1, random_state=0).fit(frame.iloc[found.train], found.y[found.train])
    tests, rare = frame.iloc[found.test], _rare(found)
    if rare is not None:
        return "defaults", machine.predict_proba(tests)[:, machine.classes_.tolist().index(rare)]
    return "defaults", machine.predict(tests)


def _flaml(_: pl.DataFrame, found: Any) -> tuple[str, Any]:
    """The same of FLAML."""
    machine = importlib.import_module("flaml").AutoML()
    frame = _pandas(found.frame)
    machine.fit(
        frame.iloc[found.train],
        found.y[found.train],
        task="regression" if found.classes is None else "classification",
        metric="rmse" if found.classes is None else "accuracy",
        time_budget=SECONDS,
        verbose=0,
        seed=0,
    )
    return str(machine.best_estimator), machine.predict(frame.iloc[found.test])


def _autogluon(_: pl.DataFrame, found: Any) -> tuple[str, Any]:
    """The same of AutoGluon."""
    predictor = importlib.import_module("autogluon.tabular").TabularPredictor
    frame = _pandas(found.frame)
    frame["the target"] = found.y
    with tempfile.TemporaryDirectory() as folder:
        machine = predictor(
            "the target", path=folder, eval_metric="rmse" if found.classes is None else "accuracy", verbosity=0
        )
        machine.fit(frame.iloc[found.train], time_limit=SECONDS)
        return machine.model_best, machine.predict(frame.iloc[found.test])


def _pandas(frame: pl.DataFrame) -> Any:
    """The table for rivals; Polars would need Arrow for it."""
    return importlib.import_module("pandas").DataFrame({column.name: column.to_numpy() for column in frame})


#: Who plays against the clock: the package that must be there, and the function.
SIDES: dict[str, tuple[str, Callable[[pl.DataFrame, Any], tuple[str, Any]]]] = {
    "ours": ("empirisk", _ours),
    "LightGBM": ("lightgbm", _lightgbm),
    "FLAML": ("flaml", _flaml),
    "AutoGluon": ("autogluon.tabular", _autogluon),
}


def run_table(name: str) -> None:
    """Print what ours and every rival reach on one table."""
    warnings.simplefilter("ignore")
    target, make = TABLES[name]
    try:
        table = name if make is None else make()
    except FileNotFoundError:
        print(f"  {name}: no data, left out")
        return
    if isinstance(table, pl.DataFrame) and table.height > ROWS:
        table = table.sample(ROWS, seed=0)
    watch = _Watch()
    learned = er.learn(table, target)
    losses = _losses(learned.test.truth, learned.test.predictions)
    ours = Result(losses, *watch.read(), learned.classes is None, learned.winner)
    print(f"  {name}: {_shown(ours)}", flush=True)
    rivals = {}
    for rival, result in _rivals(plan(Request(table, target))):
        rivals[rival] = result
        print(f"    {rival} {_shown(result)}, {_verdict(ours, result)}", flush=True)
    best = min(rivals, key=lambda rival: rivals[rival].losses.mean())
    others, work = (sum(times) for times in zip(*((r.seconds, r.work) for r in rivals.values()), strict=True))
    print(f"    best rival {best}: {_verdict(ours, rivals[best])}; all rivals {others:.0f} s")
    print(f"    ratio {others / ours.seconds:.2g}, of processors' time {work / ours.work:.2g}", flush=True)


def _losses(truth: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Squared error, or whether it is wrong, of each row."""
    return (truth - said) ** 2 if truth.dtype.kind == "f" else (truth != said).astype(float)


def _shown(result: Result) -> str:
    """The machine, error rate or root mean squared error, its interval of 95 %, and the time."""
    mean, noise = result.losses.mean(), 2 * result.losses.std() / np.sqrt(len(result.losses))
    ends = np.array([mean, max(mean - noise, 0.0), mean + noise])
    value, low, high = np.sqrt(ends) if result.numbers else ends
    times = f"in {result.seconds:.1f} s ({result.work:.1f} s of processors)"
    return f"{result.winner} {value:.4g} [{low:.4g}, {high:.4g}] {times}"


def _verdict(ours: Result, rival: Result) -> str:
    """Whether ours is within two paired standard errors of a rival, or better."""
    worse = ours.losses - rival.losses
    noise = 2 * worse.std() / np.sqrt(len(worse))
    if abs(worse.mean()) <= noise:
        return "within noise"
    return WORSE if worse.mean() > 0 else BETTER


def _rivals(found: Any) -> Iterator[tuple[str, Result]]:
    """Every rival, tuned on the training part by five-fold cross-validation."""
    y, truth = found.y[found.train], found.y[found.test]
    watch = _Watch()
    encoder = er.tables.TableEncoder(found.schema)
    X, X_test = encoder.fit_transform(found.frame[found.train], y), encoder.transform(found.frame[found.test])
    encoding = watch.read()
    for name, (machine, grid) in (CLASSIFIERS if found.classes is not None else REGRESSORS).items():
        if name == "LightGBM" and len(found.target.classes) > MANY_CLASSES:
            grid = FEW_LEAVES
        yield name, _tuned(machine, grid, X, y, X_test, truth, encoding)
    texts = found.schema.of_kind("text")
    if texts and found.classes is not None:
        rows = found.frame.select(pl.concat_str(texts, separator=" ", ignore_nulls=True)).to_series().to_numpy()
        for name, (machine, grid) in TEXTS.items():
            yield name, _tuned(machine, grid, rows[found.train], y, rows[found.test], truth, (0.0, 0.0))


def _tuned(machine, grid, X, y, X_test, truth, before: tuple[float, float]) -> Result:
    watch = _Watch()
    # Threads, so that the time of processors is that of this process alone.
    with parallel_backend("threading"):
        tuned = GridSearchCV(machine, grid, cv=5, n_jobs=2).fit(X, y)
    said = tuned.predict(X_test)
    seconds, work = np.add(before, watch.read())
    return Result(_losses(truth, said), seconds, work, truth.dtype.kind == "f")


class _Watch:
    """Seconds, and seconds of processors, since it was made."""

    def __init__(self):
        self._begin = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        played = play(sys.argv[1], sys.argv[2])._asdict()
        losses = [round(float(loss), 12) for loss in played.pop("losses")]
        print(json.dumps({"table": sys.argv[1], "side": sys.argv[2], "losses": losses, "rest": played}))
    else:
        compare_lines(sys.stdin)
