"""
Gram matrix
===========

The matrix of a kernel, its rows ordered by class.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.gram(er.kernels.Gaussian(width=2.0), X, y)
