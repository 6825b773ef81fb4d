r"""
11. Trees, bagging, forests, boosting, and why they work
========================================================

A decision tree asks one question about one column at a time. It is easy to read, quick, and indifferent to the scale
of columns; alone it is also unstable and seldom the best. Two ideas turn trees into the strongest machines for tables.
**Average many of them** that differ (bagging, forests). **Add them one after the other**, each looking at what the
others got wrong (boosting). This lesson grows a tree by hand, and measures why both ideas work.

About fifteen minutes. You need :doc:`lesson 1 <plot_01_equation>`, and what over- and underfitting are
(:doc:`lesson 10 <plot_10_evaluation_and_luck>`).
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import empirisk as er
from empirisk.studio.playground.address import link

rng = np.random.default_rng(3)

# %%
# Reading a tree
# --------------
# A node asks whether a column is at most a threshold; a leaf says the most frequent class of its training rows. Here
# are irises by two ratios, length by width of the sepal and of the petal. The first question splits off one species
# alone, at a ratio of 1.7.

flowers = load_iris()
ratios = flowers.data[:, [0, 2]] / flowers.data[:, [1, 3]]
species = flowers.target_names[flowers.target]
iris_tree = er.TreeClassifier(max_leaf_nodes=5).fit(ratios, species)
assert abs(iris_tree.nodes_.threshold[0] - 1.7) < 0.05
assert iris_tree.nodes_.feature[0] == 0
er.plots.tree(iris_tree)

# %%
# Thresholds along the axes make regions that are boxes. Any such partition can be learned back from its labels. Take
# the tree "x0 > 2.52, and then x1 > 5.83": from points with these labels the greedy algorithm finds both questions.

plane = rng.uniform(0, 10, size=(400, 2))
box = np.where(plane[:, 0] <= 2.52, 1, np.where(plane[:, 1] > 5.83, 1, -1))
found = er.TreeClassifier().fit(plane, box)
splits = found.nodes_.threshold[found.nodes_.feature >= 0]
assert found.n_leaves_ == 3
assert np.allclose(np.sort(splits), [2.52, 5.83], atol=0.15)

# %%
# Which question?
# ---------------
# The one that makes the children purest. With :math:`p_k` the share of class k in a node, three measures of impurity
# are
#
# .. math:: \text{error } 1 - \max_k p_k, \qquad \text{Gini } \sum_k p_k (1 - p_k), \qquad
#           \text{entropy } -\sum_k p_k \ln p_k
#
# Gini is 2p(1 - p) for two classes, and the entropy has a term for each class, p and 1 - p. The gain of a split is the
# impurity of the node minus the mean impurity of its children, *weighted by their rows*. Without the weights a child
# with one row would count as much as one with a thousand. :doc:`The three curves </gallery/1_formulas/plot_impurities>`
# are in the gallery.
#
# The first question about a hundred points, of which those in a rectangle are of class 1, by trying all:

points = rng.uniform(size=(100, 2))
y = ((points[:, 0] < 0.8) & (points[:, 1] > 0.2) & (points[:, 1] < 0.8)).astype(int)


def gini(labels):
    """2 p (1 - p); of no rows zero."""
    return 2 * labels.mean() * (1 - labels.mean()) if len(labels) else 0.0


def gain(labels, left, weighted=True):
    """What a split gains that sends some rows to the left."""
    shares = (left.mean(), 1 - left.mean()) if weighted else (1, 1)
    return gini(labels) - shares[0] * gini(labels[left]) - shares[1] * gini(labels[~left])


every = [(column, threshold) for column in (0, 1) for threshold in points[:, column]]
column, threshold = max(every, key=lambda split: gain(y, points[:, split[0]] <= split[1]))
tree = er.TreeClassifier().fit(points, y)
root = points[:, column] <= threshold
assert tree.nodes_.feature[0] == column
assert np.array_equal(points[:, column] <= tree.nodes_.threshold[0], root)
assert np.isclose(tree.nodes_.gain[0] / len(y), gain(y, root))

eight = np.array([0, 0, 0, 0, 0, 1, 0, 1])
cuts = [np.arange(8) < count for count in range(1, 8)]
assert np.argmax([gain(eight, cut) for cut in cuts]) + 1 == 5  # five zeros apart
assert np.argmax([gain(eight, cut, weighted=False) for cut in cuts]) + 1 == 7  # a single row apart
print(f"first question: is x{column} at most {threshold:.3f}?")

# %%
# A regression tree takes the split that leaves the smallest sum of squares, and each leaf says the mean of its targets,
# which is the constant with the smallest sum of squares.

wave = np.sin(6 * points[:, 0]) + 0.2 * rng.normal(size=100)
regression = er.TreeRegressor(max_leaf_nodes=4).fit(points[:, :1], wave)
leaves = regression.apply(points[:, :1])
for leaf in np.unique(leaves):
    assert np.allclose(regression.predict(points[leaves == leaf, :1]), wave[leaves == leaf].mean())

# %%
# Large trees overfit, and all trees are unstable
# -----------------------------------------------
# A tree that is grown until its leaves are pure makes no training error, and learns the noise with the rest. Fewer
# leaves help: by a limit, or by *pruning*, which grows the tree and then removes splits whose removal does not hurt
# on rows held out. (The best tree of a given size cannot be found in reasonable time, so all methods are greedy.)

X = rng.normal(size=(2500, 10))
clean = (np.sum(X**2, axis=1) > 9.34).astype(int)  # outside of a ball
noisy = np.where(rng.uniform(size=2500) < 0.05, 1 - clean, clean)
X_train, X_test, y_train, y_test = train_test_split(X, noisy, test_size=2000, random_state=0)

full = er.TreeClassifier(random_state=0).fit(X_train[:350], y_train[:350])
before, size = full.score(X_test, y_test), full.n_leaves_
assert full.score(X_train[:350], y_train[:350]) == 1.0
full.prune((X_train[350:], y_train[350:]))
assert full.nodes_.is_leaf.sum() < size
assert full.score(X_test, y_test) > before
curve = er.evaluation.validation_curve(
    er.TreeClassifier(random_state=0), X_train, y_train, "max_leaf_nodes", [2, 4, 8, 16, 32, 64, 128]
)
assert curve.train[-1].mean() > 0.95
assert curve.validation[-1].mean() < 0.75

# %%
# In the plane it can be seen. One label in ten of the hundred points is turned round; move the slider from one question
# to as many as the tree wants. It ends with a box for every wrong label.

coins = np.random.default_rng(0)
wrong_labels = np.where(coins.uniform(size=100) < 0.1, 1 - y, y)
plain = coins.uniform(size=(2000, 2))
answers = ((plain[:, 0] < 0.8) & (plain[:, 1] > 0.2) & (plain[:, 1] < 0.8)).astype(int)
depths = list(range(1, 13))
deep = {depth: er.TreeClassifier(max_depth=depth).fit(points, wrong_labels) for depth in depths}
known = [np.mean(one.predict(points) != wrong_labels) for one in deep.values()]
new = [np.mean(one.predict(plain) != answers) for one in deep.values()]
assert known[-1] == 0.0
assert new[-1] > min(new) + 0.03


def grown(depth):
    """The regions at one depth, and the errors at all of them."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    er.plots.regions(deep[depth], points, wrong_labels, axes=left)
    for errors, name, colour in ((known, "learned from", "#0072B2"), (new, "new rows", "#D55E00")):
        right.plot(depths, errors, color=colour)
        right.plot(depth, errors[depth - 1], "o", color=colour)
        right.annotate(name, (12.2, errors[-1]), color=colour, va="center", annotation_clip=False)
    right.set(xlabel="depth", ylabel="error", ylim=(-0.01, None))
    right.spines[["top", "right"]].set_visible(False)
    right.set_title(f"depth {depth}: {new[depth - 1]:.0%} of new rows wrong", loc="left", fontsize=11)
    return figure


