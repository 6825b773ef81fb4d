"""Linear machines: least squares, ridge, lasso, elastic net, logistic regression, quantiles, Huber, perceptron, SGD."""

import warnings

import numpy as np
from scipy import sparse
from sklearn import linear_model as theirs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk import scales
from tests.parity.cases import (
    DIABETES_X,
    DIABETES_Y,
    IRIS_X,
    IRIS_Y,
    PLANE_X,
    PLANE_Y,
    TWO_X,
    TWO_Y,
    behaviour,
    near,
    refuses,
)

ALPHAS = (0.01, 1.0, 100.0)
WEIGHTS = np.random.default_rng(1).uniform(0.2, 3.0, len(PLANE_Y))
REGRESSORS = (er.LeastSquares(), er.Ridge(), er.Lasso(), er.ElasticNet(), er.Regressor("huber"), er.LeastAbsolute())
CLASSIFIERS = (
    er.LogisticRegression(),
    er.SVM(),
    er.LeastSquaresClassifier(penalty="l2"),
    er.Classifier("squared_hinge"),
)
MACHINES = REGRESSORS + CLASSIFIERS


def target(machine):
    return TWO_Y if hasattr(machine, "class_weight") else TWO_X @ np.arange(1.0, 6.0) + TWO_Y


# --- least squares ----------------------------------------------------------------------------------------------------


@behaviour([True, False])
def least_squares_has_the_coefficients_of_scikit_learn(intercept):
    """Least squares is scikit-learn's LinearRegression, with and without an intercept."""
    ours = er.LeastSquares(fit_intercept=intercept).fit(PLANE_X, PLANE_Y)
    other = theirs.LinearRegression(fit_intercept=intercept).fit(PLANE_X, PLANE_Y)
    near(ours.coef_, other.coef_)
    near(ours.intercept_, other.intercept_)


@behaviour([True, False])
def least_squares_takes_weights(intercept):
    """Sample weights of least squares are scikit-learn's, with and without an intercept."""
    ours = er.LeastSquares(fit_intercept=intercept).fit(PLANE_X, PLANE_Y, WEIGHTS)
    near(ours.coef_, theirs.LinearRegression(fit_intercept=intercept).fit(PLANE_X, PLANE_Y, WEIGHTS).coef_)


@behaviour([(10, 4), (4, 10), (6, 6)])
def least_squares_of_minimum_norm(shape):
    """With more columns than rows the weights of least norm are found, as lstsq does."""
    X, y = np.random.default_rng(2).normal(size=shape), np.arange(float(shape[0]))
    near(er.LeastSquares(fit_intercept=False).fit(X, y).coef_, np.linalg.lstsq(X, y, rcond=None)[0])


@behaviour([er.LeastSquares(), er.Ridge(), er.Lasso(0.01), er.ElasticNet(0.01)])
def several_targets_are_several_fits(machine):
    """Several targets get the weights that each would get alone, a row for each."""
    both = clone(machine).fit(PLANE_X, np.column_stack([PLANE_Y, -2 * PLANE_Y]))
    assert both.coef_.shape == (2, 4)
    near(both.coef_[0], clone(machine).fit(PLANE_X, PLANE_Y).coef_, 1e-5)
    near(both.coef_[1], clone(machine).fit(PLANE_X, -2 * PLANE_Y).coef_, 1e-5)


@behaviour([er.LeastSquares(), er.Ridge(), er.Lasso(0.01), er.ElasticNet(0.01), er.SVR(), er.LogisticRegression()])
def sparse_rows_are_dense_rows(machine):
    """Sparse matrices of any format give the weights of dense ones."""
    X, y = np.where(np.abs(TWO_X) < 0.5, 0.0, TWO_X), target(machine)
    dense = clone(machine).fit(X, y).coef_
    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        near(clone(machine).fit(kind(X), y).coef_, dense, 1e-4)


@behaviour([0, 1, 2])
def least_squares_rank_and_singular_values(seed):
    """rank_ and singular_ are scikit-learn's, for columns that depend on each other too."""
    X = np.random.default_rng(seed).normal(size=(20, 5))
    X[:, 4] = X[:, 0] + X[:, 1] if seed else X[:, 4]
    ours, other = er.LeastSquares().fit(X, X[:, 0]), theirs.LinearRegression().fit(X, X[:, 0])
    assert ours.rank_ == other.rank_ == (4 if seed else 5)
    near(ours.singular_, other.singular_)


