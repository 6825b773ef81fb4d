"""
A learned metric
================

Along which columns distances count.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.metric(er.LogisticRegression(features=er.LearnedKernel()).fit(X, y))
