"""
Hidden units
============

What each unit says of the plane: why XOR can be learned.
"""

import empirisk as er

corners, classes = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
network = er.Network([4], activation="tanh", epochs=300, random_state=0)
machine = er.LogisticRegression(C=100.0, features=network).fit(corners, classes)
er.plots.hidden_units(machine, corners, classes)

# %%
# A boolean function by construction: every true row of the table has a unit of its own.

xor = er.nets.boolean_network([False, True, True, False]).fit(corners)
er.plots.hidden_units(xor, corners, classes)
