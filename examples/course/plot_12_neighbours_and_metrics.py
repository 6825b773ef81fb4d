r"""
12. Neighbours and metrics
==========================

The oldest idea of learning: answer as the most similar rows answered. k-nearest neighbours has no training at all and
no assumption but one, that near rows have like answers. So everything depends on what "near" means. This lesson chooses
k, says how far from the best possible the nearest neighbour can be, takes distances through kernels, and in the end
lets the data say what near means, by a learned metric

.. math:: d_P(x, z) = \|P x - P z\|

About twelve minutes. You need :doc:`lesson 1 <plot_01_equation>`; the part on kernels needs :doc:`lesson 7
<plot_07_kernels>`.
"""

import numpy as np

import empirisk as er
from empirisk.studio.playground.address import link

rng = np.random.default_rng(5)

# %%
# k decides how rough the answer is
# ---------------------------------
# Points in a rectangle are of class 1. The prediction is the majority among the k nearest training rows. With k = 1
# each training row has a cell of its own in which its label holds, so that no training error is possible. With larger
# k that is no longer true: a row can be outvoted by its neighbours. For even k there are ties.

X = rng.uniform(size=(100, 2))


def inside(points):
    """Whether points lie in the rectangle."""
    return ((points[:, 0] < 0.8) & (np.abs(points[:, 1] - 0.5) < 0.3)).astype(int)


y = inside(X)
assert er.KNNClassifier(1).fit(X, y).score(X, y) == 1.0
assert er.KNNClassifier(5).fit(X, y).score(X, y) < 1.0

er.plots.slider(lambda k: er.plots.regions(er.KNNClassifier(k).fit(X, y), X, y, resolution=120), k=[1, 2, 3, 5, 15, 45])

# %%
# In the playground of :doc:`the studio </studio>`, choose *Neighbours*, raise *Noise*, and look for the k at which the
# held-out error is least.

link(4 * X - 2, y, family="neighbours", k=5)

# %%
# Small k follows every row: it overfits. Large k averages over rows that are no longer near: it underfits, and with k
# = n it says the most frequent class everywhere.
#
# Choosing k
# ----------
# The training error prefers k = 1 always, so other rows must choose. Three parts have three tasks: *training* rows
# are the neighbours, *validation* rows choose k, *test* rows say how good the chosen machine is, and have no other
# part in it.

X_validation, X_test = rng.uniform(size=(50, 2)), rng.uniform(size=(5000, 2))
flip = 0.1
y_noisy, v_noisy, t_noisy = (
    np.where(rng.uniform(size=len(part)) < flip, 1 - inside(part), inside(part)) for part in (X, X_validation, X_test)
)
ks = np.arange(1, 30)
machines = [er.KNNClassifier(int(k)).fit(X, y_noisy) for k in ks]
training, validation, test = (
    np.array([machine.score(rows, labels) for machine in machines])
    for rows, labels in ((X, y_noisy), (X_validation, v_noisy), (X_test, t_noisy))
)
chosen = int(ks[validation.argmax()])
assert training[0] == 1.0
assert training.argmax() == 0
assert test[validation.argmax()] > test[0]
assert validation.max() >= test[validation.argmax()] - 0.08  # the choosing rows flatter, or at least do not hide much
er.plots.validation_curve(ks, training, validation, parameter="k")

# %%
# One validation part of fifty rows is a matter of luck. Ten random splits of the rows into 80 % and 20 % give a mean
# and a spread, and the curve becomes readable:

curve = er.evaluation.validation_curve(
    er.KNNClassifier(), X, y_noisy, "n_neighbors", list(range(1, 30, 2)),
    cv=[(order[20:], order[:20]) for order in (rng.permutation(100) for _ in range(10))],
)  # fmt: skip
assert curve.train[0].mean() == 1.0
assert curve.best > 1
er.plots.validation_curve(curve)

# %%
# Leave-one-out is almost free here: look up k + 1 neighbours of each row and drop the row itself. With
# ``n_neighbors="loo"`` the machine does that.

alone = er.KNNClassifier("loo").fit(X, y_noisy)
assert alone.n_neighbors_ > 1
print(f"three parts chose k = {chosen}, ten splits {curve.best}, leave-one-out {alone.n_neighbors_}")

# %%
# How good can the nearest neighbour be?
# --------------------------------------
# With many rows the nearest neighbour of x lies almost at x, and its label is another draw from the same coin. If class
# 1 has probability p(x), both labels differ with probability 2 p (1 - p). The best rule errs with min(p, 1 - p). From
# this Cover and Hart derived, with R* the error of the best rule and R that of the nearest neighbour,
#
# .. math:: R^* \;\leq\; R \;\leq\; 2 R^* (1 - R^*)
#
# Half of all that can be known lies in the nearest row. On a distribution with three values of x:

