"""
Descent
=======

Solvers on two weights, over contours of the objective.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
solvers = {name: er.LogisticRegression(solver=name) for name in ("gradient_descent", "newton")}
er.plots.descent(solvers, X[:, :2], y)

# %%
# Functions of your own.

er.plots.descent([er.minimise(lambda x: x @ x + x[0] ** 4, [2.0, 1.0], how) for how in ("gradient_descent", "newton")])
