r"""
6. Regression, robust and sparse
================================

To predict a number is the oldest problem of this course. This lesson starts at the formula for a line, bends the line
with features, and then changes the loss: for outliers, for a tolerance, for quantiles, for prices and for counts.

About fifteen minutes. You need lessons 1 and 5.
"""

# %%
# One number after the other
# --------------------------
# One column, no intercept: the line y = a x with the least sum of squares has :math:`a = x'y / \|x\|^2`. With many
# columns the gradient :math:`2 X'(Xw - y)` is zero at the solution of the *normal equations* :math:`X'X w = X'y`, here
# with rows as samples. With X = U S V' it is :math:`w = V S^{-1} U'y`. Several targets are as many problems with one
# matrix.
import numpy as np
from matplotlib.figure import Figure

import empirisk as er

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
plain = er.LeastSquares(fit_intercept=False)
slope = plain.fit(X[:, :1], Y[:, 0]).coef_[0]
assert np.isclose(slope, X[:, 0] @ Y[:, 0] / (X[:, 0] @ X[:, 0]))

w = plain.fit(X, Y[:, 0]).coef_
U, S, Vt = np.linalg.svd(X, full_matrices=False)
assert np.allclose(w, np.linalg.solve(X.T @ X, X.T @ Y[:, 0]))
assert np.allclose(w, Vt.T @ (U.T @ Y[:, 0] / S))
both = er.LeastSquares(fit_intercept=False).fit(X, Y).coef_
assert np.allclose(both[0], w)

# %%
# The intercept
# -------------
# A column of ones turns b into one more weight. For least squares that is the same. For ridge it is not: the penalty
# then pulls b towards zero, and the answer depends on where zero lies. With b free, its best value for given w is
# :math:`\bar y - \bar x'w`. So centre the columns and the target, solve without b, and set b last:
#
# .. math:: w = \Big(\tilde X'\tilde X + \tfrac{1}{2C} I\Big)^{-1} \tilde X'\tilde y , \qquad b = \bar y - \bar x'w .
y = X @ [1.0, -2.0, 0.5] + 100.0 + rng.normal(size=50)
C = 0.05
centred, target = X - X.mean(axis=0), y - y.mean()
w = np.linalg.solve(centred.T @ centred + np.eye(3) / (2 * C), centred.T @ target)
free = er.Ridge(C=C).fit(X, y)
assert np.allclose(free.coef_, w)
assert np.isclose(free.intercept_, y.mean() - X.mean(axis=0) @ w)
moved = er.Ridge(C=C).fit(X, y + 1000)
assert np.allclose(moved.coef_, w)  # where zero lies does not matter
ones = er.Ridge(C=C, fit_intercept=False).fit(np.c_[X, np.ones(50)], y)
assert ones.coef_[3] < free.intercept_ - 5  # b was pulled towards zero

# %%
# Weights that can be looked at
# -----------------------------
# The weights of a linear machine on images are an image. Here 0 is told from 1 by regression on the labels 0 and 1.
# Where the weight is positive (orange) ink speaks for a 1, where it is negative (blue) for a 0. The first two
# directions of the singular value decomposition stand beside it.
from sklearn.datasets import load_digits

digits, digit = load_digits(n_class=2, return_X_y=True)
digits = digits / 16
train, test = slice(0, 200), slice(200, None)
machine = er.Ridge(C=0.5).fit(digits[train], digit[train])
assert np.mean((machine.predict(digits[test]) > 0.5) == digit[test]) > 0.97
directions = np.linalg.svd(digits[train], full_matrices=False)[2][:2]
er.plots.images(np.vstack([machine.coef_, directions]), (8, 8), names=["weights", "direction 1", "direction 2"])

# %%
# Bending the line
# ----------------
# The machine is linear in w, not in x. Give it :math:`x, x^2, x^3, x^4`, and it fits a polynomial; give it sines and
# it fits a periodic signal. The true polynomial is :math:`-0.2 x^4 + 0.7 x^3 + 0.83 x^2 - 1.5 x + 5.23`.
true_weights = np.array([-0.2, 0.7, 0.83, -1.5, 5.23])
x = rng.uniform(-2, 2, (24, 1))
y = np.polyval(true_weights, x[:, 0]) + 0.2 * rng.normal(size=24)
quartic = er.LeastSquares(features=er.maps.Polynomial(4)).fit(x, y)
assert np.allclose(quartic.coef_, true_weights[3::-1], atol=0.35)
assert np.isclose(quartic.intercept_, 5.23, atol=0.3)

