"""Support vector machines with several kernels on iris."""

from sklearn.datasets import load_iris
from sklearn.svm import SVC, LinearSVC

iris = load_iris()
X, y, C = iris.data[:, :2], iris.target, 1.0
models = (SVC(kernel="linear", C=C), LinearSVC(C=C, max_iter=10000), SVC(kernel="rbf", gamma=0.7, C=C),
          SVC(kernel="poly", degree=3, gamma="auto", C=C))  # fmt: skip
result = {"scores": [round(clf.fit(X, y).score(X, y), 1) for clf in models]}