# --- signs ------------------------------------------------------------------------------------------------------------


@behaviour([0, 1, 2])
def positive_least_squares(seed):
    """positive=True gives the weights of scikit-learn's LinearRegression(positive=True), none below zero."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(40, 6)), random.normal(size=40)
    ours = er.LeastSquares(positive=True).fit(X, y)
    near(ours.coef_, theirs.LinearRegression(positive=True).fit(X, y).coef_)
    assert ours.coef_.min() >= 0


@behaviour(ALPHAS)
def positive_ridge(alpha):
    """positive=True of ridge, in the scale C = 1 / (2 alpha)."""
    ours = er.Ridge(scales.from_ridge(alpha), positive=True).fit(DIABETES_X, DIABETES_Y)
    near(ours.coef_, theirs.Ridge(alpha, positive=True, tol=1e-10).fit(DIABETES_X, DIABETES_Y).coef_, 1e-3)


@behaviour([0.1, 1.0])
def positive_lasso(alpha):
    """positive=True of the lasso, in the scale C = 1 / (2 n alpha)."""
    ours = er.Lasso(scales.from_lasso(alpha, 150), positive=True).fit(DIABETES_X, DIABETES_Y)
    near(ours.coef_, theirs.Lasso(alpha, positive=True, tol=1e-10).fit(DIABETES_X, DIABETES_Y).coef_, 1e-4)


@behaviour([er.LeastSquares(), er.Ridge(), er.Lasso(0.1), er.ElasticNet(0.1)])
def positive_changes_nothing_where_weights_are_positive(machine):
    """The constraint does not matter where the free weights are positive already."""
    y = PLANE_X @ [1.0, 2.0, 0.5, 3.0]
    near(clone(machine).set_params(positive=True).fit(PLANE_X, y).coef_, clone(machine).fit(PLANE_X, y).coef_, 1e-5)


# --- ridge ------------------------------------------------------------------------------------------------------------


@behaviour([(alpha, intercept) for alpha in ALPHAS for intercept in (True, False)])
def ridge_is_that_of_scikit_learn(given):
    """Ridge with C = 1 / (2 alpha) has scikit-learn's weights and intercept."""
    alpha, intercept = given
    ours = er.Ridge(scales.from_ridge(alpha), fit_intercept=intercept).fit(DIABETES_X, DIABETES_Y)
    other = theirs.Ridge(alpha, fit_intercept=intercept).fit(DIABETES_X, DIABETES_Y)
    near(ours.coef_, other.coef_)
    near(ours.intercept_, other.intercept_)


@behaviour(ALPHAS)
def ridge_weights_are_rows(alpha):
    """Whole sample weights of ridge equal repeated rows."""
    counts = np.arange(len(PLANE_Y)) % 3
    weighted = er.Ridge(scales.from_ridge(alpha)).fit(PLANE_X, PLANE_Y, counts)
    repeated = er.Ridge(scales.from_ridge(alpha)).fit(np.repeat(PLANE_X, counts, 0), np.repeat(PLANE_Y, counts))
    near(weighted.coef_, repeated.coef_)


@behaviour(["svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"])
def names_of_their_solvers_are_taken(solver):
    """Every name of a solver that scikit-learn has for ridge is taken, and the answer is the same minimum."""
    near(er.Ridge(solver=solver).fit(PLANE_X, PLANE_Y).coef_, er.Ridge().fit(PLANE_X, PLANE_Y).coef_)


@behaviour([1e-6, 1e6])
def ridge_limits(C):
    """A small C leaves no weights, a large one those of least squares."""
    found = er.Ridge(C).fit(PLANE_X, PLANE_Y).coef_
    near(found, np.zeros(4) if C < 1 else er.LeastSquares().fit(PLANE_X, PLANE_Y).coef_, 1e-3)


@behaviour([np.logspace(-3, 3, 7)])
def ridge_leave_one_out(alphas):
    """C="loo" chooses the alpha of RidgeCV."""
    found = er.Ridge("loo", Cs=scales.from_ridge(1.0) / alphas).fit(DIABETES_X, DIABETES_Y)
    near(scales.to_ridge(found.C_), theirs.RidgeCV(alphas).fit(DIABETES_X, DIABETES_Y).alpha_)


