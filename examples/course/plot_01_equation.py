r"""
1. The equation
===============

Learning from examples is one problem of optimisation: choose a function that does well on the rows that are known, and
is not more complicated than it must be. This lesson writes the problem down, and shows that a linear machine, a kernel
machine and others are the same equation with different parts.

The lesson takes about ten minutes. You need Python and NumPy, and no knowledge of machine learning.
"""

# %%
# From a table to numbers
# -----------------------
# A machine sees rows of numbers. Each row has *features* :math:`x_i`, and a *label* :math:`y_i` that we want to
# predict for new rows. Here are people with a marital status and a bank account, and whether they are happy. A status
# is no number, so it gets a code. Names say nothing about happiness and are left out.
import numpy as np
from matplotlib.figure import Figure

import empirisk as er

people = [("married", 35_000, "yes"), ("single", 100_000, "no"), ("single", 7_500, "yes"), ("divorced", -2_000, "no")]
codes = {"married": 1, "single": 2, "divorced": 3}
X = np.array([(codes[status], account) for status, account, _ in people], dtype=float)
y = np.array([happy for *_, happy in people])
assert X[1].tolist() == [2, 100_000]
assert y[1] == "no"
print(X, y, sep="\n")

# %%
# Rows are samples and columns are features, everywhere in this library: X is n x d. (Some books have samples in
# columns; their formulas are ours transposed.) A code such as 1, 2, 3 claims that single lies between married and
# divorced, which is a claim about the world. One column of 0 and 1 for each status claims nothing.
#
# Texts become numbers in the same way. A *bag of words* has a row for each text and a column for each
# word: 1 where it occurs.
mails = ["and viagra of nigeria", "the of", "viagra the", "and of", "and the nigeria", "and the of"]
spam = np.array([1, -1, 1, -1, 1, -1])
machine = er.maps.bag_of_words(er.SVM(C=1.0), weighted=False, binary=True).fit(mails, spam)
table = machine[:-1].transform(mails).toarray()
assert table.shape == (6, 5)
assert table.sum() == 16
assert machine.score(mails, spam) == 1.0
verdict = machine.predict(["and viagra"])
assert verdict[0] == 1  # the new mail is spam
print("the new mail is", "spam" if verdict[0] == 1 else "no spam")

# %%
# What we want, and what we can have
# ----------------------------------
# Let rows come from a distribution :math:`P(x, y)`. A *loss* says how bad a prediction is; the simplest is 1 for an
# error and 0 else. What we want is a small *expected* loss. If P were known, the best answer for a row would be its
# most probable label. This is *Bayes rule*, and its error is the least that any machine can have.
#
# Throw two dice, look at the first, and guess the sum. P is known here, so Bayes rule can be computed: whatever the
# first die shows, six sums are equally likely, and the best guess fails five times in six.
dice = [(i, j) for i in range(1, 7) for j in range(1, 7)]
rule = er.theory.FiniteBayes.of_outcomes(dice, x=lambda thrown: thrown[0], y=sum)
assert abs(rule.error().value - 5 / 6) < 1e-12
print(rule.error())

# %%
# In practice P is not known. We have a sample of n rows, and take the mean loss on it, the *empirical risk*, in place
# of the expected loss. The library's name, Empirisk, stands for it.
#
# The empirical risk alone is not enough. A machine that stores the sample and answers "no" everywhere else has no
# empirical risk at all. One nearest neighbour stores the sample too. Neither number says anything about new rows.
rng = np.random.default_rng(0)


def in_rectangle(points):
    """The rule that the machines are to find."""
    return np.where(((points > [0.0, 0.2]) & (points < [0.8, 0.8])).all(axis=1), "inside", "outside")


X, X_new = rng.uniform(size=(50, 2)), rng.uniform(size=(2000, 2))
y, y_new = in_rectangle(X), in_rectangle(X_new)

stored = {tuple(row): label for row, label in zip(X, y, strict=True)}
recall = np.mean([stored.get(tuple(row), "outside") == label for row, label in zip(X, y, strict=True)])
use = np.mean([stored.get(tuple(row), "outside") == label for row, label in zip(X_new, y_new, strict=True)])
assert recall == 1.0
assert use == np.mean(y_new == "outside")
print(f"the store is right on {recall:.0%} of its own rows and on {use:.0%} of new ones")

# %%
# Search at random
# ----------------
# The opposite of storing is to choose from few functions. Take circles: draw 500 of them at random, count the errors
# of each on the sample, and keep the best. :class:`empirisk.selection.HypothesisSearch` does this. No circle is a
# rectangle, so some error stays; but a circle that is right on 50 rows is likely to be right on new ones.


