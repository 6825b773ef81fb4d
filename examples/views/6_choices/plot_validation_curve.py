"""
Validation curve
================

Scores against a parameter, from underfitting to overfitting, with the best value marked.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
curve = er.evaluation.validation_curve(er.TreeClassifier(), X, y, "max_depth", [1, 2, 4, 8])
er.plots.validation_curve(curve)