er.plots.slider(grown, depth=[1, 2, 3, 4, 6, 8, 12])

# %%
# Change one label of a hundred, and grow again. Another first question, other regions: this is what a high variance
# looks like.

disturbed, changes = y.copy(), []
for row in range(100):
    disturbed[:] = y
    disturbed[row] = 1 - y[row]
    other = er.TreeClassifier().fit(points, disturbed)
    fresh = rng.uniform(size=(500, 2))
    changes.append(np.mean(other.predict(fresh) != tree.predict(fresh)))
assert max(changes) > 0.03  # one label in a hundred changes more than three answers in a hundred

# %%
# In the playground of :doc:`the studio </studio>`, choose *Tree* and drag a single point: the regions jump. *Forest*
# and *Boosting* hardly move.

link(4 * points - 2, y, family="tree", depth=4)

# %%
# Averages have a smaller variance
# --------------------------------
# The mean of B numbers of variance :math:`s^2` that are correlated by :math:`\rho` has the variance
#
# .. math:: \operatorname{Var}\Big(\frac1B \sum_b x_b\Big) = \rho s^2 + \frac{1 - \rho}{B} s^2
#
# The second part disappears with B, the first stays. So train members that err *differently*. **Bagging** gives every
# tree a sample of n rows drawn with replacement. A **forest** also draws, at every split, a few columns among which to
# choose. Here are both parts, measured over forests that are grown on many training sets.

