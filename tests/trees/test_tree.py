"""The exact tree: equal to brute force, to itself with repeated rows, and to scikit-learn where both mean the same."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn import tree as rival
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.stop import listening_to
from empirisk.trees import tree as tree_module
from empirisk.trees.exact.grow import Grower, TreeLimits
from empirisk.trees.exact.scan import GINI
from tests.trees import naive_tree

CLASSES = ("gini", "entropy", "error")
NUMBERS = ("squared", "absolute")


def machine(criterion, **rules):
    return (er.TreeClassifier if criterion in CLASSES else er.TreeRegressor)(criterion, **rules)


def left_set(nodes, node):
    start, count = nodes.category_start[node], nodes.category_counts[nodes.feature[node]]
    return {code for code in range(count) if int(nodes.category_bits[start + code // 64]) >> (code % 64) & 1}


def assert_equal_to(reference, nodes, node=0):
    """Compare nested dictionaries with flat nodes, split by split."""
    assert nodes.value[node] == pytest.approx([float(v) for v in reference["value"]], rel=1e-12, abs=1e-12)
    assert nodes.weight[node] == pytest.approx(float(reference["weight"]))
    assert nodes.impurity[node] == pytest.approx(float(reference["impurity"]), rel=1e-9, abs=1e-12)
    assert (nodes.feature[node] >= 0) == ("feature" in reference)
    if "feature" not in reference:
        return
    assert nodes.feature[node] == reference["feature"]
    assert nodes.gain[node] == pytest.approx(float(reference["gain"]), rel=1e-9, abs=1e-9)
    assert nodes.missing_left[node] == reference["missing_left"]
    if isinstance(reference["test"], set):
        count = nodes.category_counts[nodes.feature[node]]
        absent = set(range(count)) - reference["present"] if reference["missing_left"] else set()
        assert left_set(nodes, node) == reference["test"] | absent
    else:
        assert nodes.threshold[node] == float(reference["test"])
    assert_equal_to(reference["left"], nodes, nodes.left[node])
    assert_equal_to(reference["right"], nodes, nodes.left[node] + 1)


def random_problem(seed, criterion):
    """Small data with ties, weights, constant columns, missing and categorical values, and stopping rules."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 16), rng.integers(1, 4)
    X = rng.integers(0, rng.integers(2, 14), size=(n, d)).astype(float)
    if rng.random() < 0.3:
        X[:, 0] = 3.0
    if rng.random() < 0.6:
        X[rng.random((n, d)) < 0.25] = np.nan
    categorical = [column for column in range(d) if rng.random() < 0.4]
    for column in categorical:
        present = ~np.isnan(X[:, column])
        X[present, column] = np.unique(X[present, column], return_inverse=True)[1]
    weights = rng.integers(1, 4, size=n) / rng.choice([1, 4])
    classes = list(range(rng.integers(2, 5)))
    y = rng.choice(classes, size=n) if criterion in CLASSES else rng.integers(-3, 6, size=n) / 8 + rng.choice([0, 999])
    rules = {
        "max_depth": None if rng.random() < 0.6 else int(rng.integers(0, 4)),
        "min_samples_leaf": 1 if rng.random() < 0.6 else 2.5,
        "min_impurity_decrease": 0.0 if rng.random() < 0.7 else 0.0625,
    }
    return X, y, weights, categorical, classes, rules


@pytest.mark.row("T1")
@pytest.mark.row("T2")
@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
def test_the_tree_is_that_of_brute_force(criterion):
    for seed in range(250):
        X, y, weights, categorical, classes, rules = random_problem(seed, criterion)
        exact = [[None if np.isnan(x) else Fraction(x) for x in row] for row in X]
        for row, column in itertools.product(exact, categorical):
            row[column] = None if row[column] is None else int(row[column])
        total = sum(Fraction(w) for w in weights)
        reference = naive_tree.grow(
            exact,
            y.tolist() if criterion in CLASSES else [Fraction(v) for v in y],
            [Fraction(w) for w in weights],
            criterion=criterion,
            categorical=categorical,
            classes=[k for k in classes if k in y],
            max_depth=math.inf if rules["max_depth"] is None else rules["max_depth"],
            least=0 if rules["min_samples_leaf"] == 1 else Fraction(2.5),
            min_impurity_decrease=Fraction(rules["min_impurity_decrease"]) * total,
        )
        tree = machine(criterion, categorical_features=categorical, **rules).fit(X, y, weights)
        assert_equal_to(reference, tree.nodes_)


