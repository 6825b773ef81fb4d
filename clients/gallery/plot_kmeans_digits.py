"""K-means on digits from three starts."""

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
starts = {
    "k-means++": KMeans(init="k-means++", n_clusters=10, n_init=4, random_state=0),
    "random": KMeans(init="random", n_clusters=10, n_init=4, random_state=0),
    "PCA": KMeans(init=PCA(n_components=10).fit(X).components_, n_clusters=10, n_init=1),
}
scores = {}
for name, kmeans in starts.items():
    estimator = make_pipeline(StandardScaler(), kmeans).fit(X)
    labels = estimator[-1].labels_
    scores[name] = (estimator[-1].inertia_ > 0, adjusted_rand_score(y, labels) > 0.2)
    silhouette_score(X, labels, metric="euclidean", sample_size=300)
result = scores
