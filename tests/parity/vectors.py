"""Support vector machines and kernels: classes, numbers, one class, Gram matrices, maps."""

import numpy as np
from scipy import sparse
from sklearn import kernel_approximation, kernel_ridge, svm
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import PolynomialFeatures

import empirisk as er
from tests.parity.cases import (
    DIABETES_X,
    DIABETES_Y,
    IRIS_X,
    IRIS_Y,
    PLANE_X,
    PLANE_Y,
    TOY_NEW,
    TOY_TRUTH,
    TOY_X,
    TOY_Y,
    TWO_X,
    TWO_Y,
    behaviour,
    near,
    refuses,
)

SCALE = er.kernels.Gaussian("scale")
KERNELS = {
    "linear": er.kernels.Linear(),
    "rbf": SCALE,
    "poly": er.kernels.Polynomial(3, constant=1.0),
}
THEIRS = {"linear": {}, "rbf": {}, "poly": {"degree": 3, "coef0": 1.0, "gamma": 1.0}}


@behaviour([(kernel, C) for kernel in KERNELS for C in (0.1, 1.0)])
def svm_is_svc(given):
    """Two classes: the scores, and the support vectors of each class, are those of SVC at the same C."""
    kernel, C = given
    ours = er.SVM(C, features=KERNELS[kernel], tol=1e-8).fit(TWO_X, TWO_Y)
    other = svm.SVC(C=C, kernel=kernel, tol=1e-8, **THEIRS[kernel]).fit(TWO_X, TWO_Y)
    near(ours.decision_function(TWO_X), other.decision_function(TWO_X), 2e-3)
    assert np.abs(ours.n_support_ - other.n_support_).max() <= 1
    assert ours.n_support_.sum() == len(ours.support_) == len(ours.support_vectors_)


@behaviour([(epsilon, C) for epsilon in (0.05, 0.3) for C in (0.5, 5.0)])
def svr_is_that_of_scikit_learn(given):
    """Support vector regression with a Gaussian kernel predicts what SVR predicts."""
    epsilon, C = given
    ours = er.SVR(C, epsilon=epsilon, features=SCALE, tol=1e-8).fit(PLANE_X, PLANE_Y)
    other = svm.SVR(C=C, epsilon=epsilon, tol=1e-8).fit(PLANE_X, PLANE_Y)
    near(ours.predict(PLANE_X), other.predict(PLANE_X), 2e-3)
    assert ours.n_support_[0] == len(ours.support_)


@behaviour([0.1, 0.3, 0.6])
def one_class_is_that_of_scikit_learn(nu):
    """The scores of one-class machines are theirs over nu n; nu is above the share outside, below that of support."""
    ours = er.OneClassSVM(nu=nu, features=SCALE, tol=1e-9).fit(TWO_X)
    other = svm.OneClassSVM(nu=nu, tol=1e-9).fit(TWO_X)
    scores = ours.decision_function(TWO_X)
    near(scores * nu * len(TWO_X), other.decision_function(TWO_X), 1e-5)
    apart = abs(scores) > 1e-7  # support vectors on the boundary are outside or inside by rounding alone
    assert apart.sum() >= 0.5 * len(TWO_X)
    assert np.array_equal(ours.predict(TWO_X)[apart], other.predict(TWO_X)[apart])
    assert (scores < -1e-7).mean() <= nu <= len(ours.support_) / len(TWO_X) + 1e-9


@behaviour([er.SVM(), er.SVM(features=SCALE), er.SVM(features="poly"), er.LogisticRegression(), er.Perceptron()])
def the_toy_is_learned(machine):
    """Six separable points are learned, and new ones get their side."""
    assert np.array_equal(clone(machine).fit(TOY_X, TOY_Y).predict(TOY_NEW), TOY_TRUTH)


@behaviour([er.SVM(), er.SVM(features=SCALE), er.SVM(multiclass="one_vs_one"), er.SVM(multiclass="joint")])
def iris_is_learned(machine):
    """Three classes: more than nine of ten flowers are right, one score for each class."""
    found = clone(machine).fit(IRIS_X, IRIS_Y)
    assert found.score(IRIS_X, IRIS_Y) > 0.9
    assert found.decision_function(IRIS_X).shape == (150, 3)
    assert np.array_equal(found.classes_[found.decision_function(IRIS_X).argmax(1)], found.predict(IRIS_X))


