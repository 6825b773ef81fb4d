"""
ROC
===

With the chosen threshold marked; chance is the diagonal.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
result = er.evaluate(er.LogisticRegression(), X, y)
chances = result.probabilities[:, 1]
er.plots.roc(result.truth, chances, threshold=0.4)

# %%
# The convex hull, which coins between thresholds reach.

er.plots.roc(result, hull=True)
