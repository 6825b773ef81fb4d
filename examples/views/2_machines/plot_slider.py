"""
A slider for a parameter
========================

A view at several values of one parameter: drawn now and chosen later, in a notebook or on a page. No server is needed.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
inputs = X[:, :2]
er.plots.slider(
    lambda width: er.plots.regions(er.SVM(features=er.kernels.Gaussian(width)).fit(inputs, y), inputs, y),
    width=[0.2, 0.5, 1.0, 2.0, 5.0],
)

# %%
# One of its pictures.

er.plots.regions(er.SVM(features=er.kernels.Gaussian(0.2)).fit(inputs, y), inputs, y)
