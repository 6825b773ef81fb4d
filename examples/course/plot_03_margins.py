r"""
3. Linear machines, margins, the dual and its support vectors
=============================================================

A line that separates two classes is easy to find. Which line is best, how do we know that it is, and which rows does it
rest on? This lesson goes from the geometry of planes to the support vector machine and its dual.

About fifteen minutes. You need :doc:`lesson 1 <plot_01_equation>`, and the hinge loss of
:doc:`lesson 2 <plot_02_losses>`.
"""

# %%
# Planes and distances
# --------------------
# A linear function :math:`f(x) = \langle w, x \rangle + b` is zero on a *hyperplane*. Its vector w stands at a right
# angle to the plane, and the signed distance of a point is
#
# .. math:: d(x) = \frac{\langle w, x \rangle + b}{\|w\|}.
#
# This is the *scalar projection* of :math:`x - \tilde x` onto w, for any point :math:`\tilde x` of the plane. Take
# :math:`f(x) = 3 x_1 + 4 x_2 - 7`.
import numpy as np

import empirisk as er

w, b = np.array([3.0, 4.0]), -7.0
plane = er.Hyperplane(w, b)
on_it = np.array([[1.0, 1.0], [-3.0, 4.0]])
assert np.allclose(plane.decision(on_it), 0)
assert np.isclose(w @ (on_it[0] - on_it[1]), 0)  # w is orthogonal to the plane

x = np.array([[5.0, 5.5]])
projection = w @ (x - on_it[0]).T / np.linalg.norm(w)
assert np.isclose(plane.distance(x), projection).all()
foot = plane.project(x)
assert np.isclose(plane.distance(x), np.linalg.norm(x - foot)).all()  # no point of the plane is closer than the foot
assert np.allclose(x - foot, plane.distance(x)[0] * w / np.linalg.norm(w))  # what is left after the projection
print("distance of (5, 5.5):", plane.distance(x)[0])

# %%
# The simplest linear machine
# ---------------------------
# The *nearest centroid* compares the distances to the mean of each class. The squared lengths of x cancel, and what is
# left is linear: :math:`w = 2 (c_+ - c_-)`, :math:`b = \|c_-\|^2 - \|c_+\|^2`.
rng = np.random.default_rng(0)
X = np.r_[rng.normal((-1.4, -1.0), 0.55, (20, 2)), rng.normal((1.4, 1.0), 0.55, (20, 2))]
y = np.repeat([-1, 1], 20)
centroid = er.NearestCentroid().fit(X, y)
low, high = X[y == -1].mean(axis=0), X[y == 1].mean(axis=0)
assert np.allclose(centroid.coef_, 2 * (high - low))
assert np.allclose(centroid.intercept_, low @ low - high @ high)

# %%
# It looks at means alone, and one far row moves a mean. In the worst case it is right on one row of each class and
# wrong on all others, though a line separates the classes. It is never wrong on *all* rows of a class, unless the
# centroids coincide: the mean of f over a class is f at its centroid, which has the right sign.
n = 40
trap = np.zeros((2 * n, 2))
trap[:n] = [-1.0, 0.1]
trap[n:] = [1.0, -0.1]
trap[0], trap[n] = [10 * n, 0.1], [-10 * n, -0.1]  # one row of each class, far out on the side of the other
sides = np.repeat([1, -1], n)
assert er.NearestCentroid().fit(trap, sides).score(trap, sides) == 1 / n
assert er.Perceptron(max_iter=10_000).fit(trap, sides).score(trap, sides) == 1.0

# %%
# The perceptron
# --------------
# The *perceptron* goes through the rows. At every mistake, :math:`y_i f(x_i) \le 0`, it adds the row: :math:`w
# \leftarrow w + y_i x_i`, :math:`b \leftarrow b + y_i`. This raises :math:`y_i f(x_i)` by :math:`\|x_i\|^2 + 1`. If a
# plane separates the classes, it finds one after finitely many mistakes; else it never ends by itself. Here it learns
# the logical OR.
corners, either = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([-1, 1, 1, 1])
perceptron = er.Perceptron().fit(corners, either)
assert (perceptron.predict(corners) == either).all()
assert perceptron.history_["mistakes"][-1] == 0
before = either[1] * (corners[1] @ np.zeros(2) + 0.0)
after = either[1] * (corners[1] @ (either[1] * corners[1]) + either[1])
assert after - before == corners[1] @ corners[1] + 1

er.plots.regions(perceptron, corners, either)

