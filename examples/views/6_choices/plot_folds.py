"""
Folds
=====

Which rows each fold learns from, and which it tests.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.folds(5, X[:60], y[:60])

# %%
# Groups stay on one side.

from sklearn.model_selection import GroupKFold

er.plots.folds(GroupKFold(4), X[:60], groups=np.repeat(np.arange(12), 5))

# %%
# Rows in order of time: what is tested comes after what is learned from.

from sklearn.model_selection import TimeSeriesSplit

er.plots.folds(TimeSeriesSplit(4), X[:60])
