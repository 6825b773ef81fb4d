r"""
5. Regularisation and the path
==============================

With many features a machine can fit its rows exactly and be useless. A penalty on the weights prevents it. This
lesson shows why least squares alone is brittle, what l2 and l1 penalties do, how the solution moves with C, and how to
choose C.

About fifteen minutes. You need :doc:`lesson 1 <plot_01_equation>`, and some linear algebra.
"""

# %%
# When least squares goes wrong
# -----------------------------
# Two rows, nearly the same, with opposite targets: the columns of X are (0, :math:`\epsilon`) and (1, 1), the targets
# 1 and -1. The solution is exact, :math:`w = (-2 / \epsilon, 1)`, and explodes as :math:`\epsilon` goes to zero.
import numpy as np
from matplotlib.figure import Figure

import empirisk as er

for epsilon in (1e-1, 1e-3, 1e-5):
    w = er.LeastSquares(fit_intercept=False).fit([[0.0, 1.0], [epsilon, 1.0]], [1.0, -1.0]).coef_
    assert np.allclose(w, [-2 / epsilon, 1], rtol=1e-6)

# %%
# Some columns hold no information at all. Let the second one be -5 times the first: every w with the same :math:`w_1 -
# 5 w_2` predicts the same. The normal equations :math:`X'X w = X'y` then have no unique solution. The *singular value
# decomposition* X = U S V' shows it: one singular value is zero. To divide by it, or by the 1e-7 that rounding leaves
# of it, gives arbitrary weights. :class:`empirisk.LeastSquares` leaves such directions out and returns the shortest w.
# With y from the weights (2, 0) this is the projection of (2, 0) onto (1, -5): (1/13, -5/13).
rng = np.random.default_rng(0)
one = rng.uniform(size=50)
X = np.c_[one, -5 * one]
shortest = er.LeastSquares(fit_intercept=False).fit(X, X @ [2.0, 0.0])
assert np.allclose(shortest.coef_, [1 / 13, -5 / 13])
assert np.allclose(shortest.coef_, np.linalg.pinv(X) @ X @ [2.0, 0.0])
assert np.allclose(shortest.predict(X), X @ [2.0, 0.0])

# %%
# Too many waves
# --------------
# A signal of three sines, :math:`0.7 \sin x + 0.83 \sin 2x - 1.5 \sin 3x`, is known at 48 places with some noise. Fit
# p sines by least squares. On the known places the error falls with every further wave. On new places it is least near
# the true 3, and with 35 waves the curve goes wild between the points.
truth = np.array([0.7, 0.83, -1.5])


def sines(x, p):
    """The columns sin(x), sin(2x), ..., sin(px)."""
    return np.sin(np.multiply.outer(x, np.arange(1, p + 1)))


def signal(x):
    """What we look for."""
    return sines(x, 3) @ truth


x, x_new = rng.uniform(-8, 8, 48), rng.uniform(-8, 8, 1000)
y, y_new = signal(x) + 0.3 * rng.normal(size=48), signal(x_new) + 0.3 * rng.normal(size=1000)


counts = np.arange(1, 36)
known, new = [], []
for p in counts:
    machine = er.LeastSquares(fit_intercept=False).fit(sines(x, p), y)
    known.append(machine.score(sines(x, p), y))
    new.append(machine.score(sines(x_new, p), y_new))
assert (np.diff(known) > -1e-9).all()
assert 3 <= counts[np.argmax(new)] <= 8
assert new[-1] < max(new) - 0.5
er.plots.validation_curve(counts, known, np.maximum(new, -0.5), parameter="waves")

# %%
# (The score is R², the share of the variance that is explained: 1 is perfect, 0 no better than the mean, and below
# zero is worse than that; the picture is cut at -0.5.)
#
# Ridge: pay for the length of w
# ------------------------------
# *Ridge regression* adds the penalty :math:`\tfrac12 \|w\|^2`. The gradient of
# :math:`\tfrac12 \|w\|^2 + C \|y - Xw\|^2` is zero at
#
# .. math:: w = \Big(X'X + \tfrac{1}{2C} I\Big)^{-1} X'y .
#
# The matrix can always be inverted, as all its eigenvalues are at least :math:`1 / (2C)`. Along a direction with the
# singular value s, least squares divides by s; ridge multiplies by :math:`s / (s^2 + 1 / (2C))`, which is never large.
# Directions that the data hardly know are left out smoothly. It is the same as least squares on more data: d rows
# :math:`\sqrt{1 / (2C)}\, e_j` with the target 0.
#
# (With the mean of the losses and :math:`\lambda \|w\|^2` the term is :math:`n \lambda I`; the n is often forgotten.)
C = 0.6
Z = sines(x, 35)
U, S, Vt = np.linalg.svd(Z, full_matrices=False)
ridge = er.Ridge(C=C, fit_intercept=False).fit(Z, y)
assert np.allclose(ridge.coef_, np.linalg.solve(Z.T @ Z + np.eye(35) / (2 * C), Z.T @ y))
assert np.allclose(ridge.coef_, Vt.T @ (S / (S**2 + 1 / (2 * C)) * (U.T @ y)))
more_rows, more_targets = np.r_[Z, np.eye(35) / np.sqrt(2 * C)], np.r_[y, np.zeros(35)]
assert np.allclose(ridge.coef_, er.LeastSquares(fit_intercept=False).fit(more_rows, more_targets).coef_)
assert np.linalg.eigvalsh(Z.T @ Z + np.eye(35) / (2 * C))[0] >= 1 / (2 * C) - 1e-9
assert er.scales.from_ridge(1 / (2 * C)) == C  # the alpha of scikit-learn is 1 / (2 C)