# %%
# Its plane runs close by a row, since any separating plane will do, and which one it finds depends on the order in
# which it visits the rows. (Here that order is drawn by ``random_state``, whatever the order of the table.)
planes = [er.Hyperplane.of(er.Perceptron(random_state=seed).fit(X, y)) for seed in range(6)]
smallest = np.array([(y * one.distance(X)).min() for one in planes])
assert (smallest > 0).all()  # all of them separate
assert smallest.max() > 1.2 * smallest.min()  # and differ
print("distance of the nearest row:", smallest.round(2))

# %%
# The largest margin
# ------------------
# So choose the plane whose nearest row is as far away as possible. Multiplying w and b with a number does not move the
# plane; fix it so that the nearest row has :math:`y_i f(x_i) = 1`. Then its distance is :math:`1 / \|w\|`, and the
# search for the largest margin is
#
# .. math:: \min_{w, b} \tfrac12 \|w\|^2 \quad\text{with}\quad y_i f(x_i) \ge 1 \text{ for every row.}
#
# (With :math:`\ge 0` in place of :math:`\ge 1` the answer would be w = 0.) In this form the problem is convex. It is
# the *hard-margin* support vector machine, ``C=np.inf``.
hard = er.SVM(C=np.inf).fit(X, y)
widest = er.Hyperplane.of(hard)
assert widest.margin > smallest.max()
assert np.isclose((y * widest.decision(X)).min(), 1.0, atol=1e-5)
above, below = widest.supporting[1], widest.supporting[0]
point = above.project(np.zeros((1, 2)))  # on the plane f = 1
assert np.isclose(abs(below.distance(point)[0]), 2 / np.linalg.norm(widest.w))  # between them: 2 / |w|
er.plots.regions(hard, X, y)

# %%
# Only the ringed rows touch the margin, the *support vectors*. They are few, and all others could go: without them the
# answer is the same. In fact two points are always enough: the nearest points of the *convex hulls* of the two
# classes. With these two as its data, the nearest centroid machine is the hard-margin machine.
kept = hard.support_
again = er.SVM(C=np.inf).fit(X[kept], y[kept])
assert np.allclose(again.coef_, hard.coef_, atol=1e-4)

alpha = np.zeros(len(y))
alpha[kept] = np.abs(hard.dual_coef_).ravel()
ends = np.array([alpha[y == side] @ X[y == side] / alpha[y == side].sum() for side in (-1, 1)])  # in the hulls
two = er.SVM(C=np.inf).fit(ends, [-1, 1])
assert np.allclose(two.coef_, hard.coef_, atol=1e-3)
assert np.isclose(np.linalg.norm(ends[1] - ends[0]), 2 * widest.margin, atol=1e-3)
by_centroids = er.NearestCentroid().fit(ends, [-1, 1]).coef_.ravel()
assert np.isclose(by_centroids @ hard.coef_.ravel(), np.linalg.norm(by_centroids) * np.linalg.norm(hard.coef_))

# %%
# Rows that cannot be separated
# -----------------------------
# If the classes overlap, no plane meets the conditions, and the library says so. If they do not, one outlier can make
# the margin tiny. So let each row miss the margin by :math:`\xi_i \ge 0`, and let that cost :math:`C \sum_i \xi_i`.
# For a given plane the best :math:`\xi_i` is :math:`\max(0, 1 - y_i f(x_i))`: the hinge. This is the *soft-margin*
# machine, and the equation of :doc:`lesson 1 <plot_01_equation>` with the hinge and the l2 penalty. As C grows it
# becomes the hard one.
noisy, labels = np.r_[X, [[0.3, 0.2]]], np.r_[y, -1]  # an outlier, just on its own side
try:
    er.SVM(C=np.inf).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    raise AssertionError("this cannot be separated")
except er.errors.NotSeparable as refusal:
    print(refusal)

soft = {C: er.SVM(C=C).fit(noisy, labels) for C in (0.05, 1.0, 1e4)}
widths = [er.Hyperplane.of(machine).margin for machine in soft.values()]
assert widths[0] > widths[1] > widths[2]
assert np.allclose(er.SVM(C=1e4).fit(X, y).coef_, hard.coef_, atol=1e-3)
er.plots.slider(
    lambda C: er.plots.regions(er.SVM(C=C).fit(noisy, labels), noisy, labels), C=[0.01, 0.1, 1.0, 10.0, 1e4]
)

# %%
# Move the points yourself: this opens them in the playground of the :doc:`studio </studio>`, with the same machine.
from empirisk.studio.playground.address import link

link(noisy, labels, loss="hinge", C=1.0)

