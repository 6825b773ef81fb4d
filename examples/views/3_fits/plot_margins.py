"""
Margins of a vote
=================

The share of rows with at most each margin, after some rounds of boosting.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
boost = er.AdaBoostClassifier(n_estimators=50).fit(X[:100], y[:100])
er.plots.margins(boost, X, y)
