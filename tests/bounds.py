"""Every compiled loop once, with its indices checked: ``python -m tests.bounds``, or ``make bounds``.

An index outside an array is an IndexError then, and not other memory. Two children compile everything afresh, away from
the code that users run: what comes from a cache does not tell which loops it called.
"""

import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module

import numpy as np
import polars as pl
from numba.core.dispatcher import Dispatcher
from scipy import sparse

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.explain.shapley import node_weights, shapley_values
from empirisk.linalg import design as designs

#: Rooms whose loops are not Numba's, and what only stands in for its internals.
OTHERS = ("empirisk.nets", "empirisk.scale", "empirisk.__main__")
OTHERS += ("empirisk.linalg.numba_public", "empirisk.trees.binned.no_atomics")

Fits = Iterator[tuple[str, Callable[[], object]]]

random = np.random.default_rng(0)
X = random.normal(size=(30, 4)).round(2)
THIN = sparse.csr_array(np.where(X > 0.5, X, 0.0))
Y = X[:, 0] - X[:, 1] ** 2 + 0.3 * random.normal(size=30)
TWO = (np.median(Y) < Y).astype(int)
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
FRAME = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": [("red", "blue", "green", "grey")[i % 4] for i in range(30)]})
GAUSSIAN = er.kernels.Gaussian(1.0)
TEXTS = ["the cat sat", "a dog ran", "dogs and cats", "no cat"] * 3


def fit(machine, table=X, y=Y, **options) -> Callable[[], object]:
    def run() -> object:
        fitted = machine.fit(table, y, **options)
        return fitted.predict(table) if hasattr(fitted, "predict") else fitted.transform(table)

    return run


def explained() -> object:
    """Shapley values of trees that split numbers, categories and missing values."""
    codes = np.column_stack([X, np.arange(30) % 4])
    codes[::7, 0] = np.nan
    nodes = er.ForestClassifier(3, categorical_features=[4], random_state=0).fit(codes, THREE).nodes_
    return shapley_values(nodes, node_weights(nodes, codes), codes)


def small_memory() -> None:
    """A kernel machine whose Gram matrix is not kept: its rows are made, dropped and narrowed."""
    many = np.random.default_rng(2).normal(size=(900, 2))
    with er.config(memory="4MB"):
        er.SVM(C=100.0, features=er.kernels.Gaussian(1.0)).fit(many, (many[:, 0] + many[:, 1] ** 3 > 0).astype(int))


def in_blocks() -> None:
    """Boosting from a file, level by level: of so many rows the bins are not kept."""
    with tempfile.TemporaryDirectory() as folder, er.config(memory="4MB"):
        rows = pl.DataFrame(np.tile(np.column_stack([X[:, :3], TWO]), (4_700, 1)), schema=["a", "b", "c", "y"])
        rows.write_parquet(f"{folder}/rows.parquet")
        er.BoostingClassifier(n_estimators=2).fit(er.scan(f"{folder}/rows.parquet", target="y"))


def large_data() -> None:
    """A fit as on large data."""
    before, designs.LARGE = designs.LARGE, 1
    er.LogisticRegression().fit(X, TWO)
    designs.LARGE = before


