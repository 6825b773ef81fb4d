"""
Activations
===========

What units make of their inputs.
"""

import empirisk as er

er.plots.activations()