p, share = np.array([0.05, 0.5, 0.8]), np.array([0.5, 0.2, 0.3])
bayes = er.theory.FiniteBayes(np.column_stack([share * (1 - p), share * p])).error().value
nearest = float(share @ (2 * p * (1 - p)))
limit = er.theory.cover_hart(bayes=bayes)
assert np.isclose(bayes, share @ np.minimum(p, 1 - p))
assert bayes <= nearest <= limit.value
assert np.isclose(limit.value, 2 * bayes * (1 - bayes))
print(limit)

# %%
# And on two Gaussian classes, where both errors can be measured: more rows bring the nearest neighbour into the range,
# more neighbours bring it near the lower end.

normal = er.theory.GaussianBayes([[0.0], [1.5]], 1.0)
R_best = normal.error().value
rows, labels = normal.sample(4000, random_state=0)
new_rows, new_labels = normal.sample(20_000, random_state=1)
one, many = (1 - er.KNNClassifier(k).fit(rows, labels).score(new_rows, new_labels) for k in (1, 61))
limit = er.theory.cover_hart(bayes=R_best).value
assert R_best < one < limit + 0.01
assert abs(many - R_best) < 0.015
print(f"best {R_best:.3f}, 61 neighbours {many:.3f}, one {one:.3f}, limit {limit:.3f}")

# %%
# Neighbours through a kernel
# ---------------------------
# Distances behind a map need only inner products, so that the kernel is enough:
#
# .. math:: \|\phi(x) - \phi(z)\|^2 = k(x, x) - 2 k(x, z) + k(z, z)
#
# For a Gaussian this is :math:`2 - 2 \exp(-d^2 / (2\,\text{width}^2))`, which grows with d: the neighbours are those
# of the Euclidean distance, whatever the width. A polynomial kernel has others.

gaussian, square = er.kernels.Gaussian(0.3), er.kernels.Polynomial(2, constant=0.0)
distances = gaussian.diagonal(X)[:, None] - 2 * gaussian(X) + gaussian.diagonal(X)
straight = ((X[:, None] - X[None]) ** 2).sum(axis=2)
assert np.allclose(distances, 2 - 2 * np.exp(-straight / (2 * 0.3**2)))
plain, through, other = (er.KNNClassifier(5, features=kernel).fit(X, y) for kernel in (None, gaussian, square))
grid = rng.uniform(size=(1000, 2))
assert np.array_equal(plain.predict(grid), through.predict(grid))
assert np.mean(plain.predict(grid) != other.predict(grid)) > 0.01

# %%
# A kernel machine is a vote of rows, too: :math:`y = \operatorname{sign}(\sum_i y_i \alpha_i k(x_i, x))`. Neighbours
# count all near rows alike. A kernel perceptron has learned weights, zero for rows that were never wrong, and has to
# be trained.

perceptron = er.Perceptron(features=er.kernels.Gaussian(0.15), max_iter=200).fit(X, y)
weighty = len(perceptron.support_)
assert perceptron.score(X, y) == 1.0
assert weighty < len(X)
agree = np.mean(perceptron.predict(grid) == plain.predict(grid))
assert agree > 0.85
print(f"the perceptron keeps {weighty} of 100 rows; the two agree on {agree:.0%} of new ones")

# %%
# A metric that is learned
# ------------------------
# One column tells two classes apart, and another is noise on a larger scale. Neighbours look at both, and the noise is
# louder.

signal = np.repeat([0, 1], 75)
stretched = np.column_stack([signal + 0.35 * rng.normal(size=150), 6 * rng.normal(size=150)])
fresh_signal = np.repeat([0, 1], 500)
fresh = np.column_stack([fresh_signal + 0.35 * rng.normal(size=1000), 6 * rng.normal(size=1000)])
euclid = er.KNNClassifier(5).fit(stretched, signal)
er.plots.regions(euclid, stretched, signal)

# %%
# Learn P so that like rows come close. Minimising distances of like pairs minus distances of unlike ones does not
# work: once it is negative for some P, twice P is four times as good, and there is no minimum. So unlike pairs are
# pushed only until a *margin*:
#
# .. math:: \alpha \operatorname{mean}_{\text{like}} d_P^2 + \beta \operatorname{mean}_{\text{unlike}}
#           \max(0, \text{margin} - d_P)^2

like = signal[:, None] == signal


def without_margin(P):
    """Like pairs minus unlike ones."""
    image = stretched @ P.T
    squared = ((image[:, None] - image[None]) ** 2).sum(axis=2)
    return squared[like].mean() - squared[~like].mean()


first_column = np.array([[1.0, 0.0]])
assert without_margin(first_column) < 0
assert np.isclose(without_margin(10 * first_column), 100 * without_margin(first_column))

