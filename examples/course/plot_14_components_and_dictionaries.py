r"""
14. Principal components, dictionaries, autoencoders
====================================================

Rows have many columns, and often say little with them. This lesson describes rows by fewer or simpler numbers, from
which they can be rebuilt with a small error. **Principal components** are the best linear way with few numbers.
**Dictionaries** take many atoms, of which every row uses few. **Autoencoders** are networks with a narrow middle. All
three minimise

.. math:: \sum_i \| x_i - g(f(x_i)) \|^2

and differ in what the encoder f and the decoder g may be.

About fifteen minutes. You need some linear algebra: eigenvectors, and the singular value decomposition of :doc:`lesson
5 <plot_05_regularisation>`.
"""

import numpy as np
from sklearn.datasets import load_digits

import empirisk as er

rng = np.random.default_rng(4)

# %%
# Projections
# -----------
# Let W have k orthonormal columns. The point of their span that is nearest to x is W W'x: its coordinates are W'x.
# Error and projection are orthogonal, so that their squared lengths add up to that of x. To make the error small is
# therefore to make the projections long,
#
# .. math:: \max_W \sum_j w_j^\top S\, w_j, \qquad S = \sum_i (x_i - m)(x_i - m)^\top
#
# and the solution is the k leading eigenvectors of the *scatter matrix* S. The rows are centred first.

X = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5)) + 3.0
centred = X - X.mean(axis=0)
values, vectors = np.linalg.eigh(centred.T @ centred)
pca = er.PCA(2).fit(X)
W = pca.components_.T
assert np.allclose(np.abs(W.T @ vectors[:, [-1, -2]]), np.eye(2), atol=1e-8)
assert np.allclose(pca.transform(X), centred @ W)
rebuilt = pca.inverse_transform(pca.transform(X))
assert np.allclose(rebuilt, X.mean(axis=0) + centred @ W @ W.T)
lengths = [np.sum(part**2, axis=1) for part in (centred, centred @ W, X - rebuilt)]
assert np.allclose(lengths[0], lengths[1] + lengths[2])  # Pythagoras
assert np.isclose(lengths[2].sum(), values[:3].sum())  # the error is what the other directions hold
for _ in range(100):  # no other two directions do better
    Q = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    assert np.sum((centred - centred @ Q @ Q.T) ** 2) >= lengths[2].sum()

# %%
# How many directions? The *scree* is the share of the variance along each, and what the first ones have together.

images = load_digits().data
digit = load_digits().target
scree = er.PCA(None).fit(images)
enough = int(np.searchsorted(np.cumsum(scree.explained_variance_ratio_), 0.9)) + 1
assert enough == er.PCA(0.9).fit(images).n_components_
assert enough == 21
er.plots.scree(scree, share=0.9)

# %%
# Twenty-one numbers instead of sixty-four keep nine tenths of the variance of these images. The directions are images
# themselves, with positive and negative parts.

er.plots.images(er.PCA(8).fit(images), shape=(8, 8))

# %%
# Rebuilt from k numbers, digits appear as k grows.


def rebuilt_from(k):
    """Six images after a projection on k directions."""
    pca = er.PCA(k).fit(images)
    return er.plots.images(pca.inverse_transform(pca.transform(images[:6])), shape=(8, 8), common=True)


er.plots.slider(rebuilt_from, k=[1, 2, 5, 10, 20, 64])

# %%
# A direction without variance tells nothing, and it is a danger: if the second column is -5 times the first, the rows
# lie on a line. The rank is one, and dividing by a second singular value that is only rounding gives large and
# meaningless numbers. The library leaves such directions out: the solution is the shortest of all, (2, -10)/26 for
# :math:`y = 2 x_1`.

x = rng.uniform(size=(50, 1))
line = np.hstack([x, -5 * x])
assert np.linalg.svd(line, compute_uv=False)[1] < 1e-12
assert er.PCA(None).fit(line).explained_variance_ratio_[0] > 1 - 1e-12
shortest = er.LeastSquares(fit_intercept=False).fit(line, 2 * x[:, 0])
assert np.allclose(shortest.coef_, [2 / 26, -10 / 26])

# %%
# Behind a kernel
# ---------------
# *Kernel PCA* does the same in the feature space. Only inner products are needed, of rows that are centred there: with
# :math:`H = I - J/n`, where J is all ones, the centred Gram matrix is H K H. A direction is
# :math:`u = \sum_i a_i \phi(x_i)`, and its length is one if :math:`a'Ka = 1`: eigenvectors of length one have to be
# divided by the root of their eigenvalue.

