"""A search over C and gamma of a Gaussian kernel."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

iris = load_iris()
X, y = StandardScaler().fit_transform(iris.data), iris.target
param_grid = {"gamma": np.logspace(-3, 1, 5), "C": np.logspace(-2, 2, 3)}
grid = GridSearchCV(SVC(), param_grid=param_grid, cv=StratifiedShuffleSplit(2, test_size=0.2, random_state=42))
grid.fit(X, y)
result = {"good": grid.best_score_ > 0.9}
