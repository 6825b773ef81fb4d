"""Nearest neighbours, counted and by distance."""

from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

iris = load_iris(as_frame=True)
X, y = iris.data[["sepal length (cm)", "sepal width (cm)"]], iris.target
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
clf = Pipeline(steps=[("scaler", StandardScaler()), ("knn", KNeighborsClassifier(n_neighbors=11))])
scores = {weights: clf.set_params(knn__weights=weights).fit(X_train, y_train).score(X_test, y_test)
          for weights in ("uniform", "distance")}  # fmt: skip
result = {name: score > 0.6 for name, score in scores.items()}
