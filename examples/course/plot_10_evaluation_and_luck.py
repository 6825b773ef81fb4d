r"""
10. Evaluation: luck, honest intervals, over- and underfitting
==============================================================

Two numbers can be called the error of a classifier f. The **true error** is the probability that f is wrong on a new
row. The **training error** is the share of training rows on which it is wrong. Machines minimise the second, and we
want the first:

.. math:: R(f) = P[f(x) \neq y], \qquad \hat R(f) = \frac1n \sum_{i=1}^n 1[f(x_i) \neq y_i]

This lesson measures the difference, says how sure a measured error is, and finds the setting between too simple and
too rich. It ends with classes of which one is rare, where the share of errors is the wrong question.

About fifteen minutes. You need :doc:`lesson 1 <plot_01_equation>`.
"""

import numpy as np
from matplotlib.figure import Figure

import empirisk as er
from empirisk.studio.playground.address import link

rng = np.random.default_rng(10)

# %%
# The best that is possible
# -------------------------
# Throw two dice. Only the first is seen, and the sum is asked for. No rule can be right more often than one time in
# six, because the second die decides. The least error that any rule can have is the *Bayes error*; here it is 5/6. A
# machine that reports less has been lucky, or has seen the answer.

dice = [(first, second) for first in range(1, 7) for second in range(1, 7)]
best_rule = er.theory.FiniteBayes.of_outcomes(dice, x=lambda pair: pair[0], y=sum)
assert np.isclose(best_rule.error().value, 5 / 6)
print(best_rule.error())

# %%
# The opposite extreme is the *memoriser*: it stores the training rows and says their labels, and 0 for everything
# else. Its training error is zero. Its true error is the share of ones, however many rows it has seen.

square = np.array([0.0, 0.8, 0.2, 0.8])  # left, right, lower, upper


def inside(X):
    """Whether points lie in the rectangle: the truth of the next examples."""
    return ((X[:, 0] > square[0]) & (X[:, 0] < square[1]) & (X[:, 1] > square[2]) & (X[:, 1] < square[3])).astype(int)


X, X_test, fresh = rng.uniform(size=(50, 2)), rng.uniform(size=(50, 2)), rng.uniform(size=(20_000, 2))
y, y_test = inside(X), inside(X_test)
memory = {tuple(row): label for row, label in zip(X.tolist(), y.tolist(), strict=True)}
recalled = [memory[tuple(row)] for row in X.tolist()]
elsewhere = [memory.get(tuple(row), 0) for row in fresh.tolist()]
assert np.array_equal(recalled, y)
assert abs(np.mean(np.array(elsewhere) != inside(fresh)) - 0.8 * 0.6) < 0.02

# %%
# Choosing among many is choosing luck
# ------------------------------------
# Draw a hundred circles at random, and keep the one with the fewest errors on the fifty points. The more circles are
# tried, the better the winner looks. On other points it does not look as good: part of its success was chance.

centres, radii = rng.uniform(size=(100, 2)), rng.uniform(size=100)


def score_of_circles(X, y):
    """The share of right answers of each circle."""
    said = np.linalg.norm(X[:, None] - centres, axis=2) < radii
    return np.mean(said == y[:, None], axis=0)


on_training, on_new = score_of_circles(X, y), score_of_circles(fresh, inside(fresh))
tried = [1, 2, 5, 10, 20, 50, 100]
winners = [int(on_training[:count].argmax()) for count in tried]
assert on_training.max() > on_new[winners[-1]]
assert np.corrcoef(on_training, on_new)[0, 1] > 0.9  # the two errors go together, which makes learning possible

# %%
# How much chance? Repeat it with two hundred sets of fifty points: the score of the winner where it was chosen, and
# its score on new rows. Their difference is the price of choosing. It grows with the number of circles.

chosen_by, honest = np.zeros((len(tried), 200)), np.zeros((len(tried), 200))
for repeat in range(200):
    other = rng.uniform(size=(50, 2))
    scores = score_of_circles(other, inside(other))
    for number, count in enumerate(tried):
        winner = int(scores[:count].argmax())
        chosen_by[number, repeat], honest[number, repeat] = scores[winner], on_new[winner]

optimism = (chosen_by - honest).mean(axis=1)
assert abs(optimism[0]) < 0.02  # one circle, chosen by nobody: the score on 50 points is unbiased
assert optimism[-1] > 0.02
er.plots.validation_curve(tried, chosen_by, honest, parameter="circles tried")

# %%
# The same holds for every machine that minimises the training error. Since the minimum over w of an average is never
# larger than the average at any fixed w, the expected training error is at most the true error of the best w, and that
# is at most the expected true error of the fit. Rows that had no part in the fit give an unbiased estimate. For least
# squares with d weights on n rows and noise of variance 1 the first number is even known, :math:`1 - d/n`:

