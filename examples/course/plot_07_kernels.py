r"""
7. Kernels and their algebra
============================

A linear machine needs only inner products between rows. Replace them by another measure of similarity, a *kernel*, and
the same machine draws curves. This lesson shows what a kernel is, how to build new ones, and what machines do with
them.

About fifteen minutes. You need lessons 1 and 3.
"""

# %%
# A map that straightens a circle
# -------------------------------
# No line separates the inside of a circle from the outside. But map each point to
# :math:`\phi(x) = (x_1^2, \sqrt2\, x_1 x_2, x_2^2)`, and the plane with w = (1, 0, 1) and b = -1 does: it is
# :math:`x_1^2 + x_2^2 = 1`. The inner product of two mapped points is
#
# .. math:: \langle \phi(x), \phi(z) \rangle = \langle x, z \rangle^2 ,
#
# which needs no map. And the map is not the only one: without the root, but with :math:`x_1 x_2` twice, the inner
# products are the same.
import numpy as np
from sklearn.preprocessing import FunctionTransformer

import empirisk as er


def squares(X):
    """The three products of two columns."""
    return np.c_[X[:, 0] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1], X[:, 1] ** 2]


def four_products(X):
    """Another map with the same inner products."""
    return np.c_[X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 0] * X[:, 1], X[:, 1] ** 2]


rng = np.random.default_rng(0)
X = rng.uniform(-1.8, 1.8, size=(120, 2))
y = np.where((X**2).sum(axis=1) < 1, "in", "out")
K = er.kernels.Polynomial(2, constant=0.0)(X)
assert np.allclose(K, (X @ X.T) ** 2)
assert np.allclose(K, squares(X) @ squares(X).T)
assert np.allclose(K, four_products(X) @ four_products(X).T)
assert ((squares(X) @ [1, 0, 1] - 1 > 0) == (y == "out")).all()

by_map = er.SVM(C=10.0, features=FunctionTransformer(squares)).fit(X, y)
by_kernel = er.SVM(C=10.0, features=er.kernels.Polynomial(2, constant=0.0)).fit(X, y)
assert np.allclose(by_map.decision_function(X), by_kernel.decision_function(X), atol=1e-3)
er.plots.regions(by_kernel, X, y)

# %%
# A *quadratic classifier*, :math:`\langle x, Qx \rangle + \sqrt2 \langle x, p \rangle + b`, has the features :math:`(x
# x', \sqrt2\, x, 1)` and so the kernel :math:`(\langle x, z \rangle + 1)^2`. In d columns it has :math:`d^2 + d + 1`
# weights, and the kernel still costs d products. That is the *kernel trick*: write the machine with inner products
# alone, and exchange them.
d = 5
A = rng.normal(size=(8, d))
quadratic = np.c_[np.einsum("ni,nj->nij", A, A).reshape(8, -1), np.sqrt(2) * A, np.ones(8)]
assert quadratic.shape[1] == d * d + d + 1
assert np.allclose(quadratic @ quadratic.T, er.kernels.Polynomial(2)(A))

# %%
# Why inner products are enough
# -----------------------------
# Let w have a part in the span of the mapped rows and a part orthogonal to it. The second part changes no prediction
# of a row, but makes w longer. So with the l2 penalty, whatever the loss, the best w is :math:`\sum_i \beta_i
# \phi(x_i)`: the *representer theorem*. Predictions are :math:`f(x) = \sum_i \beta_i k(x_i, x) + b`, and the penalty
# is :math:`\tfrac12 \beta'K\beta`. For the SVM :math:`\beta_i = \alpha_i y_i`, and only support vectors count.
machine = er.SVM(C=1.0, features=er.kernels.Gaussian(0.7)).fit(X, y)
new = rng.uniform(-2, 2, (50, 2))
beta = machine.dual_coef_.ravel()
by_hand = er.kernels.Gaussian(0.7)(new, X[machine.support_]) @ beta + machine.intercept_
assert np.allclose(by_hand, machine.decision_function(new))
own = er.kernels.Gaussian(0.7)(X[machine.support_])
hinges = np.maximum(0, 1 - np.where(y == "out", 1, -1) * machine.decision_function(X)).sum()
assert np.isclose(0.5 * beta @ own @ beta + hinges, machine.certificate_.primal, rtol=1e-6)