answers = np.array(
    [
        [
            member.predict(X_test[:100])
            for member in er.BaggingRegressor(er.TreeRegressor(), 10, random_state=s).fit(rows, values).estimators_
        ]
        for s in range(30)
        for rows, values in [(lambda draw: (X[draw], noisy[draw].astype(float)))(rng.integers(0, 2500, 200))]
    ]
)  # training sets x members x test rows
variance = answers.var(axis=0).mean()
between = np.mean(
    [
        np.mean((answers[:, a] - answers[:, a].mean(axis=0)) * (answers[:, b] - answers[:, b].mean(axis=0)))
        for a in range(10)
        for b in range(10)
        if a != b
    ]
)
rho = between / variance
predicted = rho * variance + (1 - rho) / 10 * variance
assert 0 < rho < 0.5
assert np.isclose(answers.mean(axis=1).var(axis=0).mean(), predicted)
print(f"correlation {rho:.2f}: variance {variance:.3f} of one tree, {predicted:.3f} of the mean of ten")

# %%
# What bagging cannot do is make members less simple. Stumps, trees with one question, on a random one of the two
# columns and half of the rows, see only sides of the rectangle. The vote of a hundred of them has corners, and is
# calmer than one stump, but the rectangle is beyond it: averages lower the variance, not the bias.


def bag(members):
    """A vote of stumps, each on one of the two columns."""
    voters = er.BaggingClassifier(
        er.TreeClassifier(max_depth=1), members, max_samples=0.5, bootstrap=False, max_features=1, random_state=0
    )
    return er.plots.regions(voters.fit(points, y), points, y)


er.plots.slider(bag, members=[1, 3, 10, 30, 100])

# %%
# Error by number of trees
# ------------------------
# More trees do not make a forest overfit: its error settles, as a mean does. Boosting goes on, and given time
# overtakes.

forest = er.ForestClassifier(200, random_state=0).fit(X_train, y_train)
bagged = er.ForestClassifier(200, max_features=None, random_state=0).fit(X_train, y_train)
boosted = er.BoostingClassifier(n_estimators=200, max_depth=1, learning_rate=0.3, random_state=0).fit(X_train, y_train)
errors = {
    "bagging": bagged.staged_errors(X_test, y_test),
    "forest": forest.staged_errors(X_test, y_test),
    "boosting": np.array([np.mean(said != y_test) for said in boosted.staged_predict(X_test)]),
}
single = er.TreeClassifier(random_state=0).fit(X_train, y_train).score(X_test, y_test)
assert all(curve[-1] < 1 - single for curve in errors.values())
assert errors["forest"][-1] < errors["bagging"][-1]
assert errors["boosting"][-1] < errors["forest"][-1]
assert np.ptp(errors["forest"][100:]) < 0.03  # it has settled

figure = Figure(figsize=(6.4, 4.4), layout="constrained")
axes = figure.subplots()
looks = {"bagging": ("#0072B2", 0.015), "forest": ("#D55E00", -0.01), "boosting": ("#009E73", -0.005)}
for name, (colour, shift) in looks.items():
    axes.plot(np.arange(1, 201), errors[name], color=colour)
    axes.text(203, errors[name][-1] + shift, name, color=colour, va="center")
axes.set(xlabel="trees", ylabel="test error", xlim=(0, 240), ylim=(0.0, 0.45))
axes.set_title("Error by number of trees", loc="left")
axes.axhline(0.05, color="0.5", lw=0.8)
axes.spines[["top", "right"]].set_visible(False)
figure

