"""Outliers, Huber's loss and ridge."""

import numpy as np
from sklearn.datasets import make_regression
from sklearn.linear_model import HuberRegressor, Ridge

rng = np.random.RandomState(0)
X, y = make_regression(n_samples=20, n_features=1, random_state=0, noise=4.0, bias=100.0)
outliers = rng.normal(0, 0.5, size=(4, 1))
X = np.vstack((X, 2 * X.max() + X.std() * outliers[:2], 2 * X.min() + X.std() * outliers[2:]))
y = np.concatenate((y, 2 * y.min() + y.std() * outliers[:2].ravel(), 2 * y.max() + y.std() * outliers[2:].ravel()))
slopes = [HuberRegressor(alpha=0.0, epsilon=epsilon).fit(X, y).coef_[0] for epsilon in (1, 1.5, 1.75, 1.9)]
ridge = Ridge(alpha=0.0, random_state=0)
result = {"flatter": bool(ridge.fit(X, y).coef_[0] < min(slopes))}
