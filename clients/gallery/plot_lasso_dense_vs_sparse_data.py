"""The lasso on dense and on sparse rows."""

import numpy as np
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso

X, y = make_regression(n_samples=200, n_features=300, random_state=0)
lasso_sparse = Lasso(alpha=1, fit_intercept=False, max_iter=1000)
lasso_dense = Lasso(alpha=1, fit_intercept=False, max_iter=1000)
lasso_sparse.fit(sparse.coo_matrix(X), y)
lasso_dense.fit(X, y)
result = {"equal": bool(np.linalg.norm(lasso_sparse.coef_ - lasso_dense.coef_) < 1e-3)}
