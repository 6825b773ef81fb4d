"""The nearest centroid, a linear classifier without a minimisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.certificate import EVIDENCE, Certificate
from empirisk.contract.features import Features, MapsFeatures, expansion
from empirisk.contract.inputs import check_weights, class_weights, encode_classes
from empirisk.contract.multiclass import winners
from empirisk.contract.progress import reported
from empirisk.contract.transaction import all_or_nothing
from empirisk.linalg.design import Array, Design
from empirisk.names import Estimator
from empirisk.stop import Ending

NEGLIGIBLE = 1e-13  # differences of means below this share of the largest mean are rounding
#: A sum of squared distances below this share of the squared lengths is measured by those.
FLOOR = 1e-6


class NearestCentroid(MapsFeatures, CallbackSupportMixin, ClassifierMixin, Estimator):
    """Each row to the class whose mean is nearest:  argmin_k |phi(x) - m_k|^2.

    For two classes this is the hyperplane w = 2 (m_1 - m_0), b = |m_0|^2 - |m_1|^2. The means minimise
    sum_i c_i |phi(x_i) - m_{y_i}|^2 exactly, which the certificate states. It is the best rule for classes that are
    round Gaussians of one variance v; class weights g_k move the boundaries: argmin_k |phi(x) - m_k|^2 - 2 v ln g_k,
    with v measured within the classes along the directions in which the means differ.

    Parameters
    ----------
    features : None, transformer or kernel
        The feature map phi, fitted inside, or a kernel.
    class_weight : None, "balanced" or dict
        What an error on each class costs, relative to the others. The means count classes alike, however many rows
        they have, so "balanced", which undoes the frequencies, changes nothing.

    Attributes
    ----------
    centroids_ : array, K x d
        The weighted mean of each class; with a kernel, ``dual_coef_`` holds its coefficients instead.
    classes_, coef_, intercept_, certificate_, history_, n_iter_, solver_
        As for `Classifier`.

    Examples
    --------
    >>> machine = er.NearestCentroid().fit([[0.0], [2.0], [10.0]], ["a", "a", "b"])
    >>> machine.predict([[5.0], [6.0]])
    array(['a', 'b'], dtype='<U1')
    """

    _state = EVIDENCE | state.State(
        forms=(("coef_", "centroids_"), ("dual_coef_", "support_", "support_vectors_")),
        classes_=state.labels("classes"),
        coef_=state.array("f", "outputs", "mapped"),
        dual_coef_=state.array("f", "outputs", "support"),
        centroids_=state.array("f", "classes", "mapped"),
        intercept_=state.array("f", "outputs"),
        sizes={"outputs": lambda its: len(its["classes_"]) if len(its["classes_"]) > 2 else 1},
    )

    def __init__(self, features: Features = None, *, class_weight: dict[Any, float] | str | None = None):
        self.features = features
        self.class_weight = class_weight

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NearestCentroid:
        """Find the weighted mean of each class."""
        self._require_fixed_features()
        design, y = self._fit_map(X, y, sample_weight)
        weights = check_weights(sample_weight, len(y))
        self.classes_, codes = encode_classes(y, weights, type(self).__name__)
        weights = np.where(codes >= 0, weights, 0.0)
        member = weights[:, None] * (codes[:, None] == np.arange(len(self.classes_)))
        totals = member.sum(axis=0)
        centres = design.tdot(member / totals)
        norms = design.squared_norms(centres)
        self._certify(design, weights, totals, norms)
        costs = class_weights(self.class_weight, self.classes_, codes, weights)
        shifts = np.zeros(len(self.classes_))
        some = costs > 0
        if isinstance(self.class_weight, dict):  # "balanced" is what distances to means are already
            shifts[some] = 2 * _variance(design.dot(centres), member) * np.log(costs[some])
        directions, constants = 2 * centres, shifts - norms
        if not some.all():  # a class that costs nothing is never predicted: it is always behind another one
            first = np.flatnonzero(some)[:1]
            directions[:, ~some] = directions[:, first]
            constants[~some] = constants[first] - (np.abs(constants[some]).max() or 1.0)
        if len(self.classes_) == 2:
            directions, constants = directions[:, 1:] - directions[:, :1], constants[1:] - constants[:1]
        self.__dict__.update(expansion(design, [np.arange(len(y))], [directions]))
        if not design.implicit:
            self.centroids_ = centres.T
        self.intercept_ = constants
        return self

    def _certify(self, design: Design, weights: Array, totals: Array, norms: Array) -> None:
        """Note the sum of squared distances to the means, which is exact."""
        squares, centres = float(weights @ design.squared_rows()), float(totals @ norms)
        spread = max(squares - centres, 0.0)
        # The means are exact, but far from the origin the two sums have their first digits in common.
        gap = (
            len(weights) * np.finfo(float).eps * (abs(squares) + abs(centres))
        )  # rounding of a centred kernel has either sign
        self.certificate_ = Certificate(
            primal=spread,
            dual=spread,
            gap=gap,
            relative_gap=gap / max(spread, FLOOR * abs(squares), np.finfo(float).tiny),
            converged=bool(np.isfinite(spread)),
            status=Ending.CONVERGED if np.isfinite(spread) else Ending.STALLED,
            solver="closed_form",
            reason="the mean of a class minimises the squared distances to it",
            iterations=1,
        )
        self.history_ = {"objective": np.array([spread])}
        self.n_iter_, self.solver_, self.stopped_ = 1, "closed_form", Ending.CONVERGED

    def _scores(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return self._products(X) + self.intercept_

    def decision_function(self, X: ArrayLike) -> Array:
        """|x - m_0|^2 - |x - m_1|^2 for two classes, else |x|^2 - |x - m_k|^2 for each, and the class weights' part."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class with the nearest mean."""
        return winners(self.decision_function(X), self.classes_)


def _variance(products: Array, member: Array) -> float:
    """The variance within the classes in the span of the differences of the means.

    ``products`` holds <phi(x_i), m_k>, all that a kernel gives; ``member`` the weight of each row in its class.
    """
    means = (member / member.sum(axis=0)).T @ products
    own = np.where(member.sum(axis=1, keepdims=True) > 0, products - means[member.argmax(axis=1)], 0.0)
    own -= own.mean(axis=1, keepdims=True)
    centring = np.eye(len(means)) - 1 / len(means)
    values, vectors = np.linalg.eigh(centring @ (means + means.T) @ centring / 2)
    kept = values > NEGLIGIBLE * max(float(np.abs(means).max()), np.finfo(float).tiny)
    if not kept.any():
        return 0.0
    along = own @ (vectors[:, kept] / np.sqrt(values[kept]))
    return float(np.sum(member.sum(axis=1) @ along**2) / (member.sum() * kept.sum()))
