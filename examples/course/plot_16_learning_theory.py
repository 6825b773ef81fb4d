r"""
16. Learning theory you can run
===============================

Why should a small training error say anything about rows that nobody has seen? Theory answers with statements of one
form: *with probability at least 1 - delta over the training rows, the true error is at most the training error plus
something that grows with the richness of the class and falls with n.* This lesson checks each of them by experiment:
counts in place of proofs. The bounds are true, and mostly far too careful. What they are right about is the direction.

About fifteen minutes. You need :doc:`lesson 10 <plot_10_evaluation_and_luck>`, and some probability.
"""

from itertools import product

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linprog
from scipy.stats import norm

import empirisk as er

rng = np.random.default_rng(16)

# %%
# One function, and all functions at once
# ---------------------------------------
# For a single f, chosen before the data, the law of large numbers is enough: its training error tends to its true
# error. A machine chooses f *after* it has seen the data, so the largest difference over the whole class has to tend
# to zero,
#
# .. math:: \sup_{f \in F} | R(f) - \hat R(f) | \longrightarrow 0,
#
# which is called *uniform convergence* and does not follow from the law of large numbers. Thresholds on the line have
# it. The class of all functions does not: one of them, the memoriser, is right on every training row and wrong
# everywhere else.


def largest_difference(n):
    """Over all thresholds t: P[x > t] is 1 - t for x uniform, and its estimate is a share of n rows."""
    x = np.sort(rng.uniform(size=n))
    shares = np.arange(n + 1) / n
    return max(np.max(np.abs(shares[1:] - x)), np.max(np.abs(shares[:-1] - x)))


sizes = np.array([10, 30, 100, 300, 1000, 3000, 10_000])
fixed = [np.mean([abs(np.mean(rng.uniform(size=n) > 0.5) - 0.5) for _ in range(50)]) for n in sizes]
uniform = [np.mean([largest_difference(n) for _ in range(50)]) for n in sizes]
assert np.all(np.array(uniform) > fixed)
assert uniform[-1] < 0.02
assert 0.3 < uniform[-1] * np.sqrt(sizes[-1]) < 1.5  # it falls as 1 / sqrt(n)

figure = Figure(figsize=(6.4, 4.4), layout="constrained")
axes = figure.subplots()
curves = {"all functions": np.ones(len(sizes)), "all thresholds": uniform, "one threshold": fixed}
for (name, curve), colour in zip(curves.items(), ("#D55E00", "#0072B2", "#009E73"), strict=True):
    axes.plot(sizes, curve, marker="o", ms=3.5, color=colour)
    axes.annotate(name, (sizes[-1], curve[-1]), xytext=(6, 0), textcoords="offset points", color=colour, va="center")
axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="largest difference of the errors", xlim=(8, 120_000))
axes.set_title("Uniform convergence depends on the class", loc="left")
axes.spines[["top", "right"]].set_visible(False)
figure

# %%
# Probably approximately correct
# ------------------------------
# Let the class be finite, and let one of its functions be perfect. Training finds *some* function without training
# errors. It may be a bad one, with a true error above epsilon, if the rows are *misleading*: a bad function survives
# n rows with probability at most :math:`(1 - \varepsilon)^n`, and there are at most :math:`|H|` bad ones, so that
#
# .. math:: P[\text{true error} > \varepsilon] \leq |H|\,(1 - \varepsilon)^n \leq |H|\, e^{-\varepsilon n},
#           \qquad n \geq \frac{\ln(|H| / \delta)}{\varepsilon}\ \text{is enough.}
#
# A hundred thresholds, of which 0.5 is the truth. The worst machine that is consistent takes the threshold farthest
# from the truth that makes no training error. How often is it bad?

grid, truth, epsilon = np.linspace(0.005, 0.995, 100), 0.505, 0.1


def worst_consistent_error(n):
    """The largest true error among thresholds without training errors."""
    x = rng.uniform(size=n)
    below, above = x[x <= truth], x[x > truth]
    low, high = below.max(initial=0.0), above.min(initial=1.0)
    consistent = grid[(grid >= low) & (grid < high)]
    return np.max(np.abs(consistent - truth), initial=0.0)


