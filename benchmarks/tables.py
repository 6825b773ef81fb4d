"""Tables of the benchmarks of `learn`: the bundled ones, real ones from beside the repository, and made-up ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from benchmarks.problems import DATA, sparse_labels


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
