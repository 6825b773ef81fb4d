"""
Tickets
=======

Score against the share of weights left.
"""

import numpy as np

import empirisk as er

er.plots.tickets(er.nets.Tickets(np.array([1.0, 0.5, 0.25]), np.array([0.90, 0.92, 0.88]), []))