@behaviour(["balanced", {0: 1.0, 1: 5.0}])
def ridge_classes_take_weights(class_weight):
    """class_weight of a ridge classifier equals sample weights."""
    machine = er.LeastSquaresClassifier(penalty="l2", class_weight=class_weight).fit(TWO_X[:50], TWO_Y[:50])
    other = theirs.RidgeClassifier(0.5, class_weight=class_weight).fit(TWO_X[:50], TWO_Y[:50])
    near(machine.coef_[0], other.coef_.ravel(), 1e-5)


# --- lasso and elastic net --------------------------------------------------------------------------------------------


@behaviour([(alpha, intercept) for alpha in (0.05, 0.5) for intercept in (True, False)])
def lasso_is_that_of_scikit_learn(given):
    """The lasso with C = 1 / (2 n alpha) has scikit-learn's weights, the same ones zero."""
    alpha, intercept = given
    ours = er.Lasso(scales.from_lasso(alpha, 150), fit_intercept=intercept).fit(DIABETES_X, DIABETES_Y)
    other = theirs.Lasso(alpha, fit_intercept=intercept, tol=1e-10, max_iter=10**5).fit(DIABETES_X, DIABETES_Y)
    near(ours.coef_, other.coef_, 1e-3)
    assert np.array_equal(ours.coef_ == 0, other.coef_ == 0)


@behaviour([(alpha, ratio) for alpha in (0.01, 0.1) for ratio in (0.2, 0.5, 0.9)])
def elastic_net_is_that_of_scikit_learn(given):
    """The elastic net has scikit-learn's weights in the converted scale."""
    C, ratio = scales.from_elastic_net(*given, 150)
    other = theirs.ElasticNet(given[0], l1_ratio=given[1], tol=1e-10, max_iter=10**5).fit(DIABETES_X, DIABETES_Y)
    near(er.ElasticNet(C, l1_ratio=ratio).fit(DIABETES_X, DIABETES_Y).coef_, other.coef_, 1e-3)


@behaviour([0.0, 1.0])
def elastic_net_has_both_ends(ratio):
    """l1_ratio 0 is ridge, 1 is the lasso."""
    other = er.Lasso(0.1) if ratio else er.Ridge(0.1)
    near(er.ElasticNet(0.1, l1_ratio=ratio).fit(PLANE_X, PLANE_Y).coef_, other.fit(PLANE_X, PLANE_Y).coef_, 1e-5)


@behaviour([er.Lasso(), er.ElasticNet()])
def a_constant_target_has_no_weights(machine):
    """A target that is the same on all rows gives zero weights, and is predicted."""
    found = clone(machine).fit(PLANE_X, np.full(60, 7.0))
    assert not found.coef_.any()
    near(found.predict(PLANE_X), 7.0)


@behaviour([er.Lasso(0.1), er.ElasticNet(0.1), er.Ridge(0.1)])
def dual_gaps_are_small_and_positive(machine):
    """dual_gap_ is the certified distance to the minimum, within the tolerance."""
    found = clone(machine).fit(PLANE_X, PLANE_Y)
    assert 0 <= found.dual_gap_ <= 1e-5 * found.certificate_.primal


@behaviour([er.Lasso(1e-6), er.ElasticNet(1e-6)])
def small_C_leaves_nothing(machine):
    """Below the critical C all weights are zero and the mean is predicted."""
    found = clone(machine).fit(PLANE_X, PLANE_Y)
    assert not found.coef_.any()
    near(found.intercept_, PLANE_Y.mean())


# --- every linear machine ---------------------------------------------------------------------------------------------


@behaviour(MACHINES)
def warm_start_finds_the_same_minimum(machine):
    """warm_start begins at the last answer and ends at the same one, in no more iterations."""
    warm = clone(machine).set_params(warm_start=True, tol=1e-8).fit(TWO_X, target(machine))
    before, steps = warm.coef_, warm.n_iter_
    assert warm.fit(TWO_X, target(machine)).n_iter_ <= steps
    near(warm.coef_, before, 1e-3)


@behaviour(MACHINES)
def weight_two_is_the_row_twice(machine):
    """Sample weight 2 equals the row twice, and weight 0 leaves it out."""
    counts, y = np.arange(len(TWO_Y)) % 3, target(machine)
    weighted = clone(machine).fit(TWO_X, y, sample_weight=counts)
    repeated = clone(machine).fit(np.repeat(TWO_X, counts, 0), np.repeat(y, counts))
    near(weighted.coef_, repeated.coef_, 2e-3)