# %%
# No machine can be below 0.05 here, since one label in twenty is turned round. Boosting is far ahead because the
# truth is a sum of functions of single columns, and a sum of stumps is just that.
#
# The *margin* of the vote for a row is the share of the right class minus the largest other share. The error of the
# forest is P[margin < 0]. Members should be right on average (strength), and should not be wrong together
# (correlation).

margin = forest.margins(X_test, y_test)
votes = forest.predict(X_test)
assert np.isclose(np.mean(margin < 0), np.mean(votes != y_test), atol=0.02)
spread = forest.spread(X_test, y_test)
print(f"strength {spread.strength:.2f}, correlation {spread.correlation:.2f}")

# %%
# How good could it be, if the members were independent? Each wrong with probability p, the majority is wrong with a
# binomial tail. With p = 0.4 the error falls slowly at first and then exponentially; the bound :math:`\exp(-n (1/2 -
# p)^2)` holds for every n. A tie is half an error here; a rule that breaks ties in favour of one class errs on them
# fully or not at all. Trees of one forest are not independent, and never get so far.

voters = [1, 3, 5, 7, 21, 101, 301]
exact = [er.theory.majority_vote(0.4, n).value for n in voters]
bounds = [er.theory.majority_vote_bound(0.4, n).value for n in voters]
assert exact[0] == 0.4
assert np.isclose(exact[3], sum(v * 0.4**k * 0.6 ** (7 - k) for k, v in zip((4, 5, 6, 7), (35, 21, 7, 1), strict=True)))
assert np.all(np.array(exact) <= bounds)
assert exact[-1] < 0.001
print({n: round(value, 4) for n, value in zip(voters, exact, strict=True)})

# %%
# AdaBoost
# --------
# Boosting keeps a weight D for every row. In each round a weak learner h is fitted to the weighted rows, with error e;
# then
#
# .. math:: z = \sum_i D_i\, y_i h(x_i) = 1 - 2e, \qquad \alpha = \tfrac12 \ln\frac{1 + z}{1 - z}
#           = \tfrac12 \ln\frac{1 - e}{e}, \qquad D_i \leftarrow D_i\, e^{-\alpha y_i h(x_i)} / Z
#
# and the answer is the sign of the sum of alpha h. Rows that were wrong get heavier. This is descent on the exponential
# loss, one coordinate at a time. (Some write alpha without the factor 1/2: twice the sum has the same sign.)


def boost(rounds):
    """Stumps on the rectangle."""
    return er.plots.regions(er.AdaBoostClassifier(n_estimators=rounds).fit(points, y), points, y)


er.plots.slider(boost, rounds=[1, 2, 5, 10, 50])

# %%
# Two stumps have two sides, ten have the rectangle. Now the same with numbers. By hand, round by round:

machine = er.AdaBoostClassifier(n_estimators=50).fit(points, y)
sign, D = 2 * y - 1, np.full(100, 0.01)
for learner, alpha, edge in zip(machine.estimators_, machine.alphas_, machine.edges_, strict=True):
    h = 2 * learner.predict(points) - 1
    z = D @ (sign * h)
    assert np.isclose(z, 2 * edge)  # the edge gamma = 1/2 - e is half of z
    assert np.isclose(alpha, 0.5 * np.log((1 + z) / (1 - z)))
    D *= np.exp(-alpha * sign * h)
    D /= D.sum()

# %%
# With edges :math:`\gamma_t = 1/2 - e_t` the training error is at most :math:`\prod_t \sqrt{1 - 4 \gamma_t^2}`, which
# is at most :math:`\exp(-2 \sum_t \gamma_t^2)`. Single edges may be small, even negative; the sum of squares counts.

product = np.prod(np.sqrt(1 - 4 * machine.edges_**2))
assert machine.training_errors_[-1] <= product <= np.exp(-2 * np.sum(machine.edges_**2))
assert np.isclose(machine.bound_[-1], product)

# %%
# The training error reaches zero, and the error on new rows often goes on falling. The margins
# :math:`y f(x) / \sum_t \alpha_t` show why: they keep growing, and a bound on the true error depends on them and not on
# the number of rounds (:func:`empirisk.theory.adaboost_margin_bound`). On the left are the stumps on the rectangle and
# their bound, on the right the margins of the deeper trees.

