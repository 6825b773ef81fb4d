"""
Regression along one column
===========================

Points, the curves of several machines, and the truth.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 40))
wave = np.sin(x) + 0.2 * rng.normal(size=40)
machines = {"ridge": er.Ridge(features="gaussian"), "tree": er.TreeRegressor(max_depth=3)}
er.plots.regression(machines, x, wave, truth=np.sin)

# %%
# One machine for several C.

er.plots.regression(er.Ridge(features=er.kernels.Gaussian(0.5)), x, wave, C=[0.01, 1.0, 100.0])