@behaviour(MACHINES)
def float32_gives_float32(machine):
    """Rows in float32 get predictions or scores in float32, close to those of float64."""
    found = clone(machine).fit(TWO_X.astype(np.float32), target(machine))
    answer = found.decision_function if hasattr(found, "decision_function") else found.predict
    assert answer(TWO_X.astype(np.float32)).dtype == np.float32
    assert answer(TWO_X).dtype == np.float64
    near(answer(TWO_X.astype(np.float32)), answer(TWO_X), 1e-4)


@behaviour(MACHINES)
def rows_and_weights_are_not_written_to(machine):
    """Neither X nor y nor the sample weights change during a fit."""
    X, y, weights = TWO_X.copy(), target(machine).copy(), np.ones(len(TWO_Y))
    for each in (X, y, weights):
        each.flags.writeable = False
    clone(machine).fit(X, y, sample_weight=weights)


@behaviour(MACHINES)
def fortran_order_changes_nothing(machine):
    """Rows stored by column give the same weights."""
    y = target(machine)
    near(clone(machine).fit(np.asfortranarray(TWO_X), y).coef_, clone(machine).fit(TWO_X, y).coef_, 1e-5)


@behaviour([er.Lasso(max_iter=1), er.LogisticRegression(C=1e4, max_iter=1), er.SVM(C=1e3, max_iter=1)])
def too_few_iterations_warn(machine):
    """A fit that is cut short warns, and has done no more than its iterations."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = clone(machine).fit(TWO_X * 100, target(machine))
    assert any(issubclass(each.category, ConvergenceWarning) for each in caught)
    assert found.n_iter_ <= 1


@behaviour([er.Ridge(-1.0), er.Lasso(np.nan), er.LogisticRegression(0.0), er.SVM("small"), er.Ridge(tol=-1.0)])
def bad_parameters_are_refused_at_fit(machine):
    """A parameter outside of its range is refused when the machine is fitted, not when it is made."""
    refuses(lambda: machine.fit(TWO_X, target(machine)))


@behaviour([np.nan, np.inf])
def rows_must_be_numbers(hole):
    """NaN and infinity among the rows are refused."""
    X = TWO_X.copy()
    X[3, 1] = hole
    for machine in (er.Ridge(), er.LogisticRegression()):
        refuses(lambda machine=machine: machine.fit(X, TWO_Y))


@behaviour([er.Ridge(), er.LogisticRegression(), er.SVM()])
def lengths_must_agree(machine):
    """X, y and sample weights of different lengths are refused, and weights in two dimensions."""
    refuses(lambda: machine.fit(TWO_X[:-1], TWO_Y))
    refuses(lambda: machine.fit(TWO_X, TWO_Y, sample_weight=np.ones(3)))
    refuses(lambda: machine.fit(TWO_X, TWO_Y, sample_weight=np.ones((len(TWO_Y), 1, 1))))


# --- logistic regression ----------------------------------------------------------------------------------------------


@behaviour([0.1, 1.0, 10.0])
def logistic_regression_is_that_of_scikit_learn(C):
    """Two classes: the weights, intercept and probabilities of scikit-learn at the same C."""
    ours = er.LogisticRegression(C).fit(TWO_X, TWO_Y)
    other = theirs.LogisticRegression(C=C, tol=1e-10, max_iter=10**4).fit(TWO_X, TWO_Y)
    near(ours.coef_, other.coef_, 1e-3)
    near(ours.intercept_, other.intercept_, 1e-3)
    near(ours.predict_proba(TWO_X), other.predict_proba(TWO_X), 1e-3)


@behaviour([0.1, 1.0, 10.0])
def several_classes_are_those_of_scikit_learn(C):
    """Three classes are learned jointly: probabilities and labels of scikit-learn."""
    ours = er.LogisticRegression(C).fit(IRIS_X, IRIS_Y)
    other = theirs.LogisticRegression(C=C, tol=1e-10, max_iter=10**4).fit(IRIS_X, IRIS_Y)
    near(ours.predict_proba(IRIS_X), other.predict_proba(IRIS_X), 2e-3)
    assert ours.coef_.shape == other.coef_.shape
    assert np.array_equal(ours.predict(IRIS_X), other.predict(IRIS_X))


@behaviour([0.05, 0.5])
def l1_logistic_regression(C):
    """The l1 penalty has the weights of scikit-learn's SAGA, the same ones zero."""
    ours = er.LogisticRegression(C, penalty="l1").fit(TWO_X, TWO_Y)
    other = theirs.LogisticRegression(C=C, l1_ratio=1.0, solver="saga", tol=1e-8, max_iter=10**5).fit(TWO_X, TWO_Y)
    near(ours.coef_, other.coef_, 1e-3)
    assert np.array_equal(ours.coef_ == 0, np.abs(other.coef_) < 1e-6)


