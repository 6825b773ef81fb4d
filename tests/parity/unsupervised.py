"""Neighbours, centroids, k-means, hierarchies, mixtures, principal components, dictionaries."""

import numpy as np
import scipy.cluster.hierarchy
from scipy import sparse
from sklearn import cluster, decomposition, mixture, neighbors
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import empirisk as er
from tests.parity.cases import (
    BLOBS_X,
    BLOBS_Y,
    DIABETES_X,
    DIABETES_Y,
    IRIS_X,
    IRIS_Y,
    TOY_NEW,
    TOY_TRUTH,
    TOY_X,
    TOY_Y,
    TWO_X,
    TWO_Y,
    behaviour,
    near,
    refuses,
)

FORMS = ("full", "tied", "diag", "spherical")
LINKAGES = ("single", "average", "complete", "ward")
CENTRES = np.array([[0.0, 5.0], [5.0, 0.0], [5.0, 5.0]])


# --- neighbours and centroids -----------------------------------------------------------------------------------------


@behaviour([(count, weights) for count in (1, 3, 8) for weights in ("uniform", "distance")])
def neighbours_of_classes(given):
    """The nearest neighbours give scikit-learn's probabilities, counted or by distance."""
    count, weights = given
    ours = er.KNNClassifier(count, weights=weights).fit(TWO_X[:60], TWO_Y[:60])
    other = neighbors.KNeighborsClassifier(count, weights=weights).fit(TWO_X[:60], TWO_Y[:60])
    for rows in (TWO_X[60:], TWO_X[:60]):  # others, and those at distance zero
        near(ours.predict_proba(rows), other.predict_proba(rows))


@behaviour([(count, weights) for count in (1, 4) for weights in ("uniform", "distance")])
def neighbours_of_numbers(given):
    """The nearest neighbours predict scikit-learn's numbers."""
    count, weights = given
    ours = er.KNNRegressor(count, weights=weights).fit(DIABETES_X[:100], DIABETES_Y[:100])
    other = neighbors.KNeighborsRegressor(count, weights=weights).fit(DIABETES_X[:100], DIABETES_Y[:100])
    for rows in (DIABETES_X[100:], DIABETES_X[:100]):
        near(ours.predict(rows), other.predict(rows))


@behaviour([1, 3, 7])
def kneighbors(count):
    """kneighbors gives scikit-learn's distances and rows, without the row itself where X is left out."""
    ours, other = er.KNNClassifier(count).fit(TWO_X, TWO_Y), neighbors.KNeighborsClassifier(count).fit(TWO_X, TWO_Y)
    for rows in (TWO_X[:9] + 0.01, None):
        for mine, its in zip(ours.kneighbors(rows), other.kneighbors(rows), strict=True):
            near(mine, its)


@behaviour(["connectivity", "distance"])
def neighbour_graphs(mode):
    """kneighbors_graph is scikit-learn's, with ones or with distances."""
    ours, other = er.KNNClassifier(4).fit(TWO_X, TWO_Y), neighbors.KNeighborsClassifier(4).fit(TWO_X, TWO_Y)
    near(ours.kneighbors_graph(mode=mode).toarray(), other.kneighbors_graph(mode=mode).toarray())


@behaviour([er.KNNClassifier(1), er.NearestCentroid()])
def the_toy_is_learned(machine):
    """Six points are learned."""
    assert np.array_equal(clone(machine).fit(TOY_X, TOY_Y).predict(TOY_NEW), TOY_TRUTH)


@behaviour([er.KNNClassifier(3), er.KNNRegressor(3)])
def sparse_rows(machine):
    """Sparse rows give the answers of dense ones."""
    rows = np.where(np.abs(TWO_X) < 0.5, 0.0, TWO_X)
    near(clone(machine).fit(sparse.csr_array(rows), TWO_Y).predict(sparse.csr_array(rows)),
         clone(machine).fit(rows, TWO_Y).predict(rows))  # fmt: skip


@behaviour([0, -3, "three"])
def bad_numbers_of_neighbours(count):
    """n_neighbors must be a whole number from 1 on."""
    refuses(lambda: er.KNNClassifier(count).fit(TOY_X, TOY_Y).predict(TOY_X), "n_neighbors")


