r"""
4. Descent and its relatives
============================

Most minima have no formula. They are found by going down. This lesson shows when down leads to the lowest point, how
far each step should go, what to do at corners and with a million rows, and when to stop.

About fifteen minutes. You need derivatives, and :doc:`lesson 1 <plot_01_equation>`.
"""

# %%
# Where down leads to the bottom
# ------------------------------
# A set is *convex* if it holds every segment between two of its points, as a plane does. A function is convex if the
# set above its graph is: :math:`f((1 - \theta) x + \theta z) \le (1 - \theta) f(x) + \theta f(z)`. Then every local
# minimum is a global one. With second derivatives there is a test: the *Hessian*, the matrix of second derivatives,
# must be *positive semidefinite* everywhere, which means that it has no negative eigenvalue.
#
# An eigenvalue :math:`\lambda` of A belongs to a direction that A only stretches, :math:`A x = \lambda x`. It is a
# root of :math:`\det(\lambda I - A)`. Here that is :math:`\lambda^2 + \lambda - 42 = (\lambda + 7)(\lambda - 6)`.
import warnings

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

import empirisk as er

warnings.simplefilter("ignore", ConvergenceWarning)  # some descents below are stopped early, to be looked at

B = np.array([[-6.0, 3.0], [4.0, 5.0]])
assert np.allclose(np.sort(np.linalg.eigvals(B)), [-7, 6])

# x1^2 + x2^2 - 7 is convex: its Hessian is the same everywhere, with the eigenvalues 2 and 2.
assert np.linalg.eigvalsh([[2.0, 0.0], [0.0, 2.0]]).tolist() == [2, 2]
# gamma * w is not: this is why the margin itself makes no convex problem, and 1/2 |w|^2 does.
assert np.allclose(np.linalg.eigvalsh([[0.0, 1.0], [1.0, 0.0]]), [-1, 1])

w, b, rng = np.array([3.0, 4.0]), -7.0, np.random.default_rng(0)
one, two = er.Hyperplane(w, b).project(rng.normal(size=(2, 2)))  # two points of a plane
assert all(abs(w @ ((1 - share) * one + share * two) + b) < 1e-12 for share in np.linspace(0, 1, 11))

# %%
# Take :math:`f(x, y) = x^3 + y^3 - 3 x y`. Its gradient is :math:`(3x^2 - 3y,\; 3y^2 - 3x)`, which is zero at (0, 0)
# and (1, 1). Its Hessian has 6x and 6y on the diagonal, and -3 beside it. At (1, 1) both eigenvalues are positive: a
# local minimum. At (0, 0) one is negative: a *saddle*. The function is not convex, and far to the lower left it has no
# bottom. :func:`empirisk.minimise` goes down on any function. It needs no derivatives; it takes differences where none
# are given.


def cubic(x):
    """A function with a saddle, a local minimum and no lowest point."""
    return x[0] ** 3 + x[1] ** 3 - 3 * x[0] * x[1]


def hessian(x):
    """Its second derivatives."""
    return np.array([[6 * x[0], -3.0], [-3.0, 6 * x[1]]])


assert np.allclose(np.linalg.eigvalsh(hessian([0, 0])), [-3, 3])
assert np.allclose(np.linalg.eigvalsh(hessian([1, 1])), [3, 9])
found = {start: er.minimise(cubic, start, "gradient_descent") for start in ((0.2, 1.6), (2.0, 0.4), (0.2, -0.1))}
assert all(np.allclose(one.x, [1, 1], atol=1e-4) for one in found.values())
figure = er.plots.descent({f"from {start}": one for start, one in found.items()})
figure.axes[0].set_title("Three starts, one local minimum", loc="left", fontsize=11)
figure

# %%
# Rules for gradients are worth knowing by heart: :math:`c'x` has the gradient c, :math:`x'Ax` has :math:`(A + A')x`,
# and :math:`\|x\|^2` has 2x. Differences check them.
A, c, at, h = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3), 1e-6
for value, gradient in (
    (lambda x: c @ x, c),
    (lambda x: x @ A @ x, (A + A.T) @ at),
    (lambda x: x @ x, 2 * at),
):
    differences = [(value(at + h * unit) - value(at - h * unit)) / (2 * h) for unit in np.eye(3)]
    assert np.allclose(differences, gradient, atol=1e-6)