a, b = rng.normal(size=120), rng.normal(size=120)  # inner products of sums of mapped points
assert np.isclose((a @ squares(X)) @ (b @ squares(X)), a @ K @ b)

# %%
# What is a kernel?
# -----------------
# A function k(x, z) is a kernel if it is an inner product after *some* map. There is a test without the map: k is
# symmetric, and for any items the *Gram matrix* K is positive semidefinite, :math:`a'Ka \ge 0`. In one direction,
# :math:`a'Ka = \|\sum_i a_i \phi(x_i)\|^2`. In the other, for finitely many items, K = U D U', and the rows of
# :math:`U D^{1/2}` are a map. :func:`empirisk.kernels.check` tests on data: passing is evidence, failing is proof.
values, vectors = np.linalg.eigh(own)
mapped = vectors * np.sqrt(np.maximum(values, 0))
assert np.allclose(mapped @ mapped.T, own)

points = np.linspace(-2, 2, 9)[:, None]
print(er.kernels.check(lambda x, z: np.sin(x[0]) * np.cos(z[0]), points))
print(er.kernels.check(lambda x, z: -x @ z, points))
assert not er.kernels.check(lambda x, z: np.sin(x[0]) * np.cos(z[0]), points).symmetric
assert not er.kernels.check(lambda x, z: -x @ z, points)
M = np.array([[2.0, 1.0], [1.0, 2.0]])  # x'Mz is a kernel where M is symmetric and positive semidefinite
assert er.kernels.check(lambda x, z: x @ M @ z, X[:30])
assert not er.kernels.check(lambda x, z: x @ np.diag([1.0, -1.0]) @ z, X[:30])
assert not er.kernels.check(lambda x, z: x @ np.array([[1.0, 1.0], [0.0, 1.0]]) @ z, X[:30])

# %%
# Kernels of a distance
# ---------------------
# The *Gaussian* :math:`e^{-\|x - z\|^2 / (2 \text{width}^2)}` and the *Laplacian* :math:`e^{-\|x - z\| /
# \text{width}}` say how far similarity reaches. (Others write :math:`\sigma` or :math:`h^2` for
# :math:`2\,\text{width}^2`, or :math:`\gamma` for one over it: ``Gaussian.from_gamma`` converts.) Functions made of
# Gaussians are smooth, those of Laplacians have corners.
assert np.isclose(er.kernels.Gaussian(0.5)([[0.0]], [[1.0]]), np.exp(-2)).all()
assert np.isclose(er.kernels.Laplacian(0.5)([[0.0, 0.0]], [[1.0, 1.0]]), np.exp(-4)).all()  # 1-norm
er.plots.kernels([er.kernels.Gaussian(1.0), er.kernels.Gaussian(0.5), er.kernels.Laplacian(1.0)])

# %%
# The width is the most important choice. Too narrow, and each row is an island; too wide, and the machine is almost
# linear.
angle = rng.uniform(0, np.pi, 100)
side = np.arange(100) % 2
moons = np.where(side[:, None] == 0, np.c_[np.cos(angle), np.sin(angle)], np.c_[1 - np.cos(angle), 0.5 - np.sin(angle)])
moons = moons + 0.25 * rng.normal(size=moons.shape)
which = np.where(side == 0, "up", "down")


def wide(width):
    """The machine at one width."""
    return er.plots.regions(er.SVM(C=1.0, features=er.kernels.Gaussian(width)).fit(moons, which), moons, which)


supports = [len(er.SVM(features=er.kernels.Gaussian(w)).fit(moons, which).support_) for w in (0.05, 0.5)]
assert supports[0] > 90 > supports[1]
er.plots.slider(wide, width=[0.05, 0.15, 0.4, 1.0, 3.0, 10.0])