contrastive = er.KNNClassifier(5, features=er.ContrastiveMetric()).fit(stretched, signal)
assert contrastive.score(fresh, fresh_signal) > euclid.score(fresh, fresh_signal) + 0.05
er.plots.regions(contrastive, stretched, signal)

# %%
# With two margins, :math:`\max(0, d^2 - a)` for like and :math:`\max(0, b - d^2)` for unlike pairs, like rows may
# keep some distance as well. Squared distances are linear in M = P'P, so this form is convex in M and comes with a
# certificate.

convex = er.ContrastiveMetric(loss="two_margins", convex=True).fit(stretched, signal)
assert convex.certificate_.converged
M = convex.components_.T @ convex.components_
assert M[0, 0] > 5 * M[1, 1]
convex.certificate_

# %%
# Large-margin neighbours
# -----------------------
# A neighbour machine looks at few rows, so the metric should care for those. *Large-margin nearest neighbours* pulls
# the k nearest rows of the same class close, and pushes rows of other classes out. The literature pushes in
# *triplets*: an impostor l should be a margin farther than the neighbour j. A simpler form takes *pairs* among the k
# nearest rows. Both are here; triplets look at all impostors, pairs only at those near by.

scores = {"Euclidean": euclid.score(fresh, fresh_signal), "contrastive": contrastive.score(fresh, fresh_signal)}
for form in ("pairs", "triplets"):
    machine = er.KNNClassifier(5, features=er.LargeMarginMetric(n_neighbors=5, form=form)).fit(stretched, signal)
    scores[form] = machine.score(fresh, fresh_signal)
assert min(scores, key=scores.get) == "Euclidean"
assert scores["triplets"] > scores["Euclidean"] + 0.05
figure = er.plots.importance(list(scores.values()), names=list(scores))
figure.axes[0].set_title("Accuracy on new rows", loc="left")
figure.axes[0].set_xlabel("accuracy")
figure

# %%
# The metric has learned what a unit of each column is worth.
#
# Exercises
# ---------
#
# .. admonition:: Exercise 12.1
#
#    Show that 1-NN through the polynomial kernel :math:`(\langle x, z \rangle + 1)^2` has the neighbours of the
#    explicit map.
#
# .. solution::
#
# The distances are the same numbers.

implicit = er.KNNClassifier(1, features=er.kernels.Polynomial(2)).fit(X, y)
explicit = er.KNNClassifier(1, features=er.maps.PolynomialKernel(2)).fit(X, y)
assert np.array_equal(implicit.predict(grid), explicit.predict(grid))

# %%
# .. end-solution::
#
# .. admonition:: Exercise 12.2
#
#    For two classes with p(x) = 0.2 everywhere, what are R*, the limit of 1-NN, and the bound of Cover and Hart?
#
# .. solution::
#
# R* = 0.2, and 2 p (1 - p) = 0.32, which is the bound: it is sharp where p(x) is the same everywhere.

assert np.isclose(er.theory.cover_hart(bayes=0.2).value, 2 * 0.2 * 0.8)
tossed, coins = rng.uniform(size=(3000, 1)), (rng.uniform(size=3000) < 0.2).astype(int)
again, new_coins = rng.uniform(size=(3000, 1)), (rng.uniform(size=3000) < 0.2).astype(int)
assert abs(1 - er.KNNClassifier(1).fit(tossed, coins).score(again, new_coins) - 0.32) < 0.03

# %%
# .. end-solution::
#
# .. admonition:: Exercise 12.3
#
#    Scale every column to standard deviation one instead of learning a metric. When is that as good, and when not?
#
# .. solution::
#
# Equal scales make the noise as loud as the signal: better than six times as loud, and still worse than a learned
# metric, which knows the labels. With ten columns of noise instead of one, scaling helps no longer.

scaled = er.maps.standardised(er.KNNClassifier(5)).fit(stretched, signal).score(fresh, fresh_signal)
assert scores["Euclidean"] < scaled
wide, wide_new = (np.column_stack([part[:, :1], rng.normal(size=(len(part), 10))]) for part in (stretched, fresh))
ten = er.maps.standardised(er.KNNClassifier(5)).fit(wide, signal).score(wide_new, fresh_signal)
learned = er.KNNClassifier(5, features=er.LargeMarginMetric(5)).fit(wide, signal).score(wide_new, fresh_signal)
assert ten < learned
print(f"scaled {scaled:.2f}; with ten columns of noise {ten:.2f}, learned {learned:.2f}")

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :class:`empirisk.KNNClassifier`, :class:`empirisk.KNNRegressor`, :class:`empirisk.ContrastiveMetric`,
# :class:`empirisk.LargeMarginMetric`, :class:`empirisk.LearnedKernel`, :func:`empirisk.theory.cover_hart`,
# :class:`empirisk.theory.FiniteBayes`.