@pytest.mark.row("T1")
@pytest.mark.parametrize("criterion", ["gini", "entropy", "error", "squared"])
def test_no_subset_of_categories_is_better_for_one_response(criterion):
    rng = np.random.default_rng(1)
    for _ in range(30):
        codes = rng.integers(0, 7, size=40)
        y = rng.integers(0, 2, size=40) if criterion in CLASSES else rng.normal(size=40).round(2)
        weights = rng.integers(1, 4, size=40)
        stump = machine(criterion, max_depth=1, categorical_features=[0]).fit(codes[:, None], y, weights)
        parts = [np.flatnonzero(np.isin(codes, s)) for k in range(1, 7) for s in itertools.combinations(range(7), k)]
        found = (
            [
                sum(
                    naive_tree.badness(criterion, y[rows].tolist(), [Fraction(int(w)) for w in weights[rows]])
                    for rows in (part, np.setdiff1d(np.arange(40), part))
                )
                for part in parts
            ]
            if criterion in CLASSES
            else [
                sum(
                    weights[rows] @ (y[rows] - np.average(y[rows], weights=weights[rows])) ** 2
                    for rows in (part, np.setdiff1d(np.arange(40), part))
                    if len(rows)
                )
                for part in parts
            ]
        )
        whole = stump.nodes_.weight[0] * stump.nodes_.impurity[0]
        assert stump.nodes_.gain[0] == pytest.approx(whole - float(min(found)), abs=1e-9)


def same_tree(one, other):
    for name in ("feature", "threshold", "left", "missing_left", "category_start", "category_bits"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("value", "weight", "impurity", "gain"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.row("T1")
@pytest.mark.row("T2")
@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
@pytest.mark.parametrize("rules", [{}, {"max_leaf_nodes": 9}, {"min_samples_leaf": 5, "max_depth": 6}])
def test_weight_two_is_the_row_twice(criterion, rules):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 4)).round(1)
        X[:, 3] = rng.integers(0, 6, size=80)
        X[rng.random(X.shape) < 0.1] = np.nan
        X[:, 2] = X[:, 1]  # a column that always ties
        y = rng.integers(0, 3, size=80) if criterion in CLASSES else rng.normal(size=80)
        counts = rng.integers(0, 4, size=80)
        order = rng.permutation(counts.sum())
        repeated = np.repeat(np.arange(80), counts)[order]
        rules = rules | {"categorical_features": [3]}
        weighted = machine(criterion, **rules).fit(X, y, counts)
        twice = machine(criterion, **rules).fit(X[repeated], y[repeated])
        same_tree(weighted.nodes_, twice.nodes_)
        assert not (weighted.nodes_.feature == 2).any()


@pytest.mark.row("T1")
@pytest.mark.parametrize(("ours", "theirs"), [("gini", "gini"), ("entropy", "entropy")])
def test_classes_are_those_of_scikit_learn_where_no_splits_tie(ours, theirs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0.3 * rng.normal(size=1500)).astype(int) + (X[:, 3] > 1)
    new = rng.normal(size=(2000, 6)).astype(np.float32)
    for rules in ({"max_depth": 5}, {"max_depth": 7, "min_samples_leaf": 8}):
        mine = er.TreeClassifier(ours, **rules).fit(X, y)
        other = rival.DecisionTreeClassifier(criterion=theirs, random_state=0, **rules).fit(X, y)
        assert mine.n_leaves_ == other.get_n_leaves()
        assert np.mean(mine.predict(new) != other.predict(new)) < 0.01


@pytest.mark.row("T2")
def test_numbers_are_those_of_scikit_learn_where_no_splits_tie():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = np.abs(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=400)
    mine = er.TreeRegressor(max_depth=5, min_samples_leaf=5).fit(X, y)
    other = rival.DecisionTreeRegressor(max_depth=5, min_samples_leaf=5).fit(X, y)
    assert mine.n_leaves_ == other.get_n_leaves()
    np.testing.assert_allclose(mine.predict(X), other.predict(X), atol=1e-9)


@pytest.mark.row("T2")
def test_the_best_absolute_split_is_as_good_as_scikit_learns():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y, weights = rng.normal(size=(150, 3)), rng.normal(size=150), rng.integers(1, 4, size=150)
        mine = er.TreeRegressor("absolute", max_depth=1).fit(X, y, weights).predict(X)
        other = rival.DecisionTreeRegressor(criterion="absolute_error", max_depth=1).fit(X, y, weights).predict(X)
        assert weights @ np.abs(y - mine) == pytest.approx(weights @ np.abs(y - other))  # medians tie often