for n in (10, 30, 60, 90):
    often = np.mean([worst_consistent_error(n) > epsilon for _ in range(2000)])
    bound = min(1.0, 100 * (1 - epsilon) ** n)
    assert often <= bound + 0.01
    print(f"n = {n:2}: misleading {often:.4f} of the time, the bound says {bound:.4f}")

needed = er.theory.sample_size(hypotheses=100, epsilon=epsilon, delta=0.05)
assert needed.value == int(np.ceil(np.log(100 / 0.05) / epsilon)) == 77
print(needed)

# %%
# The bound counts every bad threshold as if it had a chance of its own, though all of them fail or survive together.
# That is why it asks for more than twice the rows that are needed.
#
# The VC dimension
# ----------------
# Infinite classes can be counted by what they do to n points: how many of the :math:`2^n` labellings can they produce?
# The *VC dimension* is the largest n at which some n points can be labelled in all ways. Lines in the plane: all eight
# labellings of a triangle, but never all sixteen of four points.


def separable(points, signs):
    """Whether some hyperplane has the points on the sides that the signs say: a linear program."""
    rows = -signs[:, None] * np.column_stack([points, np.ones(len(points))])
    return linprog(np.zeros(rows.shape[1]), A_ub=rows, b_ub=-np.ones(len(points)), bounds=(None, None)).status == 0


def labellings(points):
    """How many labellings lines produce."""
    return sum(separable(points, np.array(signs)) for signs in product([-1.0, 1.0], repeat=len(points)))


points = rng.normal(size=(5, 2))
counts = [labellings(points[:n]) for n in range(1, 6)]
assert counts == [2, 4, 8, 14, 22]
assert counts == [n * (n - 1) + 2 for n in range(1, 6)]  # a polynomial, and 2^n only up to n = 3
assert er.theory.vc_dimension("linear", 2).value == 3

# %%
# Boxes along the axes have dimension four: the corners of a diamond can be labelled in all ways. Of five points, the
# box around the four that are extreme holds the fifth.


def boxed(points, wanted):
    """Whether a box holds exactly the wanted points: the smallest one that holds them decides."""
    if not wanted.any():
        return True
    low, high = points[wanted].min(axis=0), points[wanted].max(axis=0)
    return np.array_equal(np.all((points >= low) & (points <= high), axis=1), wanted)


diamond = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
assert all(boxed(diamond, np.array(wanted)) for wanted in product([False, True], repeat=4))
for _ in range(200):
    five = rng.normal(size=(5, 2))
    assert not all(boxed(five, np.array(wanted)) for wanted in product([False, True], repeat=5))
assert er.theory.vc_dimension("rectangle", 2).value == 4

# %%
# More dimensions, each with the experiment that shows it:
#
# - the kernel :math:`\langle x, z \rangle^2` in d columns is a linear machine in d (d + 1)/2 features, so its
#   dimension is one more;
# - a Gaussian kernel that is narrow enough fits any labels of different rows: infinite;
# - trees on d columns of zeros and ones have a leaf for every row there can be: :math:`2^d`;
# - networks of sign units with E weights have at most :math:`2 E \log_2(e E)`: connections count, not units.

machine = er.SVM(features=er.kernels.Polynomial(2, constant=0.0)).fit(rng.normal(size=(20, 3)), np.arange(20) % 2)
assert er.theory.vc_dimension(machine).value == 3 * 4 / 2 + 1

six = rng.normal(size=(6, 2))
for wanted in product([0, 1], repeat=6):
    if 0 < sum(wanted) < 6:
        narrow = er.SVM(C=1e3, features=er.kernels.Gaussian(0.1), tol=1e-3).fit(six, wanted)
        assert narrow.score(six, wanted) == 1.0
assert er.theory.vc_dimension(narrow).value == np.inf

cube = np.array(list(product([0.0, 1.0], repeat=3)))
for wanted in list(product([0, 1], repeat=8))[1:-1:7]:
    assert er.TreeClassifier().fit(cube, wanted).score(cube, wanted) == 1.0
assert er.theory.vc_dimension("boolean_tree", 3).value == 8
assert er.theory.vc_dimension("network", edges=100).value == int(2 * 100 * np.log2(np.e * 100))

