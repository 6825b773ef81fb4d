"""Trees of two depths on a sine, and on both coordinates of a circle."""

import numpy as np
from sklearn.tree import DecisionTreeRegressor

rng = np.random.RandomState(1)
X = np.sort(5 * rng.rand(80, 1), axis=0)
y = np.sin(X).ravel()
y[::5] += 3 * (0.5 - rng.rand(16))
regr_1, regr_2 = DecisionTreeRegressor(max_depth=2), DecisionTreeRegressor(max_depth=5)
regr_1.fit(X, y)
regr_2.fit(X, y)
X_test = np.arange(0.0, 5.0, 0.01)[:, np.newaxis]
curves = [regr_1.predict(X_test).sum().round(6), regr_2.predict(X_test).sum().round(6)]
X = np.sort(200 * rng.rand(100, 1) - 100, axis=0)
y = np.array([np.pi * np.sin(X).ravel(), np.pi * np.cos(X).ravel()]).T
y[::5, :] += 0.5 - rng.rand(20, 2)
circles = [DecisionTreeRegressor(max_depth=depth).fit(X, y) for depth in (2, 5, 8)]
X_test = np.arange(-100.0, 100.0, 0.01)[:, np.newaxis]
result = {"curves": curves, "circles": [circle.predict(X_test).shape for circle in circles]}
