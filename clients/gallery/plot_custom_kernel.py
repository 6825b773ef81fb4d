"""A support vector machine with a kernel that is a function."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.svm import SVC

iris = load_iris()
X, Y = iris.data[:, :2], iris.target
M = np.array([[2.0, 0.0], [0.0, 1.0]])
clf = SVC(kernel=lambda A, B: np.dot(np.dot(A, M), B.T))
clf.fit(X, Y)
result = {"score": round(clf.score(X, Y), 1)}
