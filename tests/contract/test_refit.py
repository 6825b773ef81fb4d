"""A machine that is fitted again is as one that is fitted for the first time, whatever was in its slot before."""

import copy
import itertools
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.maps.recipes import BoxCox, Logarithm
from tests.public import EXPORTS

#: Some machines are stopped after a few rounds.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.random.default_rng(0).normal(size=(20, 3))
Y = (X[:, 0] > 0).astype(int)
SLOTS = {
    "nothing": None,
    "kernel": er.kernels.Gaussian(2.0),
    "map": er.maps.Polynomial(2),
    "streamed map": er.maps.Nystrom("gaussian", 4, random_state=0),
}
MACHINES = (
    er.SVM(),
    er.Ridge(),
    er.PCA(2),
    er.KMeans(2, random_state=0),
    er.KNNClassifier(),
    er.NearestCentroid(),
    er.Perceptron(random_state=0),
    er.OneClassSVM(),
)


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(SLOTS, 2)))
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_another_slot_leaves_nothing_of_the_last_one(machine, before, after, tmp_path):
    first = type(machine)(**machine.get_params() | {"features": SLOTS[after]}).fit(X, Y)
    again = type(machine)(**machine.get_params() | {"features": SLOTS[before]}).fit(X, Y)
    again.set_params(features=SLOTS[after]).fit(X, Y)
    assert vars(again).keys() == vars(first).keys()
    answer = "predict" if hasattr(machine, "predict") else "transform"
    np.testing.assert_array_equal(getattr(again, answer)(X), getattr(first, answer)(X))
    er.save(again, tmp_path / "a.model")
    np.testing.assert_array_equal(getattr(er.load(tmp_path / "a.model"), answer)(X), getattr(first, answer)(X))


# --- the whole registry -----------------------------------------------------------------------------------------------

GAUSSIAN, KERNEL = er.kernels.Gaussian("median"), er.kernels.Centred(er.kernels.Linear())
FEATURES = ({"features": None}, {"features": GAUSSIAN}, {"features": KERNEL}, {"features": er.maps.Polynomial(2)})
WIDE = np.random.default_rng(1).normal(size=(23, 5))


def cut(X):
    """Three classes, as numbers."""
    return np.digitize(X[:, 0], [-0.5, 0.5])


def framed(X):
    """The table with names of columns."""
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


#: What a machine is fitted on, one after the other: other widths, types, formats, classes, with names and without.
CLASSES = (
    (framed(X), Y),
    (WIDE, np.array(["a", "b", "c"])[cut(WIDE)]),
    (X.astype(np.float32), Y.astype(bool)),
    (sparse.csr_array(X), cut(X)),
    (np.asfortranarray(X), Y),
)
NUMBERS = tuple((table, np.asarray(table.todense() if sparse.issparse(table) else table)[:, 1]) for table, _ in CLASSES)
PLAIN: tuple[dict, ...] = ({},)
EQUATION = (*FEATURES, {"solver": "sgd", "max_iter": 3}, {"C": "cv", "cv": 2}, {"fit_intercept": False})
CLASSIFIER = (*EQUATION, {"penalty": "l1"}, {"multiclass": "one_vs_one"}, {"class_weight": "balanced"})
TREE = (*PLAIN, {"max_depth": 1}, {"categorical_features": [0]})
ENSEMBLE = (*TREE, {"n_estimators": 2}, {"max_features": 2})


def sloped(X, theta):
    """A function of a user that takes rows of any width."""
    return theta[0] + theta[1] * np.asarray(X)[:, 0]


def drawn(columns, random):
    return random.normal(size=2)


