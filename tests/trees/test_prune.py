"""Pruning: never worse on the rows held out, the same path as scikit-learn's, and a valid smaller tree."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.trees import prune
from empirisk.trees.exact.scan import ERROR


def noisy(seed, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 4] = rng.integers(0, 8, size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=n) > 0).astype(int) + (np.nan_to_num(X[:, 1]) > 1.2)
    return X, y, rng


def tree_for(kind, **rules):
    if kind == "classes":
        return er.TreeClassifier(categorical_features=[4], **rules)
    return er.TreeRegressor(kind, categorical_features=[4], **rules)


def loss(kind, tree, X, y, weights):
    wrong = {"classes": lambda a: a != 0, "squared": lambda a: a**2, "absolute": np.abs}[kind]
    return float(weights @ wrong(tree.predict(X) - y) / weights.sum())


@pytest.mark.row("T3")
@pytest.mark.parametrize("kind", ["classes", "squared", "absolute"])
def test_hold_out_pruning_never_hurts_and_leaves_nothing_to_prune(kind):
    for seed in range(12):
        X, y, rng = noisy(seed)
        weights = rng.integers(0, 3, size=100).astype(float)
        tree = tree_for(kind).fit(X[:200], y[:200])
        before, leaves = loss(kind, tree, X[200:], y[200:], weights), tree.n_leaves_
        assert tree.prune((X[200:], y[200:]), weights) is tree
        after = loss(kind, tree, X[200:], y[200:], weights)
        report = tree.pruned_
        assert after <= before * (1 + 1e-12)
        assert (report.loss_before, report.loss_after) == pytest.approx((before, after))
        assert (report.leaves_before, report.leaves_after) == (leaves, tree.n_leaves_)
        assert len(report.removed["node"]) == leaves - tree.n_leaves_
        assert report.method == "holdout"
        again = tree.nodes_
        tree.prune((X[200:], y[200:]), weights)
        assert len(tree.nodes_) == len(again)


@pytest.mark.row("T3")
def test_every_split_that_stays_earns_its_place():
    X, y, _ = noisy(3)
    tree = tree_for("classes").fit(X[:200], y[:200]).prune((X[200:], y[200:]))
    base = tree.score(X[200:], y[200:])
    nodes = tree.nodes_
    assert tree.n_leaves_ > 1
    for split in np.flatnonzero(~nodes.is_leaf):
        at = np.zeros(len(nodes), dtype=bool)
        at[split] = True
        shorter = nodes.cut(at)
        labels = tree.classes_[shorter.predict(X[200:]).argmax(axis=1)]
        assert np.mean(labels == y[200:]) < base


@pytest.mark.row("T3")
def test_hold_out_pruning_checks_its_rows():
    X, y, _ = noisy(0)
    tree = tree_for("classes").fit(X, y)
    with pytest.raises(EmpiriskError, match="holdout must be the pair"):
        tree.prune(X)
    with pytest.raises(ValueError, match="inconsistent"):
        tree.prune((X, y[:10]))
    with pytest.raises(ValueError, match="features"):
        tree.prune((X[:, :2], y))
    unknown = tree.prune((X, np.full(len(y), 9)))  # no leaf is right about an unknown class: nothing is worth a split
    assert unknown.n_leaves_ == 1
    with pytest.raises(EmpiriskError, match="holdout has 2 outputs, the tree 1"):
        er.TreeRegressor().fit(X, y).prune((X, np.zeros((len(y), 2))))


@pytest.mark.row("T4")
@pytest.mark.parametrize("kind", ["gini", "entropy", "squared"])
def test_the_cost_complexity_path_is_scikit_learns(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 4)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=250) > 0).astype(int) if kind != "squared" else X[:, 0] + rng.normal(size=250)
    rules = {"min_samples_leaf": 6}  # small nodes tie, and ties are decided differently
    if kind == "squared":
        ours, theirs = er.TreeRegressor(**rules), DecisionTreeRegressor(**rules)
    else:
        ours, theirs = er.TreeClassifier(kind, **rules), DecisionTreeClassifier(criterion=kind, **rules)
    path, other = ours.fit(X, y).cost_complexity_path(), theirs.cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(path["alpha"], other.ccp_alphas, atol=1e-12)
    np.testing.assert_allclose(path["impurity"], other.impurities, atol=1e-12)
    for row in path.iter_rows(named=True):
        pruned = ours.set_params(ccp_alpha=row["alpha"]).fit(X, y)
        assert pruned.n_leaves_ == row["leaves"]
        if pruned.pruned_ is not None:
            assert pruned.pruned_.loss_after == pytest.approx(row["impurity"], abs=1e-12)
            assert len(pruned.pruned_.removed["node"]) == pruned.pruned_.leaves_before - pruned.n_leaves_


@pytest.mark.row("T4")
def test_losses_along_the_path_are_those_of_the_pruned_trees():
    X, y, _ = noisy(1)
    tree = er.TreeClassifier(categorical_features=[4]).fit(X[:200], y[:200])
    nodes, target = tree.nodes_, y[200:, None].astype(float)
    weights = np.random.default_rng(0).random(100)
    losses = prune.node_losses(nodes, X[200:], target, weights, ERROR)
    alphas = np.append(prune.pruning_alphas(prune.collapse_alphas(nodes)), 10.0)
    found = prune.losses_along(nodes, losses, alphas)
    for alpha, total in zip(alphas, found, strict=True):
        cut = nodes.cut(prune.cuts_at(prune.collapse_alphas(nodes), alpha))
        wrong = cut.predict(X[200:]).argmax(axis=1) != y[200:]
        assert total == pytest.approx(weights @ wrong)


@pytest.mark.row("T4")
@pytest.mark.parametrize("kind", ["classes", "squared"])
def test_cross_validation_chooses_the_price_of_a_leaf(kind):
    X, y, _ = noisy(2, n=400)
    folds = (StratifiedKFold if kind == "classes" else KFold)(4, shuffle=True, random_state=0)
    tree = tree_for(kind, ccp_alpha="cv", cv=folds).fit(X, y)
    table = tree.cv_results_
    assert 1 <= tree.n_leaves_ < tree_for(kind).fit(X, y).n_leaves_
    best = table["loss"].min()
    assert tree.ccp_alpha_ == table["alpha"][table["loss"] <= best * (1 + 1e-9)].max()
    prices = np.append(np.sqrt(table["alpha"][:-1] * table["alpha"][1:]), table["alpha"][-1])
    pick = table["alpha"].tolist().index(tree.ccp_alpha_)
    total = 0.0
    for train, test in folds.split(X, y):
        fold = tree_for(kind, ccp_alpha=prices[pick]).fit(X[train], y[train])
        total += loss(kind, fold, X[test], y[test], np.ones(len(test))) * len(test)
    assert total / len(y) == pytest.approx(best)
    assert tree.pruned_.alpha == tree.ccp_alpha_


@pytest.mark.row("T4")
def test_pruning_by_cross_validation_helps_on_noise():
    X, y = make_classification(1500, 12, n_informative=4, flip_y=0.3, random_state=0)
    whole = er.TreeClassifier().fit(X[:700], y[:700])
    chosen = er.TreeClassifier(ccp_alpha="cv").fit(X[:700], y[:700])
    assert chosen.n_leaves_ < whole.n_leaves_ / 3
    assert chosen.score(X[700:], y[700:]) > whole.score(X[700:], y[700:]) + 0.02


@pytest.mark.row("T4")
def test_nothing_to_prune_is_no_trouble():
    leaf = er.TreeClassifier(ccp_alpha="cv", cv=2).fit([[1.0]] * 4, [0, 1, 0, 1])
    assert leaf.n_leaves_ == 1
    assert leaf.cost_complexity_path()["leaves"].to_list() == [1]
    assert leaf.prune(([[1.0]], [0])).n_leaves_ == 1


def test_too_few_rows_for_the_folds_are_named():
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    with pytest.raises(EmpiriskError, match="cv=5 does not divide the 8 rows, by which ccp_alpha='cv' is chosen"):
        er.TreeClassifier(ccp_alpha="cv").fit(X, y)
    assert er.TreeClassifier(ccp_alpha="cv", cv=2).fit(X, y).ccp_alpha_ >= 0
