"""K-means on iris with eight clusters, with three, and from a bad start."""

from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

iris = load_iris()
X, y = iris.data, iris.target
estimators = [
    ("k_means_iris_8", KMeans(n_clusters=8)),
    ("k_means_iris_3", KMeans(n_clusters=3)),
    ("k_means_iris_bad_init", KMeans(n_clusters=3, n_init=1, init="random")),
]
sizes = {}
for name, est in estimators:
    est.fit(X)
    sizes[name] = len(set(est.labels_.astype(float)))
result = {"sizes": sizes}
