"""Deviances: value, derivatives, conjugate, prox, constants, what they refuse, and scikit-learn's regressors."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score, mean_tweedie_deviance

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.losses import Gamma, Poisson, Tweedie
from tests import naive
from tests.catalog import DEVIANCES

pytestmark = [pytest.mark.row("E11"), pytest.mark.row("E2")]
every = pytest.mark.parametrize("loss", DEVIANCES, ids=repr)
TARGETS = np.array([0.0, 1e-8, 0.01, 0.3, 1.0, 2.0, 17.0, 4e3, 1e7])
AROUND = np.linspace(-6.0, 6.0, 49)


def pairs(loss, places=AROUND):
    """Targets, zero among them where the loss allows it, and predictions around their logarithms."""
    y = TARGETS[1:] if loss.power == 2 else TARGETS
    y, e = np.repeat(y, len(places)), np.tile(places, len(y))
    return y, e + np.log(np.where(y > 0, y, 1.0))


def as_everybody_writes_it(loss, y, f):
    """The unit deviance in the mean, which next to its minimum, even in extended precision, loses its digits."""
    y, mean, p = np.asarray(y, dtype=np.longdouble), np.exp(np.asarray(f, dtype=np.longdouble)), loss.power
    if p == 1:
        return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - y + mean)
    if p == 2:
        return 2 * (np.log(mean / y) + y / mean - 1)
    return 2 * (y ** (2 - p) / ((1 - p) * (2 - p)) - y * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p))


@every
def test_value_is_the_formula(loss):
    y, f = pairs(loss)
    size = np.where(y > 0, y, 1.0) ** (2 - loss.power)
    # at the minimum the squared rounding of f is left
    np.testing.assert_allclose(loss.value(y, f) / size, naive.deviance(loss, y, f) / size, rtol=1e-12, atol=1e-28)
    expected = as_everybody_writes_it(loss, y, f).astype(float)
    np.testing.assert_allclose(loss.value(y, f) / size, expected / size, rtol=1e-12, atol=1e-14)
    assert np.all(loss.value(y[y > 0], np.log(y[y > 0])) == 0)


@every
def test_value_is_that_of_scikit_learn(loss):
    y, f = pairs(loss)
    for target, prediction in zip(y[::5], f[::5], strict=True):
        theirs = mean_tweedie_deviance([target], [np.exp(prediction)], power=loss.power)
        ours = loss.value(np.array([target]), np.array([prediction]))[0]
        assert ours == pytest.approx(theirs, rel=1e-8, abs=1e-8 * max(target, 1) ** (2 - loss.power))


@every
def test_derivative_and_curvature_by_differences(loss):
    y, f = pairs(loss)
    h = np.longdouble("1e-3")

    def difference(function):
        near, far = function(f + h) - function(f - h), function(f + 2 * h) - function(f - 2 * h)
        return ((8 * near - far) / (12 * h)).astype(float)

    size = np.where(y > 0, y, 1.0) ** (2 - loss.power)
    slope = difference(lambda f: naive.deviance(loss, y, f))
    np.testing.assert_allclose(loss.derivative(y, f) / size, slope / size, rtol=1e-9, atol=1e-9)
    bend = difference(lambda f: loss.derivative(y, f.astype(float)))
    np.testing.assert_allclose(loss.curvature(y, f) / size, bend / size, rtol=1e-7, atol=1e-7)


@every
def test_conjugate_is_the_supremum(loss):
    grid = np.concatenate([np.linspace(-40.0, 40.0, 400_001), np.linspace(-400.0, -40.0, 10_001)])
    for target in (0.0, 0.5, 3.0) if loss.power < 2 else (0.5, 3.0):
        values = naive.deviance(loss, target, grid).astype(float)
        low, high = np.clip(loss.domain(np.array([target])), -3.0, 3.0)
        for u in np.linspace(low[0], high[0], 13):
            stated = loss.conjugate(np.array([target]), np.array([u]))[0]
            brute = np.max(u * grid - values)
            assert brute <= stated + 1e-12 * (1 + abs(stated))
            assert stated - brute <= 1e-6, (target, u, stated, brute)


@every
def test_conjugate_is_infinite_outside_the_domain_only(loss):
    y, _ = pairs(loss)
    for end, out in zip(loss.domain(y), (-1, 1), strict=True):
        finite = np.isfinite(end)
        inside = np.where(finite, end, 1000.0 * out)
        assert np.all(np.isfinite(loss.conjugate(y, inside)))
        assert np.all(np.isinf(loss.conjugate(y, inside + out * (1 + np.abs(inside)))) == finite)


@every
def test_fenchel_young(loss):
    y, f = pairs(loss)
    u = loss.derivative(y, f)
    low, high = loss.domain(y)
    assert np.all((low <= u) & (u <= high))
    value, conjugate = loss.value(y, f), loss.conjugate(y, u)
    scale = 1 + np.abs(value) + np.abs(u * f) + np.where(y > 0, y, 0) * np.abs(f)
    assert np.all(np.abs(value + conjugate - u * f) <= 2e-13 * scale)
    other = np.clip(u + np.random.default_rng(0).normal(size=len(u)), low, high)
    assert np.all(value + loss.conjugate(y, other) - other * f >= -2e-13 * scale)


@every
def test_prox_over_extreme_inputs(loss):
    """The increasing map x - f + step * derivative(x) passes zero within rounding of the prox."""
    sizes = np.logspace(-6, 4, 21)
    places = np.concatenate([-sizes, [0.0], sizes])
    for step in np.logspace(-8, 8, 17):
        y, f = pairs(loss, places)
        x = loss.prox(y, f, step)
        assert np.all(np.isfinite(x))
        level = np.log(np.where(y > 0, y, 1.0))
        # x - ln y is right to its own digits, but for what the rounding of x and f costs
        width = 1e-11 * np.abs(x - level) + 1e-14 * (np.abs(x) + np.abs(level) + np.minimum(1, np.abs(f)))
        for end, sign in ((x - width, -1), (x + width, 1)):
            with np.errstate(over="ignore"):
                slope = loss.derivative(y, end)
            assert np.all(sign * (end - f + step * slope) >= 0), step


@every
def test_each_sample_may_have_its_own_step(loss):
    y, f = pairs(loss)
    steps = np.logspace(-3, 3, len(y))
    alone = [loss.prox(y[[i]], f[[i]], steps[i])[0] for i in range(len(y))]
    np.testing.assert_allclose(loss.prox(y, f, steps), alone, rtol=1e-13, atol=1e-13)


@every
def test_best_constant_is_the_logarithm_of_the_mean(loss):
    random = np.random.default_rng(0)
    y, weights = random.gamma(2.0, size=40), random.choice([0.0, 1.0, 2.5], 40)
    if loss.power < 2:
        y[::3] = 0.0
    best = loss.best_constant(y, weights)
    assert best == pytest.approx(np.log(np.average(y, weights=weights)), rel=1e-14)
    assert weights @ loss.derivative(y, np.full(40, best)) == pytest.approx(0, abs=1e-12)


@every
def test_best_shift_is_least_and_no_newton_step_is_passed_on_the_way_down(loss):
    random = np.random.default_rng(1)
    y, f, weights = random.gamma(2.0, size=30), random.normal(size=30), random.uniform(0.5, 2.0, 30)
    if loss.power < 2:
        y[::3] = 0.0
    for level in (-60.0, -3.0, 0.5, 4.0, 60.0):
        shift = loss.best_shift(y, f + level, weights)
        slope = weights @ loss.derivative(y, f + level + shift)
        newton = -(weights @ loss.derivative(y, f + level)) / (weights @ loss.curvature(y, f + level))
        if shift > 0 or shift > newton + 1e-12:
            assert slope == pytest.approx(0, abs=1e-9 * (weights @ np.abs(loss.derivative(y, f + level + shift))))
        else:
            assert shift == pytest.approx(newton, rel=1e-9)
            assert slope >= 0
    if loss.power < 2:
        zero = np.zeros(5)
        assert loss.best_shift(zero, zero, np.ones(5)) == pytest.approx(-1 / (2 - loss.power))
        assert np.isfinite(loss.best_constant(zero, np.ones(5)))


@every
def test_extreme_predictions_give_no_nan_and_no_warning(loss):
    f = np.array([-1e4, -800.0, -745.2, -709.0, -37.0, 0.0, 37.0, 709.0, 745.2, 800.0, 1e4])
    for target in TARGETS[loss.power == 2 :]:
        y = np.full(len(f), target)
        for values in (loss.value(y, f), loss.derivative(y, f), loss.curvature(y, f), loss.inverse_link(f)):
            assert not np.isnan(values).any()
        assert np.all(loss.value(y, f) >= 0)


@pytest.mark.parametrize("machine", [er.Regressor, er.BoostingRegressor])
@pytest.mark.parametrize(
    ("loss", "least", "needed"),
    [("poisson", -1.0, "zero or positive"), ("gamma", 0.0, "positive"), (Tweedie(1.3), -2.0, "zero or positive")],
    ids=repr,
)
def test_targets_that_have_no_deviance_are_refused(machine, loss, least, needed):
    X, y = np.arange(6.0)[:, None], np.array([1.0, 2.0, least, 3.0, 1.0, 4.0])
    with pytest.raises(EmpiriskError, match=f"y holds {least:g}, but loss=.* is for targets that are {needed}; use"):
        machine(loss=loss).fit(X, y)
    machine(loss=loss).fit(X, y, sample_weight=[1, 1, 0, 1, 1, 1])  # a row without weight takes no part


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 4))
    return X, np.exp(0.5 + X @ [0.5, -0.3, 0.0, 0.2]), random


THEIRS = [
    (Poisson(), PoissonRegressor(alpha=0.2, tol=1e-10, max_iter=1000)),
    (Gamma(), GammaRegressor(alpha=0.2, tol=1e-10, max_iter=1000)),
    (Tweedie(1.3), TweedieRegressor(power=1.3, alpha=0.2, link="log", tol=1e-10, max_iter=1000)),
]


@pytest.mark.parametrize(("loss", "theirs"), THEIRS, ids=repr)
def test_the_objective_predictions_and_score_of_scikit_learn(rows, loss, theirs):
    X, mean, random = rows
    y = random.gamma(2.0, mean / 2) * (random.random(len(mean)) < (1.1 if loss.power == 2 else 0.8))
    weights = random.uniform(0.5, 2.0, len(y))
    theirs.fit(X, y, sample_weight=weights)
    C = er.scales.from_glm(theirs.alpha, n=weights.sum())
    ours = er.Regressor(loss, C=C, tol=1e-10).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    np.testing.assert_allclose(ours.raw_predict(X), np.log(ours.predict(X)), atol=1e-12)
    assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights), abs=1e-6)
    expected = d2_tweedie_score(y, ours.predict(X), sample_weight=weights, power=loss.power)
    assert ours.score(X, y, weights) == pytest.approx(expected, rel=1e-9)


def test_losses_of_several_targets(rows):
    X, mean, random = rows
    Y = np.column_stack([random.poisson(mean), np.log(mean), random.gamma(2.0, mean / 2)])
    machine = er.Regressor(["poisson", "squared", "gamma"]).fit(X, Y)
    for column, loss in enumerate(("poisson", "squared", "gamma")):
        alone = er.Regressor(loss).fit(X, Y[:, column])
        np.testing.assert_allclose(machine.predict(X)[:, column], alone.predict(X), rtol=1e-6)
    assert machine.raw_predict(X).shape == Y.shape


def test_zeros_that_are_fitted_ever_better_have_no_minimiser():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, 3.0, 0.0, 0.0])
    with pytest.warns(ConvergenceWarning, match="larger weights fit targets of zero ever better: use a penalty"):
        machine = er.Regressor("poisson", penalty="none").fit(X, y)
    assert machine.stopped_ == "unattained"
    np.testing.assert_allclose(machine.predict(X), [2.0, 2.0, 0.0, 0.0], atol=1e-4)
    assert er.Regressor("poisson").fit(X, y).certificate_.converged
    attained = er.Regressor("poisson", penalty="none").fit(X, [1.0, 3.0, 0.0, 1.0])
    assert attained.certificate_.converged


def test_means_beyond_all_numbers_are_the_largest():
    loss = Gamma()
    assert np.isfinite(loss.inverse_link(np.array([1e4]))).all()
    np.testing.assert_allclose(loss.forward_link(loss.inverse_link(np.array([-700.0, 0.0, 700.0]))), [-700, 0, 700])


def test_exact_steps_of_gradient_descent_end_however_wide_their_bracket_is():
    y = np.array([0.16818872, 0.00859554, 0.08941338, 0.0578647, 0.02198978, 0.03983621, 0.03246662, 0.16596318])
    machine = er.Regressor("gamma", penalty="none", C=0.1, solver=er.solvers.GradientDescent(step="exact"), tol=1e-3)
    machine.fit(np.zeros((8, 12)), y, np.full(8, 1e-6))
    np.testing.assert_allclose(machine.predict(np.zeros((1, 12))), y.mean(), rtol=1e-3)


def test_targets_that_are_all_zero():
    X = np.arange(8.0)[:, None]
    assert np.all(er.BoostingRegressor("poisson").fit(X, np.zeros(8)).predict(X) < 1e-3)


@pytest.mark.parametrize("power", [1.0, 1.25, 1.5, 2.0])
def test_a_deviance_beside_its_least_value_has_all_its_digits(power):
    """Beside the target it is a square, which the difference of two numbers beside e would lose: a proof would not."""
    loss, (a, c) = er.losses.Tweedie(power), (Decimal(2 - power), Decimal(power - 1))

    def exact(e):
        with localcontext(prec=60):
            up, down = ((r * e).exp() / r - 1 / r if r else e for r in (a, -c))
            return 2 * (up - down), 2 * ((a * e).exp() - (-c * e).exp())

    for e in (1e-16, -3e-16, 1e-10, -1e-5, 1e-3, -0.0199, 0.0201, 0.5, -2.0):
        value, slope = exact(Decimal(e))
        assert float(loss.phi(np.array([e]))[0]) == pytest.approx(float(value), rel=1e-13, abs=0)
        with localcontext(prec=60):  # the conjugate at the slope of e, and at the number next to it
            at = np.array([float(slope)])
            conjugate = float(slope * Decimal(e) - value + Decimal(e) * (Decimal(at[0]) - slope))
        assert float(loss.phi_conjugate(at)[0]) == pytest.approx(conjugate, rel=1e-12, abs=0)