@pytest.mark.row("T2")
def test_several_outputs_share_one_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    Y = np.column_stack([X[:, 0] > 0, X[:, 1]]) + 0.1 * rng.normal(size=(300, 2))
    mine = er.TreeRegressor(max_depth=4).fit(X, Y)
    other = rival.DecisionTreeRegressor(max_depth=4).fit(X, Y)
    np.testing.assert_allclose(mine.predict(X), other.predict(X))
    assert mine.predict(X).shape == (300, 2)


@pytest.mark.row("T1")
@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
def test_the_most_valuable_splits_come_first(criterion):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = rng.integers(0, 3, size=120) if criterion in CLASSES else rng.normal(size=120)
    whole = machine(criterion).fit(X, y).nodes_
    waiting, made = [0], []
    for _ in range(11):
        best = max(waiting, key=lambda node: whole.gain[node])
        waiting.remove(best)
        made.append(best)
        waiting += [node for node in (whole.left[best], whole.left[best] + 1) if whole.feature[node] >= 0]
    limited = machine(criterion, max_leaf_nodes=12).fit(X, y)
    assert limited.n_leaves_ == 12
    splits = ~limited.nodes_.is_leaf
    assert limited.nodes_.gain[splits].sum() == pytest.approx(whole.gain[made].sum())
    assert sorted(limited.nodes_.threshold[splits]) == pytest.approx(sorted(whole.threshold[made]))


@pytest.mark.row("T1")
def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 12))
    X[rng.random(X.shape) < 0.02] = np.nan
    X[:, 5] = rng.integers(0, 300, size=30_000)
    y = (np.nan_to_num(X[:, 0]) + np.sin(X[:, 5]) > rng.normal(size=30_000)).astype(int)
    trees = []
    for threads in (1, 2, 3):
        with er.config(threads=threads):
            trees.append(er.TreeClassifier(categorical_features=[5]).fit(X, y).nodes_)
    for other in trees[1:]:
        for name in ("feature", "threshold", "left", "missing_left", "category_bits", "value", "gain"):
            np.testing.assert_array_equal(getattr(trees[0], name), getattr(other, name))
    assert np.array_equal(trees[0].value[trees[0].predict_leaf(X)[:, 0]].argmax(axis=1), y)


@pytest.mark.row("T1")
def test_random_columns_are_drawn_for_each_node():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(500, 6)), np.ones(500)])
    y = (X[:, 0] + 0.1 * rng.normal(size=500) > 0).astype(int)
    first = [er.TreeClassifier(max_features=2, random_state=seed).fit(X, y).nodes_.feature[0] for seed in range(200)]
    # Columns 1 to 5 say nothing: column 0 wins whenever it is one of the two drawn among the six that vary.
    assert 0.25 < np.mean(np.array(first) == 0) < 0.42
    one, two = (er.TreeClassifier(max_features="sqrt", random_state=5).fit(X, y).nodes_ for _ in range(2))
    assert np.array_equal(one.threshold, two.threshold, equal_nan=True)
    every = er.TreeClassifier(max_features=1.0).fit(X, y).nodes_
    assert np.array_equal(every.threshold, er.TreeClassifier().fit(X, y).nodes_.threshold, equal_nan=True)


@pytest.mark.row("T2")
def test_outliers_and_offsets_do_not_blur_the_rest():
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] < 20, 0.25, 0.75)
    y[39] = 1e12
    for shift in (0.0, 1e9):
        tree = er.TreeRegressor().fit(X, y + shift)
        assert np.array_equal(tree.predict(X), y + shift)
        assert tree.n_leaves_ == 3
    tiny = er.TreeRegressor().fit(X, y * 1e-300)
    assert np.array_equal(tiny.predict(X), y * 1e-300)


@pytest.mark.row("T1")
def test_thresholds_are_midpoints_that_divide():
    low = 1.0
    high = np.nextafter(low, 2)
    tree = er.TreeClassifier().fit([[low], [high]], [0, 1])
    assert tree.nodes_.threshold[0] == low
    assert tree.predict([[low], [high]]).tolist() == [0, 1]
    huge = er.TreeClassifier().fit([[-1.7e308], [1.7e308]], [0, 1])
    assert huge.nodes_.threshold[0] == 0


