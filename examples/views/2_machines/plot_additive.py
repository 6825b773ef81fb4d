"""
Parts of a sum of kernels
=========================

A curve for every column, and a picture for every pair.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
price = X @ [1.0, -2.0, 0.0, 3.0] + rng.normal(size=200)
er.plots.additive(er.Ridge(features=er.kernels.Anova(order=2)).fit(X[:, :3], price), X[:, :3])