# %%
# Thirty-five waves again, with the penalty: move the slider from too stiff to too loose.
from sklearn.preprocessing import FunctionTransformer

features = FunctionTransformer(lambda rows: sines(rows[:, 0], 35))
rows = x[:, None]


def bent(C):
    """The ridge machine at one C, and the signal."""
    machine = er.Ridge(C=C, features=features).fit(rows, y)
    figure = er.plots.regression({f"C = {C:g}": machine}, rows, y, truth=signal)
    figure.axes[0].set_ylim(-4, 4)
    return figure


scores = {C: er.Ridge(C=C, features=features).fit(rows, y).score(x_new[:, None], y_new) for C in (0.001, 0.6, 1e6)}
assert scores[0.6] > scores[0.001]
assert scores[0.6] > scores[1e6]
er.plots.slider(bent, C=[0.001, 0.01, 0.1, 1.0, 100.0, 1e6])

# %%
# The penalty adds up the squares of weights, so their units matter: a length in metres has a weight a thousand times
# that in millimetres. *Standardise* columns first, to mean 0 and variance 1, unless they have the same unit.
# :func:`empirisk.maps.standardised` puts this before any machine, and learns means and deviations from the training
# rows alone.
table = rng.normal([10.0, -3.0], [1000.0, 0.01], size=(80, 2))
target = table @ [1e-3, 100.0]
scaled = er.maps.standardised(er.Ridge(C=1.0)).fit(table, target)
columns = scaled[:-1].transform(table)
assert np.allclose(columns.mean(axis=0), 0)
assert np.allclose(columns.var(axis=0), 1)
assert scaled.score(table, target) > 0.999 > er.Ridge(C=1.0).fit(table, target).score(table, target)

# %%
# Lasso: pay for being there
# --------------------------
# We would like few weights, but to count them is a search over all subsets. The sum of absolute values is the closest
# convex thing. Squares with l1 are the *lasso*. If the columns are orthogonal with the lengths :math:`s_j`, each
# weight has a formula: the least-squares weight :math:`a_j`, pulled towards zero by a constant and cut off there,
#
# .. math:: w_j = a_j \max\Big(0,\; 1 - \frac{1}{2 C s_j^2 |a_j|}\Big) .
#
# This is *soft thresholding*. (With the mean of the losses and :math:`\lambda \|w\|_1` the number is
# :math:`n \lambda / (2 s_j^2 |a_j|)`, with the n.) Ridge makes all weights smaller by a factor and none of them zero.
Q = np.linalg.qr(rng.normal(size=(40, 4)))[0] * [1.0, 2.0, 0.5, 3.0]
lengths, aim = np.array([1.0, 2.0, 0.5, 3.0]), rng.normal(size=40)
free = Q.T @ aim / lengths**2
for C in (0.3, 1.0, 5.0):
    formula = free * np.maximum(0, 1 - 1 / (2 * C * lengths**2 * np.abs(free)))
    assert np.allclose(er.Lasso(C=C, fit_intercept=False, tol=1e-10).fit(Q, aim).coef_, formula, atol=1e-5)

