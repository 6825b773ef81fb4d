"""
Outliers
========

Where the data are, the boundary, and the rows outside it; no target is needed.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
er.plots.outliers(er.OneClassSVM(nu=0.1, features=er.kernels.Gaussian(1.0)).fit(X[:, :2]), X[:, :2])

# %%
# The boundary as the fit goes on.

er.plots.animate(er.OneClassSVM(nu=0.1, features=er.kernels.Gaussian(1.0)), X[:, :2], frames=6)