def circle(columns, random):
    """A circle with a random centre and radius: positive outside, as the class "outside" comes second."""
    centre, radius = random.uniform(size=columns), random.uniform()
    return lambda points: ((points - centre) ** 2).sum(axis=1) - radius**2


search = er.selection.HypothesisSearch(circle, n_draws=500, random_state=0).fit(X, y)
errors = np.mean(search.predict(X_new) != y_new)
assert (np.diff(search.history_["objective"]) <= 0).all()  # the best so far never gets worse
assert search.risk_ <= 0.16
assert errors < 0.25
er.plots.regions(search, X, y)

# %%
# The best of the first k circles, as k grows. Most draws are worse than a constant answer, and each further
# improvement takes longer than the one before.
er.plots.history(search)

# %%
# From searching to minimising
# ----------------------------
# Random search is hopeless with more than a few parameters, and counting errors gives no direction in which to go: the
# count is flat almost everywhere. So the count is replaced by a loss that is smooth, or at least convex, and descent
# takes the place of search. An ellipse has the score
#
# .. math:: f(x) = 1 - a_1 (x_1 - c_1)^2 - a_2 (x_2 - c_2)^2
#
# and a rectangle has the larger of the two terms in place of their sum. :class:`empirisk.Parametric` fits any such
# function. The squared loss :math:`(y - f)^2` with labels -1 and +1 is smooth.


def terms(points, theta):
    """The two terms of ellipse and rectangle, for a centre and two factors."""
    return theta[2:] * (points - theta[:2]) ** 2


def ellipse(points, theta):
    """Positive outside, as the class "outside" comes second."""
    return terms(points, theta).sum(axis=1) - 1


def rectangle(points, theta):
    """The same with the larger term in place of the sum."""
    return terms(points, theta).max(axis=1) - 1


start = [0.5, 0.5, 5.0, 5.0]
figure = Figure(figsize=(10, 4), layout="constrained")
axes = figure.subplots(1, 2)
for panel, shape in zip(axes, (ellipse, rectangle), strict=True):
    machine = er.Parametric(shape, start, "squared", task="classification", method="nelder_mead", tol=1e-4).fit(X, y)
    assert machine.score(X, y) > 0.85
    er.plots.regions(machine, X, y, axes=panel)
    panel.set_title(f"{shape.__name__}: {machine.score(X_new, y_new):.0%} of new rows", loc="left", fontsize=11)
    panel.get_legend().remove()
figure

# %%
# These functions are not linear in their parameters, so descent may end in a valley that is not the deepest. The
# certificate says so: it has no lower bound. The machines of the rest of this course are linear in their parameters,
# and their problem is convex. Then every valley is the deepest one, and that can be proved.
#
# The equation
# ------------
# Take a function that is linear in the weights w, on features :math:`\phi(x)` of our choice: :math:`f(x) = \langle w,
# \phi(x) \rangle + b`. Measure each row with a loss, and the size of w with a *penalty* R. Then
#
# .. math:: \text{minimise} \quad R(w) + C \sum_i c_i \, \ell\big(y_i, \langle w, \phi(x_i) \rangle + b\big)
#
# C says how much the losses count against the penalty, :math:`c_i` how much row i counts. The sum is a sum, not a
# mean; no factor 1/n and no factor 1/2 hides in a loss; b is never penalised. The four choices are four parameters:
#
# ===========================  ============  ======================================
# part                         parameter     examples
# ===========================  ============  ======================================
# loss :math:`\ell`            ``loss``      hinge, logistic, squared, absolute
# features :math:`\phi`        ``features``  None, a kernel, a map, a network
# penalty R                    ``penalty``   l2 = 1/2 \|w\|², l1 = \|w\|₁
# scale C                      ``C``         a number, or how to choose it
# ===========================  ============  ======================================
#
# Named machines are short for some of the choices. Two losses and two kinds of features give four of them; with a
# :class:`empirisk.Network` as features the logistic loss gives a neural network classifier (lesson 15), and with the
# squared loss the same three slots give ridge, kernel ridge and deep regression.
moons = np.random.default_rng(0)
angle = moons.uniform(0, np.pi, 120)
label = np.arange(120) % 2
X = np.where(label[:, None] == 0, np.c_[np.cos(angle), np.sin(angle)], np.c_[1 - np.cos(angle), 0.5 - np.sin(angle)])
X = X + 0.2 * moons.normal(size=X.shape)
y = np.where(label == 0, "up", "down")

