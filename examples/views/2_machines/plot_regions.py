"""
Decision regions
================

The regions that a classifier decides on two columns, with margin and support vectors. Other columns are held at their
medians, or at ``held={"income": 30}``.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
machine = er.SVM(features=er.kernels.Gaussian(width=2.0)).fit(X, y)
er.plots.regions(machine, X, y, columns=(0, 1))