ball_train, ball_test = (np.sum(part**2, axis=1) > 9.34 for part in (X_train, X_test))
long = er.AdaBoostClassifier(er.TreeClassifier(max_depth=3), n_estimators=200).fit(X_train, ball_train)
first_perfect = int(np.argmax(long.training_errors_ == 0)) + 1
on_new = np.array([np.mean(said != ball_test) for said in long.staged_predict(X_test)])
assert first_perfect < 100
assert on_new[-1] < on_new[first_perfect - 1] - 0.01
print(
    f"no training error after {first_perfect} rounds; new rows {on_new[first_perfect - 1]:.3f}, then {on_new[-1]:.3f}"
)
figure = Figure(figsize=(11.5, 4.4), layout="constrained")
left, right = figure.subplots(1, 2)
er.plots.rounds(machine, axes=left)
er.plots.margins(long, X_train, ball_train, rounds=[3, 10, 50, 200], axes=right)
figure

# %%
# Exercises
# ---------
#
# .. admonition:: Exercise 11.1
#
#    What does boosting on the exponential loss estimate? Show that the minimiser of :math:`p\,e^{-f} + (1 -
#    p)\,e^{f}` is half the log odds, and find it with a loss of the library.
#
# .. solution::
#
# The derivative :math:`-p\,e^{-f} + (1 - p)\,e^{f}` is zero where :math:`e^{2f} = p/(1 - p)`.

for p in (0.1, 0.5, 0.8):
    labels = (np.arange(1000) < 1000 * p).astype(int)
    constant = er.Classifier(loss="exponential", penalty="l2", C=1.0).fit(np.zeros((1000, 1)), labels)
    assert np.isclose(constant.intercept_, 0.5 * np.log(p / (1 - p)), atol=1e-5).all()

# %%
# .. end-solution::
#
# .. admonition:: Exercise 11.2
#
#    What happens with a weak learner that makes no error, and with one that is wrong more often than right?
#
# .. solution::
#
# No error means alpha is infinite: the learner alone decides, and boosting stops, for nothing is left to correct. That
# happens with learners that are too strong, such as a full tree. A learner with e > 1/2 gets a negative alpha: it is
# used the other way round.

strong = er.AdaBoostClassifier(er.TreeClassifier(), n_estimators=50).fit(points, y)
assert strong.stopped_ == "perfect_learner"
assert len(strong.estimators_) == 1


class Contrary(er.TreeClassifier):
    """A stump that says the opposite."""

    def predict(self, X):
        """The other class."""
        return 1 - super().predict(X)


contrary = er.AdaBoostClassifier(Contrary(max_depth=1), n_estimators=20).fit(points, y)
assert (contrary.alphas_ < 0).all()
assert contrary.score(points, y) == er.AdaBoostClassifier(n_estimators=20).fit(points, y).score(points, y)

# %%
# .. end-solution::
#
# .. admonition:: Exercise 11.3
#
#    Two hundred voters with error 0.4 have error 0.002 if they are independent. What if each pair is correlated by
#    0.2? Use voters that copy a common coin.
#
# .. solution::
#
# A voter copies the common coin with probability c, else tosses its own: pairs are then correlated by :math:`c^2`.
# The error no longer tends to zero, because the common coin is wrong now and then and takes many with it.

copies = rng.uniform(size=(5000, 200)) < np.sqrt(0.2)
wrong = np.where(copies, rng.uniform(size=(5000, 1)) < 0.4, rng.uniform(size=(5000, 200)) < 0.4)
assert np.isclose(np.corrcoef(wrong[:, 0], wrong[:, 1])[0, 1], 0.2, atol=0.05)
assert er.theory.majority_vote(0.4, 200).value < 0.003
assert np.mean(wrong.mean(axis=1) > 0.5) > 0.2

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :class:`empirisk.TreeClassifier`, :class:`empirisk.ForestClassifier`,
# :class:`empirisk.BaggingClassifier`, :class:`empirisk.AdaBoostClassifier`, :class:`empirisk.BoostingClassifier`,
# :class:`empirisk.AdditiveClassifier`, :class:`empirisk.VoteClassifier`, :func:`empirisk.plots.rounds`,
# :func:`empirisk.plots.margins`, :func:`empirisk.theory.majority_vote`.
