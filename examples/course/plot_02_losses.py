r"""
2. Losses, and what they buy
============================

The loss decides what a machine cares about: every error alike, the rows near the boundary, all rows, or the worst ones.
This lesson draws the losses for classes, shows what each of them computes when there are infinitely many rows, and ends
with more than two classes.

About twelve minutes. You need :doc:`lesson 1 <plot_01_equation>`.
"""

# %%
# The margin of a row
# -------------------
# With labels -1 and +1, the number :math:`t = y f(x)` says everything: it is positive where the sign of f is right,
# and large where f is sure and right. It is called the *margin* of the row. What we would like to count are errors:
#
# .. math:: \ell_{01}(t) = 1 \text{ if } t \le 0, \text{ else } 0
#
# (Writing it as the sign of -t gives -1 where the answer is right, which is no count of errors.) The sum of these
# counts is flat almost everywhere and jumps elsewhere; to minimise it over a line is hard already, in general NP-hard.
# So it is replaced by a convex loss that lies close to it.
import numpy as np
from matplotlib.figure import Figure

import empirisk as er

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")  # told apart with any kind of colour vision

er.plots.losses(["zero_one", "perceptron", "hinge", "logistic", "exponential", "squared"])

# %%
# =================  ==================================  =============================================
# name               loss of t                           what it buys
# =================  ==================================  =============================================
# ``perceptron``     :math:`\max(0, -t)`                 a separating plane, if there is one
# ``hinge``          :math:`\max(0, 1 - t)`              few rows matter; a wide margin
# ``squared_hinge``  :math:`\max(0, 1 - t)^2`            the same without a corner
# ``logistic``       :math:`\ln(1 + e^{-t})`             probabilities
# ``exponential``    :math:`e^{-t}`                      boosting; one wrong row can count for all
# ``squared``        :math:`(1 - t)^2`                   a closed form
# =================  ==================================  =============================================
#
# Hinge, squared hinge, exponential and squared loss lie above the count of errors everywhere, so a small sum of losses
# proves few errors. The logistic loss does so after division by ln 2.
t = np.linspace(-3, 3, 601)
ones = np.ones_like(t)
zero_one = er.losses.ZeroOne().value(ones, t)
assert zero_one[t <= 0].all()
assert not zero_one[t > 0].any()
for name in ("hinge", "squared_hinge", "exponential", "squared"):
    assert (er.losses.find(name).value(ones, t) >= zero_one).all()
assert (er.losses.Logistic().value(ones, t) / np.log(2) >= zero_one - 1e-15).all()

# %%
# From logistic to hinge
# ----------------------
# Logistic and hinge loss are two ends of one family, the soft hinge, with a *margin* L and a *temperature*
# :math:`\epsilon`:
#
# .. math:: \epsilon \ln\big(1 + e^{(L - t) / \epsilon}\big)
#
# At temperature 1 and L = 0 it is the logistic loss. As the temperature goes to zero it becomes :math:`\max(0, L -
# t)`: the perceptron loss for L = 0, the hinge for L = 1. The distance to the limit is never more than :math:`\epsilon
# \ln 2`, at t = L.
soft = er.losses.SoftHinge(margin=0.0, temperature=1.0)
assert np.allclose(soft.value(ones, t), er.losses.Logistic().value(ones, t))
for temperature in (1.0, 0.1, 0.01):
    for margin, limit in ((0.0, "perceptron"), (1.0, "hinge")):
        near = er.losses.SoftHinge(margin, temperature).value(ones, t) - er.losses.find(limit).value(ones, t)
        assert near.min() >= 0
        assert np.isclose(near.max(), temperature * np.log(2))


def cooled(temperature):
    """The soft hinge between the hinge and the logistic loss."""
    return er.plots.losses(["hinge", "logistic", er.losses.SoftHinge(margin=1.0, temperature=temperature)])


er.plots.slider(cooled, temperature=[2.0, 1.0, 0.5, 0.25, 0.1, 0.03])

# %%
# What right rows cost
# --------------------
# The losses differ most to the right, where the answer is right and sure. The hinge stops at t = 1, the logistic loss
# fades, and the squared loss *rises*: it punishes a row for being too far on its own side. So a group of rows far away
# from the boundary, all of them easy, turns the line of the squared loss, until it errs on rows near the boundary.
rng = np.random.default_rng(0)
near_left = np.c_[rng.normal(-1.0, 0.25, 30), rng.uniform(-2, 2, 30)]
near_right = np.c_[rng.normal(1.0, 0.25, 30), rng.uniform(-2, 2, 30)]
far = np.c_[rng.normal(14.0, 0.4, 40), rng.normal(-9.0, 0.4, 40)]  # easy: far on the right side
X = np.r_[near_left, near_right, far]
y = np.repeat(["left", "right"], [30, 70])