def equation_fits() -> Fits:
    """Losses, penalties and solvers."""
    for loss in ("hinge", "squared_hinge", "logistic", "exponential", "perceptron", er.losses.SoftHinge()):
        for penalty in ("l2", "l1"):
            yield f"{loss} {penalty}", fit(er.Classifier(loss, penalty=penalty, max_iter=50), y=TWO)
            yield f"{loss} {penalty} sparse", fit(er.Classifier(loss, penalty=penalty, max_iter=50), THIN, TWO)
        yield f"{loss} kernel", fit(er.Classifier(loss, features=GAUSSIAN, max_iter=50), y=TWO)
    for loss in ("squared", "absolute", "epsilon_insensitive", "power", "squared_absolute"):
        for penalty in ("l2", "l1", "elastic_net"):
            yield f"{loss} {penalty}", fit(er.Regressor(loss, penalty=penalty, max_iter=50))
        yield f"{loss} sparse", fit(er.Regressor(loss, penalty="l1", max_iter=50), THIN)
        yield f"{loss} kernel", fit(er.Regressor(loss, features=GAUSSIAN, max_iter=50))
    for solver in er.solvers.NAMES:
        for name, loss, y in (("two", "hinge", TWO), ("smooth", "logistic", TWO), ("joint", "softmax", THREE)):
            yield f"{solver} {name}", fit(er.Classifier(loss, solver=solver, max_iter=20), y=y)
            yield f"{solver} {name} sparse", fit(er.Classifier(loss, solver=solver, max_iter=20), THIN, y)
            yield f"{solver} {name} l1", fit(er.Classifier(loss, solver=solver, penalty="l1", max_iter=20), y=y)
            yield (
                f"{solver} {name} kernel",
                fit(er.Classifier(loss, solver=solver, features=GAUSSIAN, max_iter=20), y=y),
            )
        yield f"{solver} squared", fit(er.Regressor("squared", solver=solver, penalty="l1", max_iter=20))
        yield (
            f"{solver} kernel",
            fit(er.Regressor("epsilon_insensitive", solver=solver, features=GAUSSIAN, max_iter=20)),
        )
    for adapt in ("adagrad", "rmsprop", "adam"):
        solver = er.solvers.SGD(adapt=adapt, average=True)
        yield f"sgd {adapt}", fit(er.Classifier("hinge", solver=solver, max_iter=5), y=TWO)
    yield "crammer singer", fit(er.Classifier("crammer_singer"), y=THREE)
    yield "crammer singer kernel", fit(er.Classifier("crammer_singer", features=GAUSSIAN), y=THREE)
    steps = er.SVM(penalty="none", solver=er.solvers.PassiveAggressive(average=True), max_iter=5)
    yield "passive-aggressive", fit(steps, y=TWO)
    yield "passive-aggressive sparse", fit(steps, THIN, TWO)
    yield "perceptron", fit(er.Perceptron(average=True), y=TWO)
    yield "kernel perceptron", fit(er.Perceptron(features=GAUSSIAN), y=TWO)
    yield "loo", fit(er.Ridge(C="loo"))
    yield "lasso by folds", fit(er.Lasso(C="cv", cv=3))
    yield "hard", fit(er.SVM(C=np.inf), X + 5 * TWO[:, None], TWO)
    yield "one class", fit(er.OneClassSVM(features=GAUSSIAN))
    yield "doubly stochastic", fit(er.Classifier("logistic", features=GAUSSIAN, solver="doubly_stochastic"), y=TWO)


def feature_fits() -> Fits:
    """Kernels and maps, kinds of data, and neighbours."""
    for kernel in (
        er.kernels.Laplacian(1.0),
        er.kernels.Laplacian(1.0, norm=2),
        er.kernels.Anova(),
        er.kernels.Polynomial(3),
    ):
        yield f"{kernel}", fit(er.Ridge(features=kernel))
    yield "float32", fit(er.SVM(features=GAUSSIAN), X.astype(np.float32), TWO)
    yield "far away", fit(er.SVM(features=GAUSSIAN), X * 1e4 + 1e6, TWO)
    yield "sparse kernel", fit(er.SVM(features=GAUSSIAN), THIN, TWO)
    wide = np.random.default_rng(1).normal(size=(60, 600))  # more columns than are looked at together
    yield "wide", fit(er.Lasso(C=3.0), np.asfortranarray(wide), wide[:, 0] + 0.3 * wide[:, 1] + 0.1 * wide[::-1, 2])
    wide_logistic = er.Classifier("logistic", penalty="l1", C=3.0)
    yield "wide classes", fit(wide_logistic, np.asfortranarray(wide), (wide[:, 0] > 0).astype(int))
    # So many columns and classes that steps are found by conjugate gradients.
    yield "wide and joint", fit(er.Classifier("softmax", solver="newton", max_iter=5), wide, np.arange(60) % 3)
    thin = sparse.csr_array(np.where(np.abs(wide) > 1.2, wide, 0.0))
    yield "wide and sparse", fit(er.Classifier("logistic", penalty="l1", C=0.3), thin, (wide[:, 0] > 0).astype(int))
    yield "best subset", fit(er.selection.BestSubset(5), wide[:, :12], wide[:, 20])
    yield "rows of a Gram matrix", small_memory
    yield "large data", large_data
    yield "several kernels", fit(er.Ridge(features=er.maps.SeveralKernels(["linear", "gaussian"])))
    for kernel in (er.kernels.Spectrum(2), er.kernels.Subsequence(2)):
        yield f"{kernel}", lambda kernel=kernel: er.SVM(features=kernel).fit(TEXTS, [0, 1, 0, 1] * 3)
    square = ([(0, 1), (1, 2), (2, 3), (3, 0)], list("abab"))
    path = ([(0, 1), (1, 2)], list("aba"))
    for kernel in (er.kernels.RandomWalk(0.01), er.kernels.RandomWalk(0.1, length=3), er.kernels.WeisfeilerLehman(2)):
        yield f"{kernel}", lambda kernel=kernel: kernel([square, path])
    for weights in ("uniform", "distance"):
        yield f"neighbours {weights}", fit(er.KNNClassifier(n_neighbors="loo", weights=weights), y=TWO)
    yield "kernel neighbours", fit(er.KNNRegressor(features=GAUSSIAN))
    yield "sparse neighbours", fit(er.KNNRegressor(), THIN)