@behaviour([er.SVM, er.SVR, er.Ridge, er.LogisticRegression])
def gram_matrices_are_kernels(kind):
    """features="precomputed" on a Gram matrix is the machine with the kernel."""
    kernel, y = er.kernels.Gaussian(2.0), TWO_Y
    direct, given = kind(features=kernel).fit(TWO_X, y), kind(features="precomputed").fit(kernel(TWO_X), y)
    answer = "decision_function" if hasattr(direct, "decision_function") else "predict"
    near(getattr(given, answer)(kernel.block(TWO_X[:9], TWO_X)), getattr(direct, answer)(TWO_X[:9]), 1e-4)


@behaviour([er.SVM, er.Ridge])
def functions_are_kernels(kind):
    """A function of two rows is a kernel, and clones."""
    machine = clone(kind(features=lambda x, z: float(x @ z))).fit(TWO_X, TWO_Y)
    answer = "decision_function" if hasattr(machine, "decision_function") else "predict"
    near(getattr(machine, answer)(TWO_X), getattr(kind().fit(TWO_X, TWO_Y), answer)(TWO_X), 1e-4)


@behaviour(["sigmoid of my own", "rbff", 3])
def unknown_kernels_are_refused(name):
    """A kernel that is not known is refused at fit."""
    refuses(lambda: er.SVM(features=name).fit(TWO_X, TWO_Y), "features")


@behaviour([(1.0, "scale"), (2.0, "scale"), (1.0, "auto")])
def gamma_scale_and_auto(given):
    """Gaussian("scale") and ("auto") have scikit-learn's gamma: 1 / (d var) and 1 / d."""
    factor, name = given
    X = factor * TWO_X
    gamma = 1 / (X.shape[1] * X.var()) if name == "scale" else 1 / X.shape[1]
    found = er.Ridge(features=er.kernels.Gaussian(name)).fit(X, TWO_Y)
    near(found.predict(X), er.Ridge(features=er.kernels.Gaussian.from_gamma(gamma)).fit(X, TWO_Y).predict(X), 1e-5)


@behaviour([0.01, 0.1, 1.0])
def kernel_ridge_is_that_of_scikit_learn(alpha):
    """Kernel ridge without an intercept is scikit-learn's KernelRidge at C = 1 / (2 alpha)."""
    kernel = er.kernels.Gaussian.from_gamma(0.2)
    ours = er.Ridge(er.scales.from_ridge(alpha), features=kernel, fit_intercept=False).fit(PLANE_X, PLANE_Y)
    other = kernel_ridge.KernelRidge(alpha=alpha, kernel="rbf", gamma=0.2).fit(PLANE_X, PLANE_Y)
    near(ours.predict(PLANE_X), other.predict(PLANE_X), 1e-5)


@behaviour([1.0, 10.0])
def linear_kernel_is_linear_machine(C):
    """The linear kernel is the linear machine."""
    near(er.SVM(C, features=er.kernels.Linear()).fit(TWO_X, TWO_Y).decision_function(TWO_X),
         er.SVM(C).fit(TWO_X, TWO_Y).decision_function(TWO_X), 1e-3)  # fmt: skip


@behaviour([2.0, 5.0])
def weights_are_Cs(factor):
    """Equal sample weights multiply C."""
    weighted = er.SVM(1.0, features=SCALE).fit(TWO_X, TWO_Y, sample_weight=np.full(len(TWO_Y), factor))
    near(
        weighted.decision_function(TWO_X),
        er.SVM(factor, features=SCALE).fit(TWO_X, TWO_Y).decision_function(TWO_X),
        1e-3,
    )


