"""
Decision regions
================

The regions that a classifier of two columns decides, with its margin, its support vectors and the rows it gets wrong.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 2))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.4 * rng.normal(size=120) > 1, "yes", "no")

er.plots.regions(er.SVM(C=1.0, features=er.kernels.Gaussian(width=1.5)).fit(X, y), X, y)

# %%
# A slider shows what the width :math:`\sigma` of the kernel does.

er.plots.slider(
    lambda width: er.plots.regions(er.SVM(C=1.0, features=er.kernels.Gaussian(width)).fit(X, y), X, y),
    width=[0.2, 0.5, 1.0, 2.0, 5.0],
)
