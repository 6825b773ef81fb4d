"""Lines through quantiles."""

import numpy as np
from sklearn.linear_model import QuantileRegressor

rng = np.random.RandomState(42)
X = np.linspace(0, 10, 100)[:, np.newaxis]
y = 10 + 0.5 * X.ravel() + rng.normal(scale=0.5 + 0.5 * X.ravel())
below = {}
for quantile in [0.05, 0.5, 0.95]:
    qr = QuantileRegressor(quantile=quantile, alpha=0)
    below[quantile] = round(float((y < qr.fit(X, y).predict(X)).mean()), 1)
result = below
