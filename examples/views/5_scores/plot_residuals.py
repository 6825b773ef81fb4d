"""
Residuals
=========

Of a regression: predicted against true, and their histogram.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
price = X @ [1.0, -2.0, 0.0, 3.0] + rng.normal(size=200)
er.plots.residuals(er.evaluate(er.Ridge(), X, price))