figure = Figure(figsize=(12, 3.9), layout="constrained")
axes = figure.subplots(1, 3, sharey=True)
wrong = {}
for panel, loss in zip(axes, ("squared", "logistic", "hinge"), strict=True):
    machine = er.Classifier(loss=loss, C=1.0).fit(X, y)
    wrong[loss] = int((machine.predict(X) != y).sum())
    er.plots.regions(machine, X, y, axes=panel, margins=False)
    panel.set_title(f"{loss}: {wrong[loss]} of 100 wrong", loc="left", fontsize=11)
    panel.get_legend().remove()
assert wrong["squared"] > 5
assert wrong["logistic"] == wrong["hinge"] == 0
figure

# %%
# Wrong rows cost differently too: the perceptron, hinge and logistic losses grow linearly, the squared loss with the
# square, the exponential one exponentially. One wrong label far away shows it. The hinge leaves the row wrong, pays for
# it, and keeps the line where the others want it. The exponential loss cannot pay: it turns the line until the row
# costs little, and is wrong on good rows for that.
X_one, y_one = X[:60].copy(), y[:60].copy()
X_one[0] = [6.0, 0.0]  # labelled "left", and far on the right
wrong = {}
for loss in ("hinge", "logistic", "squared_hinge", "exponential"):
    machine = er.Classifier(loss=loss, C=1.0).fit(X_one, y_one)
    t_rows = np.where(y_one == "right", 1, -1) * machine.decision_function(X_one)
    costs = er.losses.find(loss).value(np.ones(60), t_rows)
    wrong[loss] = int(np.sum(t_rows <= 0))
    print(f"{loss:14} {wrong[loss]} rows are wrong, and the far one has {costs[0] / costs.sum():.0%} of the loss")
assert wrong["hinge"] == wrong["logistic"] == 1
assert wrong["exponential"] > 3

# %%
# With infinitely many rows
# -------------------------
# At one place x, let the label be +1 with probability p. A machine that can take any value there takes the f that
# minimises :math:`p\, \ell(f) + (1 - p)\, \ell(-f)`. What is this f?
#
# - exponential loss: :math:`f = \tfrac12 \ln \frac{p}{1 - p}`, half the *log-odds*;
# - logistic loss: the log-odds themselves, so that :math:`p = 1 / (1 + e^{-f})`. This is why the logistic loss gives
#   probabilities;
# - squared loss: :math:`f = 2p - 1`, which is a probability after scaling;
# - hinge: the sign of :math:`2p - 1` and nothing else. The hinge learns where p crosses one half, and forgets p.
f = np.linspace(-4, 4, 160_001)
chances = np.array([0.05, 0.2, 0.4, 0.7, 0.9, 0.99])


def minimisers(loss):
    """The best f for each of the chances, on a fine grid."""
    part = er.losses.find(loss)
    right, wrong = part.value(np.ones_like(f), f), part.value(-np.ones_like(f), f)
    return np.array([f[np.argmin(p * right + (1 - p) * wrong)] for p in chances])


odds = np.log(chances / (1 - chances))
assert np.allclose(minimisers("exponential"), odds / 2, atol=1e-3)
assert np.allclose(minimisers("logistic")[:-1], odds[:-1], atol=1e-3)  # the last one, 4.6, is off the grid
assert np.allclose(minimisers("squared"), 2 * chances - 1, atol=1e-3)
assert np.allclose(minimisers("hinge"), np.sign(2 * chances - 1), atol=1e-3)

figure = Figure(figsize=(6.4, 4.2), layout="constrained")
panel = figure.subplots()
fine = np.linspace(0.02, 0.98, 97)
curves = {
    "logistic: log-odds": np.log(fine / (1 - fine)),
    "exponential: half of it": 0.5 * np.log(fine / (1 - fine)),
    "squared: 2p - 1": 2 * fine - 1,
    "hinge: the sign": np.sign(2 * fine - 1),
}
heights = (4.0, 2.0, 0.4, 1.0)  # of the names: that of 2p - 1 stands below the end of the hinge
for (name, values), height, colour in zip(curves.items(), heights, COLOURS, strict=True):
    panel.plot(fine, values, color=colour)
    panel.annotate(name, (1.0, height), color=colour, va="center", annotation_clip=False)
panel.set(xlabel="probability p of +1", ylabel="best f", xlim=(0, 1))
panel.set_title("What each loss computes", loc="left", fontsize=11)
panel.spines[["top", "right"]].set_visible(False)
figure

