"""Boosted stumps on two classes."""

import numpy as np
from sklearn.datasets import make_gaussian_quantiles
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

X1, y1 = make_gaussian_quantiles(cov=2.0, n_samples=120, n_features=2, n_classes=2, random_state=1)
X2, y2 = make_gaussian_quantiles(mean=(3, 3), cov=1.5, n_samples=180, n_features=2, n_classes=2, random_state=1)
X, y = np.concatenate((X1, X2)), np.concatenate((y1, 1 - y2))
bdt = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=100)
bdt.fit(X, y)
twoclass_output = bdt.decision_function(X)
result = {"right": bool(((twoclass_output > 0) == y).mean() > 0.8), "rounds": len(bdt.estimators_)}