# %%
# How far to go
# -------------
# *Gradient descent* steps against the gradient: :math:`x \leftarrow x - \lambda_t \nabla f(x)`. The *rate*
# :math:`\lambda_t` decides everything. On a long valley, :math:`x_1^2 + 10 x_2^2`, the steep direction allows no rate
# above 1/10, and the flat one then needs many steps. Move the slider: too small, right, at the limit, and too large.


def valley(x):
    """Ten times as steep in one direction as in the other."""
    return x[0] ** 2 + 10 * x[1] ** 2


exact = er.minimise(valley, [2.0, 0.6], "gradient_descent", step="exact", max_iter=20)


def walk(rate):
    """Twenty steps with one rate."""
    way = er.minimise(valley, [2.0, 0.6], "gradient_descent", step="fixed", rate=rate, max_iter=20)
    return er.plots.descent({f"rate {rate}": way, "exact line search": exact})


steep = {
    rate: er.minimise(valley, [2.0, 0.6], "gradient_descent", step="fixed", rate=rate, max_iter=20).history["objective"]
    for rate in (0.01, 0.08, 0.105)
}
assert steep[0.08][-1] < steep[0.01][-1]
assert steep[0.105][-1] > steep[0.08][-1]
er.plots.slider(walk, rate=[0.01, 0.04, 0.08, 0.095, 0.1, 0.102])

# %%
# The rate need not be chosen by hand:
#
# - *backtracking* halves it until f falls enough; an *exact line search* takes the best point along the line;
# - the *bold driver* makes it a little larger after each success and much smaller after a failure;
# - *momentum* keeps some of the last step, and Nesterov's *accelerated* descent looks ahead;
# - *Newton's method* divides by the Hessian: one step on a quadratic; *BFGS* learns the Hessian on the way.
methods = {
    "fixed rate": {"method": "gradient_descent", "step": "fixed", "rate": 0.09},
    "exact line search": {"method": "gradient_descent", "step": "exact"},
    "bold driver": {"method": "gradient_descent", "step": "bold_driver", "grow": 1.1, "shrink": 0.5},
    "accelerated": {"method": "accelerated"},
    "Newton": {"method": "newton"},
    "BFGS": {"method": "bfgs"},
}
ways = {name: er.minimise(valley, [2.0, 0.6], **how) for name, how in methods.items()}
assert all(np.allclose(way.x, 0, atol=1e-3) for way in ways.values())
assert ways["Newton"].iterations <= 2
assert ways["exact line search"].iterations < ways["fixed rate"].iterations

# %%
# On a smooth function that bends upwards everywhere, a small enough constant rate gains digits at a constant pace: the
# distance of f from its minimum shrinks by a factor below 1 in every step. This is called a *linear* rate, for the
# straight line on a logarithmic scale. :math:`\log(1 / \epsilon)` steps are enough for a precision of
# :math:`\epsilon`. If f is convex and no more, the distance falls like 1/t.
objective = ways["fixed rate"].history["objective"]
ratios = objective[1:30] / objective[:29]
assert ratios.max() < 1
figure = Figure(figsize=(11.5, 4.2), layout="constrained")
left, axes = figure.subplots(1, 2, width_ratios=[1.2, 1])
er.plots.descent({name: ways[name] for name in ("fixed rate", "exact line search", "Newton")}, axes=left)
colours = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#332288")
for (name, way), colour in zip(ways.items(), colours, strict=True):
    values = np.maximum(way.history["objective"], 1e-13)[:60]
    axes.semilogy(values, color=colour, label=name)
axes.set(xlabel="iteration", ylabel="f - minimum")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
axes.set_title("The pace of six methods", loc="left", fontsize=11)
figure

