"""The rows of all clients: two classes and a number."""

import numpy as np

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 4))
Y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
T = X @ [1.0, 2.0, 0.0, -1.0]