LINEAR, CURVED = er.LogisticRegression(), er.LogisticRegression(features=GAUSSIAN)
#: Every public estimator, with forms of its parameters: what one form learns another may not.
FORMS = {
    er.SVM(): (*CLASSIFIER, {"C": np.inf}),
    er.LogisticRegression(): CLASSIFIER,
    er.LeastSquaresClassifier(): (*CLASSIFIER, {"C": "loo"}),
    er.Classifier(): (*CLASSIFIER, {"loss": "softmax"}, {"loss": er.losses.SquaredHinge()}),
    er.Perceptron(random_state=0): (*FEATURES, {"average": True}),
    er.NearestCentroid(): (*FEATURES, {"class_weight": "balanced"}),
    er.KNNClassifier(): (*FEATURES, {"n_neighbors": "loo"}, {"weights": "distance"}),
    er.KNNRegressor(): (*FEATURES, {"n_neighbors": "loo"}, {"weights": "distance"}),
    er.Ridge(): (*EQUATION, {"C": "loo"}),
    er.Lasso(): (*EQUATION[3:], *PLAIN),
    er.ElasticNet(): (*EQUATION[3:], {"l1_ratio": 0.1}),
    er.LeastSquares(): (*FEATURES, {"fit_intercept": False}),
    er.LeastAbsolute(): EQUATION,
    er.SVR(): (*EQUATION, {"epsilon": 0.5}),
    er.Regressor(): (*EQUATION, {"loss": "power"}, {"penalty": er.penalties.L1()}),
    er.OneClassSVM(): (*FEATURES, {"nu": 0.2}),
    er.TreeClassifier(random_state=0): (*TREE, {"ccp_alpha": "cv"}),
    er.TreeRegressor(random_state=0): (*TREE, {"criterion": "absolute"}),
    er.ForestClassifier(3, random_state=0): (*ENSEMBLE, {"bootstrap": False}),
    er.ForestRegressor(3, random_state=0): (*ENSEMBLE, {"bootstrap": False}),
    er.AdditiveClassifier(n_bags=2, max_iter=3, random_state=0): (*PLAIN, {"interactions": 0}),
    er.AdditiveRegressor(n_bags=2, max_iter=3, random_state=0): (*PLAIN, {"loss": "huber"}),
    er.BoostingClassifier(n_estimators=3, random_state=0): (*ENSEMBLE, {"early_stopping": True}),
    er.BoostingRegressor(n_estimators=3, random_state=0): (*ENSEMBLE, {"early_stopping": True}),
    er.AdaBoostClassifier(n_estimators=3, random_state=0): (*PLAIN, {"estimator": LINEAR}, {"n_estimators": 2}),
    er.BaggingClassifier(n_estimators=3, random_state=0): (
        {"bootstrap": False},
        {"oob_importances": True},
        {"estimator": CURVED},
    ),
    er.BaggingRegressor(n_estimators=3, random_state=0): ({"bootstrap": False}, {"oob_importances": True}),
    er.VoteClassifier([LINEAR, er.KNNClassifier()]): (*PLAIN, {"voting": "soft"}, {"estimators": [CURVED, LINEAR]}),
    er.VoteRegressor([er.Ridge(), er.TreeRegressor()]): (*PLAIN, {"weights": [1, 2]}),
    er.QuantileRegressor(): (*PLAIN, {"levels": [0.3, 0.6]}, {"estimator": er.BoostingRegressor(n_estimators=2)}),
    er.KMeans(2, random_state=0): (*FEATURES, {"batch_size": 5}, {"n_clusters": 3}),
    er.Hierarchical("average"): (*FEATURES, {"n_clusters": 3}, {"distance_threshold": 1.0}),
    er.GaussianMixture(2, random_state=0): (*PLAIN, {"covariance_type": "diagonal"}, {"n_components": 1}),
    er.GaussianDensity(): (*PLAIN, {"covariance_type": "spherical"}),
    er.PCA(2): (*FEATURES, {"whiten": True}, {"center": False}),
    er.Dictionary(3, random_state=0, max_iter=2): (*PLAIN, {"coding": "omp"}, {"n_atoms": 2}),
    er.ContrastiveMetric(max_iter=2): (*PLAIN, {"n_components": 2}),
    er.LargeMarginMetric(max_iter=2): (*PLAIN, {"form": "pairs"}),
    er.selection.Balanced(LINEAR, random_state=0): (*PLAIN, {"correct": False}, {"estimator": CURVED}),
    er.selection.Threshold(LINEAR, random_state=0, cv=2): (*PLAIN, {"by": "f1"}, {"threshold": 0.3}),
    er.selection.GreedySelection(er.NearestCentroid(), cv=2): (*PLAIN, {"direction": "backward"}, {"most": 1}),
    er.selection.L1Selection(er.Lasso(), n_samples=2, random_state=0): (*PLAIN, {"threshold": 0.3}),
    er.selection.InformationSelection(random_state=0): (*PLAIN, {"n_features_to_select": 1}),
    er.selection.CombinedColumns(2, random_state=0): (*PLAIN, {"n_combinations": 1}, {"n_columns": 2}),
    er.selection.BestSubset(): (*PLAIN, {"n_features_to_select": 1}, {"fit_intercept": False}),
    er.selection.Search(er.SVM(), {"C": [0.1, 1.0]}, cv=2): (*PLAIN, {"space": {"features": [None, GAUSSIAN]}}),
    er.Network([2], random_state=0): (*PLAIN, {"layers": [3, 2]}, {"batch_norm": True}),
    er.maps.Nystrom(rank=4, random_state=0): (
        *PLAIN,
        {"landmarks": "kmeans"},
        {"landmarks": X[:2]},
        {"kernel": KERNEL},
    ),
    er.maps.RandomFourier(rank=4, random_state=0): (*PLAIN, {"kernel": GAUSSIAN}),
    er.maps.Polynomial(): (*PLAIN, {"degree": 1}),
    er.maps.PolynomialKernel(): (*PLAIN, {"degree": 1}),
    er.Parametric(sloped, [0.0, 0.0]): (*PLAIN, {"loss": "absolute"}, {"start": [1.0, 1.0]}),
    er.selection.HypothesisSearch(er.Parametric(sloped, drawn), n_draws=5, random_state=0): (*PLAIN, {"n_draws": 3}),
    er.maps.Periodic(): (*PLAIN, {"harmonics": 1}),
}
#: Tables have a schema, which says what their columns are; networks and sums of kernels are kernels or maps in a slot.
ELSEWHERE = ("tables.TableEncoder",)
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
#: What tells of time; it is another one every time.
CLOCKS = ("history_", "seconds", "cv_results_")


