"""
Importance of columns
=====================

How much the score falls when a column is shuffled, with its spread.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
boost = er.AdaBoostClassifier(n_estimators=20).fit(X[:100], y[:100])
er.plots.importance(boost.importances(X[100:], y[100:]))