@behaviour([0.2, 0.7])
def elastic_logistic_regression(ratio):
    """The elastic net as penalty of logistic regression."""
    ours = er.LogisticRegression(0.5, penalty=er.penalties.ElasticNet(ratio)).fit(TWO_X, TWO_Y)
    other = theirs.LogisticRegression(C=0.5, l1_ratio=ratio, solver="saga", tol=1e-8, max_iter=10**5).fit(TWO_X, TWO_Y)
    near(ours.coef_, other.coef_, 1e-3)


@behaviour([("penalty", None), ("C", np.inf)])
def no_penalty(given):
    """penalty=None and C=inf are maximum likelihood."""
    ours = er.LogisticRegression().set_params(**{given[0]: given[1]}).fit(TWO_X, TWO_Y)
    near(ours.coef_, theirs.LogisticRegression(C=np.inf, tol=1e-10, max_iter=10**4).fit(TWO_X, TWO_Y).coef_, 1e-3)


@behaviour(["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"])
def logistic_solvers_by_their_names(solver):
    """Every name of a solver that scikit-learn has for logistic regression is taken."""
    found = er.LogisticRegression(solver=solver).fit(IRIS_X, IRIS_Y)
    near(found.predict_proba(IRIS_X), er.LogisticRegression().fit(IRIS_X, IRIS_Y).predict_proba(IRIS_X), 1e-4)


@behaviour([["a", "b", "c"], [-1, 0, 5], [1.0, 2.0, 3.0]])
def classes_may_be_anything(names):
    """Labels may be words, whole numbers or fractions; classes_ has them sorted."""
    y = np.array(names)[IRIS_Y]
    found = er.LogisticRegression().fit(IRIS_X, y)
    assert list(found.classes_) == sorted(names)
    assert set(found.predict(IRIS_X)) <= set(names)


@behaviour([er.LogisticRegression(), er.LogisticRegression(multiclass="one_vs_rest")])
def probabilities_add_up(machine):
    """Probabilities sum to one, their logarithms are predict_log_proba, and predict is the largest."""
    found = clone(machine).fit(IRIS_X, IRIS_Y)
    shares = found.predict_proba(IRIS_X)
    near(shares.sum(axis=1), 1.0)
    near(np.exp(found.predict_log_proba(IRIS_X)), shares)
    assert np.array_equal(found.classes_[shares.argmax(axis=1)], found.predict(IRIS_X))


@behaviour(CLASSIFIERS)
def balanced_is_a_dictionary(machine):
    """class_weight="balanced" is n / (classes * count) for each class."""
    X, y = TWO_X[10:60], TWO_Y[10:60]
    balanced = {label: len(y) / (2 * (y == label).sum()) for label in (0, 1)}
    near(clone(machine).set_params(class_weight="balanced").fit(X, y).coef_,
         clone(machine).set_params(class_weight=balanced).fit(X, y).coef_, 1e-4)  # fmt: skip


@behaviour(CLASSIFIERS)
def class_weights_are_sample_weights(machine):
    """A class weight is a sample weight of all rows of the class, and both multiply."""
    weights = np.linspace(0.5, 2.0, len(TWO_Y))
    near(clone(machine).set_params(class_weight={0: 1, 1: 4}).fit(TWO_X, TWO_Y, sample_weight=weights).coef_,
         clone(machine).fit(TWO_X, TWO_Y, sample_weight=weights * np.where(TWO_Y == 1, 4, 1)).coef_, 1e-4)  # fmt: skip


@behaviour(CLASSIFIERS)
def one_class_is_refused(machine):
    """A target of a single class is refused."""
    refuses(lambda: clone(machine).fit(TWO_X, np.zeros(len(TWO_Y))), "class")


@behaviour([0.0, 1e6, -1e6])
def huge_scores_are_probabilities(size):
    """Scores of any size give probabilities between 0 and 1 that are numbers."""
    found = er.LogisticRegression().fit(TWO_X, TWO_Y)
    shares = found.predict_proba(np.full((1, 5), size))
    assert np.isfinite(shares).all()
    near(shares.sum(), 1.0)


