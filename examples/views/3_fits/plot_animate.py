"""
Fits as animations
==================

A fit as it happens, in a page or a file (GIF or HTML). Here dual ascent; the size of a point is its dual variable.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.animate(er.SVM(solver="dual_ascent"), X, y, frames=8)

# %%
# The rounds of boosting, and where they end.

er.plots.animate(er.AdaBoostClassifier(n_estimators=20), X, y, frames=8)

# %%
# The last state, as a picture.

er.plots.regions(er.AdaBoostClassifier(n_estimators=20).fit(X[:, :2], y), X[:, :2], y)