@behaviour([(IRIS_X, IRIS_Y), (TWO_X, TWO_Y)])
def centroids(rows):
    """Nearest centroids predict what scikit-learn's predict, in translated data too."""
    X, y = rows
    ours, other = er.NearestCentroid().fit(X, y), neighbors.NearestCentroid().fit(X, y)
    near(ours.centroids_, other.centroids_)
    assert np.array_equal(ours.predict(X), other.predict(X))
    assert np.array_equal(er.NearestCentroid().fit(X + 7, y).predict(X + 7), ours.predict(X))


# --- k-means ----------------------------------------------------------------------------------------------------------


@behaviour(["k-means++", "random", CENTRES])
def blobs_are_found(init):
    """Three blobs are found from any start."""
    found = er.KMeans(3, init=init, n_init=5 if isinstance(init, str) else 1, random_state=0).fit(BLOBS_X)
    assert adjusted_rand_score(found.labels_, BLOBS_Y) == 1.0


@behaviour([0, 1, 2])
def kmeans_is_that_of_scikit_learn(seed):
    """From the same centres Lloyd's steps end at the same centres, labels and inertia."""
    start = TWO_X[np.random.default_rng(seed).choice(len(TWO_X), 4, replace=False)]
    ours = er.KMeans(4, init=start, n_init=1, shifts=0).fit(TWO_X)
    other = cluster.KMeans(4, init=start, n_init=1, tol=0).fit(TWO_X)
    near(ours.inertia_, other.inertia_)
    near(ours.cluster_centers_, other.cluster_centers_)


@behaviour([3, 5])
def kmeans_attributes_agree(count):
    """predict, labels_, transform, inertia_ and score tell the same story."""
    found = er.KMeans(count, random_state=0).fit(TWO_X)
    distances = found.transform(TWO_X)
    assert np.array_equal(found.predict(TWO_X), found.labels_)
    assert np.array_equal(distances.argmin(axis=1), found.labels_)
    near((distances.min(axis=1) ** 2).sum(), found.inertia_)
    near(found.score(TWO_X), -found.inertia_)
    near(found.fit_transform(TWO_X), clone(found).fit(TWO_X).transform(TWO_X))


@behaviour([1.0, 3.0])
def kmeans_weights(factor):
    """Equal weights change no centre; whole weights equal repeated rows."""
    start, counts = TWO_X[:3], 1 + np.arange(len(TWO_X)) % 2
    machine = er.KMeans(3, init=start, n_init=1)
    near(clone(machine).fit(TWO_X, sample_weight=np.full(len(TWO_X), factor)).cluster_centers_,
         clone(machine).fit(TWO_X).cluster_centers_)  # fmt: skip
    near(clone(machine).fit(TWO_X, sample_weight=counts).cluster_centers_,
         clone(machine).fit(np.repeat(TWO_X, counts, 0)).cluster_centers_)  # fmt: skip


@behaviour(["auto", 1, 4])
def starts_of_kmeans(n_init):
    """n_init as a number and "auto"; more starts are no worse."""
    best = er.KMeans(5, n_init=20, random_state=0).fit(TWO_X).inertia_
    assert er.KMeans(5, n_init=n_init, random_state=0).fit(TWO_X).inertia_ >= best - 1e-9


@behaviour([0, 200, 2.5])
def bad_numbers_of_clusters(count):
    """n_clusters must be a number from 1 to that of the rows."""
    refuses(lambda: er.KMeans(count).fit(TOY_X), "n_clusters")


@behaviour([np.float32, np.int64])
def kmeans_takes_other_numbers(kind):
    """Rows of other types have nearly the same centres; float32 stays float32 in transform."""
    rows = (10 * TWO_X).astype(kind)
    found = er.KMeans(3, init=rows[:3].astype(float), n_init=1).fit(rows)
    other = er.KMeans(3, init=rows[:3].astype(float), n_init=1).fit(rows.astype(float))
    near(found.cluster_centers_, other.cluster_centers_, 1e-3)
    assert found.transform(rows).dtype == (np.float32 if kind is np.float32 else np.float64)


