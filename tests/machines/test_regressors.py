"""Regressors: closed forms, sparsity, robustness, several targets, choosing C."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_linnerud

import empirisk as er
from empirisk.evaluation.splits import make_splits


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, scaled=False)


@pytest.mark.row("L3")
def test_least_squares_is_the_pseudo_inverse():
    random = np.random.default_rng(0)
    for shape in ((30, 4), (5, 12)):
        X, y = random.normal(size=shape), random.normal(size=(shape[0], 2))
        machine = er.LeastSquares(fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(machine.coef_.T, np.linalg.pinv(X) @ y, atol=1e-9)
    X = np.column_stack([X, X[:, 0]])
    np.testing.assert_allclose(er.LeastSquares(fit_intercept=False).fit(X, y).coef_.T, np.linalg.pinv(X) @ y, atol=1e-9)


@pytest.mark.row("L3")
def test_rank_cut_off():
    X = np.diag([1.0, 1e-3])
    y = np.array([1.0, 1.0])
    exact = er.LeastSquares(fit_intercept=False).fit(X, y)
    cut = er.LeastSquares(fit_intercept=False, solver=er.solvers.ClosedForm("svd", cutoff=0.1), tol=2).fit(X, y)
    np.testing.assert_allclose(exact.coef_, [1, 1000], rtol=1e-9)
    np.testing.assert_allclose(cut.coef_, [1, 0], atol=1e-12)


@pytest.mark.row("L4")
def test_ridge_is_sklearns(diabetes):
    from sklearn.linear_model import Ridge

    X, y = diabetes
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 2, len(y))
    for C in (1e-4, 1.0, 1e4):
        theirs = Ridge(alpha=1 / (2 * C)).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(er.Ridge(C=C).fit(X, y, weights).coef_, theirs.coef_, rtol=1e-6)
    wide = random.normal(size=(20, 100))
    np.testing.assert_allclose(
        er.Ridge(C=2.0).fit(wide, y[:20]).coef_, Ridge(alpha=0.25).fit(wide, y[:20]).coef_, rtol=1e-6, atol=1e-8
    )


@pytest.mark.row("L5")
def test_lasso_is_sklearns(diabetes):
    from sklearn.linear_model import Lasso

    X, y = diabetes
    theirs = Lasso(alpha=1.0, tol=1e-12, max_iter=100_000).fit(X, y)
    ours = er.Lasso(C=1 / (2 * len(y)), tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.row("L6")
def test_elastic_net_interpolates_between_lasso_and_ridge(diabetes):
    X, y = diabetes
    np.testing.assert_allclose(
        er.ElasticNet(C=0.01, l1_ratio=0.0).fit(X, y).coef_, er.Ridge(C=0.01).fit(X, y).coef_, rtol=1e-5
    )
    np.testing.assert_allclose(
        er.ElasticNet(C=0.01, l1_ratio=1.0).fit(X, y).coef_, er.Lasso(C=0.01).fit(X, y).coef_, rtol=1e-4, atol=1e-6
    )


@pytest.mark.row("L7")
def test_least_absolute_deviations_ignore_outliers():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 3.0] + 4 + 0.01 * random.normal(size=200)
    y[:40] += 1000
    machine = er.LeastAbsolute().fit(X, y)
    np.testing.assert_allclose(machine.coef_, [1, 2, 3], atol=0.02)
    full = er.Regressor(loss=er.losses.SquaredAbsolute(0.5), penalty=er.penalties.ElasticNet(0.3), C=0.1).fit(X, y)
    assert full.certificate_.converged


@pytest.mark.row("L13")
def test_svr_is_libsvms(diabetes):
    from sklearn.svm import SVR

    X, y = diabetes
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), y / y.std()
    theirs = SVR(kernel="linear", C=0.5, epsilon=0.2, tol=1e-9).fit(X, y)
    ours = er.SVR(C=0.5, epsilon=0.2).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_[0], atol=1e-5)


@pytest.mark.parametrize("machine", [er.Ridge(), er.Lasso(), er.SVR(), er.LeastAbsolute()], ids=repr)
def test_several_targets_are_fitted_column_by_column(machine):
    X, Y = load_linnerud(return_X_y=True)
    joint = machine.fit(X, Y)
    assert joint.coef_.shape == (3, 3)
    assert joint.predict(X).shape == Y.shape
    weights, constants = joint.coef_.copy(), joint.intercept_.copy()
    for k in range(3):
        alone = machine.fit(X, Y[:, k])
        np.testing.assert_allclose(weights[k], alone.coef_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(constants[k], alone.intercept_, rtol=1e-6)


@pytest.mark.row("V3")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(40, 6), (25, 60), (2100, 4)])
def test_leave_one_out_is_refitting(shape, intercept):
    random = np.random.default_rng(0)
    X = random.normal(size=shape) * random.uniform(0.1, 10, shape[1]) + 3
    y, weights = X[:, 0] + random.normal(size=shape[0]), random.uniform(0.5, 2, shape[0])
    Cs = np.geomspace(1e-4, 1e2, 5)
    choice = er.Ridge(C="loo", Cs=Cs, fit_intercept=intercept).fit(X, y, weights).choice_
    for row in range(0, shape[0], max(1, shape[0] // 20)):
        kept = np.arange(shape[0]) != row
        for column, C in enumerate(Cs):
            left_out = er.Ridge(C=C, fit_intercept=intercept, tol=1e-12, solver=er.solvers.ClosedForm("cholesky"))
            left_out.fit(X[kept], y[kept], weights[kept])
            loss = (y[row] - left_out.predict(X[[row]])[0]) ** 2
            assert choice.losses[row, column] == pytest.approx(loss, rel=1e-9, abs=1e-10)


@pytest.mark.row("V3")
def test_choosing_C_follows_its_rule(diabetes):
    X, y = diabetes
    best = er.Ridge(C="loo", Cs=30).fit(X, y)
    simple = er.Ridge(C="loo", Cs=30, rule="1se").fit(X, y)
    assert best.choice_.values[best.choice_.mean.argmin()] == best.C_
    assert simple.C_ < best.C_
    table = simple.choice_
    limit = table.mean.min() + table.error[table.mean.argmin()]
    assert table.mean[table.values == simple.C_] <= limit
    assert np.all(table.mean[table.values < simple.C_] > limit)


@pytest.mark.parametrize("machine", [er.Lasso(C="cv", Cs=10), er.SVR(C="cv", Cs=5), er.Ridge(C="cv", Cs=10)], ids=repr)
def test_cross_validated_C_is_honest(machine, diabetes):
    X, y = diabetes
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    machine.fit(X, y)
    table = machine.choice_
    assert table.losses.shape == (5, len(table.values))
    assert machine.C_ in table.values
    fixed = type(machine)(C=machine.C_).fit(X, y)
    np.testing.assert_allclose(machine.coef_, fixed.coef_, rtol=1e-4, atol=1e-4)
    column = int(np.flatnonzero(table.values == machine.C_)[0])
    loss = er.losses.find(machine.loss)
    for fold, (train, test) in enumerate(make_splits(5, y, classes=False)):
        held_out = type(machine)(C=machine.C_).fit(X[train], y[train])
        expected = loss.value(y[test], held_out.predict(X[test])).mean()
        assert table.losses[fold, column] == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("machine", [er.LogisticRegression(C="cv", Cs=3), er.Ridge(C="cv", Cs=3)], ids=repr)
def test_folds_are_shuffled_by_random_state_like_those_of_evaluate(machine):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), np.repeat([0, 1], 30)  # sorted: folds in the order of the rows would tell
    classes = isinstance(machine, er.Classifier)

    def table(**seed):
        return clone(machine).set_params(**seed).fit(X, y).choice_.losses

    for seed in (0, 3):
        given = table(cv=make_splits(5, y, classes=classes, random_state=seed))
        np.testing.assert_array_equal(table(random_state=seed), given)
    np.testing.assert_array_equal(table(), table(random_state=0))
    assert not np.array_equal(table(random_state=0), table(random_state=3))


def test_cross_validated_C_of_classifiers():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    for machine in (er.LogisticRegression(C="cv", Cs=5), er.SVM(C="cv", Cs=5, multiclass="one_vs_one", rule="1se")):
        assert machine.fit(X, y).score(X, y) > 0.9


@pytest.mark.row("L5")
@pytest.mark.parametrize("machine", [er.Lasso(), er.LogisticRegression(penalty="l1"), er.SVM(), er.Ridge()], ids=repr)
def test_a_path_is_its_fits(machine):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 8))
    y = X[:, 0] - X[:, 1] + 0.5 * random.normal(size=60)
    y = y if isinstance(machine, er.Regressor) else y > 0
    found = er.selection.path(machine, X, y, Cs=6)
    assert len(found) == len(found.certificates) == 6
    assert np.all(np.diff(found.Cs) > 0)
    for k in (0, 3, 5):
        alone = type(machine)(**{**machine.get_params(), "C": found.Cs[k]}).fit(X, y)
        assert found.objectives[k] == pytest.approx(alone.certificate_.primal, rel=2e-6)
        np.testing.assert_allclose(found.coefs[k], alone.coef_, rtol=2e-2, atol=2e-3)
    with pytest.raises(ValueError, match="has no path"):
        er.selection.path(er.NearestCentroid(), X, y)


@pytest.mark.row("L3")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["multiples", "one-hot", "sums", "duplicates", "zero", "wide", "sparse", "scaled"])
def test_least_squares_is_of_minimum_norm_wherever_there_are_several(kind, intercept):
    random = np.random.default_rng(3)
    x = random.normal(size=(40, 1))
    X = {
        "multiples": np.hstack([x, -5 * x]),
        "one-hot": np.eye(4)[random.integers(0, 4, 40)],
        "sums": np.hstack([x, x**2, x + x**2, 1 - x]),
        "duplicates": np.hstack([x, x, x]),
        "zero": np.hstack([x, 0 * x, 2 * x]),
        "wide": random.normal(size=(6, 15)),
        "sparse": np.eye(5)[random.integers(0, 5, 40)] * 3.0,
        "scaled": np.hstack([1e-6 * x, 1e3 * x, x**2]),
    }[kind]
    weights = random.uniform(0.5, 2.0, len(X))
    y = 2 * X[:, 0] + random.normal(size=len(X))
    given = sparse.csr_matrix(X) if kind == "sparse" else X
    machine = er.LeastSquares(fit_intercept=intercept).fit(given, y, weights)
    centre, level = (np.average(X, 0, weights), np.average(y, weights=weights)) if intercept else (0.0, 0.0)
    root = np.sqrt(weights)[:, None]
    expected = np.linalg.pinv(root * (X - centre), rcond=1e-12) @ (root[:, 0] * (y - level))
    assert machine.certificate_.converged
    np.testing.assert_allclose(machine.coef_, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
