"""Numbers that users give as arguments, beyond what a computer computes with."""

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.contract.arguments import check_number, count_features
from empirisk.errors import EmpiriskError
from empirisk.maps.recipes import BoxCox

BEYOND = 10**400  # a whole number in Python, but larger than all floats
X = np.random.default_rng(0).normal(size=(20, 3))
y = np.arange(20) % 2


def test_a_whole_number_beyond_all_floats_is_infinite_or_refused():
    assert check_number("it", BEYOND, 0) == np.inf
    for value, high in (BEYOND, 1.0), (-BEYOND, np.inf), (True, np.inf), ("1", np.inf), (np.nan, np.inf):
        with pytest.raises(EmpiriskError, match="must be a number at least 0"):
            check_number("it", value, 0, high)
    assert count_features(BEYOND, 30) == 30
    with pytest.raises(EmpiriskError, match="max_features"):
        count_features(-BEYOND, 30)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (er.SVM(), "C"),
        (er.SVM(), "tol"),
        (er.SVM(), "max_time"),
        (er.SVM(C="cv"), "Cs"),
        (er.SVM(features=er.kernels.Gaussian()), "features__width"),
        (er.SVM(features=er.kernels.Polynomial()), "features__degree"),
        (er.SVM(features=er.kernels.Polynomial()), "features__constant"),
        (er.SVM(features=2.0 * er.kernels.Linear()), "features__factor"),
        (er.SVM(features=er.maps.Nystrom(er.kernels.Gaussian())), "features__rank"),
        (BoxCox(), "power"),
        (er.Classifier(loss=er.losses.SoftHinge()), "loss__margin"),
        (er.TreeClassifier(), "max_depth"),
        (er.TreeClassifier(), "min_impurity_decrease"),
        (er.TreeClassifier(), "max_features"),
        (er.AdaBoostClassifier(), "learning_rate"),
        (er.PCA(), "max_time"),
    ],
)
def test_parameters_beyond_all_numbers_get_a_sentence_or_an_answer(machine, name, sign):
    machine = clone(machine).set_params(**{name: sign * BEYOND})
    said = ""
    try:
        machine.fit(np.abs(X), y)  # some take positive numbers alone
    except EmpiriskError as error:
        said = str(error)
    assert name.split("__")[-1] in said if said else machine.n_features_in_ == 3


def test_lists_mappings_and_data_beyond_all_numbers_get_a_sentence():
    with pytest.raises(EmpiriskError, match=r"^Cs is, or holds, a whole number that is too large"):
        er.SVM(C="cv", Cs=[1, BEYOND]).fit(X, y)
    with pytest.raises(EmpiriskError, match=r"^class_weight is, or holds"):
        er.SVM(class_weight={0: BEYOND}).fit(X, y)
    for arguments in ([[BEYOND, 1.0]] * 20, y, None), (X, y, [BEYOND] * 20):
        with pytest.raises(EmpiriskError, match=r"^an array of fit is, or holds"):
            er.Ridge().fit(*arguments)