# --- missing and categorical values ---------------------------------------------------------------------------------


@pytest.mark.row("T1")
def test_missing_values_go_where_they_belong():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [np.nan], [np.nan]])
    assert er.TreeClassifier().fit(X, [0, 0, 1, 1, 1, 1]).predict([[np.nan]]) == [1]
    assert er.TreeClassifier().fit(X, [0, 0, 1, 1, 0, 0]).predict([[np.nan]]) == [0]
    apart = er.TreeClassifier().fit(X, [0, 0, 0, 0, 1, 1])
    assert apart.nodes_.threshold[0] == np.inf
    assert apart.predict([[7.0], [np.nan]]).tolist() == [0, 1]
    heavier = er.TreeClassifier().fit(X[:4], [0, 1, 1, 1])
    assert heavier.predict([[np.nan]]) == [1]


@pytest.mark.row("T1")
@pytest.mark.parametrize("kind", ["pandas", "categories", "object", "polars", "polars categories"])
def test_data_frames_state_their_own_types(kind):
    columns = {"size": [1.0, 2.0, None, 4.0, 5.0, 6.0], "colour": ["red", "blue", "red", "green", None, "blue"]}
    frame = {
        "pandas": lambda: pd.DataFrame(columns),
        "categories": lambda: pd.DataFrame(columns).astype({"colour": "category"}),
        "object": lambda: pd.DataFrame(columns).astype({"colour": object}),
        "polars": lambda: pl.DataFrame(columns),
        "polars categories": lambda: pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical)),
    }[kind]()
    y = ["a", "b", "a", "c", "c", "b"]
    tree = er.TreeClassifier().fit(frame, y)
    assert tree.predict(frame).tolist() == y
    assert tree.feature_names_in_.tolist() == ["size", "colour"]
    assert tree.columns_.categories[1].tolist() == ["blue", "green", "red"]


@pytest.mark.row("T1")
def test_unseen_categories_count_as_missing():
    train = pl.DataFrame({"city": ["a", "a", "b", "b", None, None], "x": [0.0] * 6})
    tree = er.TreeClassifier().fit(train, [0, 0, 1, 1, 0, 0])
    new = pl.DataFrame({"city": ["zurich", None, "b"], "x": [0.0] * 3})
    assert tree.predict(new).tolist() == [0, 0, 1]


@pytest.mark.row("T1")
def test_categorical_columns_are_named_in_every_way():
    X = np.array([[0.0, 7.0], [1.0, 5.0], [2.0, 7.0], [3.0, 5.0]])
    y = [0, 1, 0, 1]
    for wanted in ([1], [False, True], np.array([1])):
        tree = er.TreeClassifier(categorical_features=wanted).fit(X, y)
        assert tree.columns_.counts.tolist() == [0, 2]
        assert tree.predict([[0.0, 5.0], [0.0, 6.0]]).tolist() == [1, 0]
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    assert er.TreeClassifier(categorical_features=["b"]).fit(frame, y).columns_.counts.tolist() == [0, 2]
    words = [[1, "u"], [2, "v"], [3, None], [4, "u"]]
    assert er.TreeClassifier(categorical_features=[1]).fit(words, y).columns_.counts.tolist() == [0, 2]
    assert er.TreeClassifier(categorical_features=[1]).fit(csr_array(X), y).columns_.counts.tolist() == [0, 2]


@pytest.mark.row("T1")
def test_columns_of_nothing_are_left_alone():
    X = np.column_stack([np.full(6, np.nan), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], np.ones(6)])
    for categorical in (None, [0]):
        tree = er.TreeClassifier(categorical_features=categorical).fit(X, [0, 0, 0, 1, 1, 1])
        assert tree.nodes_.feature.tolist() == [1, -1, -1]
        assert tree.predict([[3.0, 1.0, np.nan]]) == [0]


@pytest.mark.row("T1")
@pytest.mark.row("T2")
def test_constant_targets_and_single_rows_give_a_leaf():
    for tree in (er.TreeClassifier(), er.TreeRegressor(), er.TreeRegressor("absolute")):
        assert tree.fit([[1.0], [2.0]], [3, 3]).n_leaves_ == 1
        assert tree.predict([[5.0]]) == [3]
        assert tree.fit([[1.0]], [7]).predict([[np.nan]]) == [7]
        assert tree.depth_ == 0


# --- what else a tree offers ----------------------------------------------------------------------------------------


