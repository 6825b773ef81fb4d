"""Bad input gets one sentence that names the argument and the remedy, and damages nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import empirisk as er
from empirisk.errors import EmpiriskError

random = np.random.default_rng(0)
X, Y = random.normal(size=(20, 3)), random.normal(size=20)
LABELS = (Y > 0).astype(int)
NAN = np.where(np.arange(60).reshape(20, 3) == 7, np.nan, X)
INF = np.where(np.arange(60).reshape(20, 3) == 7, np.inf, X)


@pytest.mark.parametrize(
    ("machine", "arguments", "message"),
    [
        (er.SVM(), (NAN, LABELS), "NaN"),
        (er.SVM(), (INF, LABELS), "infinity"),
        (er.SVM(), (X.astype(complex), LABELS), "[Cc]omplex"),
        (er.SVM(), ([["a", "b"]] * 20, LABELS), "could not convert|dtype|numeric"),
        (er.SVM(), ([[1.0, 2.0], [1.0]], [0, 1]), "inhomogeneous|sequence"),
        (er.SVM(), (X, np.zeros(20)), "two classes in y.*check the target"),
        (er.SVM(), (X, LABELS[:5]), "inconsistent numbers of samples"),
        (er.SVM(), (np.empty((0, 3)), []), "0 sample"),
        (er.SVM(), (X[:, :0], LABELS), "0 feature"),
        (er.SVM(), (X[0], LABELS), "Expected 2D array"),
        (er.SVM(), (X, Y), "Unknown label type|continuous"),
        (er.SVM(C=-1.0), (X, LABELS), "C=-1.0 must be positive"),
        (er.SVM(C=0), (X, LABELS), "C=0 must be positive"),
        (er.SVM(C=np.nan), (X, LABELS), "C=nan must be positive"),
        (er.SVM(C="best"), (X, LABELS), "C='best'.*'loo' or 'cv'"),
        (er.SVM(C=[1.0]), (X, LABELS), "C=.*positive number"),
        (er.Classifier(loss="hing"), (X, LABELS), "did you mean 'hinge'"),
        (er.Classifier(loss="absolute"), (X, LABELS), "not a classification loss"),
        (er.Classifier(loss="zero_one"), (X, LABELS), "cannot be minimised"),
        (er.Classifier(loss=3), (X, LABELS), "loss=3 is neither a name"),
        (er.Regressor(loss="hinge"), (X, Y), "not a regression loss"),
        (er.SVM(penalty="l3"), (X, LABELS), "penalty='l3' is not known"),
        (er.SVM(solver="magic"), (X, LABELS), "solver='magic' is not known"),
        (er.SVM(solver="newton"), (X, LABELS), "it needs .*solver='auto'"),
        (er.Lasso(solver="closed_form"), (X, Y), "it needs a penalty l2/2"),
        (er.SVM(multiclass="all"), (X, LABELS), "multiclass='all' is not known"),
        (er.Classifier(loss="exponential", multiclass="joint"), (X, LABELS), "no meaning for Exponential"),
        (er.Classifier(loss="softmax", multiclass="one_vs_rest"), (X, LABELS), "joint loss"),
        (er.SVM(class_weight="even"), (X, LABELS), "class_weight='even'"),
        (er.SVM(class_weight={7: 1.0}), (X, LABELS), "not in y: \\[7\\]"),
        (er.SVM(class_weight={0: -1.0}), (X, LABELS), "zero or positive"),
        (er.SVM(fit_intercept="yes"), (X, LABELS), "fit_intercept='yes'"),
        (er.SVM(tol=-1), (X, LABELS), "tol=-1"),
        (er.SVM(max_iter=0), (X, LABELS), "max_iter=0"),
        (er.SVM(max_time=0), (X, LABELS), "max_time=0"),
        (er.SVR(epsilon=-1), (X, Y), "epsilon=-1"),
        (er.ElasticNet(l1_ratio=2), (X, Y), "l1_ratio=2"),
        (er.Ridge(C="cv", rule="median"), (X, Y), "rule='median'"),
        (er.Ridge(C="loo", Cs=1), (X, Y), "Cs=1"),
        (er.Ridge(C="loo", Cs=[-1.0, 1.0]), (X, Y), "Cs must hold positive"),
        (er.SVM(C="loo"), (X, LABELS), "squared loss with the l2 penalty only.*C='cv'"),
        (er.SVM(), (X, LABELS, -np.ones(20)), "sample_weight contains negative"),
        (er.SVM(), (X, LABELS, np.zeros(20)), "sample_weight is zero for every row"),
        (er.SVM(), (X, LABELS, np.ones(7)), "sample_weight"),
        (er.SVM(), (X, LABELS, np.full(20, np.nan)), "sample_weight contains NaN"),
        (er.SVM(), (X, LABELS, np.ones(20) * 1j), "sample_weight is no array of numbers.*complex"),
        (er.SVM(), (X, LABELS, ["much"] * 20), "sample_weight is no array of numbers.*'much'"),
        (er.SVM(), (X, [[0], [0, 1]] * 10), "y holds lists of different lengths"),
        (er.Ridge(), (X, ["yes", "no"] * 10), "y holds what is no number .*take a classifier"),
        (er.KNNRegressor(), (X, ["yes", "no"] * 10), "y holds what is no number"),
        (er.ForestRegressor(), (X, ["yes", "no"] * 10), "y holds what is no number"),
        (er.TreeRegressor(), (X, np.array([None, 1.0] * 10)), "y contains NaN"),
        (er.BoostingRegressor(), (X, np.array([None, 1.0] * 10)), "y contains NaN"),
        (er.Ridge(), (X, np.where(np.arange(20) == 3, np.nan, Y)), "NaN"),
        (
            er.Ridge(),
            (np.where(np.arange(60).reshape(20, 3) == 7, 1e200, X), Y),
            "X holds numbers as large as 1.0e.200",
        ),
        (er.Ridge(), (sparse.csr_matrix(1e60 * X), Y), "X holds numbers .*divide them by their size"),
        (er.Ridge(features=er.maps.Polynomial(3)), (1e30 * X, Y), r"features\(X\) holds numbers"),
        (er.Ridge(features=er.kernels.Polynomial(6)), (1e30 * X, Y), r"k\(x, x\) is as large"),
        (er.SVR(), (1e-160 * X, Y), "X holds no number larger than .*e-160"),
        (er.Lasso(), (X, 1e-99 * Y), "y holds no number larger than"),
        (er.NearestCentroid(), (1e160 * X, LABELS), "X holds numbers"),
        (er.OneClassSVM(), (1e160 * X,), "X holds numbers"),
        (er.SVR(), (X, 1e200 * Y), "y holds numbers as large as"),
        (er.KNNRegressor(), (X, 1e200 * Y), "y holds numbers as large as"),
        (er.SVM(C=1e60), (X, LABELS), "C=1e.60 must lie between 1e-50 and 1e.50"),
        (er.SVM(), (X, LABELS, np.full(20, 1e-200)), "1.0e-200 as its largest value.*multiply all weights"),
        (er.SVM(), (X, np.array(["a", 1] * 10, dtype=object)), "labels of the types int, str, which have no order"),
        (er.NearestCentroid(), (X, np.array(["a", None] * 10, dtype=object)), "types NoneType, str.*without a label"),
        (er.Ridge(C="cv"), (X[:2], Y[:2]), "C='cv' with cv=5 cannot split 2 rows: .*fewer folds"),
        (er.SVM(C="cv"), (X, np.arange(20) == 3), "C='cv': y holds one row of the class .*True"),
        (er.maps.Periodic(harmonics=0), (X, Y), "harmonics=0"),
        (er.maps.Periodic(period=-1.0), (X, Y), "period=-1.0"),
    ],
)
def test_one_sentence(machine, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        machine.fit(*arguments)
    assert "\n\n" not in str(caught.value).strip()


NO_LABEL = {
    "pandas.NA": pd.Series(["a", "b", pd.NA, "a"] * 5, dtype="string"),
    "NaT": np.array(["2020-01-01", "2020-01-02", "NaT", "2020-01-01"] * 5, dtype="M8[D]"),
    "NaN": np.array(["a", "b", np.nan, "a"] * 5, dtype=object),
    "None": np.array(["a", "b", None, "a"] * 5, dtype=object),
}
LEARNERS = (
    er.SVM(),
    er.SVM(features="gaussian"),
    er.LogisticRegression(features=er.maps.Polynomial(2)),
    er.Perceptron(),
    er.NearestCentroid(),
    er.KNNClassifier(),
    er.TreeClassifier(),
    er.ForestClassifier(),
    er.BaggingClassifier(),
    er.BoostingClassifier(),
    er.AdaBoostClassifier(),
    er.VoteClassifier(),
    er.ContrastiveMetric(),
    er.LargeMarginMetric(),
)


@pytest.mark.parametrize("kind", NO_LABEL)
@pytest.mark.parametrize("machine", LEARNERS, ids=repr)
def test_a_label_that_is_missing_is_no_class(machine, kind):
    with pytest.raises(EmpiriskError, match=r"y (holds|mixes).*drop"):
        machine.fit(X, NO_LABEL[kind])


@pytest.mark.parametrize(
    "machine",
    [
        er.Ridge(),
        er.SVR(features="gaussian"),
        er.KNNRegressor(),
        er.TreeRegressor(),
        er.ForestRegressor(),
        er.BaggingRegressor(),
        er.BoostingRegressor(),
        er.VoteRegressor(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [object, "U4"])
def test_words_among_the_numbers_of_a_target(machine, kind):
    with pytest.raises(EmpiriskError, match=r"y holds what is no number .*'much'.*take a classifier"):
        machine.fit(X, np.array([1.0, "much", 2.0, 3.0] * 5, dtype=kind))


@pytest.mark.parametrize(
    "machine",
    [
        er.BaggingClassifier("tree"),
        er.BaggingRegressor(3),
        er.AdaBoostClassifier("tree"),
        er.VoteClassifier([("tree", "oak")], voting="soft"),
        er.VoteRegressor([3]),
    ],
    ids=repr,
)
def test_members_that_are_no_machines(machine):
    with pytest.raises(EmpiriskError, match=r"estimators? holds .*, which is no machine; give one"):
        machine.fit(X, LABELS)


def test_a_failed_fit_leaves_the_fitted_model_as_it_was():
    machine = er.SVM().fit(X, LABELS)
    before = machine.predict(X)
    for bad in ((NAN, LABELS), (X, np.zeros(20)), (X, LABELS[:4]), (X[:, :2], np.zeros(20))):
        with pytest.raises(ValueError, match=r"\w"):
            machine.fit(*bad)
        np.testing.assert_array_equal(machine.predict(X), before)
    machine.set_params(C=-1)
    with pytest.raises(ValueError, match="C=-1"):
        machine.fit(X, LABELS)
    np.testing.assert_array_equal(machine.predict(X), before)


def test_unfitted_machines_say_so():
    from sklearn.exceptions import NotFittedError

    for machine in (er.SVM(), er.Ridge(), er.NearestCentroid(), er.maps.Periodic()):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(machine, "predict" if hasattr(machine, "predict") else "transform")(X)
    with pytest.raises(TypeError, match=r"SVM has no parameter 'kernel'"):
        er.SVM(kernel="rbf")


def test_memory_budget_is_kept():
    with er.config(memory="1KB"), pytest.raises(er.errors.TooLarge, match=r"MB, more than the 0\.001 MB allowed"):
        er.Ridge().fit(random.normal(size=(100, 50)), random.normal(size=100))


@pytest.mark.parametrize(
    "machine",
    [er.TreeClassifier(), er.BaggingClassifier(), er.AdaBoostClassifier(), er.VoteClassifier(), er.ForestClassifier()],
    ids=lambda machine: type(machine).__name__,
)
def test_labels_without_an_order_are_refused_in_a_sentence(machine):
    y = np.array(["a", 1, "a", 1], dtype=object)
    with pytest.raises(EmpiriskError, match="y mixes labels of the types int, str"):
        machine.fit(np.arange(8.0).reshape(4, 2), y)


def test_a_kernel_that_overflows_in_the_precision_of_the_rows_is_refused():
    X = np.array([[1e7], [2e7], [-1e7], [3.0]], dtype=np.float32)
    machine = er.SVM(features=er.kernels.Polynomial(3))
    with pytest.raises(EmpiriskError, match="or give X in float64"):
        machine.fit(X, [0, 1, 0, 1])
    X = X.astype(float)
    assert np.all(np.isfinite(machine.set_params(C=1e-45).fit(X, [0, 1, 0, 1]).decision_function(X)))


def test_a_choice_of_C_without_a_penalty_is_refused():
    with pytest.raises(EmpiriskError, match="every C gives the same fit"):
        er.LogisticRegression(penalty="none", C="cv").fit(np.arange(12.0).reshape(12, 1), [0, 1] * 6)


def test_losses_of_code_words_that_overflow_are_large_numbers():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 2)), np.arange(12) % 3
    machine = er.Classifier("exponential", multiclass="error_correcting").fit(X, y)
    assert np.all(np.isfinite(machine.decision_function(1e5 * X)))


def test_rows_whose_squares_leave_single_precision_are_refused_behind_a_kernel():
    X = np.array([[1e30], [2e30], [-1e30], [3e29]], dtype=np.float32)
    machine = er.SVM(features=er.kernels.Linear().normalised())
    with pytest.raises(EmpiriskError, match=r"X in float32 holds numbers as large as 2\.0e\+30"):
        machine.fit(X, [0, 1, 0, 1])
    machine.fit(X.astype(float), [0, 1, 0, 1])
    assert np.isfinite(machine.decision_function(X.astype(float))).all()
