"""Least squares with weights that are not negative."""

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

rng = np.random.RandomState(42)
X = rng.randn(200, 50)
true_coef = 3 * rng.randn(50)
true_coef[true_coef < 0] = 0
y = np.dot(X, true_coef) + 5 * rng.normal(size=(200,))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
reg_nnls = LinearRegression(positive=True)
score_nnls = r2_score(y_test, reg_nnls.fit(X_train, y_train).predict(X_test))
reg_ols = LinearRegression()
score_ols = r2_score(y_test, reg_ols.fit(X_train, y_train).predict(X_test))
result = {"nnls": round(score_nnls, 5), "ols": round(score_ols, 5), "zeros": int((reg_nnls.coef_ == 0).sum())}