# %%
# A finite dimension h is exactly what makes a class learnable. For n rows, Vapnik's bound on the true error is the
# training error plus about :math:`\sqrt{h \ln(n/h) / n}`. Compare it with the truth, for lines in the plane: it is
# right always, and at three hundred rows it promises 44 % where 16 % is true. An interval from rows held out says
# more, sooner: it does not have to hold for all functions at once.

world = er.theory.GaussianBayes([[-1.0, 0.0], [1.0, 0.0]], 1.0)
rows = np.array([30, 100, 300, 1000, 3000, 10_000])
bounds, held_out, true = [], [], []
for n in rows:
    X, y = world.sample(int(n), random_state=int(n))
    fresh, fresh_y = world.sample(int(n), random_state=int(n) + 1)
    line = er.LogisticRegression().fit(X, y)
    bounds.append(er.theory.vc_bound(3, int(n), 1 - line.score(X, y)).value)
    held_out.append(er.theory.error_bound(int(np.sum(line.predict(fresh) != fresh_y)), int(n)).value)
    direction = np.ravel(line.coef_)
    distance = (direction @ [1.0, 0.0] + np.array([1, -1]) * line.intercept_[0]) / np.linalg.norm(direction)
    true.append(float(np.mean(norm.sf(distance))))
assert np.all(np.array(true) <= bounds)
assert np.all(np.array(held_out) < bounds)
assert round(bounds[2], 2) == 0.44
assert round(true[2], 2) == 0.16

figure = Figure(figsize=(6.4, 4.4), layout="constrained")
axes = figure.subplots()
for name, curve, place, colour in (
    ("VC bound", bounds, (330, 0.48), "#D55E00"),
    ("from rows held out", held_out, (45, 0.32), "#0072B2"),
    ("true error", true, (45, 0.1), "#009E73"),
):
    axes.plot(rows, np.minimum(curve, 1.0), marker="o", ms=3.5, color=colour)
    axes.annotate(name, place, color=colour)
axes.set(xscale="log", xlabel="rows", ylabel="error", ylim=(0, 1.05))
axes.set_title("What can be promised, and what is true", loc="left")
axes.spines[["top", "right"]].set_visible(False)
figure

# %%
# Margins, not columns
# --------------------
# With many columns, d + 1 is a poor measure. Hyperplanes that keep a margin from points in a ball of radius r have
#
# .. math:: h \leq \min\Big(\frac{r^2}{\text{margin}^2},\; d\Big) + 1
#
# whatever d is. That is why the SVM makes the margin large, that is, the norm of w small. Here two columns decide, and
# ninety-eight are noise on a small scale; the penalty chooses the margin.

labels = np.repeat([-1, 1], 40)
wide = np.column_stack(
    [labels + 0.1 * rng.normal(size=80), 0.1 * rng.normal(size=80), 0.02 * rng.normal(size=(80, 98))]
)
hard = er.SVM(C=1e3).fit(wide, labels)
assert hard.score(wide, labels) == 1.0
margin = 1 / np.linalg.norm(hard.coef_)
radius = np.linalg.norm(wide - wide.mean(axis=0), axis=1).max()
by_margin = er.theory.margin_dimension(radius, margin, features=100)
assert by_margin.value < 10 < er.theory.vc_dimension("linear", 100).value
print(by_margin)

# %%
# Structural risk minimisation
# ----------------------------
# Order the functions in classes of growing dimension. The training error falls with each, the bound's second part
# rises: take the class with the least sum. That is a choice without rows held out. For trees of L leaves on columns
# of zeros and ones, the tree can be written down node by node, and short descriptions overfit little:
#
# .. math:: R \leq \hat R + \sqrt{\frac{(N + 1) \log_2(d + 3) + \log_2(2/\delta)}{2 n}},
#
# N = 2L - 1 nodes, leaves included, except with probability delta.

