"""Several quantiles: in order, right, and the same machines as one by one."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.losses import Quantile
from tests.estimator_checks import check_contract

pytestmark = pytest.mark.row("E11")
LEVELS = [0.05, 0.2, 0.5, 0.8, 0.95]
MACHINES = [
    er.Regressor(penalty="none"),
    er.Regressor(features=er.kernels.Gaussian(1.0), C=10.0),
    er.Regressor(features=er.Network([8], n_init=1, random_state=0), C=10.0),
    er.BoostingRegressor(n_estimators=30),
    make_pipeline(StandardScaler(), er.Regressor()),
]


def fan(count=300, seed=0):
    """Rows whose noise grows with x: all quantiles are straight lines."""
    random = np.random.default_rng(seed)
    X = random.uniform(0.0, 4.0, size=(count, 1))
    return X, 1 + X[:, 0] * random.uniform(0.0, 1.0, size=count)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_quantiles_do_not_cross_and_hold_their_share(machine):
    X, y = fan()
    several = er.QuantileRegressor(machine, levels=LEVELS).fit(X, y)
    found = several.predict_quantiles(np.linspace(-8.0, 12.0, 201)[:, None])  # far outside lines would cross
    assert found.shape == (201, len(LEVELS))
    assert np.all(np.diff(found, axis=1) >= 0)
    below = (y[:, None] <= several.predict_quantiles(X) + 1e-9).mean(axis=0)
    np.testing.assert_allclose(below, LEVELS, atol=0.08)


def test_each_level_is_the_machine_of_its_loss():
    X, y = fan()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    several = er.QuantileRegressor(er.Regressor(C=5.0), levels=LEVELS).fit(X, y, weights)
    alone = [er.Regressor(Quantile(level), C=5.0).fit(X, y, weights).predict(X) for level in LEVELS]
    np.testing.assert_array_equal(several.predict_quantiles(X), np.sort(np.column_stack(alone), axis=1))
    np.testing.assert_array_equal(several.predict(X), several.predict_quantiles(X)[:, 2])
    assert several.certificate_.converged
    assert several.certificate_.primal == pytest.approx(sum(one.certificate_.primal for one in several.estimators_))
    assert not hasattr(er.QuantileRegressor(er.BoostingRegressor(n_estimators=2)).fit(X, y), "certificate_")


def test_order_takes_nothing_from_the_loss():
    """The total pinball loss of sorted answers is no larger, whatever the targets."""
    random = np.random.default_rng(0)
    answers, y = random.normal(size=(1000, len(LEVELS))), random.normal(size=1000)

    def total(columns):
        return sum(Quantile(level).value(y, column) for level, column in zip(LEVELS, columns.T, strict=True))

    assert np.all(total(np.sort(answers, axis=1)) <= total(answers) + 1e-12)


def test_the_score_is_the_mean_share_of_the_pinball_loss():
    X, y = fan()
    several = er.QuantileRegressor(levels=LEVELS).fit(X, y)
    columns = zip(LEVELS, several.predict_quantiles(X).T, strict=True)
    expected = np.mean([d2_pinball_score(y, column, alpha=level) for level, column in columns])
    assert several.score(X, y) == pytest.approx(expected, abs=1e-3)


def test_check_estimator_passes_with_nothing_skipped():
    check_contract(er.QuantileRegressor())


@pytest.mark.parametrize("levels", [[], [0.5, 0.2], [0.0, 0.5], [0.5, 1.0], [0.5, 0.5], "half", None, 0.5, [[0.1]]])
def test_wrong_levels_are_refused_and_leave_the_machine_as_it_was(levels):
    X, y = fan(50)
    machine = er.QuantileRegressor(levels=[0.5]).fit(X, y)
    before = machine.predict(X)
    with pytest.raises(EmpiriskError, match=r"^levels=.* must be increasing numbers between 0 and 1"):
        machine.set_params(levels=levels).fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), before)


def test_a_machine_without_a_loss_is_refused():
    X, y = fan(50)
    with pytest.raises(EmpiriskError, match="has no parameter loss"):
        er.QuantileRegressor(er.KNNRegressor()).fit(X, y)


def test_copies_and_files_answer_alike(tmp_path):
    X, y = fan(80)
    machine = clone(er.QuantileRegressor(er.BoostingRegressor(n_estimators=5), levels=[0.1, 0.9])).fit(X, y)
    er.save(machine, tmp_path / "quantiles.model")
    loaded = er.load(tmp_path / "quantiles.model")
    np.testing.assert_array_equal(loaded.predict_quantiles(X), machine.predict_quantiles(X))