def essence(value):
    """All that a value holds, to the bit, but for the time that things took."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if sparse.issparse(value):
        return value.format, essence(value.toarray())
    if isinstance(value, pd.DataFrame):
        return list(value), essence(value.to_numpy())
    if isinstance(value, dict):
        return {str(key): essence(inner) for key, inner in value.items() if key not in CLOCKS}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [essence(inner) for inner in value]
    return (type(value).__name__, essence(vars(value))) if hasattr(value, "__dict__") else repr(value)


def answers(machine, X):
    """What a machine says of rows."""
    return {name: essence(getattr(machine, name)(X)) for name in ANSWERS if hasattr(machine, name)}


def fits(machine, data):
    """Whether a machine takes the data; it says why not, and is as it was."""
    before = essence(vars(machine))
    try:
        machine.fit(*data)
    except (ValueError, TypeError):
        assert essence(vars(machine)) == before
        return False
    return True


def data_of(machine):
    """A chain of tables and targets for a machine."""
    return CLASSES if is_classifier(machine) or "Metric" in type(machine).__name__ else NUMBERS


def spoiled(values):
    """Overwrite what was handed over."""
    where = values.data if sparse.issparse(values) else values
    where[:] = 7.0 if isinstance(values, pd.DataFrame) or where.dtype.kind == "f" else where[0]


def test_the_forms_are_those_of_every_public_estimator():
    named = {type(machine) for machine in FORMS}
    for name in EXPORTS:
        value = reduce(getattr, name.split("."), er)
        if isinstance(value, type) and hasattr(value, "fit") and not issubclass(value, er.kernels.Kernel):
            assert value in named or name in ELSEWHERE, name


@pytest.mark.parametrize("machine", FORMS, ids=lambda machine: type(machine).__name__)
def test_a_machine_of_many_fits_is_one_of_its_last(machine):
    again, taken = clone(machine), 0
    chain = zip(itertools.cycle(data_of(machine)), FORMS[machine] * 2)
    for (table, y), form in itertools.islice(chain, len(FORMS[machine]) * 2):
        parameters = machine.get_params(deep=False) | form
        again.set_params(**parameters)
        first = clone(machine).set_params(**parameters)
        given = essence(parameters), essence((np.asarray(y), table))
        if fits(first, (table, y)) and fits(again, (table, y)):
            taken += 1
            assert essence(vars(again)) == essence(vars(first))
            assert answers(again, table) == answers(first, table)
        assert (essence(parameters), essence((np.asarray(y), table))) == given
    assert taken > 1


@pytest.mark.parametrize("machine", FORMS, ids=lambda machine: type(machine).__name__)
def test_nothing_that_was_handed_over_is_kept(machine):
    for form in FORMS[machine]:
        for number, (table, y) in enumerate(data_of(machine)[::4]):
            handed = copy.deepcopy((table, np.asarray(y), form))
            fitted = clone(machine).set_params(**handed[2])
            if not fits(fitted, handed[:2]):
                continue
            before = answers(fitted, table)
            copied = copy.deepcopy(fitted)
            for value in (*handed[:2], *(value for value in handed[2].values() if isinstance(value, np.ndarray))):
                spoiled(value)
            assert answers(fitted, table) == before, (form, number)
            for value in vars(fitted).values():
                if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.flags.writeable:
                    value[...] = 0.0
            assert answers(copied, table) == before, (form, number)


def test_a_fit_that_fails_leaves_every_estimator_as_it_was():
    bad = np.where(np.arange(5) == 2, np.nan, WIDE)
    for machine in (*FORMS, BoxCox(), Logarithm()):
        table, y = data_of(machine)[0]
        fits(clone(machine).fit(abs(table), y), (bad[: len(y)], y))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_items_without_columns_leave_no_number_of_columns(machine):
    words = ["ab", "abc", "bca", "cab", "aab"] * 4
    again = clone(machine).fit(framed(X), Y).set_params(features=er.kernels.Spectrum(2)).fit(words, Y)
    first = clone(machine).set_params(features=er.kernels.Spectrum(2)).fit(words, Y)
    assert essence(vars(again)) == essence(vars(first))


def test_a_kernel_fitted_again_forgets_what_it_learned():
    width = er.kernels.Gaussian(1.0)
    bags = [X[:4], X[4:9]]
    kernel = er.kernels.MeanEmbedding(width).fit(bags)
    width.set_params(width=3.0)
    np.testing.assert_array_equal(kernel.fit(bags)(bags), er.kernels.MeanEmbedding(width).fit(bags)(bags))
    several = er.Ridge(features=er.maps.SeveralKernels([GAUSSIAN, er.kernels.Linear()])).fit(X, X[:, 1]).features_
    assert essence(vars(several.fit(X))) == essence(vars(clone(several).fit(X)))


def test_a_network_fitted_again_has_no_decoder_of_other_codes():
    network = er.Network([], random_state=0).fit(X).learn_to_rebuild(1)
    assert essence(vars(network.fit(WIDE))) == essence(vars(clone(network).fit(WIDE)))


def test_a_network_that_could_not_learn_to_rebuild_may_try_again():
    network = er.Network([], random_state=0).fit(X)
    for wrong in ({"n_components": 0}, {"n_components": 1, "sample_weight": [1.0]}):
        with pytest.raises(ValueError, match=r"n_components|sample_weight"):
            network.learn_to_rebuild(**wrong)
    assert network.learn_to_rebuild(1).transform(X).shape == (20, 1)
    with pytest.raises(EmpiriskError, match="call fit"):
        network.learn_to_rebuild(1)