bits = rng.integers(0, 2, size=(4000, 6)).astype(float)
rule = ((bits[:, 0] == 1) & (bits[:, 1] == 1)) | (bits[:, 2] == 0)
noisy = np.where(rng.uniform(size=4000) < 0.1, ~rule, rule).astype(int)
chosen = er.selection.structural_risk(er.TreeClassifier(), bits, noisy, "max_leaf_nodes", [2, 3, 4, 8, 16, 32, 64])
print(chosen)
single = er.theory.tree_bound(4, n=4000, features=6, training_error=0.1, theorem="description")
assert np.isclose(single.value, 0.1 + np.sqrt((8 * np.log2(9) + np.log2(2 / 0.05)) / (2 * 4000)))


def tree_of(leaves):
    """A tree with at most so many leaves."""
    return er.plots.tree(er.TreeClassifier(max_leaf_nodes=leaves).fit(bits, noisy))


er.plots.slider(tree_of, leaves=[2, 3, 4, 8, 16])

# %%
# The rule has four leaves. Larger trees gain nothing here, and the bound charges them for what they could have done.
#
# No free lunch
# -------------
# Is there a machine that is best for everything? Take a domain of eight points, train on four, and average over *all*
# 256 labellings. Every machine errs on exactly half of the points it has not seen, and each number of errors comes as
# often as with coins. A machine is good on some worlds because it is bad on others.

domain = np.arange(8.0)[[0, 5, 2, 7, 1, 4, 6, 3], None]
for any_machine in (er.KNNClassifier(1), er.TreeClassifier(), er.SVM(features=er.kernels.Gaussian(1.0))):
    lunch = er.theory.no_free_lunch(any_machine, domain, train=4)
    assert lunch.average == 0.5
    assert np.array_equal(lunch.counts, [16, 64, 96, 64, 16])
print(lunch)

# %%
# On the whole domain that is an error of 1/4 on average, so there is a labelling with at least 1/4, although a
# perfect function exists for it. By Markov's inequality the error is then 1/8 or more with probability at least 1/7.
# In worlds that are like ours, with one step along the line, the same machine does well:

steps = [domain[:, 0] >= cut for cut in range(9)]
assert lunch.average * 4 / 8 == 0.25
assert (0.25 - 1 / 8) / (1 - 1 / 8) == 1 / 7
assert er.theory.no_free_lunch(er.KNNClassifier(1), domain, 4, steps).average < 0.25

# %%
# Exercises
# ---------
#
# .. admonition:: Exercise 16.1
#
#    A rule says +1 inside an interval of the line and -1 outside. Count its VC dimension.
#
# .. solution::
#
# Two. With three points on a line, the outer two cannot be had without the inner one.

for n, all_ways in ((2, True), (3, False)):
    dots = np.column_stack([np.arange(float(n)), np.zeros(n)])
    assert all(boxed(dots, np.array(wanted)) for wanted in product([False, True], repeat=n)) == all_ways

# %%
# .. end-solution::
#
# .. admonition:: Exercise 16.2
#
#    How many rows does the finite-class bound ask for with all functions of 10 bits, epsilon = 0.1 and delta = 0.05?
#    Compare with the number of different inputs.
#
# .. solution::
#
# There are :math:`2^{1024}` functions: ln of that is 710, and 7128 rows are asked for, though there are only 1024
# inputs. Without a smaller class nothing is learned before everything has been seen.

asked = er.theory.sample_size(hypotheses=2**1024, epsilon=0.1, delta=0.05).value
assert asked == int(np.ceil((1024 * np.log(2) - np.log(0.05)) / 0.1))
assert asked > 1024

# %%
# .. end-solution::
#
# .. admonition:: Exercise 16.3
#
#    A class of a million functions makes no training error on 500 rows. What can be said of the true error?
#
# .. solution::
#
# At most :math:`\ln(10^6 / 0.05) / 500`, about 3.4 %, with 95 % confidence.

claim = er.theory.finite_class_bound(1_000_000, n=500, delta=0.05)
assert np.isclose(claim.value, np.log(1e6 / 0.05) / 500)
print(claim)

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :func:`empirisk.theory.sample_size`, :func:`empirisk.theory.vc_dimension`, :func:`empirisk.theory.vc_bound`,
# :func:`empirisk.theory.margin_bound`, :func:`empirisk.theory.tree_bound`, :func:`empirisk.theory.no_free_lunch`,
# :func:`empirisk.selection.structural_risk`, :func:`empirisk.theory.is_calibrated`.