# %%
# Move the points yourself: this opens them in the playground of the :doc:`studio </studio>`, with the same machine.
# Write another kernel there, such as ``Gaussian(0.4) + 0.1 * Linear()``.
from empirisk.studio.playground.address import link

link(moons, which, loss="hinge", features="kernel", kernel="Gaussian(0.4)", C=1.0)

# %%
# The algebra
# -----------
# New kernels come from old ones, and the library writes them as they are said: multiples ``0.5 * k``, sums, products,
# powers, exponentials, limits, and :math:`f(x) k(x, z) f(z)`. A sum puts the features of both side by side; a product
# has all products of a feature of one with a feature of the other. The polynomial kernel is a power of a sum. The
# exponential is a limit of polynomials with positive coefficients. And the Gaussian is all of it together:
# :math:`e^{-\|x - z\|^2/2} = e^{-\|x\|^2/2}\, e^{\langle x, z \rangle}\, e^{-\|z\|^2/2}`.
k1, k2 = er.kernels.Gaussian(1.0), er.kernels.Linear()
Z = X[:25]
K1, K2 = k1(Z), k2(Z)
assert np.allclose((k1 + k2)(Z), K1 + K2)
assert np.allclose((k1 * k2)(Z), K1 * K2)
assert np.allclose((0.3 * k1 + 2 * k2)(Z), 0.3 * K1 + 2 * K2)
assert np.allclose((k2**3)(Z), K2**3)
assert np.allclose(er.kernels.exp(k2)(Z), np.exp(K2))
one = er.kernels.polynomial(k2, [1.0, 1.0])  # <x, z> + 1
assert np.allclose((one**2)(Z), er.kernels.Polynomial(2)(Z))
taylor = er.kernels.polynomial(k2, [1 / np.prod(np.arange(1.0, m + 1)) for m in range(45)])
assert np.allclose(taylor(Z), np.exp(K2))
bump = er.kernels.exp(k2).times(lambda rows: np.exp(-0.5 * (rows**2).sum(axis=1)))
assert np.allclose(bump(Z), K1)
for kernel in (k1 + k2, k1 * k2, k2**3, er.kernels.exp(k2), bump):
    assert er.kernels.check(kernel, Z)
try:
    -1.0 * k1
    raise AssertionError("a negative multiple is no kernel")
except er.errors.NotAKernel as refusal:
    print(refusal)

# %%
# Columns in groups
# -----------------
# ``k.on(columns)`` looks at some columns. The *ANOVA kernel* is a sum of kernels of single columns, :math:`k(x, z) =
# \sum_j k_j(x_j, z_j)`. Then the function is a sum too, :math:`f(x) = \sum_j f_j(x_j) + b`, and each part can be
# drawn. For rows that are pairs, such as a person and a film, a product of two kernels asks for both to be alike, a
# sum for either.
table = rng.uniform(-2, 2, (150, 3))
target = np.sin(2 * table[:, 0]) + 0.5 * table[:, 1] ** 2 + 0.1 * rng.normal(size=150)  # the third column plays no part
additive = er.Ridge(C=10.0, features=er.kernels.Anova(er.kernels.Gaussian(0.7))).fit(table, target)
parts = additive.parts(table)
assert np.allclose(parts.sum(axis=1) + additive.intercept_, additive.predict(table))
spreads = parts.std(axis=0)
assert spreads[2] < spreads[:2].min() / 4
pair = er.kernels.pairwise_product(er.kernels.Gaussian(1.0), er.kernels.Linear(), [0, 1], [2])
assert np.allclose(pair(table[:9]), er.kernels.Gaussian(1.0)(table[:9, :2]) * er.kernels.Linear()(table[:9, 2:]))
er.plots.additive(additive, table)

