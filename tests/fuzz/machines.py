"""A machine of every public class, with some of its parameters drawn; what has no maker here comes as it is."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor

import empirisk as er
from empirisk.errors import EmpiriskError
from tests import kernel_catalog
from tests.fuzz import parts
from tests.fuzz.parts import Random

#: How often parts are put together without a look at whether they go together.
WILD = 0.06
#: Small steps, tens of thousands of them where data are nasty: with a limit of time, always.
SMALL_STEPS = (
    er.solvers.GradientDescent,
    er.solvers.Proximal,
    er.solvers.SGD,
    er.solvers.DualAscent,
    er.solvers.DoublyStochastic,
    er.solvers.EarlyStopping,
    er.solvers.Perceptron,
    er.solvers.PassiveAggressive,
)
#: How often the slot of the equation holds a network, each of which takes seconds to compile, and a kernel of items.
NETWORKS, ITEMS = 0.005, 0.02
#: Stands for a start that is given as an array: the first rows, which are drawn later.
GIVEN = "given"
#: Fits around other machines take many times as long as one of them.
FEW = 3


class Drawn(NamedTuple):
    """A machine, and what it learns from: "rows" of a table, a "gram" matrix, "images", or "items" of its kernel."""

    machine: Any
    takes: str = "rows"
    items: Any = None


def chance(random: Random, share: float) -> bool:
    return bool(random.random() < share)


def of(random: Random, *options: Any) -> Any:
    """One of some plain values."""
    return options[int(random.integers(len(options)))]


def C(random: Random, loo: bool) -> Any:
    if chance(random, 0.08):
        if chance(random, 0.25):
            return er.Constraint(float(10.0 ** random.integers(-3, 4)))
        return "loo" if loo and chance(random, 0.5) else "cv"
    return float(10.0 ** random.choice([-12, -4, -1, 0, 1, 2, 4, 8], p=[0.03, 0.12, 0.15, 0.25, 0.15, 0.15, 0.1, 0.05]))


def equation(cls: type, random: Random) -> Drawn:
    """The equation, or a machine made of it: the parameters that are open are drawn."""
    machine = cls(fit_intercept=chance(random, 0.7), tol=of(random, 1e-6, 1e-6, 1e-3, 1e-10), random_state=0)
    opened, wild = machine.get_params(deep=False), chance(random, WILD)
    if "loss" in opened:
        classes = issubclass(cls, er.Classifier) and chance(random, 0.9)
        machine.set_params(loss=parts.margin_loss(random) if classes else parts.residual_loss(random))
    if "penalty" in opened:
        machine.set_params(penalty=parts.penalty(random))
    loss, squares = er.losses.find(machine.loss), er.penalties.find(machine.penalty).name() == "l2"
    if "C" in opened:
        machine.set_params(C=C(random, wild or (squares and loss.quadratic)))
    if "multiclass" in opened:
        balanced = "balanced" if chance(random, 0.15) else None
        machine.set_params(multiclass=_multiclass(random, loss), class_weight=balanced)
    if "C" in opened and chance(random, 0.1 if cls is er.SVM else 0.02):
        machine.set_params(C=np.inf)  # the hard margin; no penalty where a loss has none
    takes, features, items = slot(random, wild or squares)
    machine.set_params(features=features)
    quick = takes == "rows" and not hasattr(features, "layers")  # a network would learn for it
    if quick and chance(random, 0.3):
        machine.set_params(solver=_solver(random, machine))
    return Drawn(machine, takes, items)


def _multiclass(random: Random, loss: Any) -> str:
    if loss.joint and not chance(random, WILD):
        return of(random, "auto", "joint")
    schemes = ("auto", "auto", "one_vs_rest", "one_vs_one", "error_correcting")
    return of(random, *schemes, "joint" if loss.joint_form or chance(random, WILD) else "auto")


def slot(random: Random, kernels: bool) -> tuple[str, Any, Any]:
    """What a machine takes, what fills its slot, and items: seldom a network, or a kernel of what is no table."""
    rare = random.random()
    if rare < NETWORKS and "jax" not in parts.MISSING:
        if chance(random, 0.1):
            return "images", parts.image_network(random), None
        return "rows", er.nets.Tangent(parts.network(random)) if chance(random, 0.2) else parts.network(random), None
    if kernels and rare > 1 - ITEMS:
        if chance(random, 0.3):
            return "gram", of(random, "precomputed", er.kernels.Precomputed()), None
        return "items", *of(random, *kernel_catalog.OBJECT_KERNELS)
    return "rows", parts.features(random, kernels, learns=True), None


def _solver(random: Random, machine: Any) -> Any:
    """One that takes an easy problem of the machine; now and then any."""
    easy = np.arange(12.0).reshape(6, 2) % 5
    y = [0, 1, 2, 0, 1, 2] if is_classifier(machine) else easy[:, 0]
    for _ in range(FEW):
        found = parts.solver(random)
        with contextlib.suppress(EmpiriskError, ValueError):  # what does not go together is refused by `fit` too
            if chance(random, WILD) or not found.refusal(machine.problems(easy, y)[0]):
                return found
    return "auto"


def _one_class(cls: type, random: Random) -> Drawn:
    return Drawn(cls(nu=of(random, 1e-3, 0.1, 0.5, 1.0), features=parts.features(random)))


def _perceptron(cls: type, random: Random) -> Drawn:
    return Drawn(cls(features=parts.features(random), average=chance(random, 0.5), max_iter=50))


def _centroid(cls: type, random: Random) -> Drawn:
    return Drawn(cls(parts.features(random), class_weight=of(random, None, None, "balanced")))


def _neighbours(cls: type, random: Random) -> Drawn:
    k = "loo" if chance(random, 0.2) else of(random, 1, 2, 3, 5)
    features = parts.features(random)
    if chance(random, 0.05):
        features = of(random, er.LargeMarginMetric(max_iter=5), er.ContrastiveMetric(max_iter=5))
    return Drawn(cls(k, features, weights=of(random, "uniform", "distance")))


def _grown(random: Random) -> dict[str, Any]:
    """What all trees have."""
    return {
        "max_depth": of(random, None, None, 1, 2),
        "max_leaf_nodes": of(random, None, None, 3),
        "min_samples_leaf": of(random, 1, 1, 2),
        "random_state": 0,
    }


def _tree(cls: type, random: Random) -> Drawn:
    criteria = ("gini", "entropy") if issubclass(cls, er.TreeClassifier) else ("squared", "absolute")
    alpha = of(random, 0.0, 0.0, 0.01, "cv")
    return Drawn(cls(of(random, *criteria), **_grown(random), ccp_alpha=alpha, max_features=of(random, None, None, 1)))


def _forest(cls: type, random: Random) -> Drawn:
    splitter = of(random, "best", "best", "random")
    return Drawn(cls(FEW, splitter=splitter, **_grown(random), bootstrap=chance(random, 0.7)))


def _bagging(cls: type, random: Random) -> Drawn:
    classes = issubclass(cls, er.BaggingClassifier)
    others = (er.LogisticRegression(), er.KNNClassifier()) if classes else (er.Ridge(), er.KNNRegressor())
    machine = cls(of(random, None, None, *others), FEW, bootstrap=chance(random, 0.7), random_state=0)
    machine.set_params(max_features=of(random, None, None, 1))
    return Drawn(machine.set_params(voting=of(random, "hard", "soft")) if classes else machine)


def _boosting(cls: type, random: Random) -> Drawn:
    classes = issubclass(cls, er.BoostingClassifier)
    loss = "logistic" if classes else "squared"
    if chance(random, 0.4):
        loss = parts.margin_loss(random) if classes else parts.residual_loss(random)
    options = _grown(random) | {"min_samples_leaf": of(random, None, 1, 2)}
    early = {"early_stopping": True, "n_iter_no_change": 1} if chance(random, 0.15) else {}
    early |= {"refit": True} if early and chance(random, 0.5) else {}
    options |= {"learning_rate": of(random, 0.1, 1.0), "subsample": of(random, 1.0, 1.0, 0.5)} | early
    options |= {
        "interaction_cst": of(random, None, None, "no_interactions"),
        "target_encoding": of(random, "auto", True),
    }
    return Drawn(cls(loss, n_estimators=FEW, **options))


def _additive(cls: type, random: Random) -> Drawn:
    loss = (
        "logistic" if issubclass(cls, er.AdditiveClassifier) else of(random, "squared", "squared", "huber", "poisson")
    )
    options = {
        "interactions": of(random, 0, 2),
        "min_samples_leaf": of(random, None, 1),
        "learning_rate": of(random, 0.2, 1.0),
    }
    return Drawn(cls(loss, n_bags=2, max_iter=FEW, random_state=0, **options))


def _adaboost(cls: type, random: Random) -> Drawn:
    member = of(random, None, None, er.LogisticRegression(), er.TreeClassifier(max_depth=2))
    return Drawn(cls(member, FEW, learning_rate=of(random, 1.0, 0.5), random_state=0))


def _vote(cls: type, random: Random) -> Drawn:
    weights = of(random, None, [1.0, 2.0])
    if issubclass(cls, er.VoteClassifier):
        members = [er.TreeClassifier(max_depth=2), er.LogisticRegression()]
        voting = of(random, {"voting": "hard"}, {"voting": "soft"}, {"voting": "soft", "temperature": 0.5})
        return Drawn(cls(members, weights=weights, **voting))
    return Drawn(cls([er.TreeRegressor(max_depth=2), er.Ridge()], weights=weights))


def _quantiles(cls: type, random: Random) -> Drawn:
    machine = of(random, None, er.Regressor(penalty="l1", C=0.3), er.BoostingRegressor(n_estimators=5))
    return Drawn(cls(machine, levels=of(random, [0.5], [0.1, 0.9], (0.2, 0.5, 0.7))))


def _kmeans(cls: type, random: Random) -> Drawn:
    init = of(random, "k-means++", "random", "box", "splitting", "assignment", GIVEN)
    batch = 5 if chance(random, 0.2) else None
    features = None if chance(random, 0.6) else parts.features(random)
    options = {"init": init, "batch_size": batch, "n_init": of(random, 1, 3), "random_state": 0}
    return Drawn(cls(of(random, 1, 2, 3, 5), features, **options))


def _hierarchical(cls: type, random: Random) -> Drawn:
    cut = of(random, {"n_clusters": 2}, {"n_clusters": 1}, {}, {"distance_threshold": 1.0})
    linkage = of(random, "single", "complete", "average", "ward")
    cells = 4 if chance(random, 0.15) else None
    options = {"squared": chance(random, 0.3), "cells": cells, "random_state": 0} | cut
    return Drawn(cls(linkage, parts.features(random), **options))


def _floor(random: Random) -> float:
    return of(random, 1e-6, 1e-6, 1e-3, 1e-12, 1e-100, 5e-324, 0.0)


def _mixture(cls: type, random: Random) -> Drawn:
    kind = of(random, "full", "tied", "diagonal", "spherical")
    init = of(random, "k-means", "random", GIVEN)
    options = {"init": init, "reg_covar": _floor(random), "n_init": of(random, 1, 2)}
    return Drawn(cls(of(random, 1, 2, 3), kind, random_state=0, **options))


def _density(cls: type, random: Random) -> Drawn:
    kind = of(random, "full", "diagonal", "spherical")
    return Drawn(cls(kind, quantile=of(random, 0.05, 0.0, 0.5), reg_covar=_floor(random)))


def _pca(cls: type, random: Random) -> Drawn:
    if chance(random, 0.02) and "jax" not in parts.MISSING:
        return Drawn(cls(1, parts.network(random)))
    options = {"center": chance(random, 0.8), "whiten": chance(random, 0.3)}
    return Drawn(cls(of(random, 1, 2, None, 0.9), parts.features(random), **options))


def _dictionary(cls: type, random: Random) -> Drawn:
    coding = of(random, "l1", "omp", "top_k", "indicator")
    method = "ksvd" if coding in ("omp", "top_k") and chance(random, 0.5) else "alternating"
    options = {"threshold": of(random, "hard", "soft"), "max_iter": 20, "random_state": 0}
    return Drawn(cls(of(random, 1, 2, 4), method, coding, init=of(random, "rows", GIVEN), **options))


def _metric(cls: type, random: Random) -> Drawn:
    machine = cls(margin=of(random, "auto", "auto", None, 1.0), n_components=of(random, None, 1, 2), max_iter=20)
    if issubclass(cls, er.ContrastiveMetric) and chance(random, 0.5):
        form = {"loss": of(random, "two_margins", "triplets"), "similar_margin": of(random, 0.0, 0.5)}
        machine.set_params(**form, strength=of(random, 0.0, 0.1), convex=chance(random, 0.7), max_iter=100)
    return Drawn(machine)


def _line(classes: bool) -> Any:
    """A quick machine inside of others."""
    return er.LogisticRegression() if classes else er.Ridge()


def _greedy(cls: type, random: Random) -> Drawn:
    direction = of(random, "forward", "backward")
    return Drawn(cls(_line(chance(random, 0.5)), direction=direction, cv=2, most=2))


def _l1_selection(cls: type, random: Random) -> Drawn:
    machine = of(random, er.Lasso(), er.LogisticRegression(penalty="l1"))
    return Drawn(cls(machine, n_samples=FEW, random_state=0))


def _search(cls: type, random: Random) -> Drawn:
    return Drawn(cls(_line(chance(random, 0.5)), {"C": [0.1, 1.0]}, cv=2))


def _balanced(cls: type, random: Random) -> Drawn:
    how = of(random, "weights", "subsample", "upsample")
    return Drawn(cls(_line(True), how=how, jitter=of(random, 0.0, 0.1), random_state=0))


def _threshold(cls: type, random: Random) -> Drawn:
    return Drawn(cls(_line(True), cv=2))


def _encoder(cls: type, random: Random) -> Drawn:
    """Its schema is that of the rows, which are drawn later."""
    options = {"sparse": of(random, "auto", False, True), "codes": chance(random, 0.3)}
    return Drawn(cls(None, scale=chance(random, 0.7), **options))


def _map(cls: type, random: Random) -> Drawn:
    """A map of this class, as machines have it in their slot."""
    found = parts.explicit_map(random)
    while not isinstance(found, cls):
        found = parts.explicit_map(random)
    return Drawn(found)


def _network(cls: type, random: Random) -> Drawn:
    return Drawn(parts.network(random))


def _polynomial_kernel(cls: type, random: Random) -> Drawn:
    return Drawn(cls(of(random, 1, 2, 3), of(random, 0.0, 1.0)))


def wave(X: Any, theta: Any) -> Any:
    """A function of a user, for `Parametric`."""
    return theta[0] * np.tanh(theta[1] * X[:, 0]) + theta[2]


def _parametric(cls: type, random: Random) -> Drawn:
    options = {"C": of(random, 0.1, 1.0, 100.0), "n_init": of(random, 1, 2), "random_state": 0, "max_iter": 50}
    loss, penalty = of(random, "squared", "logistic"), of(random, "none", "l2")
    return Drawn(cls(wave, [1.0, 1.0, 0.0], loss, penalty, jacobian="differences", **options))


def _plane(w: Any, X: Any) -> Any:
    return X @ w


def plane(columns: int, random: Random) -> Any:
    """A hypothesis of a user, for `HypothesisSearch`."""
    return functools.partial(_plane, random.normal(size=columns))


def _hypotheses(cls: type, random: Random) -> Drawn:
    return Drawn(cls(plane, of(random, er.losses.ZeroOne(), "hinge"), n_draws=20, random_state=0))


def _subset(cls: type, random: Random) -> Drawn:
    return Drawn(cls(of(random, None, 1, 2), fit_intercept=chance(random, 0.7)))


def _information(cls: type, random: Random) -> Drawn:
    return Drawn(cls(of(random, None, 1), n_neighbors=of(random, 1, 3), random_state=0))


def _combined(cls: type, random: Random) -> Drawn:
    return Drawn(cls(of(random, 1, 4), n_columns=of(random, 2, 8), n_rows=of(random, 10, 4000), random_state=0))


def _plain(cls: type, random: Random) -> Drawn:
    """What has no maker of its own, with the parameters that it needs."""
    from tests.files.cases import built

    machine = built(cls)
    return Drawn(machine.set_params(random_state=0) if "random_state" in machine.get_params() else machine)


@functools.cache
def machines() -> dict[str, type]:
    """The public classes that learn from rows and answer about rows, by name."""
    answers = ("predict", "transform", "score_samples", "fit_predict")
    return {
        name: cls
        for name, cls in parts.public_classes().items()
        if hasattr(cls, "fit") and any(hasattr(cls, answer) for answer in answers)
    }


Maker = Callable[[type, Random], Drawn]
#: How a class is drawn: the first entry of which it is, or is derived.
FAMILIES: tuple[tuple[str, Maker], ...] = (
    ("Perceptron", _perceptron),
    ("Classifier", equation),
    ("Regressor", equation),
    ("OneClassSVM", _one_class),
    ("NearestCentroid", _centroid),
    ("KNNClassifier", _neighbours),
    ("KNNRegressor", _neighbours),
    ("TreeClassifier", _tree),
    ("TreeRegressor", _tree),
    ("ForestClassifier", _forest),
    ("ForestRegressor", _forest),
    ("BaggingClassifier", _bagging),
    ("BaggingRegressor", _bagging),
    ("AdditiveClassifier", _additive),
    ("AdditiveRegressor", _additive),
    ("BoostingClassifier", _boosting),
    ("BoostingRegressor", _boosting),
    ("AdaBoostClassifier", _adaboost),
    ("VoteClassifier", _vote),
    ("VoteRegressor", _vote),
    ("QuantileRegressor", _quantiles),
    ("KMeans", _kmeans),
    ("Hierarchical", _hierarchical),
    ("GaussianMixture", _mixture),
    ("GaussianDensity", _density),
    ("PCA", _pca),
    ("Dictionary", _dictionary),
    ("ContrastiveMetric", _metric),
    ("LargeMarginMetric", _metric),
    ("selection.GreedySelection", _greedy),
    ("selection.L1Selection", _l1_selection),
    ("selection.Search", _search),
    ("selection.BestSubset", _subset),
    ("selection.HypothesisSearch", _hypotheses),
    ("selection.InformationSelection", _information),
    ("selection.CombinedColumns", _combined),
    ("Parametric", _parametric),
    ("selection.Balanced", _balanced),
    ("selection.Threshold", _threshold),
    ("tables.TableEncoder", _encoder),
    ("maps.Polynomial", _map),
    ("maps.PolynomialKernel", _polynomial_kernel),
    ("maps.Periodic", _map),
    ("maps.Nystrom", _map),
    ("maps.RandomFourier", _map),
    ("Network", _network),
)


def draw(name: str, random: Random) -> Drawn:
    """A machine of a public class."""
    cls = machines()[name]
    return next((make for family, make in FAMILIES if _is_a(cls, family)), _plain)(cls, random)


def _is_a(cls: type, family: str) -> bool:
    known = machines().get(family)
    return known is not None and issubclass(cls, known)


def learns_numbers(machine: Any) -> bool:
    """Whether the target is one of a regression: machines that take none, or any, get classes."""
    return is_regressor(machine) or is_regressor(getattr(machine, "estimator", None) or machine)
