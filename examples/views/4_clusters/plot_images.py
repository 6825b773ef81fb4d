"""
Directions and atoms as images
==============================

Weights, directions, singular vectors, atoms and codes, whole or as positive and negative part.
"""

from sklearn.datasets import load_digits

import empirisk as er

digits = load_digits().data
er.plots.images(er.PCA(6).fit(digits), shape=(8, 8), parts=True)

# %%
# Atoms of a dictionary.

atoms = er.Dictionary(12, coding="omp", nonzeros=3, random_state=0, tol=0.02).fit(digits[:300])
er.plots.images(atoms, shape=(8, 8))
