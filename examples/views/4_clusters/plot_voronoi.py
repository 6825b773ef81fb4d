"""
Cells of clusters
=================

Cells of k-means, or of any clustering that predicts, with their means.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.voronoi(er.KMeans(3, random_state=0).fit(X[:, :2]), X[:, :2])
