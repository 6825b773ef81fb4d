"""
Confusion matrix
================

Counts, coloured by the share of the true class. Views of scores take true and predicted values, or what ``er.evaluate``
returns.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
result = er.evaluate(er.LogisticRegression(), X, y)
er.plots.confusion(result)
