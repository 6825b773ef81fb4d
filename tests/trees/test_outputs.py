"""Several outputs: columns of numbers, and columns of labels, in trees, forests, boosting and bagging."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification, make_regression
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeClassifier

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.explain.shapley import node_weights, shapley_values

X, Y = make_regression(400, 6, n_informative=4, n_targets=3, noise=5.0, random_state=0)
XL, L = make_multilabel_classification(500, 6, n_classes=3, random_state=0)
WORDS = np.column_stack([np.array(["x", "y", "z"])[L.sum(axis=1) % 3], np.where(L[:, 0], "p", "q")])
COUNTS = np.random.default_rng(0).integers(0, 4, 400)

REGRESSORS = [
    pytest.param(er.ForestRegressor(30, random_state=0), marks=pytest.mark.row("T6"), id="forest"),
    pytest.param(er.BoostingRegressor(n_estimators=60), marks=pytest.mark.row("T8"), id="boosting"),
    pytest.param(er.BoostingRegressor("absolute", n_estimators=60), marks=pytest.mark.row("T8"), id="absolute"),
    pytest.param(er.BaggingRegressor(n_estimators=20, random_state=0), marks=pytest.mark.row("T5"), id="bagging"),
    pytest.param(er.TreeRegressor(max_depth=6), marks=pytest.mark.row("T2"), id="tree"),
]
CLASSIFIERS = [
    pytest.param(er.ForestClassifier(30, random_state=0), marks=pytest.mark.row("T6"), id="forest"),
    pytest.param(er.TreeClassifier(max_depth=6), marks=pytest.mark.row("T1"), id="tree"),
    pytest.param(er.BoostingClassifier(n_estimators=20), marks=pytest.mark.row("T8"), id="boosting"),
    pytest.param(er.BaggingClassifier(n_estimators=20, random_state=0), marks=pytest.mark.row("T5"), id="bagging"),
    pytest.param(
        er.BaggingClassifier(er.KNNClassifier(5), 20, voting="soft", max_features=4, random_state=0),
        marks=pytest.mark.row("T5"),
        id="bagged neighbours",
    ),
    pytest.param(er.KNNClassifier(5), marks=pytest.mark.row("N1"), id="neighbours"),
]


# --- columns of numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", REGRESSORS)
def test_columns_of_numbers_are_learned_predicted_and_scored(machine, tmp_path):
    machine.fit(X[:300], Y[:300])
    predictions = machine.predict(X[300:])
    assert predictions.shape == (100, 3)
    assert predictions.dtype == np.float64
    np.testing.assert_allclose(machine.score(X[300:], Y[300:]), r2_score(Y[300:], predictions))
    assert min(r2_score(Y[300:], predictions, multioutput="raw_values")) > 0.3
    er.save(machine, tmp_path / "a.model")
    np.testing.assert_array_equal(er.load(tmp_path / "a.model").predict(X), machine.predict(X))
    assert machine.fit(X, Y[:, [0]]).predict(X).shape == (400, 1)
    alone = machine.predict(X)[:, 0]
    np.testing.assert_array_equal(machine.fit(X, Y[:, 0]).predict(X), alone)


@pytest.mark.parametrize("machine", REGRESSORS)
def test_weights_are_repetition(machine):
    weighted = machine.fit(X, Y, sample_weight=COUNTS).predict(X)
    repeated = machine.fit(np.repeat(X, COUNTS, axis=0), np.repeat(Y, COUNTS, axis=0)).predict(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


@pytest.mark.row("T6")
@pytest.mark.parametrize("missing", [False, True])
def test_a_tree_of_a_forest_is_the_exact_tree_of_all_outputs(missing):
    # Few values, so that bins lose nothing; all columns and rows, so that nothing is drawn.
    rows = np.round(X)
    if missing:
        rows[::7, 0] = np.nan
    forest = er.ForestRegressor(1, max_features=None, bootstrap=False, max_depth=4, random_state=0).fit(rows, Y)
    tree = er.TreeRegressor(max_depth=4).fit(rows, Y)
    np.testing.assert_allclose(forest.predict(rows), tree.predict(rows))
    labels = np.column_stack([Y[:, 0] > 0, Y[:, 1] > 20, Y[:, 2] > -10]).astype(int)
    forest = er.ForestClassifier(1, max_features=None, bootstrap=False, max_depth=4, random_state=0).fit(rows, labels)
    tree = er.TreeClassifier(max_depth=4).fit(rows, labels)
    for ours, exact in zip(forest.predict_proba(rows), tree.predict_proba(rows), strict=True):
        np.testing.assert_allclose(ours, exact)


@pytest.mark.row("T6")
def test_forests_split_categories_by_several_outputs():
    random = np.random.default_rng(0)
    group = random.integers(0, 8, 600)
    targets = np.column_stack([group % 2, group // 4]) + 0.1 * random.normal(size=(600, 2))
    table = np.column_stack([group, random.normal(size=600)])
    forest = er.ForestRegressor(20, categorical_features=[0], max_features=None, random_state=0).fit(table, targets)
    assert forest.oob_score_ > 0.9


@pytest.mark.row("T6")
@pytest.mark.row("T9")
def test_what_forests_and_bags_tell_of_several_outputs():
    noisy = np.column_stack([X, np.random.default_rng(1).normal(size=400)])
    for machine in (
        er.ForestRegressor(60, random_state=0),
        er.BaggingRegressor(n_estimators=60, oob_importances=True, random_state=0),
    ):
        machine.fit(noisy[:300], Y[:300])
        seen = ~np.isnan(machine.oob_prediction_[:, 0])
        np.testing.assert_allclose(machine.oob_score_, r2_score(Y[:300][seen], machine.oob_prediction_[seen]))
        np.testing.assert_allclose(machine.oob_error_, np.mean((Y[:300][seen] - machine.oob_prediction_[seen]) ** 2))
        found = getattr(machine, "oob_importances_", machine.feature_importances_)
        assert abs(found[6]) < 0.02 * found.max()
        errors = machine.staged_errors(noisy[300:], Y[300:])
        np.testing.assert_allclose(errors[-1], np.mean((machine.predict(noisy[300:]) - Y[300:]) ** 2))
        np.testing.assert_allclose(machine.spread(noisy[300:], Y[300:]).strength, -errors[-1])


@pytest.mark.row("T8")
def test_boosting_of_columns_is_boosting_of_each():
    together = er.BoostingRegressor(n_estimators=30).fit(X, Y)
    apart = [er.BoostingRegressor(n_estimators=30).fit(X, column).predict(X) for column in Y.T]
    np.testing.assert_allclose(together.predict(X), np.column_stack(apart))
    stages = list(together.staged_predict(X))
    assert len(stages) == 30
    np.testing.assert_allclose(stages[-1], together.predict(X))
    stopped = er.BoostingRegressor(n_estimators=500, early_stopping=True, random_state=0).fit(X, Y)
    assert stopped.stopped_ == "early_stopping"
    assert stopped.predict(X).shape == (400, 3)


@pytest.mark.row("T6")
@pytest.mark.row("T8")
def test_shapley_values_of_every_output_add_up():
    forest = er.ForestRegressor(10, random_state=0).fit(X, Y)
    boosting = er.BoostingRegressor(n_estimators=10).fit(X, Y)
    for machine, baseline, share in ((forest, 0.0, 10), (boosting, boosting.baseline_, 1)):
        nodes = machine.nodes_
        weights = node_weights(nodes, X)
        outputs = None if machine is forest else 3
        values = shapley_values(nodes, weights, X[:20], outputs).sum(axis=1) / share
        middle = (machine.predict(X) - baseline).mean(axis=0)
        np.testing.assert_allclose(values, machine.predict(X[:20]) - baseline - middle, atol=1e-8)


# --- columns of labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [L, WORDS, sparse.csr_array(L)], ids=["indicators", "words", "sparse"])
@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_columns_of_labels_are_learned_and_predicted(machine, labels, tmp_path):
    machine.fit(XL[:400], labels[:400])
    dense = labels.toarray() if sparse.issparse(labels) else labels
    predictions, shares = machine.predict(XL), machine.predict_proba(XL)
    assert predictions.shape == dense.shape
    assert len(shares) == len(machine.classes_) == dense.shape[1]
    for number, (each, classes) in enumerate(zip(shares, machine.classes_, strict=True)):
        np.testing.assert_array_equal(classes, np.unique(dense[:, number]))
        np.testing.assert_allclose(each.sum(axis=1), 1.0)
        np.testing.assert_array_equal(predictions[:, number], classes[each.argmax(axis=1)])
        most = max(np.mean(dense[400:, number] == name) for name in classes)
        assert np.mean(predictions[400:, number] == dense[400:, number]) > most - 0.05
    er.save(machine, tmp_path / "a.model")
    loaded = er.load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.predict(XL), predictions)
    for ours, kept in zip(shares, loaded.predict_proba(XL), strict=True):
        np.testing.assert_array_equal(ours, kept)


@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_weights_of_rows_with_labels_are_repetition(machine):
    weights = np.random.default_rng(1).integers(0, 4, 500)
    weighted = machine.fit(XL, L, sample_weight=weights).predict_proba(XL)
    repeated = machine.fit(np.repeat(XL, weights, axis=0), np.repeat(L, weights, axis=0)).predict_proba(XL)
    for first, second in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.row("T1")
def test_the_tree_of_labels_is_that_of_scikit_learn():
    rows = XL + 1e-3 * np.random.default_rng(0).normal(size=XL.shape)  # no ties between splits
    ours = er.TreeClassifier(max_depth=5).fit(rows, L)
    theirs = DecisionTreeClassifier(max_depth=5, random_state=0).fit(rows, L)
    for first, second in zip(ours.predict_proba(rows), theirs.predict_proba(rows), strict=True):
        np.testing.assert_allclose(first, second)


@pytest.mark.row("T1")
@pytest.mark.row("T3")
@pytest.mark.row("T4")
def test_a_tree_of_labels_is_told_and_pruned():
    tree = er.TreeClassifier().fit(XL[:300], WORDS[:300])
    whole = tree.n_leaves_
    assert "prediction 1" in tree.rules().columns
    assert tree.text(0).count("(") == 2
    assert er.plots.tree(tree, max_depth=2).axes
    assert tree.prune((XL[300:], WORDS[300:])).n_leaves_ < whole
    assert er.TreeClassifier(ccp_alpha="cv").fit(XL, WORDS).n_leaves_ < whole
    with pytest.raises(EmpiriskError, match="holdout has 3 columns of labels, the tree 2"):
        tree.prune((XL, L))


@pytest.mark.row("T8")
@pytest.mark.parametrize("loss", ["logistic", "hinge", "exponential"])
def test_boosting_of_labels_is_boosting_of_each(loss):
    together = er.BoostingClassifier(loss, n_estimators=10).fit(XL, WORDS)
    stages = list(together.staged_predict(XL))
    assert len(stages) == 10
    np.testing.assert_array_equal(stages[-1], together.predict(XL))
    with pytest.raises(AttributeError, match="decision_function"):
        together.decision_function(XL)
    for number in range(WORDS.shape[1]):
        alone = er.BoostingClassifier(loss, n_estimators=10).fit(XL, WORDS[:, number])
        np.testing.assert_array_equal(together.predict(XL)[:, number], alone.predict(XL))
        if loss != "hinge":
            np.testing.assert_allclose(together.predict_proba(XL)[number], alone.predict_proba(XL), atol=1e-9)
    stopped = er.BoostingClassifier(loss, n_estimators=300, early_stopping=True, random_state=0).fit(XL, WORDS)
    assert stopped.stopped_ == "early_stopping"
    if loss == "logistic":
        np.testing.assert_allclose(np.exp(together.predict_log_proba(XL)[1]), together.predict_proba(XL)[1])
        np.testing.assert_array_equal(list(together.staged_predict_proba(XL))[-1][0], together.predict_proba(XL)[0])


@pytest.mark.row("T5")
def test_bags_judge_rows_with_several_labels_and_refuse_machines_of_one():
    for vote in ("hard", "soft"):
        bag = er.BaggingClassifier(n_estimators=50, voting=vote, oob_importances=True, random_state=0).fit(XL, L)
        said = np.column_stack([np.asarray(each)[:, 1] >= 0.5 for each in bag.oob_decision_function_])
        np.testing.assert_allclose(bag.oob_score_, np.mean((said == L).all(axis=1)))
        assert bag.feature_importances_.max() > 0.01
    with pytest.raises(ValueError, match="1d array"):
        er.BaggingClassifier(er.SVM()).fit(XL, L)


@pytest.mark.row("T6")
def test_the_judgement_outside_the_samples_counts_rows_with_any_label_wrong():
    forest = er.ForestClassifier(50, random_state=0).fit(XL, L)
    said = np.column_stack([np.asarray(each)[:, 1] >= 0.5 for each in forest.oob_decision_function_])
    np.testing.assert_allclose(forest.oob_score_, np.mean((said == L).all(axis=1)))
    assert forest.oob_importances_.max() > 0.01
    for ask in (forest.margins, forest.spread, forest.staged_errors):
        with pytest.raises(Unsuitable, match="one label"):
            ask(XL, L)
    np.testing.assert_allclose(np.exp(forest.predict_log_proba(XL)[0]), forest.predict_proba(XL)[0])


@pytest.mark.parametrize("machine", CLASSIFIERS)
@pytest.mark.parametrize("labels", [L, WORDS], ids=["0 and 1", "words"])
def test_the_score_of_several_labels_counts_rows_with_all_of_them_right(machine, labels):
    fitted, weights = clone(machine).fit(XL[:200], labels[:200]), np.arange(len(XL))
    right = (fitted.predict(XL) == labels).all(axis=1)
    assert fitted.score(XL, labels) == pytest.approx(right.mean())
    assert fitted.score(XL, labels, weights) == pytest.approx(weights @ right / weights.sum())
    assert fitted.score(XL[:200], labels[:200]) > fitted.score(XL[200:], labels[200:])


@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_what_columns_of_labels_do_not_take_is_refused(machine):
    with pytest.raises(Unsuitable, match="class_weight has no meaning for y of several columns"):
        type(machine)(class_weight="balanced").fit(XL, L)
    if hasattr(machine, "criterion"):
        with pytest.raises(Unsuitable, match="one column of labels, and y has several; use 'gini'"):
            type(machine)(criterion="entropy").fit(XL, L)
    with pytest.raises(EmpiriskError, match="lists of different lengths"):
        machine.fit(XL[:2], [[1], [1, 2]])


@pytest.mark.row("N1")
def test_neighbours_vote_on_each_label():
    rows = XL + 1e-3 * np.random.default_rng(0).normal(size=XL.shape)  # no equal distances
    one = er.KNNClassifier(7, weights="distance").fit(rows, WORDS)
    for number, shares in enumerate(one.predict_proba(XL)):
        alone = er.KNNClassifier(7, weights="distance").fit(rows, WORDS[:, number])
        np.testing.assert_allclose(shares, alone.predict_proba(XL))
        np.testing.assert_array_equal(one.predict(XL)[:, number], alone.predict(XL))
    chosen = er.KNNClassifier("loo", ks=10).fit(XL, WORDS)
    assert 1 <= chosen.n_neighbors_ <= 10