x_wave = rng.uniform(-8, 8, (48, 1))
wave = np.sin(x_wave * [1, 2, 3]) @ [0.7, 0.83, -1.5] + 0.3 * rng.normal(size=48)
periodic = er.LeastSquares(features=er.maps.Periodic(harmonics=3)).fit(x_wave, wave)
assert np.allclose(periodic.coef_[::2], [0.7, 0.83, -1.5], atol=0.25)  # sines; the cosines in between are near zero
assert np.abs(periodic.coef_[1::2]).max() < 0.25


def of_degree(degree):
    """A polynomial by least squares."""
    machine = er.LeastSquares(features=er.maps.Polynomial(degree))
    figure = er.plots.regression({f"degree {degree}": machine}, x, y, truth=lambda z: np.polyval(true_weights, z))
    figure.axes[0].set_ylim(-1, 16)
    return figure


er.plots.slider(of_degree, degree=[1, 2, 3, 4, 10, 18])

# %%
# Outliers
# --------
# Squares make one row with a large error count for all others. Absolute errors do not: at the optimum as much weight
# of rows lies above as below, as with a median. *Huber's* loss is a square for small errors and linear beyond. Of the
# losses :math:`|r|^p` those with p >= 1 are convex. The picture shows some of them on the left.
#
# Take y = x with a little noise, 24 rows, and move one row by 20. The slope by squares is spoiled. By absolute errors
# it is the *weighted median* of y/x with the weights ``|x|``, which hardly moves. (A few hundred subgradient steps
# with a constant rate end up near it and not at it; the dual tells the difference.)
x = np.sort(rng.uniform(-8, 8, 24))
y = x + 0.1 * rng.uniform(size=24)
y[-3] += 20
machines = {
    "squared": er.LeastSquares(fit_intercept=False),
    "absolute": er.LeastAbsolute(fit_intercept=False),
    "huber": er.Regressor(loss="huber", penalty="none", fit_intercept=False),
}
slopes = {name: machine.fit(x[:, None], y).coef_.item() for name, machine in machines.items()}
order = np.argsort(y / x)
half = np.searchsorted(np.cumsum(np.abs(x[order])), np.abs(x).sum() / 2)
assert np.isclose(slopes["absolute"], (y / x)[order][half])  # the weighted median
assert abs(slopes["absolute"] - 1) < 0.02
assert abs(slopes["huber"] - 1) < 0.05
assert abs(slopes["squared"] - 1) > 0.1
assert machines["absolute"].certificate_.relative_gap < 1e-6
figure = Figure(figsize=(11.5, 4.4), layout="constrained")
left, right = figure.subplots(1, 2)
er.plots.losses(
    ["squared", "absolute", "huber", er.losses.EpsilonInsensitive(1.0), er.losses.SquaredAbsolute(1.0)], axes=left
)
er.plots.regression(machines, x, y, axes=right)
figure

# %%
# Losses can be added. Squares punish large errors, absolute values small ones: ``SquaredAbsolute(weight)`` is
# :math:`r^2 + \text{weight} \cdot |r|`. With both penalties that is a model with four parameters to choose: large
# errors, small errors, large weights, many weights. It is convex, solved, and certified like any other; choose them by
# cross-validation, since four parameters fit an elephant.
full = er.Regressor(loss=er.losses.SquaredAbsolute(0.5), penalty=er.penalties.ElasticNet(0.5), C=1.0)
full.fit(np.c_[x, rng.normal(size=(24, 5))], y)
assert full.certificate_.converged
print(full.certificate_)

r = np.linspace(-2, 2, 81)
for p in (1.0, 1.5, 2.0, 3.0):
    bends = np.diff(er.losses.Power(p).value(np.zeros(81), r), 2)
    assert bends.min() > -1e-12  # convex
assert np.diff(np.abs(r) ** 0.5, 2).min() < -0.1  # and for p < 1 not

