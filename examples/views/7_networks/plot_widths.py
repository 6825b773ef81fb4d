"""
Widths
======

Errors against the number of units: the peak, and the second descent.
"""

import numpy as np

import empirisk as er

counts = np.array([1, 3, 10, 30, 100])
er.plots.widths(er.nets.WidthCurve(counts, np.array([0.5, 0.3, 0.0, 0.0, 0.0]), np.array([1.0, 1.5, 5.0, 2.0, 1.0])))