@pytest.mark.row("T1")
def test_the_decision_path_ends_in_the_leaf():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    tree = er.TreeClassifier(max_depth=4).fit(X, rng.integers(0, 2, size=100))
    paths, leaves, parents = tree.decision_path(X), tree.apply(X), tree.nodes_.parents()
    assert paths.shape == (100, len(tree.nodes_))
    for row, leaf in enumerate(leaves):
        nodes = paths[[row]].indices
        assert nodes[0] == 0
        assert nodes[-1] == leaf
        assert np.array_equal(parents[nodes[1:]], nodes[:-1])


@pytest.mark.row("T1")
def test_importances_held_out_are_fair_to_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    X[:, 0] = rng.integers(0, 2, size=600)
    y = np.where(rng.random(600) < 0.8, X[:, 0], 1 - X[:, 0]).astype(int)
    tree = er.TreeClassifier().fit(X[:300], y[:300])
    fair = tree.importances(X[300:], y[300:], random_state=0)["importance"].to_numpy()
    assert fair[0] > 0.15
    assert np.abs(fair[1:]).max() < 0.05
    assert tree.feature_importances_.sum() == pytest.approx(1)
    assert tree.feature_importances_[1:].sum() > 0.4  # the documented bias of gains on the training rows


@pytest.mark.row("T1")
def test_class_weights_are_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, size=200)
    by_class = er.TreeClassifier(max_depth=4, class_weight={0: 3, 2: 0.5}).fit(X, y)
    by_row = er.TreeClassifier(max_depth=4).fit(X, y, np.array([3, 1, 0.5])[y])
    same_tree(by_class.nodes_, by_row.nodes_)
    balanced = er.TreeClassifier(max_depth=0, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(balanced.predict_proba(X[:1]), 1 / 3)


@pytest.mark.row("T1")
def test_a_tree_that_is_stopped_is_a_smaller_tree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 20)), rng.integers(0, 2, size=20_000)
    asked = iter([False] * 4 + [True] * 1000)
    grower = Grower(X, np.zeros(20, dtype=np.int32), TreeLimits(), lambda: next(asked))
    nodes = grower.classes(y, 2, np.ones(20_000), GINI)
    assert 1 < len(nodes) < 2000
    assert nodes.weight[nodes.is_leaf].sum() == 20_000
    counted = np.bincount(nodes.predict_leaf(X)[:, 0], minlength=len(nodes))
    assert np.array_equal(counted[nodes.is_leaf], nodes.weight[nodes.is_leaf])


@pytest.mark.row("T1")
def test_a_tree_that_is_interrupted_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 20)), rng.integers(0, 2, size=20_000)
    monkeypatch.setattr(tree_module, "interruptible", lambda: listening_to(lambda: True))
    said = r"TreeClassifier was stopped \(interrupted\) after 1 leaves"
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match=said) as told:
        tree = er.TreeClassifier(ccp_alpha="cv").fit(X, y)
    assert told[0].filename == __file__
    assert tree.predict(X).shape == (20_000,)
    assert tree.stopped_ == "interrupted"


@pytest.mark.row("T1")
def test_time_ends_a_tree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 20)), rng.integers(0, 2, size=20_000)
    for tree in (er.TreeClassifier(max_time=1e-9), er.TreeRegressor(max_time=1e-9, ccp_alpha="cv")):
        with pytest.warns(ConvergenceWarning, match="max_time"):
            tree.fit(X, y)
        assert (tree.stopped_, tree.n_leaves_) == ("max_time", 1)
        with pytest.raises(EmpiriskError, match="max_time=-1"):
            tree.set_params(max_time=-1).fit(X, y)
    assert er.TreeClassifier().fit(X[:50], y[:50]).stopped_ == "finished"


@pytest.mark.row("T3")
def test_a_price_that_is_being_chosen_when_time_ends_goes_by_the_folds_that_were_grown(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y, grown = X[:, 0] + rng.normal(size=400), []

    def grow_on(self, grower, *data):
        grown.append(1)
        return real(self, grower, *data)

    real = er.TreeRegressor.grow_on
    monkeypatch.setattr(er.TreeRegressor, "grow_on", grow_on)
    monkeypatch.setattr(tree_module, "interruptible", lambda: listening_to(lambda: len(grown) > most))
    for most in (1, 3):  # in the first fold, which is then none, and in the third
        grown.clear()
        with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted"):
            tree = er.TreeRegressor(ccp_alpha="cv").fit(X, y)
        assert (tree.ccp_alpha_ == 0) == (most == 1)
        assert len(grown) == most + 1
        assert (tree.n_leaves_ > 300) == (most == 1)


# --- bad input ------------------------------------------------------------------------------------------------------

X4, Y4 = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])


