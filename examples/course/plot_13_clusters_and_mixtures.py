r"""
13. Clusters and mixtures
=========================

Nobody has told the classes, and we look for groups. This lesson has four answers. **k-means** gives every row to the
nearest of k means. **Kernel k-means** does that behind a map. **Hierarchical clustering** merges the nearest groups
until one is left. A **mixture of Gaussians** describes where rows are likely, and gives every row a share in every
group. The last part turns densities round: rows that are unlikely are outliers.

There is no truth to test against. What is minimised can be checked, and so can what the methods have in common; whether
the groups mean something is for those who know the data.

About fifteen minutes. You need :doc:`lesson 1 <plot_01_equation>`, and :doc:`lesson 7 <plot_07_kernels>` for kernels.
"""

import numpy as np
from matplotlib.figure import Figure

import empirisk as er
from empirisk.studio.playground.address import link

rng = np.random.default_rng(8)

# %%
# k-means
# -------
# Weight and length of the tail of three kinds of mice, say. k-means minimises the sum of squared distances to the
# means,
#
# .. math:: \sum_{i} \| x_i - m_{c(i)} \|^2
#
# in two half-steps: every row goes to its nearest mean, every mean moves to its rows. Neither can raise the sum, and
# there are finitely many partitions, so it ends; at a local minimum, which depends on the start.

mice = np.concatenate([middle + 0.5 * rng.normal(size=(40, 2)) for middle in ([0, 0], [4, 1], [1.5, 3.5])])


def lloyd(rows, means):
    """The two half-steps until nothing changes, and the sums on the way."""
    sums = []
    while True:
        squared = ((rows[:, None] - means[None]) ** 2).sum(axis=2)
        labels = squared.argmin(axis=1)
        sums.append(squared.min(axis=1).sum())
        moved = np.array([rows[labels == k].mean(axis=0) for k in range(len(means))])
        if np.allclose(moved, means):
            return labels, means, np.array(sums)
        means = moved


start = mice[[0, 1, 2]]
labels, means, sums = lloyd(mice, start)
assert np.all(np.diff(sums) <= 1e-9)
machine = er.KMeans(3, random_state=0).fit(mice)
ours = er.KMeans(3, init=start, shifts=0).fit(mice)
assert np.isclose(ours.inertia_, sums[-1])
assert machine.inertia_ <= sums[-1] + 1e-9  # the best of ten starts, which lie far apart
er.plots.animate(er.KMeans(3, init=start), mice, frames=6)

# %%
# The cells are those of a Voronoi diagram: the border between two means is the line of points that are equally far
# from both, so all borders are straight. With two clusters k-means ends in a nearest-centroid classifier. More means
# make more cells, and a smaller sum always: the sum cannot choose k.

two = er.KMeans(2, random_state=0).fit(mice)
centroid = er.NearestCentroid().fit(mice, two.labels_)
everywhere = rng.uniform(-2, 6, size=(1000, 2))
assert np.array_equal(two.predict(everywhere), centroid.predict(everywhere))
assert np.all(np.diff([er.KMeans(k, random_state=0).fit(mice).inertia_ for k in range(1, 9)]) < 0)

er.plots.slider(lambda k: er.plots.voronoi(er.KMeans(k, random_state=0).fit(mice), mice), k=[2, 3, 4, 5, 8])

# %%
# In the playground of :doc:`the studio </studio>`, *k-means* plays its half-steps, *Mixture of Gaussians* its rounds,
# and *Hierarchical* its merges, on points that you can drag.

link(mice, machine.labels_, task="clusters", family="kmeans", count=3)

# %%
# Behind a kernel
# ---------------
# Straight borders cannot part a ring from what it surrounds. Behind a map they can. The means live in the feature
# space, but distances to them need only the Gram matrix: with
# :math:`I_j` the rows of cluster j,
#
# .. math:: \|\phi(x) - m_j\|^2 = k(x, x) - \frac{2}{|I_j|} \sum_{i \in I_j} k(x, x_i)
#           + \frac{1}{|I_j|^2} \sum_{i, l \in I_j} k(x_i, x_l)

