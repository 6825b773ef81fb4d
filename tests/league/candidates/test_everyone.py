"""Every kind of machine goes all the way: contest, test, report, file, service. One that raises fails here."""

import sys

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.league.candidates import everyone as candidates
from tests.service.serving import Client, serving

#: Run by `make test-all`.
pytestmark = pytest.mark.long


def table(rows=90, strands=False):
    """Numbers with gaps, words, truth values and a date, and sequences if asked; a class and a number to predict."""
    random = np.random.default_rng(0)
    x, town = random.normal(size=rows), random.choice(["Ulm", "Bonn", "Kiel"], rows)
    score = x + 1.5 * (town == "Ulm") + 0.3 * random.normal(size=rows)
    return pl.DataFrame(
        {
            "x": [None if k % 11 == 0 else float(value) for k, value in enumerate(x)],
            "town": town,
            "member": random.random(rows) < 0.5,
            **({"strand": ["".join(random.choice(list("ACGT"), 12)) for _ in range(rows)]} if strands else {}),
            "day": [f"2024-0{1 + k % 9}-1{k % 10}" for k in range(rows)],
            "kind": np.digitize(score, [-0.5, 1.0]).astype(str),
            "amount": score,
        }
    )


KINDS = [
    *(("kind", player.name) for player in candidates.CLASSIFIERS),
    *(("amount", player.name) for player in candidates.REGRESSORS),
]


@pytest.mark.parametrize(("target", "name"), KINDS)
def test_from_the_table_to_the_service(target, name, monkeypatch, tmp_path):
    module = sys.modules["empirisk.league.run"]  # the attribute of that name is the function
    monkeypatch.setattr(module, "winner", lambda results, prefer: next(one for one in results if one.name == name))
    for limit in ("NETWORK_ROWS", "WIDE_COLUMNS"):  # all play on few rows and columns too, where they are let
        monkeypatch.setattr(candidates, limit, 1)
    other = "amount" if target == "kind" else "kind"
    players = ["forest", "boosting", "vote"] if name == "vote" else [name]  # of whom a vote is made
    given = table(strands=name == "string_kernel")
    found = er.learn(given, target, machines=players, drop=[other], folds=2, out=tmp_path / "it")
    assert {one.state: one.remark for one in found.standings} == {"done": ""}
    assert not [warning for warning in found.warnings if "could not be made" in warning]
    page = (tmp_path / "it.report.html").read_text()
    assert found.best.title in page
    assert "could not be drawn" not in page
    model = er.load(tmp_path / "it.model")
    new = given.drop("kind", "amount").head(3)
    expected = found.model.predict(new).tolist()
    assert model.predict(new).tolist() == expected
    with serving(model) as port:
        client = Client(port)
        status, answers = client.ask("/predict", new.to_dicts())
        client.close()
    assert status == 200, answers
    assert [one["prediction"] for one in answers] == expected


def test_kernels_with_a_metric_have_leaves_where_rows_are_many():
    for everyone in (candidates.CLASSIFIERS, candidates.REGRESSORS):
        (player,) = (one for one in everyone if one.name == "learned_kernel")
        few, many, most = (candidates.Size(rows, 9, 9.0, 2, False, 0) for rows in (12_000, 40_000, 200_000))
        assert [player.reason_not_to_run(size) for size in (few, many)] == ["", ""]
        assert player.reason_not_to_run(most) == "it is slow beyond 100000 rows"
        assert [one.features.leaf_size for one in player.machines(many)] == [6_000]
        assert len(player.machines(few)) == 3
