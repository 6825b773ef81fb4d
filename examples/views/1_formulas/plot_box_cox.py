"""
Box-Cox transformations
=======================

Powers that draw long tails in; ``er.maps.box_cox_features`` chooses the likeliest one.
"""

import empirisk as er

er.plots.box_cox([-1.0, 0.0, 0.5, 1.0, 2.0])
