"""A table with every kind of column, and models of it."""

import numpy as np
from sklearn.pipeline import make_pipeline

import empirisk as er

ROWS = 300
WAYS = ["web", "phone", "f.a+x"]


def _some_missing(values, random):
    return [None if gap < 0.1 else value for gap, value in zip(random.random(ROWS), values, strict=True)]


def make_table():
    """Numbers, words, truth values, dates, sets and codes, some missing, with a class and a number to predict."""
    random = np.random.default_rng(0)
    size, town = 10 * random.normal(size=ROWS), random.choice(["Ulm", "New York", "Bonn", "O'Hara"], ROWS)
    known = random.choice(["yes", "no"], ROWS)
    days = np.datetime64("2020-01-01") + random.integers(0, 1500, ROWS)
    score = size + 5 * (town == "Ulm") + 3 * (known == "yes") + random.normal(size=ROWS)
    return {
        "size": _some_missing(size.tolist(), random),
        "town": _some_missing(town.tolist(), random),
        "known": _some_missing(known.tolist(), random),
        "when": _some_missing([f"{day.astype(object):%d.%m.%Y}" for day in days], random),
        "ways": [";".join(random.choice(WAYS, k, replace=False)) for k in random.integers(1, 4, ROWS)],
        "code": random.choice(["1.0", "2", "35", "x"], ROWS).tolist(),
        "place": random.choice([f"place {k}" for k in range(60)], ROWS).tolist(),
        "spam": np.where(score > 3, "spam", "ham").tolist(),
        "price": (score**2).tolist(),
    }


TABLE = make_table()
PLAIN = ("size", "town", "known")
ALL = (*PLAIN, "when", "ways", "code", "place")


def model_of(machine, target="spam", columns=ALL, table=TABLE, trees=False):
    """A model as `learn` makes them."""
    rows = {name: table[name] for name in (*columns, target)}
    schema = er.tables.understand(rows, without=[target])
    encoder = er.tables.TableEncoder(schema)
    what = er.tables.Target.of(rows, target)
    pipeline = make_pipeline(encoder.for_trees() if trees else encoder, machine).fit(rows, what.values(rows))
    return er.tables.TableModel(schema, pipeline, what)


#: Values as people send them: blanks around, other spellings, markers of missing values, words and days not met.
HOSTILE = {
    "size": [1.5, None, 1e300, -1e9, float("inf"), 0.0],
    "town": ["  New York ", "", "N/A", "new york", " Ulm", "New  York"],
    "known": ["YES", "no ", "", "1", "False", None],
    "when": ["31.12.2020", "2021-02-28", " 1.2.2022", "", None, "2020-02-29 12:30:00"],
    "ways": ["web ; phone", "f.a+x", "fax", "", None, "phone;web;phone"],
    "code": ["1", "1.0", "35.0", "y", "", "2.00"],
    "place": ["place 1", " place 2 ", "elsewhere", "", None, "place 59"],
}