@pytest.mark.row("T1")
@pytest.mark.row("T2")
@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (er.TreeClassifier("ginni"), "criterion='ginni' is not known; did you mean 'gini'?"),
        (er.TreeRegressor("gini"), "criterion='gini' is not known; choose one of"),
        (er.TreeClassifier(max_depth=-1), "max_depth=-1 must be a whole number of at least 0"),
        (er.TreeClassifier(max_depth=2.5), "max_depth=2.5 must be"),
        (er.TreeClassifier(max_leaf_nodes=0), "max_leaf_nodes=0 must be"),
        (er.TreeClassifier(min_samples_leaf=-1), "min_samples_leaf=-1 must be"),
        (er.TreeClassifier(min_weight_fraction_leaf=0.7), "min_weight_fraction_leaf=0.7 must be"),
        (er.TreeClassifier(min_impurity_decrease=np.nan), "min_impurity_decrease=nan must be"),
        (er.TreeClassifier(max_features=0), "max_features=0 must be"),
        (er.TreeClassifier(ccp_alpha=-0.1), "ccp_alpha=-0.1 must be"),
        (er.TreeClassifier(ccp_alpha="best"), "ccp_alpha='best' is not known; give a number or 'cv'"),
        (er.TreeClassifier(class_weight={5: 1}), "class_weight names classes that are not in y"),
        (er.TreeClassifier(class_weight={0: 0, 1: 0}), "class_weight is zero for every class"),
        (er.TreeClassifier(categorical_features=[2]), "categorical_features names 2"),
        (er.TreeClassifier(categorical_features="all"), "categorical_features='all' is not known"),
    ],
)
def test_parameters_without_meaning_are_refused(tree, message):
    with pytest.raises(EmpiriskError, match=message.replace("?", r"\?")):
        tree.fit(X4, Y4)


@pytest.mark.row("T1")
@pytest.mark.row("T2")
@pytest.mark.parametrize("tree", [er.TreeClassifier(), er.TreeRegressor()])
@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        (X4, [0, 1, np.nan, 1], None, "NaN"),
        (X4, [0, 1, np.inf, 1], None, "infinity"),
        (np.where(X4 == 3, np.inf, X4), Y4, None, "infinity"),
        (X4, Y4[:3], None, "inconsistent"),
        (X4[:0], Y4[:0], None, "minimum of 1 is required"),
        (X4[:, 0], Y4, None, "Expected 2D array"),
        (X4, Y4, np.zeros(4), "sample_weight is zero for every row"),
        (X4, Y4, -np.ones(4), "negative"),
        (X4, Y4, np.ones(3), "sample_weight.shape"),
        (X4, None, None, "requires y"),
    ],
)
def test_bad_data_is_refused(tree, X, y, weights, message):
    with pytest.raises(ValueError, match=message):
        tree.fit(X, y, weights)
    with pytest.raises(NotFittedError):
        tree.predict(X4)
    fitted = clone(tree).fit(X4[:, :1], Y4)
    with pytest.raises(ValueError, match=message):
        fitted.fit(X, y, weights)
    assert fitted.predict(X4[:, :1]).tolist() == Y4.tolist()


@pytest.mark.row("T1")
def test_bad_new_rows_leave_the_tree_as_it_was():
    frame = pl.DataFrame({"city": ["a", "b", "a", "b"], "x": X4[:, 0]})
    tree = er.TreeClassifier().fit(frame, Y4)
    with pytest.raises(EmpiriskError, match="'city' held text in fit and holds numbers now"):
        tree.predict(frame.with_columns(pl.lit(1.0).alias("city")))
    with pytest.raises(ValueError, match="feature names"):
        tree.predict(frame.rename({"x": "z"}))
    with pytest.raises(EmpiriskError, match="'x' holds values that are not numbers"):
        tree.predict(frame.with_columns(pl.lit("?").alias("x")))
    dates = pl.DataFrame({"when": pd.date_range("2020-01-01", periods=4).to_numpy()})
    with pytest.raises(EmpiriskError, match="'when' holds dates"):
        er.TreeClassifier().fit(dates, Y4)
    assert tree.predict(frame).tolist() == Y4.tolist()
