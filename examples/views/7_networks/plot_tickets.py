"""
Tickets
=======

Score against the share of weights left: in each round the smallest half is dropped, and the rest is trained again.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
signs = rng.choice([-1.0, 1.0], size=(300, 2))
X, y = signs + 0.3 * rng.normal(size=(300, 2)), signs.prod(axis=1) > 0
network = er.Network([32], epochs=60, n_init=1, random_state=0)
found = er.nets.lottery_tickets(er.LogisticRegression(C=10.0, features=network), X[:150], y[:150], X[150:], y[150:])
er.plots.tickets(found)
