"""
Rows in a projection
====================

Where a projection puts the rows, coloured by class or by number.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.projection(er.PCA(2).fit(X), X, y)
