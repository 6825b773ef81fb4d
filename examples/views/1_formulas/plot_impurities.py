"""
Impurities
==========

What a tree calls impure, for two classes.
"""

import empirisk as er

er.plots.impurities()
