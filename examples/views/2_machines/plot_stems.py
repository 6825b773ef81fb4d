"""
Dual coefficients as stems
==========================

Classification along one column: the decision function, and the rows that hold it.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 40))
wave = np.sin(x) + 0.2 * rng.normal(size=40)
sign = np.where(wave > 0, "up", "down")
er.plots.stems(er.SVM(features=er.kernels.Gaussian(0.5)).fit(x[:, None], sign), x[:, None], sign)