def on_device(work: Callable[[], object]) -> Callable[[], object]:
    """The work with its products made by the code of devices."""

    def run() -> object:
        with er.config(device="jax:cpu"):
            return work()

    return run


def unsupervised_fits() -> Fits:
    """Clusters, mixtures, dictionaries and metrics."""
    yield "k-means", fit(er.KMeans(3, random_state=0))
    yield "k-means on a device", on_device(fit(er.KMeans(3, random_state=0)))
    yield "mixture", fit(er.GaussianMixture(2, random_state=0))
    yield "linkage", lambda: er.Hierarchical().fit(X).cut(2)
    yield "long linkage", lambda: er.Hierarchical().fit(np.arange(1_600.0)[:, None] ** 2)  # the matrix is made smaller
    for features in (None, GAUSSIAN):
        yield f"clusters {features}", lambda features=features: er.KMeans(3, features=features, random_state=0).fit(X)
        yield f"linkage {features}", lambda features=features: er.Hierarchical(n_clusters=3, features=features).fit(X)
    for linkage in ("ward", "single", "complete"):
        yield f"{linkage} linkage", lambda linkage=linkage: er.Hierarchical(linkage, n_clusters=3).fit(X)
    yield "batches", lambda: er.KMeans(3, batch_size=10, random_state=0).fit(X)
    for kind in ("full", "diagonal"):
        yield f"mixture {kind}", lambda kind=kind: er.GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    for method, coding in (("alternating", "l1"), ("ksvd", "omp")):
        yield f"dictionary {coding}", fit(er.Dictionary(6, method, coding, random_state=0))
    yield "metric of pairs", fit(er.ContrastiveMetric(), y=THREE)
    yield "metric of triplets", fit(er.LargeMarginMetric(), y=THREE)


def machine_fits() -> Fits:
    """The smallest set of machines and kernels that reaches every loop of theirs."""
    yield from equation_fits()
    yield from feature_fits()
    yield from unsupervised_fits()


