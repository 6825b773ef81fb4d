r"""
9. Kernel machines at scale
===========================

A kernel machine keeps one number for every training row, and its Gram matrix has n times n entries: 8 GB for 31 000
rows. This lesson shows three ways out. **Solve the dual a row at a time**, so that the matrix is never needed whole.
**Draw rows at random**, and follow an estimate of the gradient. **Replace the kernel by a few explicit features**, so
that the machine is linear again. It ends with several kernels at once, weighted by the machine itself.

The equation is the one of all lessons, with :math:`\phi` the map behind the kernel, :math:`k(x, z) = \langle \phi(x),
\phi(z) \rangle`:

.. math:: \min_{w, b} \; \tfrac12 \|w\|^2 + C \sum_i \max(0, 1 - y_i (\langle w, \phi(x_i) \rangle + b))

About twelve minutes. You need :doc:`lesson 3 <plot_03_margins>` and :doc:`lesson 7 <plot_07_kernels>`.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits

import empirisk as er
from empirisk.studio.playground.address import link

# %%
# The solution lies in the span of the rows
# -----------------------------------------
# Split any w into a part in the span of :math:`\phi(x_1), \ldots, \phi(x_n)` and a part orthogonal to it. The second
# part changes no :math:`\langle w, \phi(x_i) \rangle`, so it changes no loss, but it makes the penalty larger. The
# best w therefore has none of it. This is the *representer theorem*: :math:`w = \sum_i \alpha_i \phi(x_i)`, whatever
# the loss. The polynomial kernel :math:`(\langle x, z \rangle + 1)^2` has a small map that can be written down,
# :class:`empirisk.maps.PolynomialKernel`, so the theorem can be checked.

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, 1, -1)

phi = er.maps.PolynomialKernel(2).fit(X)
explicit = er.SVM(C=1.0, features=er.maps.PolynomialKernel(2), tol=1e-9).fit(X, y)
implicit = er.SVM(C=1.0, features=er.kernels.Polynomial(2), tol=1e-9).fit(X, y)

alpha = np.zeros(len(X))
alpha[implicit.support_] = np.ravel(implicit.dual_coef_)
w = phi.transform(X).T @ alpha
assert np.allclose(w, np.ravel(explicit.coef_), atol=1e-4)

# %%
# The same bookkeeping gives inner products of any two such sums: :math:`\langle \sum_i a_i \phi(x_i), \sum_j b_j
# \phi(x_j) \rangle = a^\top K b`.

K = er.kernels.Polynomial(2)(X)
a, c = rng.normal(size=(2, len(X)))
assert np.isclose((phi.transform(X).T @ a) @ (phi.transform(X).T @ c), a @ K @ c)

# %%
# One row at a time: dual coordinate ascent
# -----------------------------------------
# Without an intercept the dual of the SVM has a box as its only constraint, and one variable can be moved alone. With
# :math:`z_i = y_i f(x_i)`, the step that is best for row i is
#
# .. math:: \alpha_i \leftarrow \mathrm{clip}\Big(\alpha_i + \frac{1 - z_i}{k(x_i, x_i)},\; 0,\; C\Big)
#
# It needs one row of the Gram matrix. Ten passes over twenty points in [0, 1], with a narrow Gaussian,
# :math:`\exp(-100 (x - z)^2)`, and C = 100, look like this. The truth changes sign at every quarter.

x = np.sort(rng.uniform(size=20))
sign = np.where(np.floor(4 * x) % 2 == 0, -1, 1)
G = er.kernels.Gaussian.from_gamma(100.0)(x[:, None])
C = 100.0

alpha = np.zeros(20)
dual = []
for _ in range(10):
    for i in rng.permutation(20):
        z = sign[i] * (G[i] @ (alpha * sign))
        alpha[i] = np.clip(alpha[i] + (1 - z) / G[i, i], 0, C)
    beta = alpha * sign
    dual.append(alpha.sum() - beta @ G @ beta / 2)

assert np.all(np.diff(dual) > -1e-9)  # each step is the best of its kind, so the dual never falls

# %%
# The library does the same, faster, and stops when the duality gap is small. With an intercept that is not penalised
# the dual gets the constraint :math:`\sum_i \alpha_i y_i = 0`, and the solver has to move rows in pairs; the
# certificate says which solver was chosen and why.

machine = er.SVM(C=C, features=er.kernels.Gaussian.from_gamma(100.0), fit_intercept=False, solver="dual_ascent")
machine.fit(x[:, None], sign)
assert machine.certificate_.converged
assert machine.certificate_.dual >= dual[-1] - 1e-6
assert np.array_equal(machine.predict(x[:, None]), sign)
er.plots.stems(machine, x[:, None], sign)

# %%
# Every stem is a dual variable: a row with a stem of length zero could be dropped.
#
# Rows at random: doubly stochastic steps
# ---------------------------------------
# For data that never fit, draw B rows J and step along the gradient of an estimate: the sum over all pairs is
# estimated by :math:`n^2/B^2` times the sum over pairs in J. Each step costs :math:`B^2` kernel values, whatever n
# is. The price is noise, and therefore many steps. :class:`empirisk.solvers.DoublyStochastic` is that algorithm; the
# history compares it with the exact solution.

moons = rng.uniform(0, np.pi, 300)
side = np.arange(300) % 2
M = np.column_stack([np.cos(moons) * (1 - 2 * side) + side, np.sin(moons) * (1 - 2 * side) + 0.4 * side])
M += 0.2 * rng.normal(size=M.shape)

exact = er.SVM(C=1.0, features=er.kernels.Gaussian(0.5)).fit(M, side)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says that the gap is not closed, which is what we want to see
    drawn = er.SVM(C=1.0, features=er.kernels.Gaussian(0.5), solver="doubly_stochastic", max_iter=60, random_state=0)
    drawn.fit(M, side)

assert exact.certificate_.converged
assert exact.certificate_.relative_gap < 1e-6
assert drawn.certificate_.primal > exact.certificate_.primal  # noise: close, and never below
assert drawn.score(M, side) > exact.score(M, side) - 0.03  # but it separates the classes as well
er.plots.history(drawn)

# %%
# The lower panel is what the certificate can prove: the objective minus a lower bound. After sixty steps the classes
# are separated as well as by the exact machine, and the objective is still above its minimum. That is the usual
# bargain.
#
# In the playground of :doc:`the studio </studio>` the passes of dual ascent over these points are played one by one,
# with primal and dual objective.

link(M, side, features="kernel", kernel="Gaussian(0.5)", solver="dual_ascent")

# %%
# A few landmarks: the Nystrom map
# --------------------------------
# Choose m landmark rows, write their Gram matrix as U L U', and let
#
# .. math:: \phi(x) = L^{-1/2} U^\top k(x), \qquad k(x) = (k(z_1, x), \ldots, k(z_m, x))
#
# Inner products of these m features are exactly the kernel among the landmarks, and a projection of it elsewhere. The
# machine becomes a linear one in m features: memory n m instead of :math:`n^2`, time :math:`n m^2` instead of
# :math:`n^2` or more.

landmarks = er.maps.Nystrom(er.kernels.Gaussian(0.5), rank=10, random_state=0).fit(M)
among = landmarks.transform(landmarks.landmarks_)
assert np.allclose(among @ among.T, er.kernels.Gaussian(0.5)(landmarks.landmarks_), atol=1e-8)


def with_landmarks(rank):
    """The moons, by a linear machine on so many features."""
    machine = er.SVM(C=1.0, features=er.maps.Nystrom(er.kernels.Gaussian(0.5), rank=rank, random_state=0))
    return er.plots.regions(machine.fit(M, side), M, side, resolution=100)


er.plots.slider(with_landmarks, rank=[2, 4, 8, 16, 32, 64])

# %%
# Four landmarks bend the border already, thirty-two draw the one of the full kernel. How good the approximation is
# can be measured without any labels: the attribute ``error_`` is the relative error of the Gram matrix on a sample of
# rows. Random Fourier features, :class:`empirisk.maps.RandomFourier`, need no landmarks at all: they draw
# frequencies. For the same rank they are worse, since they do not look at the rows.

full = er.kernels.Gaussian(0.5)(M)
print("features  Nystrom  random Fourier")
for rank in (10, 20, 40, 80):
    near, far = (
        kind(er.kernels.Gaussian(0.5), rank, random_state=0) for kind in (er.maps.Nystrom, er.maps.RandomFourier)
    )
    errors = [
        np.linalg.norm(full - F @ F.T) / np.linalg.norm(full) for F in (near.fit_transform(M), far.fit_transform(M))
    ]
    print(f"{rank:8}  {errors[0]:7.4f}  {errors[1]:14.4f}")
    assert errors[0] < errors[1]
assert errors[0] < 2e-3

# %%
# Images of digits
# ----------------
# A hundred images of ten digits, each scaled to length one, the kernel :math:`\langle x, z \rangle^2`, and 64
# features from the 100 training rows: ten linear machines, one for each digit. The training accuracy says little,
# because there are almost as many features as rows. The other 1697 images say how good the machine is.

images, digit = load_digits(return_X_y=True)
images = images / np.linalg.norm(images, axis=1, keepdims=True)
train, test = slice(0, 100), slice(100, None)

square = er.kernels.Polynomial(2, constant=0.0)
machine = er.SVM(C=1.0, features=er.maps.Nystrom(square, rank=64, random_state=0), multiclass="one_vs_rest")
machine.fit(images[train], digit[train])
fitted, honest = machine.score(images[train], digit[train]), machine.score(images[test], digit[test])
assert fitted > 0.97
assert 0.7 < honest < 0.9
print(f"training accuracy {fitted:.3f}, accuracy on the other images {honest:.3f}")
er.plots.gram(square, images[train], digit[train])

# %%
# The bright blocks on the diagonal are images of one digit that resemble each other. The machine sees nothing else.
#
# Several kernels, weighted by the machine
# ----------------------------------------
# Which width is right, and which columns count? :class:`empirisk.maps.SeveralKernels` makes the weights part of the
# problem: :math:`k = \sum_m \beta_m k_m` with :math:`\beta \geq 0`. The norm of beta decides the character. With norm
# 1 the weights are sparse: kernels are *selected*. With norm 2 they are *combined*.

noisy = np.column_stack([M, rng.normal(size=(300, 2))])  # two columns that mean something, and two that do not
parts = [er.kernels.Gaussian(0.7).on([j]) for j in range(4)]
few = er.SVM(features=er.maps.SeveralKernels(parts, norm=1)).fit(noisy, side).features_.beta_
all_of_them = er.SVM(features=er.maps.SeveralKernels(parts, norm=2)).fit(noisy, side).features_.beta_
assert np.isclose(few.sum(), 1)
assert np.isclose(np.linalg.norm(all_of_them), 1)
assert few[:2].min() > few[2:].max()
assert (few < 0.02).sum() >= (all_of_them < 0.02).sum()
er.plots.importance(few, names=["column 1", "column 2", "noise 1", "noise 2"])

# %%
# Exercises
# ---------
#
# .. admonition:: Exercise 9.1
#
#    The kernel :math:`\langle x, z \rangle^2` in d columns has a map with d (d + 1) / 2 features. Check with a Gram
#    matrix of many rows in d = 4 that its rank is 10. What does that say about Nystrom with 10 landmarks?
#
# .. solution::
#
# Ten generic landmarks span the whole feature space, so that the approximation is exact up to rounding.

Z = rng.normal(size=(200, 4))
assert np.linalg.matrix_rank(square(Z)) == 4 * 5 // 2
assert er.maps.Nystrom(square, rank=10, random_state=0).fit(Z).error_ < 1e-6

# %%
# .. end-solution::
#
# .. admonition:: Exercise 9.2
#
#    Estimate the sum of all :math:`n^2` kernel values from 10 random rows, three thousand times. Is :math:`n^2/B^2`
#    times the sum over the pairs unbiased? Where does the diagonal come in?
#
# .. solution::
#
# Not quite. A pair of different rows is drawn with probability B (B - 1) / (n (n - 1)), a row with itself with
# probability B / n. The factor :math:`n^2/B^2` therefore counts the diagonal n/B times, and the other pairs a little
# too rarely. The bias disappears as B grows; with the two factors apart it is gone for every B.

n, B = len(M), 10
pairs, diagonal = full.sum() - np.trace(full), np.trace(full)
naive, apart = [], []
for _ in range(3_000):
    J = rng.choice(n, B, replace=False)
    drawn_sum, drawn_diagonal = full[np.ix_(J, J)].sum(), full[J, J].sum()
    naive.append(n**2 / B**2 * drawn_sum)
    apart.append(n * (n - 1) / (B * (B - 1)) * (drawn_sum - drawn_diagonal) + n / B * drawn_diagonal)
expected = n / B * diagonal + n * (B - 1) / (B * (n - 1)) * pairs
assert abs(np.mean(naive) / expected - 1) < 0.01
assert abs(np.mean(apart) / full.sum() - 1) < 0.01 < abs(np.mean(naive) / full.sum() - 1)

# %%
# .. end-solution::
#
# .. admonition:: Exercise 9.3
#
#    How many landmarks do the moons need before the linear machine answers like the full kernel machine on 99 % of
#    the rows? How many times fewer kernel values is that?
#
# .. solution::
#
# Three dozen at most: the full Gram matrix has :math:`n^2` values, the map n m.

said = exact.predict(M)
for rank in range(2, 40, 2):
    close = er.SVM(C=1.0, features=er.maps.Nystrom(er.kernels.Gaussian(0.5), rank=rank, random_state=0)).fit(M, side)
    if np.mean(close.predict(M) == said) >= 0.99:
        break
print(f"{rank} landmarks: {n**2 / (n * rank):.0f} times fewer kernel values")
assert rank < 38

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :class:`empirisk.SVM`, :class:`empirisk.maps.Nystrom`, :class:`empirisk.maps.RandomFourier`,
# :class:`empirisk.maps.SeveralKernels`, :class:`empirisk.solvers.DualAscent`,
# :class:`empirisk.solvers.DoublyStochastic`, :class:`empirisk.solvers.Decomposition`.