# %%
# A tolerance
# -----------
# *Support vector regression* does not count errors below :math:`\epsilon`: :math:`\max(0, |y - f| - \epsilon)`. Rows
# inside the tube have the dual variable 0, as with the SVM, and the answer rests on the others. The wider the tube,
# the fewer support vectors and the smoother the curve.
x = np.sort(rng.uniform(0, 6, 60))
y = np.sin(1.5 * x) + 0.15 * rng.normal(size=60)


def tube(epsilon):
    """The curve, its tube, and the rows that it rests on."""
    machine = er.SVR(C=10.0, epsilon=epsilon, features=er.kernels.Gaussian(0.8)).fit(x[:, None], y)
    figure = er.plots.regression({f"epsilon = {epsilon}": machine}, x, y)
    axes, places = figure.axes[0], np.linspace(0, 6, 200)
    middle = machine.predict(places[:, None])
    axes.fill_between(places, middle - epsilon, middle + epsilon, color="#56B4E9", alpha=0.25, lw=0)
    axes.scatter(x[machine.support_], y[machine.support_], s=70, facecolors="none", edgecolors="black")
    axes.set_title(f"{len(machine.support_)} of 60 rows are support vectors", loc="left", fontsize=11)
    return figure


resting = [
    len(er.SVR(C=10.0, epsilon=e, features=er.kernels.Gaussian(0.8)).fit(x[:, None], y).support_)
    for e in (0.02, 0.15, 0.5)
]
assert resting[0] > resting[1] > resting[2]
er.plots.slider(tube, epsilon=[0.0, 0.05, 0.15, 0.3, 0.6])

# %%
# Move the points yourself: this opens them in the playground of the :doc:`studio </studio>`, with the same machine.
from empirisk.studio.playground.address import link

link(x - 3, y, task="numbers", number_loss="epsilon_insensitive", features="kernel", kernel="Gaussian(0.8)", C=10.0)

# %%
# Quantiles
# ---------
# The loss that weighs errors above by :math:`\tau` and errors below by :math:`1 - \tau` gives the
# :math:`\tau`-quantile: below the curve lie about a share :math:`\tau` of the rows. Three of them draw a band.
# :class:`empirisk.QuantileRegressor` learns several at once that do not cross.
wider = np.sort(rng.uniform(0, 4, 150))
spread = 1.0 + 0.5 * wider + (0.1 + 0.3 * wider) * rng.normal(size=150)
lines = {f"quantile {tau}": er.Regressor(loss=er.losses.Quantile(tau), penalty="none") for tau in (0.1, 0.5, 0.9)}
for tau, machine in zip((0.1, 0.5, 0.9), lines.values(), strict=True):
    machine.fit(wider[:, None], spread)
    assert abs(np.mean(spread < machine.predict(wider[:, None])) - tau) < 0.03
er.plots.regression(lines, wider, spread)

# %%
# Other scales for the target
# ---------------------------
# Prices grow by factors. Fit the logarithm of y, and turn predictions back. The *Box-Cox* transform contains the
# logarithm and the powers,
#
# .. math:: y_\lambda = \frac{y^\lambda - 1}{\lambda} , \qquad y_0 = \ln y ,
#
# and chooses :math:`\lambda` by likelihood. As :math:`\lambda` goes to zero it becomes the logarithm. It needs y > 0.
u = np.linspace(0.1, 4, 100)
assert np.allclose((u**1e-7 - 1) / 1e-7, np.log(u), atol=1e-6)

years = np.sort(rng.uniform(0, 10, 60))
price = np.exp(0.35 * years + 0.5 + 0.15 * rng.normal(size=60))
lined = {
    "as it is": er.LeastSquares(),
    "logarithm": er.maps.log_target(er.LeastSquares()),
    "Box-Cox": er.maps.box_cox_target(er.LeastSquares()),
}
for machine in lined.values():
    machine.fit(years[:, None], price)
power = float(np.ravel(lined["Box-Cox"].transformer_.lambdas_)[0])
assert abs(power) < 0.3  # near the logarithm
assert lined["as it is"].score(years[:, None], price) < lined["logarithm"].score(years[:, None], price)
figure = Figure(figsize=(10.4, 4.2), layout="constrained")
left, right = figure.subplots(1, 2)
er.plots.box_cox(axes=left)
er.plots.regression(lined, years, price, axes=right)
right.set_title(f"Prices; likeliest λ = {power:.2f}", loc="left", fontsize=11)
figure