def tree_fits() -> Fits:
    """The smallest set of trees, forests and boosted trees that reaches every loop of theirs."""
    for criterion in ("gini", "entropy"):
        yield f"tree {criterion}", fit(er.TreeClassifier(criterion=criterion, ccp_alpha="cv", cv=3), FRAME, THREE)
        yield f"forest {criterion}", fit(er.ForestClassifier(3, criterion=criterion, random_state=0), FRAME, THREE)
    for criterion in ("squared", "absolute"):
        yield f"tree {criterion}", fit(er.TreeRegressor(criterion=criterion, max_features=2), FRAME)
    yield "tree of targets", fit(er.TreeRegressor(max_leaf_nodes=5), X, X[:, :2])
    holes = np.where(X > 1.5, np.nan, X)
    for machine, y in (
        (er.ForestRegressor(3, max_leaf_nodes=4), Y),
        (er.ForestClassifier(3), TWO),
        (er.TreeClassifier(), TWO),
    ):
        yield f"{machine} holes", fit(machine, holes, y)
    yield "forest of targets", fit(er.ForestRegressor(3, random_state=0), FRAME, X[:, :2])
    yield "forest of targets, holes", fit(er.ForestRegressor(3, random_state=0), holes, X[:, :2])
    yield "forest of labels", fit(er.ForestClassifier(3, random_state=0), FRAME, np.column_stack([TWO, THREE]))
    yield "importances", lambda: er.ForestRegressor(3, random_state=0).fit(X, Y).feature_importances_
    for loss in ("squared", "absolute", "epsilon_insensitive", "power", "squared_absolute"):
        yield f"boosting {loss}", fit(er.BoostingRegressor(loss, n_estimators=3, subsample=0.7, max_features=2), FRAME)
    for loss in ("logistic", "exponential"):
        yield f"boosting {loss}", fit(er.BoostingClassifier(loss, n_estimators=3, early_stopping=True), FRAME, TWO)
    for loss in ("squared", "poisson"):
        yield (
            f"additive {loss}",
            fit(er.AdditiveRegressor(loss, n_bags=2, max_iter=2, min_samples_leaf=1), X, np.arange(30.0)),
        )
    yield "additive of categories", fit(er.AdditiveClassifier(n_bags=2, max_iter=2, min_samples_leaf=1), FRAME, TWO)
    yield "boosting on few bins", fit(er.BoostingRegressor(n_estimators=2, max_bins=8), X)
    large = np.tile(X, (1200, 1))  # large enough for threads that meet
    yield "boosting in a team", fit(er.BoostingClassifier(n_estimators=2, max_leaf_nodes=4), large, np.tile(TWO, 1200))
    yield "boosting in blocks", in_blocks
    yield "boosting of three", fit(er.BoostingClassifier(n_estimators=3), holes, THREE)
    yield "boosting of lines", fit(er.BoostingRegressor(n_estimators=3, leaves="linear", min_samples_leaf=2), holes)
    yield "boosting of some lines", fit(er.BoostingRegressor(n_estimators=3, leaves="auto", early_stopping=True), X)
    yield "boosting with rules", fit(er.BoostingRegressor(n_estimators=3, monotonic_cst=[1, 0, 0, 0]))
    yield (
        "boosting deep",
        fit(er.BoostingRegressor(n_estimators=2, max_leaf_nodes=None, max_depth=9, min_samples_leaf=1), X),
    )
    yield "adaboost", fit(er.AdaBoostClassifier(n_estimators=3), FRAME, THREE)
    yield "reasons", explained
    yield "weights", fit(er.ForestClassifier(3), X, TWO, sample_weight=np.arange(30.0))
    yield "weighted boosting", fit(er.BoostingClassifier(n_estimators=3), X, TWO, sample_weight=np.arange(30) % 3)


def loops() -> dict[str, Dispatcher]:
    """Every compiled function of the package by its full name, but those that are written out where they are called."""
    found = {}
    for module in pkgutil.walk_packages(er.__path__, "empirisk."):
        if not module.name.startswith(OTHERS):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, Dispatcher) and value.targetoptions.get("inline") != "always":
                    found[f"{value.py_func.__module__}.{value.py_func.__qualname__}"] = value
    return {name: loop for name, loop in found.items() if name.startswith("empirisk.")}


PARTS = (machine_fits, tree_fits)


def child(part: int) -> None:
    """Run the fits of one part; print the bounds that broke and the loops that were reached."""
    warnings.simplefilter("ignore")
    broken = []
    for name, run in PARTS[part]():
        try:
            run()
        except EmpiriskError:
            continue  # a solver that cannot do this loss says so
        except IndexError as error:
            broken.append(f"{name}: {error}")
    print(json.dumps([broken, [name for name, loop in loops().items() if loop.signatures]]))


def main() -> int:
    if len(sys.argv) > 1:
        child(int(sys.argv[1]))
        return 0
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        checked = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-m", "tests.bounds"]
        children = [
            subprocess.Popen([*command, str(part)], env=checked, stdout=subprocess.PIPE, text=True)
            for part in range(len(PARTS))
        ]
        said = [json.loads(one.communicate()[0].splitlines()[-1]) for one in children]
    broken = [line for lines, _ in said for line in lines]
    left = sorted(set(loops()) - {name for _, reached in said for name in reached})
    seconds = time.perf_counter() - begin
    print(f"{len(loops())} loops in {seconds:.0f} s; bounds broken: {broken or 'none'}; not reached: {left or 'none'}")
    return 1 if broken or left else 0


if __name__ == "__main__":
    sys.exit(main())
