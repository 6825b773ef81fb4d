"""
Precision and recall
====================

Chance is the positive rate.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
result = er.evaluate(er.LogisticRegression(), X, y)
er.plots.precision_recall(result.truth, result.probabilities[:, 1], threshold=0.4)
