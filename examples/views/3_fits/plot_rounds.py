"""
Error by rounds and by trees
============================

Boosting: the error after each round, and the bound on it.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
boost = er.AdaBoostClassifier(n_estimators=50).fit(X[:100], y[:100])
er.plots.rounds(boost, X[100:], y[100:])

# %%
# A forest: the error of the first trees together.

forest = er.ForestClassifier(n_estimators=60, random_state=0).fit(X[:100], y[:100])
er.plots.rounds(forest, X[100:], y[100:])
