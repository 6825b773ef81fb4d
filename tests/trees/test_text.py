"""Text, rules and the drawing of a tree."""

import itertools

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.plots import tree as draw

pytestmark = pytest.mark.row("T1")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    income = rng.normal(size=200).round(2)
    frame = pl.DataFrame({"city": rng.choice(["bern", "oslo", "rome", "wien"], size=200), "income": income})
    return frame.with_columns(income=pl.when(pl.col("income") > 1.2).then(None).otherwise(pl.col("income")))


@pytest.fixture
def answers(table):
    cold, noise = table["city"].is_in(["bern", "oslo"]).to_numpy(), np.random.default_rng(1).random(200) < 0.1
    stays = np.where(table["income"].is_null(), cold, table["income"].fill_null(0) > 0.3)
    return np.where(stays ^ noise, "stay", "go")


def test_text_is_the_tree(table, answers):
    tree = er.TreeClassifier(max_depth=3).fit(table, answers)
    text = tree.text()
    assert len(text.splitlines()) == len(tree.nodes_) > 8
    assert text.startswith("income <= 0.31")
    assert "city in {" in text
    assert " or missing  weight " in text
    assert text.count("yes: ") == text.count("no:  ") == tree.n_leaves_ - 1
    for node in np.flatnonzero(tree.nodes_.is_leaf):
        assert f"weight {tree.nodes_.weight[node]:g}" in text
    assert tree.text(max_depth=1).splitlines()[1].endswith(" ...")
    assert tree.text(max_depth=1).count("\n") == 2


def test_each_row_satisfies_exactly_the_rule_of_its_leaf():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)).round(1)
    X[:, 2] = rng.integers(0, 5, size=300)
    X[rng.random(X.shape) < 0.15] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.isnan(X[:, 1]) + np.isin(X[:, 2], [1, 3])
    tree = er.TreeRegressor(categorical_features=[2], max_leaf_nodes=25).fit(X, y)
    rules = tree.rules()
    assert rules["weight"].sum() == 300
    leaves = tree.apply(X)
    names = dict(zip(rules["leaf"], rules["rule"], strict=True))
    assert set(names) == set(leaves.tolist())
    for row, leaf in zip(X[:60], leaves[:60], strict=True):
        matching = [other for other, rule in names.items() if satisfies(row, rule)]
        assert matching == [leaf]


def satisfies(row, rule):
    """Read a rule as a person would."""
    if rule == "always":
        return True
    for part in rule.split(" and "):
        missing_too = part.endswith(" or missing)")
        part = part.removeprefix("(").removesuffix(" or missing)")
        name = next(name for name in ("x0", "x1", "x2") if name in part.split())
        value = row[int(name[1])]
        if part.endswith("is missing"):
            holds = np.isnan(value)
        elif part.endswith("is present"):
            holds = not np.isnan(value)
        elif np.isnan(value):
            holds = missing_too
        elif " in {" in part:
            listed = part.partition("{")[2].rstrip("}").split(", ")
            holds = value in [float(item) for item in listed]
        else:
            holds = eval(part, {name: value})
        if not holds:
            return False
    return True


def test_rules_state_predictions_and_probabilities(table, answers):
    tree = er.TreeClassifier(max_leaf_nodes=4).fit(table, answers)
    rules = tree.rules()
    assert rules.columns == ["leaf", "rule", "depth", "weight", "impurity", "prediction", "P(go)", "P(stay)"]
    np.testing.assert_allclose(rules["P(go)"] + rules["P(stay)"], 1)
    assert rules["depth"].max() == tree.depth_
    several = er.TreeRegressor(max_depth=1).fit([[0.0], [1.0]], [[0.0, 1.0], [2.0, 3.0]]).rules()
    assert several["prediction 1"].to_list() == [1.0, 3.0]
    assert er.TreeRegressor().fit([[0.0]], [1.0]).rules()["rule"].to_list() == ["always"]


@pytest.mark.parametrize("max_depth", [0, 3, None])
def test_labels_in_the_drawing_do_not_overlap(table, answers, max_depth):
    tree = er.TreeClassifier(max_leaf_nodes=30).fit(table, answers)
    figure = draw(tree, max_depth=max_depth)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = figure.axes[0].texts
    boxes = [text.get_bbox_patch() or text for text in texts]
    extents = [box.get_window_extent(renderer) for box in boxes]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(extents, 2))
    page = figure.bbox
    assert all(page.x0 <= e.x0 and e.x1 <= page.x1 and page.y0 <= e.y0 and e.y1 <= page.y1 for e in extents)
    if max_depth is None:
        assert sum(text.get_bbox_patch() is not None for text in texts) == len(tree.nodes_)


def test_the_drawing_says_what_it_leaves_out():
    rng = np.random.default_rng(0)
    tree = er.TreeRegressor().fit(rng.normal(size=(600, 2)), rng.normal(size=600))
    text = " ".join(text.get_text() for text in draw(tree, max_depth=1).axes[0].texts)
    below = sum(int(part.split()[-1]) for part in text.split(" leaves below")[:-1])
    assert below == 600
    with pytest.raises(EmpiriskError, match="more than 500 leaves"):
        draw(tree, max_depth=None)