angle = rng.uniform(0, 2 * np.pi, 200)
ring = np.repeat([0, 1], 100)
rings = np.where(ring == 0, 0.3, 1.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
rings += 0.05 * rng.normal(size=rings.shape)

kernel = er.kernels.Gaussian(0.5)
K = kernel(rings)
H = np.eye(200) - 1 / 200
eigenvalues, U = np.linalg.eigh(H @ K @ H)
A = U[:, ::-1][:, :2] / np.sqrt(eigenvalues[::-1][:2])
assert np.allclose(A.T @ H @ K @ H @ A, np.eye(2), atol=1e-8)
machine = er.PCA(2, features=kernel).fit(rings)
ours, theirs = H @ K @ H @ A, machine.transform(rings)
assert np.allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


def along(width):
    """The rings along the two leading directions of a kernel, parted by a line as well as it goes."""
    Z = er.PCA(2, features=er.kernels.Gaussian(width)).fit_transform(rings)
    return er.plots.regions(er.LogisticRegression().fit(Z, ring), Z, ring)


flat, bent = er.PCA(2).fit_transform(rings), er.PCA(3, features=kernel).fit_transform(rings)
assert er.LogisticRegression().fit(flat, ring).score(flat, ring) < 0.8
assert er.LogisticRegression().fit(bent, ring).score(bent, ring) == 1.0
er.plots.slider(along, width=[0.1, 0.3, 0.5, 1.0, 5.0])

# %%
# A wide kernel is nearly linear, and shows the rings as they are. At width 0.5 a line parts them. A very narrow
# kernel sees only the nearest rows, and its leading directions part pieces of the outer ring.
#
# Dictionaries
# ------------
# Write X as Z D: the rows of D are p atoms, the rows of Z are codes. With p smaller than the number of columns the best
# dictionary is again that of the leading singular vectors. With more atoms than columns, any row has many codes, and we
# may ask for one with few entries:
#
# .. math:: \min_{D, Z} \; \sum_i \| x_i - z_i D \|^2 \quad\text{with few non-zero entries in each } z_i
#
# Codes and atoms take turns. For fixed codes the atoms are least squares, :math:`D = (Z^\top Z)^{-1} Z^\top X`.
# (Where rows are samples, that is; written for columns, it is :math:`X A^\top (A A^\top)^{-1}`.) For fixed atoms the
# codes come from an l1 penalty, or from thresholds.

singular = np.linalg.svd(centred, full_matrices=False)
two = singular[2][:2]
assert np.isclose(np.sum((centred - centred @ two.T @ two) ** 2), np.sum(singular[1][2:] ** 2))
free = er.Dictionary(2, coding="top_k", nonzeros=2, random_state=0, tol=1e-12).fit(centred)
left_over = np.sum((centred - free.transform(centred) @ free.components_) ** 2)
assert left_over <= np.sum(singular[1][2:] ** 2) * 1.01

Z = rng.normal(size=(200, 3))
assert np.allclose(np.linalg.lstsq(Z, X, rcond=None)[0], np.linalg.inv(Z.T @ Z) @ Z.T @ X)

# %%
# K-SVD improves one atom at a time: of what the other atoms leave over, on the rows that use this atom, take the
# leading singular vectors. Each such step is the best of its kind, so that the error never rises. Here are atoms of
# digits; every image uses at most five.

some = images[:400]
atoms = er.Dictionary(24, "ksvd", "omp", nonzeros=5, random_state=0, tol=0.01).fit(some)
assert np.all(np.diff(atoms.history_["objective"]) <= 1e-6 * atoms.history_["objective"][0])
codes = atoms.transform(some)
assert np.count_nonzero(codes, axis=1).max() <= 5
few_directions = er.PCA(5).fit(some)
error_pca = np.sum((some - few_directions.inverse_transform(few_directions.transform(some))) ** 2)
assert np.sum((some - codes @ atoms.components_) ** 2) < error_pca
er.plots.images(atoms, shape=(8, 8), most=24)

# %%
# Five entries from a dictionary of 24 rebuild these images better than five principal components: every image chooses
# its own five.
#
# **Are codes better than pixels?** Take 64 atoms for a hundred images and keep 32 entries of each code, with the
# others set to zero and the kept ones shrunk. Then predict the digit from the codes by linear regression on ten
# columns of zeros and ones. With a hundred rows and 64 columns both regressions fit the training rows almost perfectly,
# and the other rows tell what that is worth.

train, test = slice(0, 100), slice(100, None)
coder = er.Dictionary(64, coding="top_k", nonzeros=32, threshold="soft", random_state=0, tol=0.01).fit(images[train])
coded = coder.transform(images)
assert np.count_nonzero(coded[train], axis=1).max() <= 32
honest = {}
for name, table in (("pixels", images), ("codes", coded)):
    regression = er.LeastSquaresClassifier(C=1e-3, penalty="l2").fit(table[train], digit[train])
    assert regression.score(table[train], digit[train]) > 0.95
    honest[name] = regression.score(table[test], digit[test])
assert honest["codes"] < honest["pixels"]
print({name: round(score, 3) for name, score in honest.items()})

# %%
# No: a dictionary of 64 atoms from a hundred images describes these images, and a perfect training score hides it.
# Codes pay where atoms are learned from many rows without labels, and where few entries are kept.

# %%
# k-means is a dictionary, too: each code has a single entry, and the entry is one. The atom of a row is the nearest
# mean, and the least squares for the atoms are the means.

by_code = er.Dictionary(5, coding="indicator", init=images[:5], tol=1e-12).fit(some)
by_means = er.KMeans(5, init=images[:5], shifts=0).fit(some)
assert np.allclose(by_code.components_, by_means.cluster_centers_)
assert np.array_equal(by_code.transform(some).argmax(axis=1), by_means.labels_)

# %%
# Autoencoders
# ------------
# A network whose middle layer has k units must say in k numbers what is needed to rebuild the row. If all units are
# linear, the best it can do is PCA: its codes need not be orthogonal, but they span the same subspace. Hidden layers
# allow curves. In the library a network in ``features=`` turns :class:`empirisk.PCA` into an autoencoder.

linear = er.PCA(2, features=er.Network([], decay=1e-6, n_init=1, random_state=0)).fit(centred)
error_linear = np.sum((centred - linear.inverse_transform(linear.transform(centred))) ** 2)
best = np.sum((centred - pca.inverse_transform(pca.transform(centred + X.mean(axis=0))) + X.mean(axis=0)) ** 2)
assert abs(error_linear / best - 1) < 0.01

bow = np.linspace(-1, 1, 60)
curve = np.column_stack([bow, bow**2]) + 0.02 * rng.normal(size=(60, 2))
deep = er.PCA(1, features=er.Network([8], activation="tanh", decay=1e-3, n_init=1, random_state=0)).fit(curve)
straight_error = np.sum((curve - er.PCA(1).fit(curve).inverse_transform(er.PCA(1).fit_transform(curve))) ** 2)
bent_error = np.sum((curve - deep.inverse_transform(deep.transform(curve))) ** 2)
assert bent_error < 0.2 * straight_error
print(f"one number for a bow: error {straight_error:.2f} with a line, {bent_error:.2f} with a network")

# %%
# Exercises
# ---------
#
# .. admonition:: Exercise 14.1
#
#    A scatter matrix has the eigenvalues 0.63 and 2.74, with the eigenvectors (3, 4)/5 and (-4, 3)/5. What is the
#    first principal component? Project x = (2, -4) on it. What does a projection on both do?
#
# .. solution::
#
# The one with the larger eigenvalue, (-4, 3)/5, and the coordinate is (-8 - 12)/5 = -4. Two coordinates are a
# rotation: all distances stay, and the new columns are uncorrelated, which is good for whitening. Eigenvectors of a
# scatter matrix are orthogonal, because it is symmetric; a matrix V D V^-1 with other columns, such as (3, -4) and
# (-4, 3), is not symmetric and is the scatter matrix of nothing.

V = np.array([[3.0, -4.0], [4.0, 3.0]]) / 5
S = V @ np.diag([0.63, 2.74]) @ V.T
assert np.allclose(V.T @ V, np.eye(2))
first = np.linalg.eigh(S)[1][:, -1]
assert np.isclose(abs(first @ [-0.8, 0.6]), 1)
assert np.isclose(np.array([-0.8, 0.6]) @ [2.0, -4.0], -4.0)
rotated = rng.normal(size=(10, 2))
assert np.allclose(np.linalg.norm(rotated @ V, axis=1), np.linalg.norm(rotated, axis=1))
skew = np.array([[3.0, -4.0], [-4.0, 3.0]])
wrong = skew @ np.diag([0.63, 2.74]) @ np.linalg.inv(skew)
assert not np.allclose(wrong, wrong.T)

# %%
# .. end-solution::
#
# .. admonition:: Exercise 14.2
#
#    The S of exercise 1 was not centred, and the rows are lost. Can it be centred afterwards by H S H, as a Gram
#    matrix?
#
# .. solution::
#
# No. A Gram matrix has a row for every sample, and H takes the mean over samples. S has a row for every column of the
# table; H would take the mean over columns. What is missing is S - n m m', which needs the mean m and the number n.

m = X.mean(axis=0)
assert np.allclose(X.T @ X - len(X) * np.outer(m, m), centred.T @ centred)
H5 = np.eye(5) - 1 / 5
assert not np.allclose(H5 @ X.T @ X @ H5, centred.T @ centred)

# %%
# .. end-solution::
#
# .. admonition:: Exercise 14.3
#
#    Show that H K H is the Gram matrix of the centred rows, with an explicit map.
#
# .. solution::
#
# Entry (i, j) of H K H is :math:`\langle \phi(x_i) - m, \phi(x_j) - m \rangle` with the mean m of all
# :math:`\phi(x_i)`, since multiplying by H subtracts means of rows and columns.

phi = er.maps.PolynomialKernel(2).fit(rings).transform(rings)
phi = phi - phi.mean(axis=0)
assert np.allclose(H @ er.kernels.Polynomial(2)(rings) @ H, phi @ phi.T)

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :class:`empirisk.PCA`, :class:`empirisk.Dictionary`, :class:`empirisk.Network`,
# :func:`empirisk.plots.scree`, :func:`empirisk.plots.images`.