# %%
# Kernel ridge regression
# -----------------------
# With squares the dual variables have a closed form,
#
# .. math:: \beta = \Big(K + \tfrac{1}{2C} I\Big)^{-1} y \quad\text{(without b)}.
#
# It is ridge regression in another basis: with the linear kernel the prediction is the same, but the matrix is n x n
# in place of d x d, which is smaller when there are fewer rows than columns.
x = np.sort(rng.uniform(0, 6, 40))[:, None]
wave = np.sin(x[:, 0]) + 0.2 * rng.normal(size=40)
C, kernel = 5.0, er.kernels.Gaussian(1.0)
smooth = er.Ridge(C=C, features=kernel, fit_intercept=False).fit(x, wave)
beta = np.linalg.solve(kernel(x) + np.eye(40) / (2 * C), wave)
assert np.allclose(smooth.predict(x), kernel(x) @ beta)
wide_rows, wide_target = rng.normal(size=(10, 300)), rng.normal(size=10)
dual = er.Ridge(C=2.0, features="linear", fit_intercept=False).fit(wide_rows, wide_target)
primal = er.Ridge(C=2.0, fit_intercept=False).fit(wide_rows, wide_target)
assert np.allclose(dual.predict(wide_rows), primal.predict(wide_rows))

# %%
# A Gaussian machine knows nothing where there are no rows: it falls back to b. A sum of a Gaussian and a linear kernel
# has both, wiggles and a trend, and the trend can be read off. This is *semi-parametric* regression.
year = np.sort(rng.uniform(0, 8, 60))[:, None]
level = 0.6 * year[:, 0] + np.sin(3 * year[:, 0]) + 0.15 * rng.normal(size=60)
both = er.Ridge(C=10.0, features=er.kernels.Gaussian(0.5) + er.kernels.Linear()).fit(year, level)
trend = both.linear_part()
assert np.isclose(trend, 0.6, atol=0.1).all()
machines = {"Gaussian": er.Ridge(C=10.0, features=er.kernels.Gaussian(0.5)), "Gaussian + linear": both}
er.plots.regression(machines, year, level, truth=lambda z: 0.6 * z + np.sin(3 * z), extent=(-1, 12))

# %%
# Learning in the dual
# --------------------
# *Stochastic dual coordinate ascent* takes a row at random and gives it its best dual variable, :math:`\alpha_i
# \leftarrow \min(C, \max(0, \alpha_i + (1 - z_i)/k_{ii}))` with :math:`z_i = y_i \sum_j \alpha_j y_j k(x_i, x_j)`. It
# is that simple without b; with b the sum of :math:`\alpha_i y_i` must stay zero, and two rows must move at once. A
# signal on the line changes sign three times, and 20 rows are known. In the animation, with C = 10, the stems are the
# :math:`\alpha_i y_i`.
line = rng.uniform(0, 1, 20)[:, None]
sign = np.where(np.floor(4 * line[:, 0]) % 2 == 0, -1, 1)
narrow = er.kernels.Gaussian.from_gamma(100.0)
K = narrow(line)
alpha, C = np.zeros(20), 100.0
for _ in range(200):
    for i in rng.permutation(20):
        z = sign[i] * (K[i] @ (alpha * sign))
        alpha[i] = min(C, max(0.0, alpha[i] + (1 - z) / K[i, i]))
solved = er.SVM(C=C, features=narrow, fit_intercept=False).fit(line, sign)
objective = alpha.sum() - 0.5 * (alpha * sign) @ K @ (alpha * sign)
assert np.isclose(objective, solved.certificate_.primal, rtol=1e-3)
assert (solved.predict(line) == sign).all()
film = er.SVM(C=10.0, features=narrow, fit_intercept=False, solver=er.solvers.DualAscent(passes=1))
er.plots.animate(film, line, sign, frames=12)

# %%
# Other machines learn in the dual too. The *kernel perceptron* adds 1 to :math:`\alpha_i` at each mistake; it is like
# nearest neighbours with weights, in which only rows count that were once wrong. The *doubly stochastic* gradient
# takes random rows for the loss and random rows for the sum over the kernel, each scaled up; it never needs the whole
# K.
perceptron = er.Perceptron(features=er.kernels.Gaussian(0.5)).fit(X, y)
counted = np.count_nonzero(perceptron.dual_coef_)
assert perceptron.score(X, y) == 1.0
assert counted < 120