# %%
# A logarithm of the *target* and a logarithm of the *mean* are different things. Counts can be zero, and have no
# logarithm. Their mean can: the Poisson loss takes :math:`e^{f(x)}` for it.
visits = rng.poisson(np.exp(0.3 * years - 0.5))
counted = er.Regressor(loss="poisson", penalty="none").fit(years[:, None], visits)
assert visits.min() == 0
assert np.isclose(counted.coef_[0], 0.3, atol=0.05)
assert np.isclose(counted.predict(years[:, None]).sum(), visits.sum(), rtol=1e-4)  # it keeps the total

# %%
# Sparse by groups
# ----------------
# The lasso of :doc:`lesson 5 <plot_05_regularisation>` chooses single columns. Sometimes columns belong together: the
# codes of one category, the sines and cosines of one frequency. ``GroupL1`` takes groups or leaves them, :math:`R(w) =
# \sum_g \sqrt{d_g}\, \|w_g\|`.
table = rng.normal(size=(80, 6))
aim = table[:, :2] @ [1.0, -1.0] + 0.3 * rng.normal(size=80)
grouped = er.Regressor(penalty=er.penalties.GroupL1([0, 0, 1, 1, 2, 2]), C=0.1).fit(table, aim)
assert (np.abs(grouped.coef_[:2]) > 0.1).all()
assert np.allclose(grouped.coef_[2:], 0)
print(grouped.coef_.round(3))

# %%
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 6.1
#
#    Which constant has the least sum of squared errors, of absolute errors, and the least largest error, for 1, 2, 3,
#    4, 90?
#
# .. solution::
#
# The mean 20, the median 3, and 45.5, in the middle between the extremes.
values = np.array([1.0, 2.0, 3.0, 4.0, 90.0])
nothing = np.zeros((5, 1))
assert np.isclose(er.LeastSquares().fit(nothing, values).predict([[0.0]])[0], 20)
assert np.isclose(er.LeastAbsolute().fit(nothing, values).predict([[0.0]])[0], 3)
constants = np.linspace(1, 90, 891)
assert np.isclose(constants[np.argmin([np.abs(values - c).max() for c in constants])], 45.5, atol=0.06)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 6.2
#
#    How far must an outlier move before the line by absolute errors follows it?
#
# .. solution::
#
# It does not: above the line it counts as one row above, however far. Here it goes from 20 to a million.
far = er.LeastAbsolute(fit_intercept=False)
near_row, near_target = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1.0, 2.0, 3.0, 24.0])
assert np.isclose(far.fit(near_row[:3], near_target[:3]).coef_[0], 1.0)
five = np.r_[near_row, [[5.0]]]
first = far.fit(five, [1.0, 2.0, 3.0, 24.0, 5.0]).coef_[0]
second = far.fit(five, [1.0, 2.0, 3.0, 1e6, 5.0]).coef_[0]
assert np.isclose(first, second)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 6.3
#
#    Show that with :math:`\epsilon = 0` support vector regression is regression by absolute errors with an l2 penalty.
#
# .. solution::
#
# The loss is the same, and so is the objective.
vector = er.SVR(C=0.7, epsilon=0.0).fit(table, aim).certificate_.primal
absolute = er.Regressor(loss="absolute", penalty="l2", C=0.7).fit(table, aim).certificate_.primal
assert np.isclose(vector, absolute, rtol=1e-5)

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - :class:`empirisk.LeastSquares`, :class:`empirisk.Ridge`, :class:`empirisk.LeastAbsolute`, :class:`empirisk.SVR`,
#   :class:`empirisk.QuantileRegressor`, :class:`empirisk.Regressor`.
# - :class:`empirisk.maps.Polynomial`, :class:`empirisk.maps.Periodic`, :func:`empirisk.maps.box_cox_target`,
#   :class:`empirisk.penalties.GroupL1`.
# - Curves without choosing features by hand: :doc:`lesson 7 <plot_07_kernels>`.
