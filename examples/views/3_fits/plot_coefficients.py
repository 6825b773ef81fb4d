"""
Path of coefficients
====================

The weights over C: the lasso takes columns one by one.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
price = X @ [1.0, -2.0, 0.0, 3.0] + rng.normal(size=200)
path = er.selection.path(er.Lasso(), X, price)
er.plots.coefficients(path, names=["age", "income", "rooms", "floor"])