# %%
# Why zeros? Draw the sets of equal penalty: for l2 circles, for l1 a square that stands on a corner. The solution is
# where an ellipse of equal losses first touches the set. A corner sticks out, so it is often touched first, and on a
# corner a weight is zero.
plain_rows = rng.normal(size=(60, 2)) @ [[1.0, 0.4], [0.4, 1.0]]
plain_target = plain_rows @ [0.2, 1.8] + 0.3 * rng.normal(size=60)
figure = Figure(figsize=(9.6, 4.4), layout="constrained")
grid = np.meshgrid(np.linspace(-1.2, 1.2, 200), np.linspace(-1.2, 2.0, 200))
losses = ((plain_target[:, None, None] - np.tensordot(plain_rows, np.array(grid), axes=1)) ** 2).sum(axis=0)
balls = {
    "l1: |w|₁ ≤ 1": (er.Lasso, 1.0, np.abs(grid[0]) + np.abs(grid[1])),
    "l2: |w| ≤ 1": (er.Ridge, 0.5, np.hypot(*grid)),
}
touching = []
for axes, (name, (machine, radius, size)) in zip(figure.subplots(1, 2, sharey=True), balls.items(), strict=True):
    found = machine(C=er.Constraint(radius), fit_intercept=False).fit(plain_rows, plain_target)
    touching.append(found.coef_)
    least = np.sum((plain_target - plain_rows @ found.coef_) ** 2)
    axes.contourf(*grid, size, levels=[0, 1], colors=["#56B4E9"], alpha=0.5)
    axes.contour(*grid, losses, levels=least * np.array([0.3, 1.0, 2.0, 3.5]), colors="#D55E00", linewidths=1)
    axes.plot(*found.coef_, "o", color="black")
    axes.annotate("  solution", found.coef_, va="bottom")
    axes.axhline(0, color="0.7", lw=0.8)
    axes.axvline(0, color="0.7", lw=0.8)
    axes.set(xlabel="weight 0", ylabel="weight 1", aspect="equal")
    axes.set_title(name, loc="left", fontsize=11)
assert abs(touching[0][0]) < 1e-6
assert abs(touching[1][0]) > 0.05
figure

# %%
# Penalty or limit: the same machine
# ----------------------------------
# The pictures show the *constraint form*: the least sum of losses with :math:`R(w) \le r`. Every answer of the
# equation is an answer of the constraint form, with r = R(w), and the other way round with the right C. So a penalty
# is a limit on the set of functions. :class:`empirisk.Constraint` finds the C.
limited = er.Lasso(C=er.Constraint(2.0), fit_intercept=False).fit(Z, y)
same = er.Lasso(C=limited.C_, fit_intercept=False).fit(Z, y)
assert np.isclose(np.abs(limited.coef_).sum(), 2.0, rtol=1e-5)
assert np.allclose(limited.coef_, same.coef_, atol=1e-3)
print(f"the sum of absolute weights is at most 2 where C = {limited.C_:.4f}")

# %%
# The path
# --------
# How do the weights move as C grows? At C = 0 all are zero. With l1 they wake up one after the other: the three true
# waves first, the noise much later. :func:`empirisk.selection.path` starts each fit where the last one ended.
path = er.selection.path(er.Lasso(fit_intercept=False), Z, y, Cs=np.geomspace(0.012, 2.0, 50))
names = [f"sin {k}x" for k in range(1, 36)]
chosen = er.Lasso(C="cv", cv=10, fit_intercept=False, random_state=0).fit(Z, y)
awake = (np.abs(path.coefs) > 1e-9).sum(axis=1)
first_three = path.coefs[np.flatnonzero(awake == 3)[0]]
assert set(np.flatnonzero(np.abs(first_three) > 1e-9)) == {0, 1, 2}
er.plots.coefficients(path, names=names, most=5, chosen=chosen.C_)

# %%
# ``C="cv"`` chose the dotted line, by cross-validation. Its best C keeps some noise; ``rule="1se"`` takes the smallest
# C that is not worse by more than one standard error, and is more often the truth. The *elastic net* mixes both
# penalties, :math:`\rho \|w\|_1 + \tfrac{1 - \rho}{2} \|w\|^2`: of columns that say the same, the lasso takes one at
# random, the elastic net shares the weight among them.
careful = er.Lasso(C="cv", cv=10, rule="1se", fit_intercept=False, random_state=0).fit(Z, y)
assert np.count_nonzero(careful.coef_) <= np.count_nonzero(chosen.coef_)
twins = np.c_[Z[:, 2], Z[:, 2], Z[:, 5]]
shared = er.ElasticNet(C=1.0).fit(twins, y).coef_
assert np.isclose(shared[0], shared[1], rtol=1e-3)

# %%
# Choose C by leaving rows out
# ----------------------------
# Leave one row out, fit the others, predict it; do so for each row. That would take n fits, but ridge needs one. Let
# :math:`h_{ii} = x_i'(X'X + I/(2C))^{-1} x_i`. The error at the row that was left out is
#
# .. math:: \frac{f(x_i) - y_i}{1 - h_{ii}} .
#
# It follows from the formula of Sherman and Morrison for the inverse of :math:`A - u u'`. One decomposition serves for
# all rows and all C; in all it costs :math:`n d^2 + d^3`. ``C="loo"`` does this.
C = 0.6
H = Z @ np.linalg.solve(Z.T @ Z + np.eye(35) / (2 * C), Z.T)
short_cut = (H @ y - y) / (1 - np.diag(H))
refitted = np.empty(48)
for i in range(48):
    others = np.arange(48) != i
    without = er.Ridge(C=C, fit_intercept=False).fit(Z[others], y[others])
    refitted[i] = without.predict(Z[i : i + 1])[0] - y[i]
