"""The nearest centroid, a linear classifier without a minimisation."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from empirisk.certificate import Certificate, Status
from empirisk.machines.inputs import check_weights, class_weights, encode_classes
from empirisk.machines.mapping import MapsFeatures
from empirisk.machines.multiclass import winners
from empirisk.machines.transaction import all_or_nothing

Array = NDArray[np.float64]


class NearestCentroid(MapsFeatures, ClassifierMixin, BaseEstimator):
    """Each row to the class whose mean is nearest:  argmin_k |phi(x) - m_k|^2.

    For two classes this is the hyperplane w = 2 (m_1 - m_0), b = |m_0|^2 - |m_1|^2. The means minimise
    sum_i c_i |phi(x_i) - m_{y_i}|^2 exactly, which the certificate states. It is the best rule for classes that are
    round Gaussians of one variance v; class weights g_k move the boundaries: argmin_k |phi(x) - m_k|^2 - 2 v ln g_k.

    Parameters
    ----------
    features : None or transformer
        The feature map phi; fitted inside.
    class_weight : None, "balanced" or dict
        What an error on each class costs, relative to the others.

    Attributes
    ----------
    centroids_ : array, K x d
        The weighted mean of each class.
    classes_, coef_, intercept_, certificate_, history_, n_iter_, solver_
        As for `Classifier`.

    Examples
    --------
    >>> machine = er.NearestCentroid().fit([[0.0], [2.0], [10.0]], ["a", "a", "b"])
    >>> machine.predict([[5.0], [6.0]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(self, features: Any = None, *, class_weight: dict | str | None = None):
        self.features = features
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "NearestCentroid":
        """Find the weighted mean of each class."""
        mapped, y = self._fit_map(X, y)
        weights = check_weights(sample_weight, len(y))
        self.classes_, codes = encode_classes(y, weights, type(self).__name__)
        member = sparse.csr_matrix(
            (weights[codes >= 0], (codes[codes >= 0], np.flatnonzero(codes >= 0))), shape=(len(self.classes_), len(y))
        )
        totals = np.asarray(member.sum(axis=1)).ravel()
        sums = member @ mapped
        self.centroids_ = (sums.toarray() if sparse.issparse(sums) else np.asarray(sums)) / totals[:, None]
        norms = np.einsum("kj,kj->k", self.centroids_, self.centroids_)
        spread = self._certify(mapped, weights, totals, norms)
        costs = class_weights(self.class_weight, self.classes_, codes, weights)
        shifts = 2 * spread / (totals.sum() * mapped.shape[1]) * np.log(costs)
        weights, constants = 2 * self.centroids_, shifts - norms
        if len(self.classes_) == 2:
            weights, constants = weights[1:] - weights[:1], constants[1:] - constants[:1]
        self.coef_, self.intercept_ = weights, constants
        return self

    def _certify(self, mapped, weights: Array, totals: Array, norms: Array) -> float:
        """Note the sum of squared distances to the means, which is exact, and return it."""
        squares = (
            mapped.multiply(mapped).sum(axis=1) if sparse.issparse(mapped) else np.einsum("ij,ij->i", mapped, mapped)
        )
        spread = max(float(weights @ np.asarray(squares, dtype=float).ravel() - totals @ norms), 0.0)
        self.certificate_ = Certificate(
            primal=spread,
            dual=spread,
            gap=0.0,
            relative_gap=0.0,
            converged=True,
            status=Status.CONVERGED,
            solver="closed_form",
            reason="the mean of a class minimises the squared distances to it",
            iterations=1,
        )
        self.history_ = {"objective": np.array([spread])}
        self.n_iter_, self.solver_ = 1, "closed_form"
        return spread

    def decision_function(self, X: ArrayLike) -> Array:
        """|x - m_0|^2 - |x - m_1|^2 for two classes, else |x|^2 - |x - m_k|^2 for each, and the class weights' part."""
        check_is_fitted(self)
        scores = np.asarray(self._mapped(X) @ self.coef_.T + self.intercept_, dtype=np.float64)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray:
        """The class with the nearest mean."""
        return winners(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
