"""
History of a fit
================

The objective, and how far it was from the bound that the certificate proves.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
machine = er.LogisticRegression(solver="gradient_descent").fit(X, y)
er.plots.history(machine)
