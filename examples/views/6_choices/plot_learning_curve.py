"""
Learning curve
==============

Scores against the number of training rows; overfitting is named.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
curve = er.evaluation.learning_curve(er.TreeClassifier(), X, y)
er.plots.learning_curve(curve)