# %%
# The same machine by many solvers
# --------------------------------
# The solvers of the machines are these methods. ``solver=`` chooses, and "auto" picks a good one. The answer is the
# same, and so is the certificate. Press play to see gradient descent go down to a logistic regression.
X = rng.normal(size=(100, 2)) * [1.0, 2.0]
y = np.where(X @ [1.0, 0.4] + 0.7 * rng.normal(size=100) > 0, "yes", "no")
by = {solver: er.LogisticRegression(solver=solver).fit(X, y) for solver in ("gradient_descent", "newton", "auto")}
assert np.ptp([machine.certificate_.primal for machine in by.values()]) < 1e-5
assert by["newton"].n_iter_ < by["gradient_descent"].n_iter_
er.plots.animate(er.LogisticRegression(solver="gradient_descent"), X, y, kind="descent", frames=12)

# %%
# In the playground of the :doc:`studio </studio>` the same solver goes step by step, forward and back, on points that
# you can move.
from empirisk.studio.playground.address import link

near = np.abs(X).max(axis=1) < 3
link(X[near], y[near], loss="logistic", solver="gradient_descent")

# %%
# For squares the closed form is there, but costs :math:`n d^2 + d^3` operations, where a step of descent costs
# :math:`n d`. With many columns, or when three digits are enough, descent wins; and most losses have no closed form.
numbers = X @ [2.0, -1.0] + 0.1 * rng.normal(size=100)
closed, descended = er.Ridge().fit(X, numbers), er.Ridge(solver="gradient_descent").fit(X, numbers)
assert np.allclose(closed.coef_, descended.coef_, atol=1e-4)
assert closed.solver_ == "closed_form"

# %%
# One row at a time
# -----------------
# The gradient is a sum over n rows. *Stochastic* gradient descent takes B random rows and multiplies their part by
# :math:`n / B`. On average over all choices this is the gradient itself, at a fraction of the cost; single steps go
# astray. With rates that fall, :math:`\sum \lambda_t = \infty` but :math:`\sum \lambda_t^2 < \infty`, as 1/t does, it
# arrives with probability 1, under mild conditions. Averages over a *mini-batch* go astray less.
signs, n = np.where(y == "yes", 1.0, -1.0), len(y)
place = np.array([0.3, -0.2])


def part(rows):
    """The gradient of the logistic losses of some rows, scaled up to all."""
    slopes = -signs[rows] / (1 + np.exp(signs[rows] * (X[rows] @ place)))
    return n / len(rows) * slopes @ X[rows]


whole = part(np.arange(n))
parts = np.array([part(rows) for rows in np.split(rng.permutation(n), 20)])  # B = 5: every row once
assert np.allclose(parts.mean(axis=0), whole)
assert parts.std(axis=0).min() > 1  # a single step is far off

solvers = {
    "gradient descent": er.LogisticRegression(solver="gradient_descent", max_iter=30, tol=1e-3),
    "stochastic": er.LogisticRegression(solver=er.solvers.SGD(batch_size=5), max_iter=30, tol=1e-3),
    "Adam": er.LogisticRegression(solver=er.solvers.SGD(batch_size=5, adapt="adam"), max_iter=30, tol=1e-3),
}
er.plots.descent(solvers, X, y)

# %%
# ``adapt="adagrad"``, ``"rmsprop"`` and ``"adam"`` give each weight a rate of its own, smaller where gradients were
# large. The certificate shows what stochastic steps are good for: some digits quickly, many digits never.
loose = er.LogisticRegression(solver=er.solvers.SGD(batch_size=5), max_iter=30, tol=1e-3).fit(X, y).certificate_
assert 1e-6 < loose.relative_gap < 0.05
assert by["newton"].certificate_.relative_gap < 1e-9
print("stochastic:", loose)