angle = rng.uniform(0, 2 * np.pi, 200)
ring = np.repeat([0, 1], 100)
rings = np.where(ring == 0, 0.3, 2.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
rings += 0.1 * rng.normal(size=rings.shape)


def agreement(labels):
    """How far two clusters are the two rings, from 1/2 to 1."""
    return max(np.mean(labels == ring), np.mean(labels != ring))


kernel = er.kernels.Gaussian(1.0)
straight = er.KMeans(2, random_state=0).fit(rings)
bent = er.KMeans(2, features=kernel, random_state=0).fit(rings)
assert agreement(straight.labels_) < 0.8
assert agreement(bent.labels_) == 1.0

K = kernel(rings)
squared = np.column_stack(
    [
        np.diag(K) - 2 * K[:, bent.labels_ == j].mean(axis=1) + K[np.ix_(bent.labels_ == j, bent.labels_ == j)].mean()
        for j in (0, 1)
    ]
)
assert np.array_equal(squared.argmin(axis=1), bent.labels_)
assert np.isclose(squared.min(axis=1).sum(), bent.inertia_)
er.plots.voronoi(bent, rings)

# %%
# Hierarchies
# -----------
# Begin with single rows, and merge the two nearest clusters, again and again. The result is a tree, and a cut through
# it gives any number of clusters, or all clusters whose parts are no farther apart than a limit. Eleven points: four
# pairs, and three that are on their own.

eleven = np.array([
    [0.0, 0.0], [0.5, 0.0], [0.2, 1.5], [0.7, 1.6], [3.0, 0.2], [3.9, 1.6],
    [6.0, 0.0], [6.4, 0.3], [6.0, 2.0], [6.5, 2.2], [9.0, 1.0],
])  # fmt: skip
limited = er.Hierarchical("single", distance_threshold=1.0).fit(eleven)
groups = {frozenset(np.flatnonzero(limited.labels_ == k) + 1) for k in np.unique(limited.labels_)}
assert groups == {frozenset(group) for group in ({1, 2}, {3, 4}, {5}, {6}, {7, 8}, {9, 10}, {11})}
er.plots.dendrogram(er.Hierarchical("average").fit(eleven), n_clusters=4, names=list(range(1, 12)))

# %%
# How far are two clusters apart? *Single* linkage takes the nearest pair and makes chains, *complete* the farthest
# pair and makes compact groups, *average* the mean. Each can be computed from distances alone, and so from a kernel.
# Chains are what rings need.

height = {}
for linkage, measure in (("single", np.min), ("average", np.mean), ("complete", np.max)):
    tree = er.Hierarchical(linkage, squared=True).fit(eleven)
    left, right = tree.cut(2) == 0, tree.cut(2) == 1
    squares = ((eleven[left][:, None] - eleven[right][None]) ** 2).sum(axis=2)
    assert np.isclose(tree.linkage_[-1, 2], measure(squares))
    height[linkage] = tree.linkage_[-1, 2]
assert height["single"] < height["average"] < height["complete"]
assert agreement(er.Hierarchical("single", n_clusters=2).fit(rings).labels_) == 1.0
assert agreement(er.Hierarchical("complete", n_clusters=2).fit(rings).labels_) < 1.0
assert agreement(er.Hierarchical("single", features=kernel, n_clusters=2).fit(rings).labels_) == 1.0

# %%
# A density: one Gaussian
# -----------------------
# The normal density in d columns, with mean m and covariance S, is
#
# .. math:: p(x) = (2\pi)^{-d/2}\, |S|^{-1/2}\, \exp\big(-\tfrac12 (x - m)^\top S^{-1} (x - m)\big)
#
# The exponent is negative and quadratic, and the factor in front makes the integral one: :math:`1 / (\sqrt{2 \pi}\, s)`
# for d = 1, and :math:`1 / (2 \pi \sqrt{|S|})` for d = 2. The parameters under which the rows are most likely are their
# mean and their covariance, divided by n. If all directions share one variance, it is the sum of squares divided by n
# d: each row has d numbers.

cloud = rng.normal(size=(500, 2)) * [2.0, 1.0] + [1.0, -1.0]
full = er.GaussianDensity("full", reg_covar=0.0).fit(cloud)
assert np.allclose(full.mean_, cloud.mean(axis=0))
assert np.allclose(full.covariance_, np.cov(cloud.T, ddof=0))
offset = cloud[:5] - full.mean_
exponent = -0.5 * np.einsum("ij,jk,ik->i", offset, np.linalg.inv(full.covariance_), offset)
by_formula = exponent - np.log(2 * np.pi * np.sqrt(np.linalg.det(full.covariance_)))
assert np.allclose(full.score_samples(cloud[:5]), by_formula)

round_one = er.GaussianDensity("spherical", reg_covar=0.0).fit(cloud)
assert np.isclose(round_one.covariance_, np.sum((cloud - cloud.mean(axis=0)) ** 2) / (500 * 2))

# %%
# Mixtures, and expectation and maximisation
# ------------------------------------------
# One Gaussian has one top. A mixture :math:`p(x) = \sum_k w_k p_k(x)` has several. There is no closed form, since
# nobody knows which component a row comes from. *EM* alternates: with the parameters fixed, the share of component k
# in row i is :math:`h_{ik} = w_k p_k(x_i) / p(x_i)`; with the shares fixed, weights, means and covariances are
# weighted averages. The likelihood never falls. All is done in logarithms, because densities are tiny numbers.

turn = rng.uniform(0, np.pi, 200)
moon = np.arange(200) % 2
moons = np.column_stack([np.cos(turn) * (1 - 2 * moon) + moon, np.sin(turn) * (1 - 2 * moon) + 0.5 * moon])
moons += 0.1 * rng.normal(size=moons.shape)

mixture = er.GaussianMixture(5, random_state=0, tol=1e-9, max_iter=2000, reg_covar=1e-9).fit(moons)
assert np.all(np.diff(mixture.history_["log_likelihood"]) > -1e-9)


def log_normal(rows, mean, covariance):
    """The logarithm of a Gaussian density."""
    offset = rows - mean
    quadratic = np.einsum("ij,jk,ik->i", offset, np.linalg.inv(covariance), offset)
    return -0.5 * (quadratic + np.log(np.linalg.det(covariance)) + len(mean) * np.log(2 * np.pi))


logs = np.column_stack(
    [
        np.log(weight) + log_normal(moons, mean, covariance)
        for weight, mean, covariance in zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True)
    ]
)
assert np.allclose(np.logaddexp.reduce(logs, axis=1), mixture.score_samples(moons))
shares = np.exp(logs - mixture.score_samples(moons)[:, None])
assert np.allclose(shares.sum(axis=1), 1)
# A round of EM leaves the solution where it is.
assert np.allclose(shares.mean(axis=0), mixture.weights_, atol=1e-3)
assert np.allclose(shares.T @ moons / shares.sum(axis=0)[:, None], mixture.means_, atol=1e-2)