# %%
# Other books divide by C and write :math:`\tfrac{\lambda}{2} \|w\|^2 + \sum_i \xi_i` with :math:`\lambda = 1 / C`, or
# take the mean in place of the sum, with :math:`\lambda = 1 / (C n)`; :mod:`empirisk.scales` converts.
#
# The intercept b is not penalised, and must not be left out: shift all rows, and no plane through the origin, nor any
# with another fixed b, does well.
line, ends_of = np.array([[9.0], [10.0], [11.0], [12.0]]), np.array([-1, -1, 1, 1])
assert er.SVM().fit(line, ends_of).score(line, ends_of) == 1.0
assert er.SVM(fit_intercept=False).fit(line, ends_of).score(line, ends_of) == 0.5
fixed = [np.sign(slope * line.ravel() + 1.0) for slope in np.linspace(-5, 5, 1001)]  # b = 1 and any w
assert max(np.mean(signs == ends_of) for signs in fixed) < 1.0
shifted = er.SVM().fit(line + 100, ends_of)
assert shifted.score(line + 100, ends_of) == 1.0

# %%
# The dual
# --------
# How do we know that no plane is better? Give each condition a *Lagrange multiplier* :math:`\alpha_i \ge 0`, also
# called its *dual variable*. For values between 0 and C with :math:`\sum_i \alpha_i y_i = 0`, minimising over w, b and
# :math:`\xi` gives :math:`w = \sum_i \alpha_i y_i x_i` and the value
#
# .. math:: D(\alpha) = \sum_i \alpha_i - \tfrac12 \Big\| \sum_i \alpha_i y_i x_i \Big\|^2 .
#
# No plane can have an objective below it, whatever the multipliers are. At the best ones the two are equal. A
# multiplier above C would make the bound useless: :math:`\xi_i \to \infty` would push it to minus infinity. This is
# the ``dual`` of every certificate, computed afresh after the fit.
C = 0.5
machine = er.SVM(C=C).fit(noisy, labels)
alpha = np.zeros(len(labels))
alpha[machine.support_] = np.abs(machine.dual_coef_).ravel()
w = (alpha * labels) @ noisy
dual = alpha.sum() - 0.5 * w @ w
hinges = np.maximum(0, 1 - labels * machine.decision_function(noisy))
primal = 0.5 * w @ w + C * hinges.sum()
assert np.allclose(w, machine.coef_, atol=1e-6)
assert alpha.min() >= -1e-12
assert alpha.max() <= C + 1e-12
assert abs((alpha * labels).sum()) < 1e-9
assert np.isclose(primal, dual, rtol=1e-5)
assert np.isclose(dual, machine.certificate_.dual, rtol=1e-5)
print(f"primal {primal:.6f}, dual {dual:.6f}")

# %%
# At the optimum each row is in one of three states:
#
# - :math:`\alpha_i = 0`: outside the margin, :math:`y_i f(x_i) \ge 1`. The row does not count.
# - :math:`0 < \alpha_i < C`: on the margin, :math:`y_i f(x_i) = 1`.
# - :math:`\alpha_i = C`: inside the margin or wrong, :math:`y_i f(x_i) \le 1`. No row counts for more than C.
#
# On the margin f is known, so these rows give b. In one dimension they can be drawn as stems:
t = labels * machine.decision_function(noisy)
assert (t[alpha < 1e-7] > 1 - 1e-4).all()
assert (t[alpha > C - 1e-7] < 1 + 1e-4).all()
inner = (alpha > 1e-4) & (alpha < C - 1e-4)
assert np.allclose(t[inner], 1.0, atol=1e-3)
assert np.allclose(labels[inner] - noisy[inner] @ w, machine.intercept_, atol=1e-3)

along = np.r_[rng.normal(-1, 0.7, 15), rng.normal(1, 0.7, 15)][:, None]
er.plots.stems(er.SVM(C=1.0).fit(along, np.repeat(["left", "right"], 15)), along, np.repeat(["left", "right"], 15))

# %%
# Climbing the dual
# -----------------
# The dual can be climbed one row at a time. *Dual ascent* keeps w up to date, and sets each dual variable to its best
# value, cut off at 0 and C. Every state gives a lower bound, so that the gap is known all the time. Press play: rows
# light up as their dual variable rises, and the dual objective meets the primal one.
er.plots.animate(er.SVM(C=0.5, solver=er.solvers.DualAscent(passes=1)), noisy, labels, kind="dual", frames=12)