n, d, weights = 30, 10, rng.normal(size=10)
inner, outer, test = [], [], []
for _ in range(400):
    A, B = rng.normal(size=(2, n, d))
    target, other = A @ weights + rng.normal(size=n), B @ weights + rng.normal(size=n)
    fitted = np.linalg.lstsq(A, target, rcond=None)[0]
    inner.append(np.mean((A @ fitted - target) ** 2))
    test.append(np.mean((B @ fitted - other) ** 2))
    outer.append(1 + np.sum((fitted - weights) ** 2))  # the true risk, known because the truth is
assert abs(np.mean(inner) - (1 - d / n)) < 0.03
assert np.mean(inner) < 1 < np.mean(outer)
assert abs(np.mean(test) - np.mean(outer)) < 0.1
print(
    f"training {np.mean(inner):.2f} < noise 1 < true {np.mean(outer):.2f}, and the test error says {np.mean(test):.2f}"
)

# %%
# How sure is a test error?
# -------------------------
# A test is a row of n independent coins with probability e, so the number of errors is binomial:
#
# .. math:: P[\text{at most } m \text{ errors in } n \mid e] = \sum_{k=0}^{m} \binom{n}{k} e^k (1 - e)^{n-k}
#
# The sum begins at zero errors: no error at all is also "at most m". Somebody reports an error of 1 % on n rows. Can
# the truth be 2 %? On a hundred rows easily, on a thousand hardly:

assert np.isclose(er.luck(1, 100, 0.02).value, 0.98**100 + 100 * 0.02 * 0.98**99)
chances = [er.luck(n // 100, n, 0.02).value for n in range(100, 1100, 100)]
assert chances[0] > 0.4
assert chances[-1] < 0.02
assert np.all(np.diff(chances) < 0)

er.plots.slider(lambda n: er.plots.luck(n // 100, n, 0.02), n=[100, 200, 400, 600, 800, 1000])

# %%
# Two more readings of the same formula. Ten errors in a hundred become less and less probable the larger the true
# rate is, and for a rate of 20 % few errors are rare: this is a table of the tail.

by_rate = {rate: er.luck(10, 100, rate).value for rate in (0.1, 0.2, 0.3, 0.4, 0.5)}
by_count = {m: er.luck(m, 100, 0.2).value for m in (0, 5, 10, 15, 20)}
assert by_rate[0.1] > 0.5 > by_rate[0.2] > by_rate[0.5]
assert by_count[10] < 0.01 < by_count[15] < by_count[20]

# %%
# Turned round, the tail gives an interval for e: all rates under which the observed count is not too improbable on
# either side. These are the limits of Clopper and Pearson. A 95 % interval must hold the truth 95 times of 100, and it
# can be checked that it does.

low, high = er.theory.error_interval(5, 100)
print(er.theory.error_interval(5, 100))
covered = []
for e in (0.02, 0.1, 0.3):
    for errors in rng.binomial(100, e, size=300):
        low, high = er.theory.error_interval(int(errors), 100)
        covered.append(low <= e <= high)
assert np.mean(covered) >= 0.95

# %%
# Cross-validation
# ----------------
# A single split wastes rows and has luck of its own. *k-fold cross-validation* cuts the rows into k parts, and each
# part is predicted by a machine that has seen all others. :func:`empirisk.evaluate` does it, with an interval for
# every score. With k = n it is leave-one-out, which for ridge regression needs one fit and not n. With A = X'X +
# I/(2C) and :math:`h_i = x_i^\top A^{-1} x_i`,
#
# .. math:: y_i - f_{-i}(x_i) = \frac{y_i - f(x_i)}{1 - h_i}
#
# by the formula of Sherman and Morrison. That costs :math:`O(n d^2 + d^3)` in all: the leverages :math:`h_i` of n
# rows are not free.

C = 0.5
A = rng.normal(size=(40, 5))
target = A @ rng.normal(size=5) + rng.normal(size=40)
inverse = np.linalg.inv(A.T @ A + np.eye(5) / (2 * C))
leverage = np.einsum("ij,jk,ik->i", A, inverse, A)
closed = (target - A @ inverse @ A.T @ target) / (1 - leverage)

ridge = er.Ridge(C=C, fit_intercept=False)
refitted = [target[i] - ridge.fit(np.delete(A, i, 0), np.delete(target, i)).predict(A[[i]])[0] for i in range(40)]
assert np.allclose(closed, refitted)
left_out = er.evaluate(ridge, A, target, cv="loo", scoring="rmse")
assert np.isclose(left_out.score.value, np.sqrt(np.mean(closed**2)))
print(left_out)

# %%
# Too simple, too rich
# --------------------
# A machine that is too simple for the truth *underfits*: its errors are large on old and new rows alike. One that is
# too rich *overfits*: it is good on the rows it has seen and worse on others. The width of a Gaussian kernel moves an
# SVM all the way from one to the other.

turn = rng.uniform(0, np.pi, 120)
label = np.arange(120) % 2
moons = np.column_stack([np.cos(turn) * (1 - 2 * label) + label, np.sin(turn) * (1 - 2 * label) + 0.4 * label])
moons += 0.3 * rng.normal(size=moons.shape)


def with_width(width):
    """The moons with a kernel of this width."""
    machine = er.SVM(C=10.0, features=er.kernels.Gaussian(width)).fit(moons, label)
    return er.plots.regions(machine, moons, label, resolution=120)


er.plots.slider(with_width, width=[0.05, 0.15, 0.5, 1.5, 5.0, 15.0])

# %%
# In the playground of :doc:`the studio </studio>`, take the data *moons*, features *kernel*, and write
# ``Gaussian(0.15)``, ``Gaussian(0.5)``, ``Gaussian(5)``: with some points held out, both errors and their intervals
# move as you type.

link(moons, label, features="kernel", kernel="Gaussian(0.5)", C=10.0)

# %%
# The *validation curve* shows the same as numbers: cross-validated scores against the width, beside the scores on the
# training rows. On the left the two part: overfitting. On the right both fall: underfitting.

widths = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
curve = er.evaluation.validation_curve(
    er.SVM(C=10.0, features=er.kernels.Gaussian()), moons, label, "features__width", widths
)
assert curve.train[0].mean() > 0.99
assert curve.train[0].mean() - curve.validation[0].mean() > 0.1
assert curve.validation[-1].mean() < curve.validation.mean(axis=1).max() - 0.02
assert 0.1 <= curve.best <= 3.0
er.plots.validation_curve(curve)

# %%
# What makes a machine richer differs from machine to machine:
#
# ==================== ===================================== =========================
# machine              richer by                             simpler by
# ==================== ===================================== =========================
# linear, any loss     more columns, larger C                selection, smaller C
# kernel machine       smaller width, higher degree          larger width, smaller C
# neighbours           fewer neighbours                      more neighbours
# tree                 more leaves                           pruning, a limit of depth
# forest               deeper trees                          shallower trees
# boosting             more rounds, deeper trees             fewer rounds, smaller rate
# network              wider, deeper, longer                 decay, dropout, stopping
# ==================== ===================================== =========================
#
# The method is the same for all: try settings by cross-validation on the training rows. Then the whole procedure, the
# choice included, is a machine whose error needs rows of its own. ``C="cv"`` and :class:`empirisk.selection.Search`
# choose inside each fold of :func:`empirisk.evaluate`, so that what it reports is the error of the procedure.

procedure = er.selection.Search(
    er.SVM(C=10.0, features=er.kernels.Gaussian()), {"features__width": [0.1, 0.3, 1.0, 3.0]}, cv=3
)
nested = er.evaluate(procedure, moons, label, scoring="accuracy")
assert nested.score.interval[0] <= curve.validation.mean(axis=1).max() <= nested.score.interval[1]
print(nested)
print("widths chosen in the folds:", [choice["features__width"] for choice in nested.parameters])

# %%
# Would more rows help? The *learning curve* answers: if the two curves still approach each other, yes.

rows, answers = rng.normal(size=(400, 10)), None
answers = (rows[:, 0] - rows[:, 1] + 0.5 * rng.normal(size=400) > 0).astype(int)
growing = er.evaluation.learning_curve(er.TreeClassifier(random_state=0), rows, answers)
gaps = (growing.train - growing.validation).mean(axis=1)
assert gaps[-1] < gaps[0]
er.plots.learning_curve(growing)

# %%
# One class is rare
# -----------------
# Of 2000 transactions 3 % are fraud. Who says "no fraud" is right 97 times of 100, and useless. Count instead
#
# ==================== ======================= ==========================================
# measure              formula                 question
# ==================== ======================= ==========================================
# precision            TP / (TP + FP)          how many alarms are right?
# recall               TP / (TP + FN)          how many positives are found?
# false positive rate  FP / (FP + TN)          how many negatives raise an alarm?
# F1                   2 TP / (2 TP + FP + FN) harmonic mean of precision and recall
# ==================== ======================= ==========================================
#
# Recall has a second name, true positive rate.

fraud = (rng.uniform(size=2000) < 0.03).astype(int)
amount = rng.normal(size=(2000, 2)) + 1.2 * fraud[:, None]
old, new = slice(0, 1000), slice(1000, 2000)
machine = er.LogisticRegression().fit(amount[old], fraud[old])
said, truth = machine.predict(amount[new]), fraud[new]
TP, FP, FN = np.sum(said & truth), np.sum(said & (1 - truth)), np.sum((1 - said) & truth)
precision, recall = TP / (TP + FP), TP / (TP + FN)
assert np.isclose(2 * TP / (2 * TP + FP + FN), 2 / (1 / precision + 1 / recall))
assert 1 - truth.mean() > 0.95
assert recall < 0.5  # the machine finds fewer than half, at an accuracy that looks excellent

# %%
# Who says yes with probability p, whatever the row, finds the share p of the positives and raises false alarms on the
# share p of the negatives. On the ROC curve chance is therefore the diagonal, and its area is 1/2. On the
# precision-recall curve chance is a horizontal line at the rate of positives, here 3 %, and not at 1/2.

coin = rng.uniform(size=200_000) < 0.3
positives = rng.uniform(size=200_000) < 0.03
assert abs(coin[positives].mean() - 0.3) < 0.02
assert abs(coin[~positives].mean() - 0.3) < 0.01
assert abs(positives[coin].mean() - 0.03) < 0.003

scores = machine.decision_function(amount[new])
figure = Figure(figsize=(11, 4.6), layout="constrained")
left, right = figure.subplots(1, 2)
er.plots.roc(truth, scores, axes=left)
er.plots.precision_recall(truth, scores, axes=right)
figure

# %%
# One machine is better than another at every threshold in the first picture if and only if it is so in the second.
# Where two curves cross, costs decide. :func:`empirisk.evaluation.dominance` says which it is.

worse = scores + 2.0 * rng.normal(size=len(scores))
print(er.evaluation.dominance(truth, scores, worse))

# %%
# Three remedies: weigh the losses of the rare class, repeat its rows (:class:`empirisk.selection.Balanced`), or move
# the threshold. Of weights only the ratio c+/c- counts, since a common factor is a factor of C.

weighted = er.SVM(C=0.1, class_weight={0: 1.0, 1: 20.0}, tol=1e-9).fit(amount[old], fraud[old])
same = er.SVM(C=0.05, class_weight={0: 2.0, 1: 40.0}, tol=1e-9).fit(amount[old], fraud[old])
assert np.allclose(weighted.coef_, same.coef_, atol=1e-4)
assert np.mean(weighted.predict(amount[new])[truth == 1]) > 0.8  # recall, paid for with precision

# %%
# Taking rows of the frequent class away, or repeating those of the rare one with a little noise, has the same
# purpose. The machine then sees classes of equal size, and its probabilities are wrong by that;
# :class:`empirisk.selection.Balanced` corrects them for the true shares.

for how in ("subsample", "upsample"):
    even, corrected = (
        er.selection.Balanced(er.LogisticRegression(), how=how, correct=correct, random_state=0)
        .fit(amount[old], fraud[old])
        .predict_proba(amount[new])[:, 1]
        for correct in (False, True)
    )
    assert np.mean(even[truth == 1] > 0.5) > 0.7  # recall
    assert even.mean() > 0.15 > 0.08 > corrected.mean()  # the share of fraud that is announced; it is 3 %

# %%
# Exercises
# ---------
#
# .. admonition:: Exercise 10.1
#
#    A rival reports 3 errors on 50 rows, you have 60 errors on 1000. Whose machine is better?
#
# .. solution::
#
# Both have 6 %, but the interval of fifty rows is four times as wide: nobody knows.

few, many = er.theory.error_interval(3, 50), er.theory.error_interval(60, 1000)
assert few.value == many.value == 0.06
assert few.low < many.low < many.high < few.high

# %%
# .. end-solution::
#
# .. admonition:: Exercise 10.2
#
#    How many rows without an error show, with 95 % confidence, that the true error is at most 1 %? Guess first:
#    "3/e".
#
# .. solution::
#
# :math:`(1 - e)^n \leq 0.05` gives n >= log(0.05)/log(1 - e), about 3/e.

count = int(np.ceil(np.log(0.05) / np.log(0.99)))
assert count == 299
assert er.theory.error_bound(0, count).value <= 0.01 < er.theory.error_bound(0, count - 1).value

# %%
# .. end-solution::
#
# .. admonition:: Exercise 10.3
#
#    Show with the memoriser that a training error of zero goes with every true error between 0 and 1.
#
# .. solution::
#
# The share of ones among new rows is the error of the memoriser. Make it what you like.

for share in (0.0, 0.25, 1.0):
    new_labels = (np.arange(1000) < share * 1000).astype(int)
    assert np.isclose(np.mean(new_labels != 0), share)

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :func:`empirisk.evaluate`, :func:`empirisk.compare`, :func:`empirisk.luck`,
# :func:`empirisk.theory.error_interval`, :func:`empirisk.evaluation.validation_curve`,
# :func:`empirisk.evaluation.dominance`, :class:`empirisk.selection.Search`, :class:`empirisk.selection.Threshold`,
# :class:`empirisk.selection.Balanced`; and :doc:`the page on evaluation </evaluation>`.
