"""
Tangent kernel
==============

The weights that matter most before training, and the patterns to which the network is blind.
"""

import empirisk as er

corners = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
er.plots.tangent(er.kernels.Tangent(er.Network([4], random_state=0)), corners)
