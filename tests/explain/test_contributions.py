"""What columns add to predictions adds up to them."""

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import Pipeline
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError
from empirisk.explain.contributions import passed_by, reasons
from empirisk.explain.orders import values_in_orders
from empirisk.formats import shown


def table(rows=160):
    random = np.random.default_rng(0)
    x, town = random.normal(size=rows), random.choice(["Ulm", "Bonn", "Kiel"], rows)
    score = x + 1.5 * (town == "Ulm") + 0.3 * random.normal(size=rows)
    kinds = np.array(["low", "mid", "top"])[np.digitize(score, [-0.5, 1.0])]
    return pl.DataFrame({"x": x, "town": town, "noise": random.normal(size=rows), "kind": kinds, "amount": score})


def learned(machine, target, classes=3):
    frame = table().drop("kind" if target == "amount" else "amount")
    if target == "kind" and classes == 2:
        frame = frame.with_columns(pl.col("kind").replace("mid", "low"))
    return er.learn(frame, target, machines=[machine], folds=2).model, frame.head(5)


def spoken_for(model, frame, scores):
    """The column of the predicted class."""
    said = [list(model.classes).index(label) for label in model.predict(frame)]
    return scores[np.arange(len(frame)), said]


def test_weights_add_up_to_scores():
    model, frame = learned("logistic", "kind")
    scores = model.machine.decision_function(model.encode(frame)) - model.machine.intercept_
    assert model.explain(frame).sum(axis=1) == pytest.approx(spoken_for(model, frame, scores))
    model, frame = learned("logistic", "kind", classes=2)
    scores = model.machine.decision_function(model.encode(frame)) - model.machine.intercept_
    signs = np.where(model.predict(frame) == "top", 1, -1)
    assert model.explain(frame).sum(axis=1) == pytest.approx(signs * scores)


@pytest.mark.parametrize("machine", ["tree", "forest"])
def test_shapley_values_add_up_to_probabilities(machine):
    model, frame = learned(machine, "kind")
    shares = model.predict_proba(frame)
    nodes, passed = model.machine.nodes_, model.passed.astype(float)
    leaves = nodes.is_leaf
    means = (nodes.value[leaves] * passed[leaves, None]).sum(axis=0) / passed[nodes.roots].sum()
    assert model.explain(frame).sum(axis=1) == pytest.approx(spoken_for(model, frame, shares - means))


def test_shapley_values_of_boosting_and_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, frame = learned("boosting", "amount")
    values = model.explain(frame)
    gaps = model.predict(frame)[:, None] - model.predict(frame)
    assert values.sum(axis=1)[:, None] - values.sum(axis=1) == pytest.approx(gaps)
    er.save(model, "it.model")
    assert np.array_equal(er.load("it.model").explain(frame), values)
    frame.write_csv("new.csv")
    result = CliRunner().invoke(app, ["predict", "it.model", "new.csv", "--explain", "--out", "p.csv"])
    assert result.exit_code == 0, result.output
    first = pl.read_csv("p.csv")["because"][0]
    strongest = int(np.abs(values[0]).argmax())
    column = model.schema.used[strongest].name
    assert first.startswith(f"for amount (in its unit): {column}={shown(frame[column][0])} {values[0, strongest]:+.3g}")


@pytest.mark.parametrize(("machine", "target"), [("neighbours", "amount"), ("kernel_svm", "kind")])
def test_values_of_others_add_up_to_answers(machine, target, tmp_path):
    model, frame = learned(machine, target)
    ask = model.pipeline[-1].predict if target == "amount" else model.pipeline[-1].predict_proba
    X = model.encode(frame)
    gaps = ask(X) - ask(model.behind).mean(axis=0)
    values = model.explain(frame)
    assert values.sum(axis=1) == pytest.approx(gaps if target == "amount" else spoken_for(model, frame, gaps))
    assert np.abs(values[:, model.schema.used.index(model.schema["noise"])]).max() < np.abs(values).max() / 2
    er.save(model, tmp_path / "it.model")
    assert np.array_equal(er.load(tmp_path / "it.model").explain(frame), values)
    assert reasons(model, frame)[0].startswith(
        "for amount (in its unit): " if target == "amount" else f"for {model.predict(frame)[0]} (probability): "
    )


def test_a_reason_may_be_that_a_value_is_missing():
    model, frame = learned("logistic", "kind")
    assert "x missing " in reasons(model, frame.with_columns(x=pl.lit(None, pl.Float64)))[0]


def test_values_in_orders_are_shapley_values_where_pairs_act_together():
    draw = np.random.default_rng(1)
    sources, X, behind = np.array([0, 1, 1, 2]), draw.normal(size=(3, 4)), draw.normal(size=(5, 4))
    A = draw.normal(size=(4, 4))

    def say(rows):
        return np.einsum("ri,ij,rj->r", rows, A, rows)[:, None]

    def worth(told, row):
        return say(np.where(np.isin(sources, told), row, behind)).mean()

    for row, found in zip(X, values_in_orders(say, X, sources, 3, behind)[:, :, 0], strict=True):
        for column in range(3):
            others = [other for other in range(3) if other != column]
            sets = [[], others[:1], others[1:], others]
            added = [worth([*told, column], row) - worth(told, row) for told in sets]
            assert found[column] == pytest.approx(np.dot([2, 1, 1, 2], added) / 6)


def test_a_vote_about_numbers_is_the_mean_of_its_members():
    frame = table().drop("kind")
    target, schema = er.tables.Target.of(frame, "amount"), er.tables.understand(frame, without=["amount"])
    encoder = er.tables.TableEncoder(schema)
    X, y = encoder.fit_transform(frame), target.values(frame)
    members = [er.Ridge(), er.ForestRegressor(5, random_state=0), er.TreeRegressor(max_leaf_nodes=4)]
    vote = er.VoteRegressor(members, weights=[3, 2, 1]).fit(X, y)
    model = er.tables.TableModel(schema, Pipeline([("e", encoder), ("m", vote)]), target, passed=passed_by(vote, X))
    values = model.explain(frame).sum(axis=1)
    gaps = model.predict(frame)[:, None] - model.predict(frame)
    assert values[:, None] - values == pytest.approx(gaps, abs=1e-9)
    mute = er.VoteRegressor([er.Ridge(), er.KNNRegressor()]).fit(X, y)
    with pytest.raises(EmpiriskError, match="knows no rows to compare with; learn it"):
        er.tables.TableModel(schema, Pipeline([("e", encoder), ("m", mute)]), target).explain(frame)


@pytest.mark.parametrize("machine", [er.BoostingRegressor("gamma", random_state=0), er.Regressor("gamma")])
def test_parts_of_amounts_add_up_in_the_unit_of_the_target(machine):
    frame = table().drop("kind").with_columns(amount=pl.col("amount").exp())
    target, schema = er.tables.Target.of(frame, "amount"), er.tables.understand(frame, without=["amount"])
    encoder = er.tables.TableEncoder(schema)
    X, y = encoder.fit_transform(frame), target.values(frame)
    machine.fit(X, y)
    pipeline = Pipeline([("e", encoder), ("m", machine)])
    model = er.tables.TableModel(schema, pipeline, target, passed=passed_by(machine, X))
    left = model.predict(frame) - model.explain(frame).sum(axis=1)
    assert left == pytest.approx(np.full(len(frame), left[0]))  # what is predicted where no column says anything
    assert left[0] > 0
