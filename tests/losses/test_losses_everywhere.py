"""Deviances, quantiles and the Huber loss in boosting, networks, scores, searches, plots and streams of rows."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import d2_pinball_score, mean_pinball_loss, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.trees import naive_boost

pytestmark = pytest.mark.row("E11")
LOSSES = [
    er.losses.Poisson(),
    er.losses.Gamma(),
    er.losses.Tweedie(1.4),
    er.losses.Quantile(0.7),
    er.losses.Huber(0.5),
]
every = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def waves(loss, count=400, level=0.0):
    """Rows whose mean is no linear function of them, and targets that suit the loss."""
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, size=(count, 2))
    mean = np.exp(level + np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2)
    if loss.name() == "poisson":
        return X, random.poisson(mean).astype(float)
    return X, random.gamma(4.0, mean / 4) * (random.random(count) < (0.8 if loss.name() == "tweedie" else 1.1))


# --- boosting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.positive], ids=repr)
def test_boosting_of_deviances_is_the_naive_loop(loss):
    """Trees grown on gradient and curvature, and leaves of best constants, downwards at most a Newton step."""
    X, y = waves(loss, 120)
    weights = np.random.default_rng(1).random(len(y)) + 0.5
    rate, leaves, l2 = 0.3, 5, 0.5
    f = np.full(len(y), loss.best_constant(y, weights))
    for _ in range(4):
        g, h = weights * loss.derivative(y, f), weights * loss.curvature(y, f)
        step = np.zeros(len(y))
        for rows in naive_boost.grow(X, g, h, leaves, l2):
            step[rows] = loss.best_shift(y[rows], f[rows], weights[rows])
        f += rate * step
    options = {
        "learning_rate": rate,
        "max_leaf_nodes": leaves,
        "l2_regularization": l2,
        "n_estimators": 4,
        "min_samples_leaf": 0,
    }
    machine = er.BoostingRegressor(loss, **options).fit(X, y, weights)
    np.testing.assert_allclose(machine.raw_predict(X), f, rtol=1e-9)
    np.testing.assert_allclose(machine.predict(X), loss.inverse_link(f), rtol=1e-9)
    np.testing.assert_array_equal(list(machine.staged_predict(X))[-1], machine.predict(X))
    assert machine.history_["loss"][-1] == pytest.approx(np.average(loss.value(y, f), weights=weights), rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "theirs"),
    [
        (er.losses.Poisson(), {"loss": "poisson"}),
        (er.losses.Gamma(), {"loss": "gamma"}),
        (er.losses.Quantile(0.7), {"loss": "quantile", "quantile": 0.7}),
    ],
    ids=repr,
)
def test_boosting_is_as_good_as_that_of_scikit_learn(loss, theirs):
    X, y = waves(loss, 2000)
    train, test = slice(0, 1000), slice(1000, None)
    ours = er.BoostingRegressor(loss, max_leaf_nodes=8).fit(X[train], y[train])
    rival = HistGradientBoostingRegressor(**theirs, max_leaf_nodes=8, early_stopping=False).fit(X[train], y[train])
    lost = loss.value(y[test], loss.forward_link(rival.predict(X[test]))).mean()
    assert loss.value(y[test], ours.raw_predict(X[test])).mean() <= 1.03 * lost


@every
def test_boosting_stops_early(loss):
    X, y = waves(loss)
    machine = er.BoostingRegressor(loss, n_estimators=300, early_stopping=True, random_state=0).fit(X, y)
    assert machine.stopped_ == "early_stopping"
    assert machine.n_estimators_ == np.argmin(machine.history_["validation_loss"]) + 1


def test_boosting_takes_no_step_into_the_void():
    """A leaf whose mean is a million times the mean of all rows, where a Newton step would overflow."""
    X = np.repeat([[0.0], [1.0]], [900, 100], axis=0)
    y = np.where(X[:, 0] > 0, 1e6, 0.0)
    machine = er.BoostingRegressor("poisson", learning_rate=0.5, min_samples_leaf=0).fit(X, y)
    assert np.all(np.isfinite(machine.predict(X)))
    assert machine.predict([[1.0]])[0] == pytest.approx(1e6, rel=1e-3)
    assert machine.predict([[0.0]])[0] < 1.0


# --- networks -------------------------------------------------------------------------------------------------------


@pytest.mark.long
@every
@pytest.mark.parametrize("level", [0.0, 8.0])
def test_a_network_learns_what_a_line_cannot(loss, level):
    X, y = waves(loss, level=level)
    if loss.name() == "huber":
        loss = er.losses.Huber(0.5 * np.exp(level))
    # the same machine in other units: weights of deviances have none
    C = 100 * np.exp(level * (loss.power - 2 if loss.positive else {"quantile": 1.0, "huber": 0.0}[loss.name()]))
    line = er.Regressor(loss, C=C).fit(X, y)
    network = er.Regressor(loss, features=er.Network([16, 16], random_state=0), C=C).fit(X, y)
    assert network.certificate_.converged  # the head, solved to its optimum
    lost, reached = (loss.value(y, machine.raw_predict(X)).mean() for machine in (line, network))
    assert reached < 0.75 * lost


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.positive], ids=repr)
@pytest.mark.parametrize("begin", [-3.0, 0.0, 7.0])
def test_targets_counted_from_elsewhere_have_the_same_loss(loss, begin):
    X, y = waves(loss)
    f = X[:, 0]
    targets, factor = loss.counted_from(y, begin)
    np.testing.assert_allclose(factor * loss.value(targets, f - begin), loss.value(y, f), rtol=1e-10)


# --- weights, scores, searches, plots, streams ----------------------------------------------------------------------


@every
@pytest.mark.parametrize("make", [er.Regressor, er.BoostingRegressor])
def test_weight_two_is_the_row_twice(loss, make):
    X, y = waves(loss, 60)
    weights = np.arange(60) % 3
    once = make(loss).fit(X, y, weights).raw_predict(X)
    twice = make(loss).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).raw_predict(X)
    np.testing.assert_allclose(once, twice, rtol=1e-4, atol=1e-5)


@every
def test_the_score_is_the_share_of_the_loss(loss):
    X, y = waves(loss)
    machine = er.BoostingRegressor(loss).fit(X, y)
    if loss.name() == "huber":
        assert machine.score(X, y) == pytest.approx(1 - np.sum((y - machine.predict(X)) ** 2) / (len(y) * y.var()))
        return
    constant = loss.value(y, np.full(len(y), loss.best_constant(y, np.ones(len(y))))).mean()
    assert machine.score(X, y) == pytest.approx(1 - loss.value(y, machine.raw_predict(X)).mean() / constant)
    if loss.name() == "quantile":
        assert machine.score(X, y) == pytest.approx(d2_pinball_score(y, machine.predict(X), alpha=0.7), abs=1e-3)


def test_evaluations_measure_by_the_loss():
    X, y = waves(er.losses.Poisson())
    result = er.evaluate(make_pipeline(StandardScaler(), er.Regressor("poisson")), X, y)
    assert list(result.scores) == ["d2", "mean_poisson", "mae"]
    assert result.score.name == "d2"
    expected = mean_poisson_deviance(result.truth, result.predictions)
    assert result.scores["mean_poisson"].value == pytest.approx(expected, rel=1e-9)
    assert not result.scores["mean_poisson"].higher_is_better
    named = er.evaluate(er.Regressor("poisson"), X, y, scoring=["poisson_deviance", er.losses.Quantile(0.9)])
    assert named.score.value == pytest.approx(mean_poisson_deviance(named.truth, named.predictions))
    pinball = mean_pinball_loss(named.truth, named.predictions, alpha=0.9)
    assert named.scores["mean_quantile"].value == pytest.approx(pinball)
    with pytest.raises(EmpiriskError, match="losses of numbers"):
        er.evaluate(er.Regressor("poisson"), X, y, scoring=er.losses.Hinge())


def test_comparisons_measure_by_the_loss():
    X, y = waves(er.losses.Gamma())
    machines = {"line": er.Regressor("gamma"), "trees": er.BoostingRegressor("gamma")}
    found = er.compare(machines, X, y, cv=4)
    assert found.metric == "d2"
    assert found.names[0] == "trees"


def test_searches_reach_into_the_loss():
    X, y = waves(er.losses.Tweedie())
    grid = {"loss__power": [1.2, 1.8], "C": [0.1, 1.0]}
    search = GridSearchCV(er.Regressor(er.losses.Tweedie()), grid, scoring="neg_mean_absolute_error", cv=3).fit(X, y)
    assert search.best_estimator_.loss.power in (1.2, 1.8)
    chosen = er.Regressor("poisson", C="cv").fit(X, y)
    assert chosen.certificate_.converged


@every
def test_losses_are_drawn(loss):
    (axes,) = er.plots.losses(loss).axes
    (line,) = axes.lines
    assert np.nanmin(line.get_ydata()) == pytest.approx(0, abs=1e-12)
    wanted = "logarithm of the predicted mean" if loss.positive else "residual"
    assert axes.get_xlabel().startswith(wanted)


def test_means_and_residuals_are_not_drawn_together():
    with pytest.raises(EmpiriskError, match="several figures"):
        er.plots.losses(["poisson", "squared"])
    with pytest.raises(EmpiriskError, match="not a function of the residual"):
        er.plots.losses("gamma", against="residual")


@every
def test_rows_may_come_one_batch_after_the_other(loss):
    X, y = waves(loss, 2000)
    machine = er.Regressor(loss, C=10.0)
    for rows in np.split(np.arange(len(y)), 20):
        machine.partial_fit(X[rows], y[rows])
    constant = loss.value(y, np.full(len(y), loss.best_constant(y, np.ones(len(y))))).mean()
    assert loss.value(y, machine.raw_predict(X)).mean() <= 1.05 * constant


@pytest.mark.parametrize("machine", [er.Regressor("gamma"), er.BoostingRegressor("poisson")], ids=repr)
def test_models_are_saved(machine, tmp_path):
    X, y = waves(er.losses.Gamma())
    machine.fit(X, y)
    er.save(machine, tmp_path / "mean.model")
    np.testing.assert_array_equal(er.load(tmp_path / "mean.model").predict(X), machine.predict(X))