# %%
# A loss whose best f has the sign of :math:`2p - 1` for every p is called *classification calibrated*: with enough
# rows and enough freedom, it errs as seldom as Bayes rule. A convex loss of the margin is calibrated where it has a
# negative slope at t = 0. The perceptron loss has a corner there, and f = 0 costs nothing: it is not calibrated.
for loss in ("hinge", "logistic", "exponential", "squared", "perceptron"):
    print(er.theory.is_calibrated(loss))
assert er.theory.is_calibrated("hinge")
assert not er.theory.is_calibrated("perceptron")

# %%
# The logistic loss is a likelihood
# ---------------------------------
# Suppose that the log-odds are linear: :math:`p(x) = 1 / (1 + e^{-f(x)})`. The probability of all labels is the
# product of the p of the rows, and minus its logarithm is the sum of logistic losses. So logistic regression without a
# penalty is *maximum likelihood*. Labels 0 and 1 become -1 and +1 by :math:`2y - 1`. The sum is convex, but has no
# closed form.
x = rng.normal(size=(200, 1))
truth = 1 / (1 + np.exp(-(2 * x[:, 0] - 0.5)))
labels = (rng.uniform(size=200) < truth).astype(int)
machine = er.LogisticRegression(penalty="none").fit(x, labels)
p = machine.predict_proba(x)[:, 1]
likelihood = np.sum(labels * np.log(p) + (1 - labels) * np.log(1 - p))
assert np.isclose(-likelihood, machine.certificate_.primal, rtol=1e-6)
signs = 2 * labels - 1
assert np.isclose(-likelihood, np.log1p(np.exp(-signs * machine.decision_function(x))).sum())
assert (machine.predict(x) == (p >= 0.5)).all()
print(f"found {machine.coef_.item():.2f} x {machine.intercept_.item():+.2f}, true 2 x - 0.5")

# %%
# The probabilities mean something only where the log-odds are about linear. Whether they do can be tested: among the
# rows with p near 0.7, are 70 % positive?
er.plots.calibration(labels, p, bins=5)

# %%
# More than two classes
# ---------------------
# Two classes make one score f. With K classes there are three ways to go on, and ``multiclass=`` chooses:
#
# - ``"one_vs_rest"``: K machines, each class against all others; the largest score wins. Each machine sees few rows of
#   its own class, and the scores must be comparable. (It takes K machines, not K - 1.)
# - ``"one_vs_one"``: K (K - 1) / 2 machines, one for each pair; the class with most votes wins. Votes can form a
#   circle.
# - ``"joint"``: K scores, learned together by a loss that looks at all of them.
#
# Two codes with other numbers of machines are ``"error_correcting"`` and a matrix of your own; in principle about
# :math:`\log_2 K` machines are enough, but then one wrong machine is a wrong class.
corners = np.array([[0.0, 1.2], [-1.0, -0.6], [1.0, -0.6]])
names = np.array(["north", "west", "east"])
kinds = rng.integers(0, 3, 150)
X, y = corners[kinds] + 0.45 * rng.normal(size=(150, 2)), names[kinds]

schemes = ("one_vs_rest", "one_vs_one", "joint")
machines = {scheme: er.SVM(multiclass=scheme).fit(X, y) for scheme in schemes}
assert [len(machines[scheme].coef_) for scheme in schemes] == [3, 3, 3]
four = er.SVM(multiclass="one_vs_one").fit(np.eye(4), list("abcd"))
assert len(four.coef_) == 4 * 3 // 2
two_bits = er.SVM(multiclass=[[1, 1, -1, -1], [1, -1, 1, -1]]).fit(np.eye(4), list("abcd"))
assert len(two_bits.coef_) == 2
assert two_bits.score(np.eye(4), list("abcd")) == 1.0

figure = Figure(figsize=(12, 3.9), layout="constrained")
axes = figure.subplots(1, 3, sharey=True)
for panel, (scheme, machine) in zip(axes, machines.items(), strict=True):
    er.plots.regions(machine, X, y, axes=panel)
    panel.set_title(f'multiclass="{scheme}": {machine.score(X, y):.0%}', loc="left", fontsize=11)
    panel.get_legend().remove()
    assert machine.score(X, y) > 0.9
figure

