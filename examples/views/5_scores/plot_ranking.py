"""
Gains, lift and precision at k
==============================

What the rows with the highest scores hold.
"""

import numpy as np

import empirisk as er

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=200) > 1, "yes", "no")
result = er.evaluate(er.LogisticRegression(), X, y)
er.plots.gains(result)

# %%
# How many times as many as by chance.

er.plots.lift(result)

# %%
# How many of the first k are right.

er.plots.precision_at_k(result, most=50)