def components(k):
    """A mixture of k Gaussians on two moons, and the cells of k means."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    er.plots.density(er.GaussianMixture(k, random_state=0).fit(moons), moons, axes=left)
    er.plots.voronoi(er.KMeans(k, random_state=0).fit(moons), moons, axes=right)
    return figure


er.plots.slider(components, k=[1, 2, 3, 5, 8, 25])

# %%
# k-means is a hard version of this: every share is 0 or 1, all covariances are equal and round. The means of k-means
# are therefore a good start for a mixture, and the one that is used here. On the right of the picture, 25 means cut the
# moons into 25 cells.

many = er.KMeans(25, random_state=0).fit(moons)
hard = np.eye(25)[many.labels_]
assert np.allclose(hard.T @ moons / hard.sum(axis=0)[:, None], many.cluster_centers_)

# %%
# Outliers
# --------
# A row is strange where the density is low. Instead of estimating the density everywhere, the *one-class SVM* looks
# for the region itself: :math:`\langle w, \phi(x) \rangle \geq \rho` for most rows, with :math:`\rho` as large as
# possible. Its dual is a minimum,
#
# .. math:: \min_\alpha \tfrac12\, \alpha^\top K \alpha \quad\text{with}\quad
#           0 \leq \alpha_i \leq C,\; \sum_i \alpha_i = 1
#
# With :math:`C = 1 / (\nu n)`, at most the share :math:`\nu` of the rows lies outside, and at least that share are
# support vectors. A C of 0.02 with 100 rows is therefore :math:`\nu = 1/2`: a boundary through the middle of the data.

rows = moons[:100]
half = er.OneClassSVM(nu=1 / (0.02 * 100), features=er.kernels.Gaussian.from_gamma(5.0), tol=1e-9).fit(rows)
alpha = np.zeros(100)
alpha[half.support_] = np.ravel(half.dual_coef_)
alpha /= alpha.sum()
G = er.kernels.Gaussian.from_gamma(5.0)(rows)
assert alpha.max() <= 0.02 + 1e-9
assert np.mean(half.predict(rows) < 0) <= 0.5 <= np.mean(alpha > 1e-9)
assert alpha @ G @ alpha <= 1e-9 + np.full(100, 0.01) @ G @ np.full(100, 0.01)  # better than equal weights
on_edge = (alpha > 1e-6) & (alpha < 0.02 - 1e-6)
assert np.ptp(G[on_edge] @ alpha) < 1e-5  # rho, the same for every row on the boundary

er.plots.slider(
    lambda nu: er.plots.outliers(er.OneClassSVM(nu=nu, features=er.kernels.Gaussian.from_gamma(5.0)).fit(rows), rows),
    nu=[0.02, 0.1, 0.2, 0.5],
)

# %%
# Exercises
# ---------
#
# .. admonition:: Exercise 13.1
#
#    Show with the linear kernel that kernel k-means is k-means, and that its means are means.
#
# .. solution::
#
# Same start, same clusters, same sum.

first = (mice[:, 0] > 2).astype(int)
plain = er.KMeans(2, init=first, shifts=0).fit(mice)
behind = er.KMeans(2, init=first, features="linear", shifts=0).fit(mice)
assert np.array_equal(plain.labels_, behind.labels_)
assert np.isclose(plain.inertia_, behind.inertia_)

# %%
# .. end-solution::
#
# .. admonition:: Exercise 13.2
#
#    Which k has the largest likelihood of a mixture on rows held out? Try 1 to 12 on the moons.
#
# .. solution::
#
# On the training rows the likelihood keeps rising. On others it does not.

fit_on, judge_on = moons[:100], moons[100:]
likelihood = [
    [er.GaussianMixture(k, random_state=0).fit(fit_on).score_samples(part).mean() for part in (fit_on, judge_on)]
    for k in range(1, 13)
]
inside, outside = np.array(likelihood).T
assert inside.argmax() > outside.argmax()
assert inside[-1] - outside[-1] > inside[1] - outside[1]
print(f"{inside.argmax() + 1} components for the rows that were learned from, {outside.argmax() + 1} for the others")

# %%
# .. end-solution::
#
# .. admonition:: Exercise 13.3
#
#    A spherical mixture whose variances go to zero becomes k-means. Show that its shares become 0 and 1.
#
# .. solution::
#
# The share depends on differences of squared distances over the variance: the smaller the variance, the more the
# nearest mean takes all.

squares = ((mice[:, None] - machine.cluster_centers_[None]) ** 2).sum(axis=2)
for variance, least in ((1.0, 0.3), (1e-3, 0.999)):
    weights = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / (2 * variance))
    weights /= weights.sum(axis=1, keepdims=True)
    assert weights.max(axis=1).min() > least
assert np.array_equal(weights.argmax(axis=1), machine.labels_)

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :class:`empirisk.KMeans`, :class:`empirisk.Hierarchical`, :class:`empirisk.GaussianMixture`,
# :class:`empirisk.GaussianDensity`, :class:`empirisk.OneClassSVM`, :func:`empirisk.plots.voronoi`,
# :func:`empirisk.plots.dendrogram`, :func:`empirisk.plots.density`, :func:`empirisk.plots.outliers`.
