"""The curve over threads: our seconds with 1, 2, 4, 8 and 16 of them, and the rivals' with the most, in one process.

``python -m benchmarks cores`` runs every row, ``EMPIRISK_BENCH_SHARE=0.2`` on that share of the data's rows,
``EMPIRISK_BENCH_ROWS=logistic,hinge`` those alone, ``EMPIRISK_BENCH_PHASES=20`` without rivals but with the twenty
functions in which our fit spends most time on the calling thread: what does not fall with more threads is serial.
``EMPIRISK_BENCH_RIVALS=0`` leaves the rivals out, and ``EMPIRISK_BENCH_ROWS=curve`` is the six fits whose curve
over threads is watched: both together take two minutes on 16 cores. Of linear machines the seconds of one product X w
are told too, and how many of them a fit is worth. A row is a function that gives a `Row`, in the list `ROWS`.
"""

import cProfile
import importlib
import os
import pstats
import resource
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import cluster, linear_model, metrics, svm
from sklearn import mixture as mixtures
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

import empirisk as er
from benchmarks.kernels import curve, curved_labels, minus_dual
from benchmarks.problems import Data, dense_labels
from benchmarks.timing import OURS, timed
from empirisk.linalg.design import DenseDesign

SHARE = float(os.environ.get("EMPIRISK_BENCH_SHARE", "1"))
ONLY = os.environ.get("EMPIRISK_BENCH_ROWS", "")
PHASES = int(os.environ.get("EMPIRISK_BENCH_PHASES", "0"))
RIVALS = os.environ.get("EMPIRISK_BENCH_RIVALS", "1") == "1" and not PHASES
#: What ``EMPIRISK_BENCH_ROWS=curve`` stands for.
CURVE = "logistic_middle,hinge_smaller,machine_fit,kernel_ridge,kmeans,mixture"
THREADS = (1, 2, 4, 8, 16)  # of which a machine gets those that it has cores for
RUNS = 3  # the fewest of which a median says something
LONG = 3.0  # seconds, after which nothing is repeated

Run = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """What is timed.

    Attributes
    ----------
    title : str
        What it is.
    contestants : dict
        For each name a function that takes the number of threads and gives what is timed.
    grade : callable
        The objective or the error of what a contestant returned, the smaller the better.
    X : array, optional
        Of a linear machine, the rows: the fit is compared with one product.
    """

    title: str
    contestants: dict[str, Callable[[int], Run]]
    grade: Callable[[Any], float]
    X: Any = None


def show(row: Row) -> None:
    """One line for each contestant: seconds for each number of threads, the speed-up, and what it reached."""
    counts = [count for count in THREADS if count <= len(os.sched_getaffinity(0))]
    print(row.title)
    with er.config(threads=counts[-1]):
        row.contestants[OURS](counts[-1])()  # all that is compiled
    for name, make in row.contestants.items():
        found = {count: _best(make, count, row) for count in (counts if name == OURS else counts[-1:])}
        seconds = "  ".join(f"{count}: {best:.3g}" for count, (best, _) in found.items())
        last = found[counts[-1]][0]
        if name == OURS:
            ours, gain = last, f"speed-up {found[counts[0]][0] / last:.1f}"
        else:
            gain = f"{last / ours:.2f} x ours"
        reached = sorted({f"{objective:.8g}" for _, objective in found.values()})
        print(f"  {name:<24} {seconds} | {gain} | reached {', '.join(reached)}", flush=True)
        if name == OURS and row.X is not None:
            _products(row.X, {count: best for count, (best, _) in found.items()})


def _products(X: Any, fits: dict[int, float]) -> None:
    """Seconds of one product X w for each number of threads, and how many of them a fit is worth."""
    design, w = DenseDesign(X), np.ones(X.shape[1])
    once = {}
    for count in fits:
        with er.config(threads=count), threadpool_limits(1):
            once[count] = min(timed(lambda: design.dot(w))[0] for _ in range(RUNS))
    seconds = "  ".join(f"{count}: {best:.3g}" for count, best in once.items())
    worth = "  ".join(f"{count}: {fits[count] / best:.0f}" for count, best in once.items())
    print(f"  {'one product X w':<24} {seconds} | a fit is worth {worth}", flush=True)


