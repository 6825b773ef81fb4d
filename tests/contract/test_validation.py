"""Each row of the data is looked at once, whatever stands in the slot ``features``."""

import numpy as np
import pytest
import sklearn.utils.validation
from scipy import sparse

import empirisk as er
from empirisk.contract import inputs
from empirisk.kernels import items

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(61, 3))
NEW = RANDOM.normal(size=(23, 3))
TWO, NUMBERS = X[:, 0] > 0, X[:, 0] - X[:, 1]
GAUSSIAN = er.kernels.Gaussian("median")

DIRECT = [
    (er.SVM(), TWO),
    (er.LogisticRegression(), TWO),
    (er.Ridge(C="loo"), NUMBERS),
    (er.Lasso(C="cv", Cs=3), NUMBERS),
    (er.Perceptron(), TWO),
    (er.OneClassSVM(), None),
    (er.NearestCentroid(), TWO),
    (er.KNNClassifier("loo"), TWO),
    (er.SVM(features=GAUSSIAN), TWO),
    (er.Ridge(features=GAUSSIAN + 0.5 * er.kernels.Linear() ** 2), NUMBERS),
    (er.LogisticRegression(features=er.kernels.Gaussian().on([0, 1]) * er.kernels.Linear()), TWO),
    (er.SVR(features=er.maps.SeveralKernels([er.kernels.Gaussian(w) for w in (0.5, 2.0)])), NUMBERS),
    (er.OneClassSVM(features=GAUSSIAN), None),
    (er.NearestCentroid(features=GAUSSIAN), TWO),
    (er.KNNRegressor(features=GAUSSIAN), NUMBERS),
]
#: A map is an estimator of its own: `fit` and `transform` look at the rows, and the machine at what comes out.
MAPPED = [
    (er.SVM(features=er.maps.Polynomial(2)), TWO),
    (er.Ridge(features=er.maps.Nystrom(GAUSSIAN, 10, random_state=0)), NUMBERS),
    (er.Ridge(features=er.maps.RandomFourier(GAUSSIAN, 10, random_state=0)), NUMBERS),
]


@pytest.fixture
def looks(monkeypatch):
    """The shapes of the tables that were searched for NaN and infinity."""
    seen = []

    def watched(search):
        def counted(values, *arguments, **options):
            if np.ndim(values) == 2 and not sklearn.get_config()["assume_finite"]:
                seen.append(np.shape(values))
            return search(values, *arguments, **options)

        return counted

    for module, name in (
        (sklearn.utils.validation, "_assert_all_finite"),
        (items, "require_finite"),
        (inputs, "_sum_of_squares"),
    ):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return seen


@pytest.mark.parametrize(("machine", "y"), DIRECT, ids=[repr(machine) for machine, _ in DIRECT])
def test_rows_are_validated_once(machine, y, looks):
    machine.fit(X, y)
    assert looks == [X.shape]
    looks.clear()
    machine.predict(NEW)
    assert looks == [NEW.shape]


@pytest.mark.parametrize(("machine", "y"), MAPPED, ids=[repr(machine) for machine, _ in MAPPED])
def test_maps_validate_what_they_are_given_once_in_each_method(machine, y, looks):
    machine.fit(X, y)
    assert looks.count(X.shape) == 2
    assert [shape for shape in looks if len(X) in shape].count((len(X), machine.coef_.size)) == 1
    looks.clear()
    machine.predict(NEW)
    assert looks.count(NEW.shape) == 1


@pytest.mark.parametrize("features", [None, GAUSSIAN, er.maps.Nystrom(GAUSSIAN, 5), "precomputed"], ids=repr)
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_and_not_less_than_once(features, wrap):
    if features == "precomputed" and wrap is not np.asarray:
        return
    table = X @ X.T if features == "precomputed" else X
    machine = er.SVM(features=features).fit(wrap(table), TWO)
    wrong = table.copy()
    wrong[7, 2] = np.nan
    for call in (lambda: er.SVM(features=features).fit(wrap(wrong), TWO), lambda: machine.predict(wrap(wrong))):
        with pytest.raises(ValueError, match="NaN"):
            call()


def test_many_classes_of_many_rows_are_no_cause_for_doubt():
    """Warnings are errors here: scikit-learn's is for classes that mostly have one row."""
    y = np.repeat([f"class {k}" for k in range(60)], 3)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    assert len(er.NearestCentroid().fit(X, y).classes_) == 60
    with pytest.warns(UserWarning, match="unique classes is greater than 50%"):
        er.NearestCentroid().fit(X[:60], y[::3])
