"""More time is never worse: on tables, by rows that no machine has seen."""

import numpy as np
import polars as pl
import pytest

import empirisk as er

ROWS, NEW = 6000, 4000


def waves(random, rows):
    """Numbers that turn in three columns together."""
    X = random.normal(size=(rows, 6))
    y = np.sin(2 * X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * random.normal(size=rows)
    return pl.DataFrame({f"x{k}": column for k, column in enumerate(X.T)} | {"y": y})


def shops(random, rows):
    """Classes that depend on words and on a number in steps."""
    town, x = random.integers(0, 30, rows), random.normal(size=(2, rows))
    score = np.sin(town) + np.floor(2 * x[0]) * x[1] + random.logistic(size=rows)
    words = [f"town {k}" for k in town]
    return pl.DataFrame({"town": words, "a": x[0], "b": x[1], "y": np.where(score > 0, "yes", "no")})


@pytest.mark.long  # two contests by the clock for each table
@pytest.mark.parametrize("table", [waves, shops])
def test_more_time_is_never_worse(table):
    rows = table(np.random.default_rng(0), ROWS + NEW)
    train, new = rows.head(ROWS), rows.tail(NEW)

    def errors(seconds):
        said = er.learn(train, "y", time=seconds).predict(new)
        return (said - new["y"].to_numpy()) ** 2 if table is waves else said != new["y"].to_numpy()

    shorter, longer = (errors(seconds).astype(float) for seconds in (4, 20))
    worse = longer - shorter
    assert worse.mean() <= 2 * worse.std() / NEW**0.5
