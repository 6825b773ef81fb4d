"""
Directions and atoms as images
==============================

Weights, directions, singular vectors, atoms and codes, whole or as positive and negative part.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.images(er.PCA(4).fit(X), shape=(2, 2), parts=True)

# %%
# Atoms of a dictionary.

er.plots.images(er.Dictionary(6, coding="omp", nonzeros=2, random_state=0).fit(X), shape=(2, 2))
