"""
A tree
======

From its root to its leaves.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.tree(er.TreeClassifier(max_leaf_nodes=6).fit(X, y), max_depth=3)