# --- quantiles, Huber, perceptron, stochastic gradients ---------------------------------------------------------------


@behaviour([0.1, 0.5, 0.9])
def quantiles_are_those_of_scikit_learn(level):
    """The quantile loss without a penalty predicts what QuantileRegressor(alpha=0) predicts."""
    ours = er.Regressor(er.losses.Quantile(level), penalty=None).fit(PLANE_X, PLANE_Y)
    other = theirs.QuantileRegressor(quantile=level, alpha=0).fit(PLANE_X, PLANE_Y)
    near(ours.predict(PLANE_X), other.predict(PLANE_X), 2e-3)


@behaviour([0.2, 0.5, 0.8])
def quantiles_are_calibrated(level):
    """About that share of the training rows lies below."""
    found = er.Regressor(er.losses.Quantile(level), penalty=None).fit(PLANE_X, PLANE_Y)
    assert abs((found.predict(PLANE_X) > PLANE_Y).mean() - level) <= 5 / 60


@behaviour([2.0, -3.0])
def quantiles_are_equivariant(factor):
    """Scaling the target scales the predicted quantiles; a negative factor turns the level round."""
    first = er.Regressor(er.losses.Quantile(0.3), penalty=None).fit(PLANE_X, PLANE_Y)
    level = 0.3 if factor > 0 else 0.7
    second = er.Regressor(er.losses.Quantile(level), penalty=None).fit(PLANE_X, factor * PLANE_Y)
    near(second.predict(PLANE_X), factor * first.predict(PLANE_X), 1e-2)


@behaviour([1e3, 1e-4])
def huber_has_both_ends(delta):
    """A large delta is least squares, a small one least absolute deviations."""
    found = er.Regressor(er.losses.Huber(delta), penalty=None).fit(PLANE_X, PLANE_Y)
    other = er.LeastSquares() if delta > 1 else er.LeastAbsolute()
    near(found.predict(PLANE_X), other.fit(PLANE_X, PLANE_Y).predict(PLANE_X), 2e-2)


@behaviour([0, 1])
def huber_resists_outliers(seed):
    """On rows with outliers Huber's loss finds the line that least squares misses."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, 2))
    y = X @ [1.0, 2.0]
    dirty = y + np.where(np.arange(50) < 5, 50.0, 0.0)
    errors = [np.abs(machine.fit(X, dirty).predict(X) - y).mean() for machine in (er.Regressor("huber"), er.Ridge())]
    assert errors[0] < 0.2 * errors[1]


@behaviour([False, True])
def perceptrons_separate(average):
    """Separable classes are separated without an error."""
    X, y = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 0.0], [4.0, 1.0]]), [0, 0, 1, 1]
    assert er.Perceptron(average=average).fit(X, y).score(X, y) == 1.0


@behaviour(["predict_proba", "predict_log_proba"])
def perceptrons_and_svms_have_no_probabilities(method):
    """Losses that imply no probabilities have no method for them."""
    for machine in (er.Perceptron(), er.SVM()):
        assert not hasattr(machine.fit(TWO_X, TWO_Y), method)


@behaviour(["hinge", "log_loss", "squared_hinge", "squared_error"])
def losses_by_their_names(loss):
    """Losses have scikit-learn's names beside ours, in SGD too."""
    found = er.Classifier(loss, solver="sgd", max_iter=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert found.fit(TWO_X, TWO_Y).score(TWO_X, TWO_Y) > 0.75


@behaviour([er.LogisticRegression(), er.SVM(), er.Ridge()])
def partial_fit_learns(machine):
    """Many calls of partial_fit come close to what a fit finds."""
    online, y = clone(machine), target(machine)
    for _ in range(10):
        for start in range(0, len(y), 20):
            rows = slice(start, start + 20)
            given = {"classes": [0, 1]} if hasattr(machine, "class_weight") else {}
            online.partial_fit(TWO_X[rows], y[rows], **given)
    assert online.score(TWO_X, y) > clone(machine).fit(TWO_X, y).score(TWO_X, y) - 0.12


@behaviour([None, [0, 2]])
def partial_fit_must_know_the_classes(classes):
    """The first partial_fit needs all classes; labels that were not named are refused."""
    refuses(lambda: er.LogisticRegression().partial_fit(TWO_X, TWO_Y, classes=classes), "classes")