# --- hierarchies ------------------------------------------------------------------------------------------------------


@behaviour([(linkage, count) for linkage in LINKAGES for count in (2, 4)])
def hierarchies_are_those_of_scikit_learn(given):
    """The clusters of every linkage are scikit-learn's."""
    linkage, count = given
    ours = er.Hierarchical(linkage, n_clusters=count).fit(TWO_X)
    other = cluster.AgglomerativeClustering(count, linkage=linkage).fit(TWO_X)
    assert adjusted_rand_score(ours.labels_, other.labels_) == 1.0


@behaviour(LINKAGES)
def heights_are_those_of_scipy(linkage):
    """distances_ are the heights of SciPy's tree, rising, and children_ has a row for each merge."""
    found = er.Hierarchical(linkage, n_clusters=3).fit(TWO_X)
    near(found.distances_, scipy.cluster.hierarchy.linkage(TWO_X, linkage)[:, 2])
    assert found.children_.shape == (len(TWO_X) - 1, 2)
    assert found.n_leaves_ == len(TWO_X)


@behaviour([0.5, 1.5, 3.0, 100.0])
def thresholds_cut_the_tree(height):
    """distance_threshold leaves the clusters of scikit-learn."""
    ours = er.Hierarchical("average", distance_threshold=height).fit(TWO_X)
    other = cluster.AgglomerativeClustering(None, linkage="average", distance_threshold=height).fit(TWO_X)
    assert ours.n_clusters_ == other.n_clusters_
    assert adjusted_rand_score(ours.labels_, other.labels_) == 1.0


@behaviour([{"n_clusters": 2, "distance_threshold": 1.0}, {"linkage": "foo"}, {"n_clusters": 0}])
def bad_cuts_are_refused(given):
    """Both a number and a height, an unknown linkage or no cluster are refused."""
    refuses(lambda: er.Hierarchical(**given).fit(TOY_X))


# --- mixtures ---------------------------------------------------------------------------------------------------------


@behaviour(FORMS)
def mixtures_are_those_of_scikit_learn(form):
    """From the same means EM ends at scikit-learn's likelihood, weights, means and covariances."""
    ours = er.GaussianMixture(3, covariance_type=form, init=CENTRES, tol=1e-10, max_iter=500).fit(BLOBS_X)
    other = mixture.GaussianMixture(3, covariance_type=form, means_init=CENTRES, tol=1e-10, max_iter=500).fit(BLOBS_X)
    near(ours.score(BLOBS_X), other.score(BLOBS_X), 1e-4)
    near(ours.means_, other.means_, 1e-3)
    near(ours.weights_, other.weights_, 1e-3)
    near(ours.covariances_, other.covariances_, 1e-3)


@behaviour(FORMS)
def precisions_invert_covariances(form):
    """precisions_ and precisions_cholesky_ are scikit-learn's, and invert covariances_; so are aic and bic."""
    told = {"covariance_type": form, "tol": 1e-10, "max_iter": 500}
    ours = er.GaussianMixture(3, init=CENTRES, reg_covar=1e-10, **told).fit(BLOBS_X)
    other = mixture.GaussianMixture(3, means_init=CENTRES, reg_covar=1e-10, **told).fit(BLOBS_X)
    near(ours.precisions_, other.precisions_, 1e-4)
    near(ours.precisions_cholesky_, other.precisions_cholesky_, 1e-4)
    if form in ("diag", "spherical"):
        near(ours.precisions_ * ours.covariances_, 1.0)
    else:
        near(ours.precisions_ @ ours.covariances_, np.broadcast_to(np.eye(2), ours.covariances_.shape))
    near(ours.bic(BLOBS_X) - ours.aic(BLOBS_X), other.bic(BLOBS_X) - other.aic(BLOBS_X))


@behaviour([*FORMS, "diagonal"])
def mixtures_predict(form):
    """predict is the largest probability, fit_predict the same; both spellings of the diagonal are taken."""
    found = er.GaussianMixture(3, covariance_type=form, random_state=0).fit(BLOBS_X)
    shares = found.predict_proba(BLOBS_X)
    near(shares.sum(axis=1), 1.0)
    assert np.array_equal(shares.argmax(axis=1), found.predict(BLOBS_X))
    assert adjusted_rand_score(found.predict(BLOBS_X), BLOBS_Y) > 0.95