# %%
# Corners
# -------
# The hinge has no derivative at t = 1. Any slope between those on both sides, a *subgradient*, will do for a step.
# With one row, the rate 1 and the penalty :math:`\tfrac{\lambda}{2} \|w\|^2` a step is
#
# .. math:: w \leftarrow (1 - \lambda) w + y x \; 1[y \langle w, x \rangle < 1] :
#
# shrink, and turn towards the row if it is inside the margin. A subgradient need not lead down, and constant steps
# never settle; so rates must fall, as :math:`1 / (\lambda t)` does, and the best point is kept.
row, label, strength = np.array([1.0, 2.0]), 1.0, 0.1
for start in (np.array([0.1, 0.1]), np.array([1.0, 1.0])):
    subgradient = strength * start - (label * row if label * row @ start < 1 else 0.0)
    rule = (1 - strength) * start + label * row * (label * row @ start < 1)
    assert np.allclose(start - subgradient, rule)


def corner(x):
    """|x1| + 3 |x2 - 1|."""
    return abs(x[0]) + 3 * abs(x[1] - 1)


constant = er.minimise(corner, [2.0, 2.3], "subgradient", step="fixed", rate=0.3, max_iter=200)
falling = er.minimise(corner, [2.0, 2.3], "subgradient", step="decreasing_root", rate=0.3, max_iter=2000)
assert falling.value < constant.value
proof = er.SVM(C=1.0).fit(X, y).certificate_
assert proof.relative_gap < 1e-6
print(proof.solver)  # machines with corners take the dual or an interior-point method instead

# %%
# When to stop
# ------------
# More steps fit the known rows better. New rows they fit better at first, and later perhaps worse. The number of steps
# can be chosen like any other parameter: by *cross-validation*, on random splits, 80 % to learn from and 20 % to
# validate on. On the left the rectangle of :doc:`lesson 1 <plot_01_equation>` goes down on its squared loss: four
# parameters, and both curves fall as long as we look. On the right there are 60 weights for 80 rows, and validation
# says to stop early. Bands are one standard deviation over ten splits.
points = rng.uniform(size=(100, 2))
inside = np.where(((points > [0.0, 0.2]) & (points < [0.8, 0.8])).all(axis=1), 1.0, -1.0)
many = rng.normal(size=(100, 60))
noisy = many[:, :5].sum(axis=1) + 2.0 * rng.normal(size=100)


def rectangle(theta, rows, target):
    """Squared losses of 1 - max_j a_j (x_j - c_j)^2 with theta = (c, a), and the gradient of their mean."""
    off = rows - theta[:2]
    larger = np.eye(2)[np.argmax(theta[2:] * off**2, axis=1)]  # the larger of the two terms counts
    residuals = 1 - (theta[2:] * off**2).max(axis=1) - target
    gradient = np.r_[residuals @ (larger * 2 * theta[2:] * off), residuals @ (-larger * off**2)]
    return residuals**2, 2 * gradient / len(rows)


def plane(theta, rows, target):
    """The same for a linear function."""
    residuals = rows @ theta - target
    return residuals**2, 2 * residuals @ rows / len(rows)


def tracks(function, rows, target, start, rate, steps):
    """Mean losses on both parts of ten splits after every step: splits x steps x 2."""
    found = []
    for _ in range(10):
        order = rng.permutation(len(rows))
        learn, hold = order[:80], order[80:]
        theta, track = start, []
        for _ in range(steps):
            losses, gradient = function(theta, rows[learn], target[learn])
            track.append((losses.mean(), function(theta, rows[hold], target[hold])[0].mean()))
            theta = theta - rate * gradient
        found.append(track)
    return np.array(found)


