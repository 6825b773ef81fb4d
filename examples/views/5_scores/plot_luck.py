"""
Was it luck?
============

The errors of chance, and those observed.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
result = er.evaluate(er.LogisticRegression(), X, y)
errors = int((result.truth != result.predictions).sum())
er.plots.luck(errors, len(result.truth))