def _best(make: Callable[[int], Run], count: int, row: Row) -> tuple[float, float]:
    """The fewest seconds of some runs, or of a long one, and what it reached."""
    with er.config(threads=count), threadpool_limits(count):
        run = make(count)
        seconds, result = timed(run)
        reached, taken = row.grade(result), [seconds]
        del result
        while len(taken) < RUNS and sum(taken) < LONG:
            taken.append(timed(run)[0])
    return min(taken), reached


def phases(row: Row) -> None:
    """Own seconds of our functions on the calling thread, for each number of threads, and what the system did."""
    counts = [count for count in THREADS if count <= len(os.sched_getaffinity(0))]
    own: dict[str, list[float]] = {}
    for place, count in enumerate(counts):
        with er.config(threads=count), threadpool_limits(count):
            run = row.contestants[OURS](count)
            before, profile = resource.getrusage(resource.RUSAGE_SELF), cProfile.Profile()
            profile.runcall(run)
            after = resource.getrusage(resource.RUSAGE_SELF)
        for (file, line, name), (*_, seconds, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
            where = "/".join(file.split("/")[-2:])
            own.setdefault(f"{where}:{line} {name}", [0.0] * len(counts))[place] += seconds
        spent = (getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime", "ru_minflt"))
        print("  {} threads: user {:.2f} s, system {:.2f} s, {} page faults".format(count, *spent))
    for name in sorted(own, key=lambda name: -own[name][-1])[:PHASES]:
        print("  " + " ".join(f"{seconds:8.3f}" for seconds in own[name]), name, flush=True)


def _plain(run: Run) -> Callable[[int], Run]:
    """What takes its threads from the settings."""
    return lambda threads: run


def _intel(module: str, name: str, **parameters: Any) -> dict[str, Any]:
    """The machine of scikit-learn-intelex, where it is installed."""
    try:
        return {f"sklearnex {name}": getattr(importlib.import_module(module), name)(**parameters)}
    except ImportError:
        return {}


def neighbors(rows: int = 100_000, queries: int = 10_000) -> Row:
    random = np.random.default_rng(0)
    X, Q = random.normal(size=(int(SHARE * rows), 30)), random.normal(size=(int(SHARE * queries), 30))
    y, truth = (np.where(np.sin(2 * A[:, 0]) + A[:, 1] * A[:, 2] > 0, 1, 0) for A in (X, Q))
    ours = er.KNNClassifier(10).fit(X, y)

    def brute(threads: int) -> Run:
        machine = KNeighborsClassifier(10, algorithm="brute", n_jobs=threads).fit(X, y)
        return lambda: machine.predict(Q)

    contestants = {OURS: _plain(lambda: ours.predict(Q)), "sklearn brute": brute}
    try:
        faiss = importlib.import_module("faiss")
    except ImportError:
        pass
    else:
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X.astype(np.float32))

        def search(threads: int) -> Run:
            faiss.omp_set_num_threads(threads)
            return lambda: (y[index.search(Q.astype(np.float32), 10)[1]].mean(axis=1) > 0.5).astype(int)

        contestants["faiss flat (float32)"] = search
    return Row(
        f"10-NN, {len(Q):_} in {X.shape[0]:_}x30: error", contestants, lambda found: float(np.mean(found != truth))
    )


def machine_fit(rows: int = 40_000) -> Row:
    data, gamma = curved_labels(int(rows), 30), 1 / 30
    # At this tol the dual is as good as libsvm's at its default.
    ours = er.SVM(C=1.0, features=er.kernels.Gaussian.from_gamma(gamma), tol=3e-4)
    machines = {"sklearn SVC": svm.SVC(C=1.0, gamma=gamma, cache_size=1000)}
    machines |= _intel("sklearnex.svm", "SVC", C=1.0, gamma=gamma)
    contestants = {OURS: _plain(lambda: ours.fit(data.X, data.y))}
    contestants |= {name: _plain(lambda m=m: m.fit(data.X, data.y)) for name, m in machines.items()}
    objective = minus_dual(data, gamma, lambda a, y: float(np.abs(a).sum()))
    return Row(f"Gaussian SVM, fit {data.name}: minus the dual", contestants, objective)


def machine_predict(rows: int = 20_000) -> Row:
    data, gamma = curved_labels(int(rows), 30), 1 / 30
    fresh = curved_labels(2 * int(rows), 30, seed=1)
    machines = {OURS: er.SVM(C=1.0, features=er.kernels.Gaussian.from_gamma(gamma), tol=1e-3)}
    machines |= {"sklearn SVC": svm.SVC(C=1.0, gamma=gamma, cache_size=1000)}
    machines |= _intel("sklearnex.svm", "SVC", C=1.0, gamma=gamma)
    for machine in machines.values():
        machine.fit(data.X, data.y)
    contestants = {name: _plain(lambda m=m: m.predict(fresh.X)) for name, m in machines.items()}
    return Row(
        f"Gaussian SVM, predict {fresh.name}: error", contestants, lambda found: float(np.mean(found != fresh.y))
    )


def kernel_ridge(rows: int = 8_000) -> Row:
    data, gamma = curve(rows, 20), 1 / 20
    machines = {
        OURS: er.Ridge(C=1.0, features=er.kernels.Gaussian.from_gamma(gamma), fit_intercept=False),
        "sklearn": KernelRidge(alpha=er.scales.to_ridge(1.0), kernel="rbf", gamma=gamma),
    }
    contestants = {name: _plain(lambda m=m: m.fit(data.X, data.y)) for name, m in machines.items()}
    part = data.X[:500]
    return Row(
        f"kernel ridge {data.name}: squared error of some rows",
        contestants,
        lambda machine: metrics.mean_squared_error(data.y[:500], machine.predict(part)),
    )


def gram_matrix(rows: int = 12_000) -> Row:
    X = np.random.default_rng(0).normal(size=(int(SHARE * rows), 30))
    kernel = er.kernels.Gaussian.from_gamma(1 / 30)
    out = np.empty((len(X), len(X)))
    items = kernel.prepare(X)
    contestants = {
        OURS: _plain(lambda: kernel.between(items, None, out)),
        "sklearn rbf_kernel": _plain(lambda: rbf_kernel(X, gamma=1 / 30)),
    }
    return Row(f"Gram matrix {len(X):_}x30: sum", contestants, lambda K: float(K[:100].sum()))


def _linear(title: str, data: Data, machines: dict[str, Any], objective: Callable[[np.ndarray], float]) -> Row:
    contestants = {name: _plain(lambda m=m: m.fit(data.X, data.y)) for name, m in machines.items()}

    def grade(machine: Any) -> float:
        w = np.ravel(machine.coef_)
        return 0.5 * float(w @ w) + objective(data.y * (data.X @ w + float(np.ravel(machine.intercept_)[0])))

    return Row(f"{title} {data.name}: objective", contestants, grade, data.X)


def logistic(rows: int = 4_000_000, columns: int = 60) -> Row:
    data = dense_labels(int(SHARE * rows), columns)
    machines = {
        OURS: er.LogisticRegression(C=1.0),
        "sklearn lbfgs": linear_model.LogisticRegression(C=1.0, max_iter=1000),
        "sklearn newton-cholesky": linear_model.LogisticRegression(C=1.0, solver="newton-cholesky"),
    }
    return _linear("logistic", data, machines, lambda margins: float(np.logaddexp(0, -margins).sum()))


def hinge(rows: int = 4_000_000) -> Row:
    data = dense_labels(int(SHARE * rows), 60)
    machines = {
        OURS: er.SVM(C=1.0, tol=1e-3, fit_intercept=False),
    }
    if rows < 1_000_000:  # liblinear has one thread, and would take minutes
        machines["sklearn LinearSVC"] = svm.LinearSVC(C=1.0, loss="hinge", tol=0.1, fit_intercept=False, max_iter=100)
    return _linear("hinge", data, machines, lambda margins: float(np.maximum(0, 1 - margins).sum()))


def logistic_smaller() -> Row:
    return logistic(400_000)


def logistic_middle() -> Row:
    return logistic(2_400_000, 40)


def hinge_smaller() -> Row:
    return hinge(400_000)


def kmeans(rows: int = 400_000) -> Row:
    X = np.random.default_rng(0).normal(size=(int(SHARE * rows), 32))
    ours = er.KMeans(100, init=X[:100], max_iter=20)
    rival = cluster.KMeans(100, init=X[:100], max_iter=20, n_init=1)
    contestants = {OURS: _plain(lambda: ours.fit(X)), "sklearn": _plain(lambda: rival.fit(X))}
    return Row(f"k-means, 100 of {len(X):_}x32: inertia", contestants, lambda machine: float(machine.inertia_))


def mixture(rows: int = 400_000) -> Row:
    random = np.random.default_rng(0)
    X = random.normal(size=(int(SHARE * rows), 10)) + 4 * random.integers(0, 4, int(SHARE * rows))[:, None]
    ours = er.GaussianMixture(4, random_state=0, max_iter=20, tol=0)
    rival = mixtures.GaussianMixture(4, random_state=0, max_iter=20, tol=0)
    contestants = {OURS: _plain(lambda: ours.fit(X)), "sklearn": _plain(lambda: rival.fit(X))}
    return Row(f"mixture, 4 of {len(X):_}x10: minus the bound", contestants, lambda machine: -machine.lower_bound_)


HELD = 0.1  # part of the rows on which the error of trees is measured


def _trees(title: str, rows: int, columns: int, ours: Any, rivals: dict[str, Callable[[int], Any]]) -> Row:
    count = int(SHARE * rows)
    X, y = make_classification(
        round(count / (1 - HELD)), columns, n_informative=columns // 3, flip_y=0.02, random_state=0
    )
    contestants = {OURS: _plain(lambda: ours.fit(X[:count], y[:count]))}
    contestants |= {
        name: lambda threads, make=make: lambda: make(threads).fit(X[:count], y[:count])
        for name, make in rivals.items()
    }
    return Row(
        f"{title} {count:_}x{columns}: error", contestants, lambda machine: 1 - machine.score(X[count:], y[count:])
    )


def _boosters() -> dict[str, Callable[[int], Any]]:
    """Those that are installed."""
    found = {"HistGradientBoosting": lambda threads: HistGradientBoostingClassifier(max_iter=100, early_stopping=False)}
    lossguide = {"max_leaf_nodes": 31, "max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist"}
    for module, name, options in (
        ("lightgbm", "LGBMClassifier", {"num_leaves": 31, "verbose": -1}),
        ("xgboost", "XGBClassifier", {"learning_rate": 0.1, **lossguide}),
    ):
        try:
            rival = getattr(importlib.import_module(module), name)
        except ImportError:
            continue
        found[module] = lambda threads, rival=rival, options=options: rival(n_estimators=100, n_jobs=threads, **options)
    return found


def boosting() -> Row:
    return _trees("boosting, 100 trees", 400_000, 60, er.BoostingClassifier(), _boosters())


def boosting_smaller() -> Row:
    return _trees("boosting, 100 trees", 200_000, 30, er.BoostingClassifier(), _boosters())


def boosting_tiny() -> Row:
    return _trees("boosting, 100 trees", 500, 30, er.BoostingClassifier(), _boosters())


def forest() -> Row:
    def rival(threads: int) -> Any:
        return RandomForestClassifier(64, n_jobs=threads, oob_score=True, random_state=0)

    return _trees("forest, 64 trees", 100_000, 60, er.ForestClassifier(64, random_state=0), {"sklearn": rival})


ROWS: list[Callable[[], Row]] = [
    boosting,
    boosting_smaller,
    boosting_tiny,
    forest,
    neighbors,
    kernel_ridge,
    gram_matrix,
    kmeans,
    mixture,
    logistic_smaller,
    hinge_smaller,
    logistic_middle,
    logistic,
    hinge,
    machine_fit,  # libsvm takes minutes for these two
    machine_predict,
]


def run() -> None:
    chosen = (CURVE if ONLY == "curve" else ONLY).split(",")
    warnings.simplefilter("ignore", ConvergenceWarning)  # rounds are given
    for make in ROWS:
        if not ONLY or make.__name__ in chosen:
            row = make()
            if not RIVALS:
                row = replace(row, contestants={OURS: row.contestants[OURS]})
            show(row)
            if PHASES:
                phases(row)