figure = Figure(figsize=(10, 4), layout="constrained")
best = []
for axes, (name, curves) in zip(
    figure.subplots(1, 2),
    {
        "rectangle": tracks(rectangle, points, inside, np.array([0.3, 0.3, 6.0, 6.0]), 0.05, 500),
        "plane of 60 weights": tracks(plane, many, noisy, np.zeros(60), 0.05, 120),
    }.items(),
    strict=True,
):
    mean, spread, steps = curves.mean(axis=0), curves.std(axis=0), curves.shape[1]
    best.append(int(np.argmin(mean[:, 1])))
    for column, (part_of, colour) in enumerate((("learned from", "#0072B2"), ("validation", "#D55E00"))):
        low, high = mean[:, column] - spread[:, column], mean[:, column] + spread[:, column]
        axes.plot(mean[:, column], color=colour)
        axes.fill_between(np.arange(steps), low, high, color=colour, alpha=0.2, lw=0)
        side = "bottom" if column else "top"
        axes.annotate(part_of, (steps, mean[-1, column]), color=colour, va=side, annotation_clip=False)
    axes.axvline(best[-1], color="0.4", ls=":")
    axes.set(xlabel="steps", ylabel="mean squared loss", xlim=(0, steps), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{name}: validation is best after {best[-1]} steps", loc="left", fontsize=11)
assert best[0] > 400
assert best[1] < 60
figure

# %%
# To stop early is to regularise (:doc:`lesson 5 <plot_05_regularisation>`). It matters most for networks, which have
# many weights: :class:`empirisk.Network` and :class:`empirisk.solvers.EarlyStopping` hold rows out and stop by
# themselves.
#
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 4.1
#
#    Find a convex function, a start and a constant rate with which gradient descent never reaches the minimum. Which
#    rate reaches it in one step?
#
# .. solution::
#
# :math:`f(x) = x^2` from 1 with the rate 1: the gradient is 2x, so that x becomes -x for ever. Its second derivative 2
# is positive, so it is convex. The rate 1/2 reaches 0 in one step.
cycle = er.minimise(
    lambda x: x * x, 1.0, "gradient_descent", step="fixed", rate=1.0, gradient=lambda x: 2 * x, max_iter=9
)
assert np.abs(cycle.history["x"]).ravel().tolist() == [1.0] * 10
once = er.minimise(lambda x: x * x, 1.0, "gradient_descent", step="fixed", rate=0.5, gradient=lambda x: 2 * x)
assert once.history["x"].ravel()[1] == 0.0

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 4.2
#
#    :math:`f(x) = x^3` is flat at 0, where it goes on falling to the left. From which starts, and at which rates, does
#    descent stop at 0 all the same?
#
# .. solution::
#
# From x > 0 with a small constant rate, :math:`x \leftarrow x - 3 \lambda x^2` stays positive and falls to 0. From x <
# 0 every positive rate leads further down, away from 0. If each start may have its own rates, one step is enough: from
# x > 0 take :math:`\lambda = 1 / (3x)`; from x < 0 that rate is negative, and no positive one serves.
way = er.minimise(
    lambda x: x**3, 1.0, "gradient_descent", step="fixed", rate=0.1, gradient=lambda x: 3 * x * x, max_iter=500
)
positions = way.history["x"].ravel()
assert (np.diff(positions) <= 0).all()
assert 0 < positions[-1] < 0.01
start = -0.5
assert all(start - rate * 3 * start**2 < start for rate in (1e-3, 0.1, 10.0))
assert 2.0 - 1 / (3 * 2.0) * 3 * 2.0**2 == 0.0

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 4.3
#
#    Can a matrix have exactly one eigenvector for each direction, and two independent ones for the same eigenvalue?
#
# .. solution::
#
# No. If :math:`A x = \lambda x` and :math:`A z = \lambda z`, then every :math:`x + s z` is an eigenvector too:
# infinitely many directions. So if there are finitely many, each has an eigenvalue of its own.
double = np.diag([2.0, 2.0, 5.0])
for s in (0.1, 1.0, 7.0):
    mixed = np.array([1.0, s, 0.0])
    assert np.allclose(double @ mixed, 2.0 * mixed)

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - :func:`empirisk.minimise`, :func:`empirisk.plots.descent`, :func:`empirisk.plots.history`,
#   :func:`empirisk.plots.animate`.
# - :class:`empirisk.solvers.GradientDescent`, :class:`empirisk.solvers.SGD`, :class:`empirisk.solvers.Newton`,
#   :class:`empirisk.solvers.Proximal`.
# - What to do when a fit does not converge: :doc:`/start/certificates`.