gaussian = er.kernels.Gaussian(width=0.5)
named = {
    ("hinge", None): er.SVM(),
    ("hinge", gaussian): er.SVM(features=gaussian),
    ("logistic", None): er.LogisticRegression(),
    ("logistic", gaussian): er.LogisticRegression(features=gaussian),
}
for (loss, features), machine in named.items():
    written_out = er.Classifier(loss=loss, features=features, penalty="l2", C=1.0).fit(X, y)
    machine.fit(X, y)
    same = machine.certificate_.primal / written_out.certificate_.primal
    assert abs(same - 1) < 1e-5
    print(f"{loss:9} features={features!s:22} objective {machine.certificate_.primal:8.3f}")

# %%
# One slot, ``features=``, takes the machine from a line to a curve. The rest of the equation, and of the code, stays.
slots = {"None": None, "maps.Polynomial(3)": er.maps.Polynomial(3), "kernels.Gaussian(0.5)": gaussian}
figure = Figure(figsize=(12, 3.8), layout="constrained")
axes = figure.subplots(1, 3)
scores = []
for panel, (name, features) in zip(axes, slots.items(), strict=True):
    machine = er.SVM(C=1.0, features=features).fit(X, y)
    scores.append(machine.score(X, y))
    er.plots.regions(machine, X, y, axes=panel)
    panel.set_title(f"features={name}", loc="left", fontsize=11)
    panel.get_legend().remove()
assert scores[0] < scores[1] <= scores[2]  # a line is not enough here
figure

# %%
# What C does
# -----------
# A small C buys a simple function, a large C one that fits. Move the slider: from left to right the boundary bends
# more and more towards single points. :doc:`Lesson 5 <plot_05_regularisation>` is about how to choose C.


def fitted(C):
    """The kernel machine at one C."""
    return er.SVM(C=C, features=er.kernels.Gaussian(0.5)).fit(X, y)


assert fitted(0.01).score(X, y) < fitted(100.0).score(X, y)
er.plots.slider(lambda C: er.plots.regions(fitted(C), X, y), C=[0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])

# %%
# Move the points yourself: this opens them in the playground of the :doc:`studio </studio>`, with the same machine.
from empirisk.studio.playground.address import link

link(X, y, loss="hinge", features="kernel", kernel="Gaussian(0.5)", C=1.0)

# %%
# Proof that it is the minimum
# ----------------------------
# Every convex fit ends with a certificate. ``primal`` is the value of the equation at the answer, ``dual`` a lower
# bound that no w can get below (:doc:`lesson 3 <plot_03_margins>` derives it). Their difference, the *gap*, is
# computed from the data alone and does not trust the solver.
certificate = fitted(1.0).certificate_
assert certificate.converged
assert certificate.dual <= certificate.primal
assert certificate.relative_gap <= 1e-6
print(certificate)

# %%
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 1.1
#
#    In the game of dice, look at the sum and guess the first die. What is the error of Bayes rule?
#
# .. solution::
#
# The sum 2 leaves one possible first die, 3 leaves two, ..., 7 leaves six, ..., 12 leaves one. Bayes rule is right
# once for each of the 11 sums, in 11 of 36 throws.
rule = er.theory.FiniteBayes.of_outcomes(dice, x=sum, y=lambda thrown: thrown[0])
assert abs(rule.error().value - 25 / 36) < 1e-12

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 1.2
#
#    Weight 2 is the row twice. Check it with ``sample_weight``.
#
# .. solution::
#
# The objectives agree.
weights = np.ones(len(y))
weights[:10] = 2
weighted = er.SVM(C=1.0).fit(X, y, sample_weight=weights)
twice = er.SVM(C=1.0).fit(np.concatenate([X, X[:10]]), np.concatenate([y, y[:10]]))
assert abs(weighted.certificate_.primal / twice.certificate_.primal - 1) < 1e-5

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 1.3
#
#    With C near zero the penalty wins. What does the machine predict then?
#
# .. solution::
#
# All weights go to zero, and b alone is left: the commoner class everywhere.
more_up = np.arange(120) % 6 != 1  # without every third row of "down"
timid = er.SVM(C=1e-6).fit(X[more_up], y[more_up])
assert np.abs(timid.coef_).max() < 1e-3
assert set(timid.predict(X)) == {"up"}

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - :class:`empirisk.Classifier` and :class:`empirisk.Regressor` are the equation itself; the named machines are
#   :class:`empirisk.SVM`, :class:`empirisk.LogisticRegression`, :class:`empirisk.Ridge`, :class:`empirisk.Lasso`.
# - :class:`empirisk.Parametric`, :class:`empirisk.selection.HypothesisSearch`,
#   :class:`empirisk.theory.FiniteBayes`, :class:`empirisk.Certificate`.
# - :doc:`Lesson 2 <plot_02_losses>` is about the loss, lessons 3 and 5 about the penalty and C, :doc:`lesson 7
#   <plot_07_kernels>` about features.
