"""
A network as a graph
====================

Units and weights: a line for each weight, the wider the larger.
"""

import empirisk as er

corners, classes = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
network = er.Network([4], activation="tanh", epochs=300, random_state=0)
machine = er.LogisticRegression(C=100.0, features=network).fit(corners, classes)
er.plots.network(machine, names=["a", "b"])