# %%
# Every loss has a dual
# ---------------------
# The hinge is special in that most dual variables are zero. The logistic loss has a dual too, with variables
# :math:`0 \le \lambda_i \le 1` and their entropy H in place of their sum,
#
# .. math:: D(\lambda) = C \sum_i H(\lambda_i) - \tfrac{C^2}{2} \Big\| \sum_i \lambda_i y_i x_i \Big\|^2 ,
#
# and :math:`\lambda_i = 1 / (1 + e^{t_i})` is the probability of the wrong label. None of them is zero: in logistic
# regression every row counts.
logistic = er.LogisticRegression(C=C).fit(noisy, labels)
share = 1 / (1 + np.exp(labels * logistic.decision_function(noisy)))
entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
w = C * (share * labels) @ noisy
assert np.allclose(w, logistic.coef_, atol=1e-5)
assert np.isclose(C * entropy.sum() - 0.5 * w @ w, logistic.certificate_.primal, rtol=1e-5)
assert share.min() > 0

# %%
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 3.1
#
#    Find the signed distance of the origin from the plane :math:`3 x_1 + 4 x_2 - 7 = 0`.
#
# .. solution::
#
# It is -7/5: the origin lies on the negative side.
assert np.isclose(plane.distance([[0.0, 0.0]])[0], -7 / 5)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 3.2
#
#    Two rows, (0, 0) with -1 and (2, 0) with +1. Compute the hard-margin machine by hand, with its dual variables.
#
# .. solution::
#
# The plane is halfway, at :math:`x_1 = 1`: w = (1, 0) and b = -1. With :math:`w = \alpha (2, 0)` both dual variables
# are 1/2.
pair, sides = np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([-1, 1])
hard_pair = er.SVM(C=np.inf).fit(pair, sides)
assert np.allclose(hard_pair.coef_, [1, 0], atol=1e-5)
assert np.allclose(hard_pair.intercept_, -1, atol=1e-5)
assert np.allclose(np.abs(hard_pair.dual_coef_), 0.5, atol=1e-5)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 3.3
#
#    What does C = 0.1 do to these two rows? Use that no dual variable is above C.
#
# .. solution::
#
# Both are 0.1 and w = (0.2, 0): the margin is 5 wide on each side, and both rows are inside.
small = er.SVM(C=0.1).fit(pair, sides)
assert np.allclose(np.abs(small.dual_coef_), 0.1)
assert np.allclose(small.coef_, [0.2, 0.0])

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 3.4
#
#    Remove a row whose dual variable is 0 and fit again. Then remove one whose dual variable is not.
#
# .. solution::
#
# Nothing changes in the first case; in the second the plane moves.
silent, heard = np.flatnonzero(alpha < 1e-7)[0], np.flatnonzero(inner)[0]
without = er.SVM(C=C).fit(np.delete(noisy, silent, axis=0), np.delete(labels, silent))
assert np.allclose(without.coef_, machine.coef_, atol=1e-4)
without = er.SVM(C=C).fit(np.delete(noisy, heard, axis=0), np.delete(labels, heard))
assert not np.allclose(without.coef_, machine.coef_, atol=1e-3)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 3.5
#
#    Learn to tell 0 from 1 on thirty images of 64 pixels, by the hinge without a penalty and with one, and score both
#    on the other images. Then tell ten digits apart on a hundred images, each against all others.
#
# .. solution::
#
# With more columns than rows a separating plane is nearly always there, so both are right on all rows that they have
# learned from. Without a penalty any such plane will do, and the one that is found is worse than a coin on other
# images; the one with the penalty is right on all of them. For ten digits a hundred images are few: a perfect score on
# them says little.
from sklearn.datasets import load_digits

images, digit = load_digits(return_X_y=True)
images, binary = images / 16, digit < 2
two, which = images[binary], digit[binary]
honest = {}
for penalty in ("none", "l2"):
    machine = er.Classifier(loss="hinge", penalty=penalty, C=1.0).fit(two[:30], which[:30])
    assert machine.score(two[:30], which[:30]) == 1.0
    honest[penalty] = machine.score(two[30:], which[30:])
assert honest["none"] < honest["l2"] == 1.0
ten = er.SVM(C=10.0, multiclass="one_vs_rest").fit(images[:100], digit[:100])
assert ten.score(images[:100], digit[:100]) == 1.0 > 0.9 > ten.score(images[100:], digit[100:])
print(honest, f"ten digits: {ten.score(images[100:], digit[100:]):.0%}")

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - :class:`empirisk.SVM`, :class:`empirisk.Perceptron`, :class:`empirisk.NearestCentroid`,
#   :class:`empirisk.Hyperplane`.
# - :class:`empirisk.solvers.DualAscent`, :class:`empirisk.solvers.Decomposition`, :class:`empirisk.Certificate`.
# - :func:`empirisk.plots.regions`, :func:`empirisk.plots.stems`, :func:`empirisk.plots.animate`.
# - Why a wide margin helps on new rows: lesson 16. Curves in place of lines: :doc:`lesson 7 <plot_07_kernels>`.