@behaviour(["kmeans", "k-means++", "random_from_data"])
def mixtures_start_by_their_names(init):
    """Starts have scikit-learn's names."""
    assert np.isfinite(er.GaussianMixture(3, init=init, random_state=0).fit(BLOBS_X).score(BLOBS_X))


@behaviour([1, 50])
def mixtures_sample(count):
    """sample gives rows and their components."""
    rows, components = er.GaussianMixture(3, random_state=0).fit(BLOBS_X).sample(count, random_state=0)
    assert rows.shape == (count, 2)
    assert len(components) == count


@behaviour([0, 1])
def likelihood_rises(seed):
    """No step of EM lowers the likelihood."""
    bounds = er.GaussianMixture(4, init="random", random_state=seed).fit(TWO_X).history_["log_likelihood"]
    assert (np.diff(bounds) >= -1e-9).all()


# --- principal components ---------------------------------------------------------------------------------------------


@behaviour([(count, whiten) for count in (None, 2, 0.8) for whiten in (False, True)])
def components_are_those_of_scikit_learn(given):
    """Variances, shares, means and, up to sign, directions and projections of scikit-learn."""
    count, whiten = given
    ours = er.PCA(count, whiten=whiten).fit(IRIS_X)
    other = decomposition.PCA(count, whiten=whiten, svd_solver="full").fit(IRIS_X)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_", "n_components_"):
        near(getattr(ours, name), getattr(other, name))
    near(np.abs(ours.components_), np.abs(other.components_))
    near(np.abs(ours.transform(IRIS_X)), np.abs(other.transform(IRIS_X)))


@behaviour([1, 3])
def probabilistic_components(count):
    """score, noise_variance_, get_covariance and get_precision are scikit-learn's."""
    ours, other = er.PCA(count).fit(IRIS_X), decomposition.PCA(count).fit(IRIS_X)
    near(ours.noise_variance_, other.noise_variance_)
    near(ours.get_covariance(), other.get_covariance())
    near(ours.get_precision(), other.get_precision())
    near(ours.score_samples(IRIS_X), other.score_samples(IRIS_X))
    near(ours.score(IRIS_X), other.score(IRIS_X))


@behaviour([None, 2])
def inverses_reconstruct(count):
    """inverse_transform brings rows back, all of them where all directions are kept."""
    found = er.PCA(count).fit(IRIS_X)
    error = np.abs(found.inverse_transform(found.transform(IRIS_X)) - IRIS_X).max()
    assert error < (1e-9 if count is None else 1.5)


@behaviour([np.float32, np.float64])
def components_keep_their_type(kind):
    """Projections have the type of the rows."""
    assert er.PCA(2).fit_transform(IRIS_X.astype(kind)).dtype == kind


@behaviour([-1, 5, 1.5, "all"])
def bad_numbers_of_components(count):
    """n_components outside of its range is refused."""
    refuses(lambda: er.PCA(count).fit(IRIS_X), "n_components")


@behaviour([1, 3])
def kernel_components(count):
    """Kernel PCA projects, up to sign, as scikit-learn's, new rows too."""
    ours = er.PCA(count, features=er.kernels.Gaussian.from_gamma(0.3)).fit(TWO_X)
    other = decomposition.KernelPCA(count, kernel="rbf", gamma=0.3).fit(TWO_X)
    near(np.abs(ours.transform(TWO_X + 0.1)), np.abs(other.transform(TWO_X + 0.1)), 1e-5)


@behaviour([4, 12])
def dictionaries(count):
    """Atoms have at most length one, codes have a column for each, and products approach the rows."""
    found = er.Dictionary(count, C=50.0, random_state=0).fit(TWO_X)
    codes = found.transform(TWO_X)
    assert found.components_.shape == (count, 5)
    assert codes.shape == (len(TWO_X), count)
    assert np.linalg.norm(found.components_, axis=1).max() <= 1 + 1e-6
    assert ((codes @ found.components_ - TWO_X) ** 2).sum() < 0.5 * (TWO_X**2).sum()