# %%
# There are two joint losses. *Softmax* turns the scores into probabilities, :math:`P(k) = e^{f_k} / \sum_j e^{f_j}`,
# and takes minus the logarithm of the right one. The *joint hinge* of Crammer and Singer asks that the right score be
# larger than each other one by 1,
#
# .. math:: \max_j \big(1[j \ne y] + f_j - f_y\big),
#
# where the 1 must be left out for j = y: else a perfect row would cost 1. With two classes, softmax with an l2 penalty
# is logistic regression with the weights shared out: :math:`w_1 = -w_2`.
scores = np.array([[2.0, 1.5, -1.0], [2.0, 0.5, -1.0]])
assert er.losses.CrammerSinger().value(np.array([0, 0]), scores).tolist() == [0.5, 0.0]
shares = np.exp(scores[0]) / np.exp(scores[0]).sum()
assert np.isclose(er.losses.Softmax().value(np.array([0]), scores[:1])[0], -np.log(shares[0]))

pair = kinds < 2
joint = er.Classifier(loss="softmax", C=1.0).fit(X[pair], y[pair])
assert np.allclose(joint.coef_[0], -joint.coef_[1], atol=1e-4)
alone = er.LogisticRegression(C=2.0).fit(X[pair], y[pair])  # two vectors w and -w have half the penalty of 2 w
assert np.allclose(joint.coef_[1] - joint.coef_[0], alone.coef_, atol=1e-3)
print(er.theory.is_calibrated("crammer_singer"))

# %%
# Numbers in place of classes: regress on the *one-hot* code, a column of 0 and 1 for each class. This is
# :class:`empirisk.LeastSquaresClassifier`. To regress on the digit itself would claim that a 3 lies between a 2 and a
# 4.
from sklearn.datasets import load_digits

digits, digit = load_digits(return_X_y=True)
train, test = np.arange(0, 1200), np.arange(1200, 1797)
by_code = er.LeastSquaresClassifier().fit(digits[train], digit[train]).score(digits[test], digit[test])
rounded = np.clip(np.rint(er.Ridge().fit(digits[train], digit[train]).predict(digits[test])), 0, 9)
assert by_code > 0.85 > 0.5 > np.mean(rounded == digit[test])
print(f"one-hot: {by_code:.0%} right; the digit as a number: {np.mean(rounded == digit[test]):.0%}")

# %%
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 2.1
#
#    At which t do hinge and logistic loss cross?
#
# .. solution::
#
# Where :math:`1 - t = \ln(1 + e^{-t})`, so :math:`e^{-t}(e - 1) = 1`: at t = ln(e - 1) = 0.5413.
crossing = t[np.argmin(np.abs(er.losses.Hinge().value(ones, t) - er.losses.Logistic().value(ones, t)))]
assert abs(crossing - np.log(np.e - 1)) < 0.01

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 2.2
#
#    Three voters prefer a > b > c, b > c > a, and c > a > b. Which class wins one against one?
#
# .. solution::
#
# a beats b, b beats c and c beats a, each by two to one: a circle, and each class has one vote. One-vs-one needs a
# rule for ties.
voters = ["abc", "bca", "cab"]
wins = {pair: sum(order.index(pair[0]) < order.index(pair[1]) for order in voters) for pair in ("ab", "bc", "ca")}
assert wins == {"ab": 2, "bc": 2, "ca": 2}

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 2.3
#
#    Is :math:`\max(0, 1 - t)^2` calibrated? And the absolute loss :math:`|y - f|` on labels -1 and 1?
#
# .. solution::
#
# The slope of the first at 0 is -2: yes. The absolute loss between -1 and 1 is the hinge, so that it is calibrated
# too.
assert er.theory.is_calibrated("squared_hinge")
assert er.theory.is_calibrated("absolute")

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 2.4
#
#    For a row with p = 0.9, what is the best f of the exponential loss? Turn it back into a probability.
#
# .. solution::
#
# :math:`f = \tfrac12 \ln 9 = 1.0986`, and :math:`1 / (1 + e^{-2f}) = 0.9`.
best = 0.5 * np.log(0.9 / 0.1)
assert np.isclose(best, 1.0986, atol=1e-4)
assert np.isclose(1 / (1 + np.exp(-2 * best)), 0.9)

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - The losses: :class:`empirisk.losses.Hinge`, :class:`empirisk.losses.Logistic`, :class:`empirisk.losses.SoftHinge`,
#   :class:`empirisk.losses.Exponential`, :class:`empirisk.losses.Softmax`, :class:`empirisk.losses.CrammerSinger`.
# - :func:`empirisk.theory.is_calibrated`, :func:`empirisk.plots.losses`, :func:`empirisk.plots.calibration`.
# - Losses for numbers are in :doc:`lesson 6 <plot_06_regression>`; a loss of your own takes one class, as the recipes
#   show.