assert np.allclose(short_cut, refitted, atol=1e-8)

A, u = Z.T @ Z + np.eye(35), Z[0]
Ai = np.linalg.inv(A)
assert np.allclose(np.linalg.inv(A - np.outer(u, u)), Ai + np.outer(Ai @ u, u @ Ai) / (1 - u @ Ai @ u))

best = er.Ridge(C="loo", features=features).fit(rows, y)
test = [er.Ridge(C=C, features=features).fit(rows, y).score(x_new[:, None], y_new) for C in best.choice_.values]
assert best.score(x_new[:, None], y_new) > max(test) - 0.05  # nearly the best C of all
learned = [er.Ridge(C=C, features=features).fit(rows, y).score(rows, y) for C in best.choice_.values]
by_loo = 1 - best.choice_.mean / y.var()
figure = er.plots.validation_curve([float(f"{C:.1g}") for C in best.choice_.values], learned, by_loo, parameter="C")
figure.axes[0].set_ylim(-1, 1.1)
figure

# %%
# Choose columns
# --------------
# There are other ways to few columns. *Greedy* selection adds the column that lowers the cross-validated error most
# (forward), or drops the one that is missed least (backward), until the error rises. It works with any machine and is
# no guarantee. For few columns, the best subset of k can be found with proof. And l1 works with any loss: an SVM with
# few columns.
Z12 = sines(x, 12)
forward = er.selection.GreedySelection(er.LeastSquares(), direction="forward").fit(Z12, y).get_support(True)
backward = er.selection.GreedySelection(er.LeastSquares(), direction="backward").fit(Z12, y).get_support(True)
proved = er.selection.BestSubset(3).fit(Z12, y)
assert {0, 1, 2} <= set(forward)
assert {0, 1, 2} <= set(backward)
assert proved.get_support(True).tolist() == [0, 1, 2]
assert proved.certificate_.converged

labels = np.where(signal(x) > 0, "up", "down")
few = er.SVM(penalty="l1", C=0.2).fit(Z, labels)
assert np.count_nonzero(few.coef_) < 20 < np.count_nonzero(er.SVM(C=0.2).fit(Z, labels).coef_)
print(f"forward {forward}, backward {backward}; the l1 machine uses {np.count_nonzero(few.coef_)} of 35 columns")

# %%
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 5.1
#
#    One column of length s, and the least-squares weight a = 2. At which C does the lasso's weight leave zero, and
#    what is it at twice this C?
#
# .. solution::
#
# At :math:`C = 1 / (2 s^2 |a|) = 1 / (4 s^2)`. At twice that the factor is 1 - 1/2, so the weight is 1.
column = np.array([[3.0], [0.0]])  # s = 3
for times, weight in ((0.99, 0.0), (2.0, 1.0)):
    machine = er.Lasso(C=times / 36, fit_intercept=False, tol=1e-10).fit(column, [6.0, 1.0])
    assert np.isclose(machine.coef_[0], weight, atol=1e-6)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 5.2
#
#    For ridge with X = I, what is w? Which C halves the targets?
#
# .. solution::
#
# :math:`w = y / (1 + 1/(2C))`; C = 1/2 halves them.
half = er.Ridge(C=0.5, fit_intercept=False).fit(np.eye(3), [2.0, -4.0, 6.0])
assert np.allclose(half.coef_, [1, -2, 3])

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 5.3
#
#    Another program says "lambda = 0.05" for :math:`\tfrac1n \sum (y - f)^2 + \lambda \|w\|^2` with n = 48. What is C?
#    Check it by its own formula.
#
# .. solution::
#
# :math:`C = 1 / (2 \lambda n) = 0.2083`.
C = er.scales.from_lambda_without_half(0.05, n=48)
assert np.isclose(C, 0.20833333)
theirs = np.linalg.solve(Z.T @ Z + 48 * 0.05 * np.eye(35), Z.T @ y)
assert np.allclose(theirs, er.Ridge(C=C, fit_intercept=False).fit(Z, y).coef_)

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - :class:`empirisk.Ridge`, :class:`empirisk.Lasso`, :class:`empirisk.ElasticNet`, :class:`empirisk.LeastSquares`,
#   :class:`empirisk.Constraint`.
# - :func:`empirisk.selection.path`, :class:`empirisk.selection.GreedySelection`,
#   :class:`empirisk.selection.BestSubset`, :mod:`empirisk.scales`.
# - How far a score can be trusted, and the signs of over- and underfitting: lesson 10.
