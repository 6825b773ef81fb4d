"""Logistic regression on iris."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

iris = load_iris()
X, Y = iris.data[:, :2], iris.target
logreg = LogisticRegression(C=1e5)
logreg.fit(X, Y)
result = {"classes": logreg.classes_.tolist(), "score": round(logreg.score(X, Y), 1), "shape": logreg.coef_.shape}