@behaviour([er.SVM(class_weight={1: 100.0}), er.LogisticRegression(class_weight={1: 100.0})])
def heavy_classes_win(machine):
    """A heavy class is predicted more often."""
    light = clone(machine).set_params(class_weight=None)
    assert (clone(machine).fit(TWO_X, TWO_Y).predict(TWO_X) == 1).sum() > (
        light.fit(TWO_X, TWO_Y).predict(TWO_X) == 1
    ).sum()


@behaviour([er.SVM(), er.SVM(features=SCALE), er.SVR(), er.OneClassSVM()])
def unfitted_machines_refuse(machine):
    """Predictions before a fit are refused."""
    refuses(lambda: clone(machine).predict(TWO_X), "not fitted")


@behaviour([er.SVM(), er.SVM(features=er.kernels.Gaussian(2.0))])
def sparse_rows_are_dense_ones(machine):
    """Sparse rows give the scores of dense ones."""
    X = np.where(np.abs(TWO_X) < 0.7, 0.0, TWO_X)
    dense = clone(machine).fit(X, TWO_Y).decision_function(X)
    near(clone(machine).fit(sparse.csr_array(X), TWO_Y).decision_function(sparse.csr_array(X)), dense, 1e-3)


@behaviour(["features__width", "C"])
def searches_reach_into_kernels(name):
    """A grid search reaches C and the width of the kernel."""
    search = GridSearchCV(er.SVM(features=er.kernels.Gaussian(1.0)), {name: [0.1, 1.0, 10.0]}, cv=3).fit(TWO_X, TWO_Y)
    assert search.best_params_[name] in (0.1, 1.0, 10.0)


@behaviour([er.SVM(features="precomputed"), er.Ridge(features="precomputed")])
def gram_matrices_are_cut_by_cross_validation(machine):
    """Cross-validation cuts the rows and columns of a Gram matrix."""
    scores = cross_val_score(machine, rbf_kernel(TWO_X, gamma=0.1), TWO_Y, cv=3)
    assert np.isfinite(scores).all()


@behaviour([10, 40, 80])
def nystrom_approaches_the_kernel(rank):
    """Products of Nystrom features approach the kernel, and are it with all rows as landmarks."""
    kernel = er.kernels.Gaussian.from_gamma(0.1)
    ours = er.maps.Nystrom(kernel, rank=rank, random_state=0).fit_transform(TWO_X)
    other = kernel_approximation.Nystroem(gamma=0.1, n_components=rank, random_state=0).fit_transform(TWO_X)
    errors = [np.abs(phi @ phi.T - kernel(TWO_X)).max() for phi in (ours, other)]
    assert errors[0] < max(1.5 * errors[1], 1e-6)


@behaviour([500, 5000])
def random_features_approach_the_kernel(rank):
    """Products of random Fourier features approach the Gaussian kernel as 1 / sqrt(rank)."""
    phi = er.maps.RandomFourier(er.kernels.Gaussian.from_gamma(0.1), rank=rank, random_state=0).fit_transform(TWO_X)
    assert np.abs(phi @ phi.T - rbf_kernel(TWO_X, gamma=0.1)).max() < 6 / np.sqrt(rank)


@behaviour([(2, False), (3, False), (2, True)])
def polynomial_features(given):
    """Polynomial features are scikit-learn's without the column of ones, with the same names."""
    degree, only = given
    ours = er.maps.Polynomial(degree, interaction_only=only).fit(TWO_X)
    other = PolynomialFeatures(degree, interaction_only=only, include_bias=False).fit(TWO_X)
    near(np.sort(ours.transform(TWO_X), axis=1), np.sort(other.transform(TWO_X), axis=1))
    assert len(ours.get_feature_names_out()) == len(other.get_feature_names_out())


@behaviour([er.SVR(features=SCALE), er.SVR(epsilon=1.0)])
def svr_fits_diabetes(machine):
    """Support vector regression explains more than the mean; a wide tube has fewer support vectors."""
    found = clone(machine).set_params(C=50.0).fit(DIABETES_X, DIABETES_Y)
    assert found.score(DIABETES_X, DIABETES_Y) > 0.1
    wide = clone(machine).set_params(C=50.0, epsilon=60.0).fit(DIABETES_X, DIABETES_Y)
    assert len(wide.support_) < len(found.support_)
