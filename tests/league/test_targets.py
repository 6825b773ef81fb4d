"""What a target is taken for, and that two sentences about it agree."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import typed
from empirisk.formats import percent
from empirisk.settings import holding

random = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (random.integers(0, 73, 1500), "regression"),  # months
        (random.poisson(4, 2000) + random.poisson(9, 2000), "regression"),
        (random.poisson(1.2, 3000), "regression"),  # claims: the largest numbers are met seldom
        (random.integers(1, 7, 60_000) ** 2, "classification"),
        (np.arange(2600) % 26 + 1, "classification"),  # letters
        (np.arange(300) % 10, "classification"),
    ],
)
def test_many_whole_numbers_are_a_count(values, task):
    target = er.tables.Target.of({"months": values.tolist()}, "months")
    assert target.task == task
    with holding(typed, "empirisk learn"):
        assert f"--types months={'category' if task == 'regression' else 'number'}" in target.question
    assert not er.tables.Target.of({"months": values.tolist()}, "months", task).question


def test_several_targets_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["learn", "iris", "--target", "species", "--target", "petal_width"])
    assert said.exit_code == 1
    assert "--target was given 2 times ('species', 'petal_width'), but a model predicts one column" in said.output


def test_guessing_is_right_as_often_as_it_errs_not():
    """Of equal classes, the most frequent one of the test may be another than that of the training rows."""
    table = pl.DataFrame({"x": random.normal(size=90), "y": ["a", "b", "c"] * 30})
    found = er.learn(table, "y", machines=["centroid"])
    labels, counts = np.unique(found.plan.y[found.plan.train], return_counts=True)
    usual = labels[counts.argmax()]
    right = np.mean(found.test.truth == usual)
    assert (
        f"always guessing {str(usual)!r}, the most frequent one, would be right in {percent(right, 1)}."
        in found.summary()
    )
    assert f"Guessing {str(usual)!r} for every row errs in {percent(1 - right)} of" in found.test.luck