exact = er.LogisticRegression(C=1.0, features=er.kernels.Gaussian(0.7)).fit(X, y)
rough = er.LogisticRegression(
    C=1.0, features=er.kernels.Gaussian(0.7), solver=er.solvers.DoublyStochastic(batch_size=32), max_iter=60, tol=0.05
).fit(X, y)
assert exact.certificate_.primal < rough.certificate_.primal < 1.1 * exact.certificate_.primal
print(f"{counted} of 120 rows count; doubly stochastic: {rough.certificate_}")

# %%
# Weights of kernels can be learned as well, :math:`k = \sum_m \beta_m k_m` with :math:`\beta_m \ge 0`. With the 1-norm
# of :math:`\beta` fixed useless kernels lose their weight, with the 2-norm all keep some.
noise_columns = np.c_[moons, rng.normal(size=(100, 2))]
kernels = [er.kernels.Gaussian(0.5).on([0, 1]), er.kernels.Gaussian(0.5).on([2, 3])]
chosen = er.SVM(features=er.maps.SeveralKernels(kernels, norm=1)).fit(noise_columns, which)
shares = chosen.features_.beta_
assert shares[0] > 0.9
assert np.isclose(shares.sum(), 1)
print("weights of the two kernels:", shares.round(3))

# %%
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 7.1
#
#    Is :math:`k(x, z) = \min(x, z)` on positive numbers a kernel? And :math:`\max(x, z)`?
#
# .. solution::
#
# min is: let :math:`\phi(x)` be the function that is 1 on [0, x] and 0 beyond; the integral of the product of two is
# the smaller number. max is not: for 1 and 3 the Gram matrix has the determinant 3 - 9 < 0.
positive = np.array([[0.5], [1.0], [2.0], [3.0]])
assert er.kernels.check(lambda x, z: min(x[0], z[0]), positive)
assert not er.kernels.check(lambda x, z: max(x[0], z[0]), positive)
assert np.isclose(np.linalg.det([[1.0, 3.0], [3.0, 3.0]]), -6)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 7.2
#
#    The limit of kernels is a kernel, if it exists. What is the limit of the Gaussian kernel as the width goes to
#    zero, and what does a machine with it do?
#
# .. solution::
#
# 1 for equal points, else 0: K = I. Every row is right by itself, and nothing is learned about any other point.
tiny = er.SVM(C=10.0, features=er.kernels.Gaussian(1e-4)).fit(X, y)
assert np.allclose(er.kernels.Gaussian(1e-4)(X), np.eye(120))
assert tiny.score(X, y) == 1.0
assert np.allclose(tiny.decision_function(new), tiny.intercept_)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 7.3
#
#    How many features has the kernel :math:`(\langle x, z \rangle + 1)^3` of two columns, if products in another order
#    count once?
#
# .. solution::
#
# The monomials of degree up to 3 in two variables: 1 + 2 + 3 + 4 = 10. The Gram matrix of many rows has this rank.
assert np.linalg.matrix_rank(er.kernels.Polynomial(3)(X)) == 10
explicit = er.maps.PolynomialKernel(3).fit_transform(X)
assert np.allclose(explicit @ explicit.T, er.kernels.Polynomial(3)(X))

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - :class:`empirisk.kernels.Gaussian`, :class:`empirisk.kernels.Polynomial`, :class:`empirisk.kernels.Laplacian`,
#   :class:`empirisk.kernels.Anova`, :func:`empirisk.kernels.check`.
# - :class:`empirisk.Ridge`, :class:`empirisk.SVM`, :class:`empirisk.Perceptron`,
#   :class:`empirisk.maps.SeveralKernels`.
# - Kernels for strings and graphs are :doc:`lesson 8 <plot_08_objects>`, kernels for many rows lesson 9.
