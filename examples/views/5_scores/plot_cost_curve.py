"""
Cost curve
==========

The least expected cost of any threshold, for every rate of positives and ratio of costs (Drummond and Holte).
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
result = er.evaluate(er.LogisticRegression(), X, y)
er.plots.cost_curve(result)
