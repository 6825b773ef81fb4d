"""
Widths
======

Errors against the number of units: the peak where they are as many as the rows, and the second descent.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
signs = rng.choice([-1.0, 1.0], size=(620, 2))
X, y = signs + 0.7 * rng.normal(size=(620, 2)), signs.prod(axis=1)
units = [5, 10, 20, 40, 80, 120, 160, 240, 500, 1000]
er.plots.widths(er.nets.double_descent(X[:120], y[:120], X[120:], y[120:], units, repeats=3))
