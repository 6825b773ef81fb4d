"""A seed stands for a case: a machine with some parameters, and nasty small data for it.

Seeds from `EVERY` on stand for machines of every public class, put together from all parts that there are; a part that
is added changes what some of them stand for, so what they find gets a test in the room where it was mended. Seeds
below stand for the machines, and the parts by name, of the lists in this file, and always will.
"""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.fuzz import data, machines

Random = np.random.Generator
#: The lists of the seeds below `EVERY` stay as they are: another entry would give those seeds, and what they found,
#: another meaning. New parts come from `tests/catalog.py`.
CLASS_LOSSES = (
    "hinge",
    "squared_hinge",
    "logistic",
    "exponential",
    "soft_hinge",
    "squared",
    "perceptron",
    "softmax",
    "crammer_singer",
)
NUMBER_LOSSES = ("squared", "absolute", "epsilon_insensitive", "squared_absolute", "power")
PENALTIES = ("l2", "l2", "l1", "elastic_net", "none")
SOLVERS = (
    "closed_form",
    "coordinate_descent",
    "dual_ascent",
    "gradient_descent",
    "newton",
    "proximal",
    "sgd",
    "decomposition",
    "interior_point",
)
#: Small steps, tens of thousands of them where data are nasty: with a limit of time, always.
SMALL_STEPS = ("gradient_descent", "proximal", "sgd", "dual_ascent")
#: The first seed of cases of every public class, and how many of them are of the equation: it has most to go wrong.
EVERY, OF_EQUATION = 10_000_000, 0.4
#: How often a machine that needs seconds to compile is drawn where its turn has come.
SLOW_CLASSES = {"Network": 0.05}
#: The last digit of the seeds of machines without a target, and of metrics.
UNSUPERVISED = 5
#: How often parts are put together without a look at whether they go together.
WILD = 0.06
#: A class of machines is fuzzed as often as it has entries here: the equation has most to go wrong.
KINDS = ("classifier",) * 6 + ("regressor",) * 6 + ("one_class", "perceptron", "centroid", "knn", "tree", "ensemble")


@dataclass
class Case:
    """A machine and its data; ``words`` tell what is odd about them."""

    seed: int
    machine: Any
    X: Any
    y: Any
    weights: Any
    words: str

    #: What the machine learns from: "rows" of a table, a "gram" matrix, "images", or "items" of its kernel.
    takes: str = "rows"

    def __str__(self) -> str:
        shape = (len(self.X),) if self.takes == "items" else np.shape(self.X) or self.X.shape
        return f"seed {self.seed}: {self.machine!r} on {self.words}, {' x '.join(map(str, shape))}"


def make(seed: int) -> Case:
    """The case of a seed: of the older ones, one in ten is of a machine without a target, or a metric."""
    if seed >= EVERY:
        return _of_every_class(seed)
    if seed % 10 == UNSUPERVISED:
        return _unsupervised(seed)
    random = np.random.default_rng([7, seed])
    kind = str(random.choice(KINDS))
    X, rows = data.rows(random)
    machine, task = _MAKERS[kind](random)
    y, targets = data.numbers(random, X) if task == "regression" else data.labels(random, X)
    if targets == "two" and task == "regression" and kind in ("tree", "ensemble", "knn"):
        y = y[:, 0]
    weights, amounts = data.weights(random, len(X))
    X, form = data.formatted(random, X, kind not in ("tree", "ensemble"))
    parameters = machine.get_params()
    patient = parameters.get("solver") in SMALL_STEPS
    if "max_time" in parameters and (patient or random.random() < 0.5):
        machine.set_params(max_time=float(random.choice([1.0, 0.1, 0.1, 0.1])))
    return Case(seed, machine, X, y, weights, f"rows {rows} ({form}), y {targets}, weights {amounts}")


def _of_every_class(seed: int) -> Case:
    """A machine of any public class, on rows in any format, or on what else its kernel takes."""
    random = np.random.default_rng([29, seed])
    drawn = machines.draw(_name(random), random)
    machine, takes, X = drawn.machine, drawn.takes, drawn.items
    rows, form = ("items of the kernel", takes) if takes == "items" else (takes, "dense")
    if takes == "rows":
        X, rows = data.rows(random)
    elif takes == "gram":
        X = er.kernels.Gaussian(1.0)(random.normal(size=(int(random.choice([2, 5, 13])), 2)))
    elif takes == "images":
        X = random.normal(size=(8, 6, 6, 1)).astype(np.float32)
    signal = random.normal(size=(len(X), 2)) if takes != "rows" else X
    y, targets = _target(random, signal, machine)
    weights, amounts = data.weights(random, len(X))
    if takes == "rows":
        X, form = data.reformatted(random, X, get_tags(machine).input_tags.sparse)
    if getattr(machine, "schema", "") is None:  # it is that of the table
        machine.set_params(schema=er.tables.understand(data.plain(X)))
    parameters = machine.get_params()
    if isinstance(parameters.get("init"), str) and parameters["init"] == machines.GIVEN:
        machine.set_params(init=_first_rows(X, parameters))
    patient = isinstance(parameters.get("solver"), machines.SMALL_STEPS)
    if "max_time" in parameters and (patient or random.random() < 0.2):
        machine.set_params(max_time=float(random.choice([1.0, 0.1, 0.1, 0.1])))
    words = f"rows {rows} ({form}), y {targets}, weights {amounts}"
    return Case(seed, machine, X, data.retyped(random, y), data.retyped(random, weights), words, takes)


def _first_rows(X: Any, parameters: dict[str, Any]) -> Any:
    """As many rows as there are means or atoms, to start from; random ones where they are no numbers."""
    count = next(parameters[name] for name in ("n_clusters", "n_components", "n_atoms") if name in parameters)
    rows = data.plain(X)[:count]
    return rows.astype(float) if rows.dtype.kind in "biuf" else "rows" if "n_atoms" in parameters else "random"


def _target(random: Random, X: Any, machine: Any) -> tuple[Any, str]:
    """What the machine learns to tell; several numbers at once mostly where it takes them."""
    if not machines.learns_numbers(machine):
        return data.labels(random, X)
    y, targets = data.numbers(random, X)
    if getattr(machine.get_params().get("loss"), "positive", False) and random.random() > data.TOO_FAR:
        y, targets = np.abs(y), f"{targets}, without signs"
    if y.ndim == 2 and not get_tags(machine).target_tags.multi_output and random.random() > data.TOO_FAR:
        return y[:, 0], "plain"
    return y, targets


def _name(random: Random) -> str:
    """A public class: one of the equation, or any other, each as often."""
    names = machines.machines()
    own = [name for name, cls in names.items() if issubclass(cls, (er.Classifier, er.Regressor))]
    others = [name for name in names if name not in own]
    name = str(random.choice(own if random.random() < OF_EQUATION else others))
    return name if random.random() < SLOW_CLASSES.get(name, 1.0) else _name(random)


def _unsupervised(seed: int) -> Case:
    """Clusters, mixtures, projections and metrics; all but the metrics let the target be."""
    random = np.random.default_rng([23, seed])
    X, rows = data.rows(random)
    y, targets = data.labels(random, X)
    weights, amounts = data.weights(random, len(X))
    kernel = [None, None, None, er.kernels.Gaussian(1.0), er.kernels.Linear()][random.integers(5)]
    count = int(random.choice([1, 2, 3]))
    machines = (
        er.KMeans(count, kernel, random_state=0),
        er.KMeans(count, batch_size=5, random_state=0),
        er.Hierarchical(str(random.choice(["single", "complete", "average"])), n_clusters=count),
        er.GaussianMixture(count, covariance_type=str(random.choice(["full", "tied", "diagonal"])), random_state=0),
        er.GaussianDensity(),
        er.PCA(count, kernel),
        er.Dictionary(count, random_state=0),
        er.ContrastiveMetric(),
        er.LargeMarginMetric(),
    )
    machine = machines[random.integers(len(machines))]
    X, form = data.formatted(random, X, isinstance(machine, (er.KMeans, er.PCA)))
    return Case(seed, machine, X, y, weights, f"rows {rows} ({form}), y {targets}, weights {amounts}")


def without_clock(case: Case) -> Case:
    """The case with limits of iterations where it has one of time: on a busy machine a clock would decide."""
    parameters = case.machine.get_params()
    if "max_time" in parameters:
        case.machine.set_params(max_time=None)
    solver = parameters.get("solver")
    if isinstance(solver, machines.SMALL_STEPS) or solver in SMALL_STEPS:
        case.machine.set_params(max_iter=50)
    return case


def _C(random: Random, loo: bool) -> Any:
    if random.random() < 0.08:
        return "loo" if loo and random.random() < 0.5 else "cv"
    return float(10.0 ** random.choice([-12, -4, -1, 0, 1, 2, 4, 8], p=[0.03, 0.12, 0.15, 0.25, 0.15, 0.15, 0.1, 0.05]))


def _kernels() -> tuple[Any, ...]:
    kernels = er.kernels
    return (
        kernels.Linear(),
        kernels.Gaussian(1.0),
        kernels.Gaussian("median"),
        kernels.Laplacian(2.0),
        kernels.Polynomial(3),
        kernels.Anova(),
        kernels.Gaussian(1.0) + kernels.Linear(),
        kernels.Linear().normalised(),
        er.maps.SeveralKernels([kernels.Gaussian(1.0), kernels.Linear()]),
        er.LearnedKernel("gaussian", rounds=2),
    )


def _maps() -> tuple[Any, ...]:
    kernels, maps = er.kernels, er.maps
    return (
        StandardScaler(with_mean=False),
        maps.Polynomial(2),
        maps.Periodic(),
        maps.Nystrom(kernels.Gaussian(1.0), rank=4, random_state=0),
        maps.RandomFourier(kernels.Gaussian(1.0), rank=8, random_state=0),
    )


def _features(random: Random, kernels: bool = True) -> Any:
    """Half of the time none, then kernels, where they have a meaning, before maps."""
    if random.random() < 0.5:
        return None
    choices = _kernels() + _maps() if kernels else _maps()
    return choices[random.integers(len(choices))]


def _common(random: Random, loss: str, penalty: str) -> dict[str, Any]:
    """Features, C and limits: those that go together, and now and then any."""
    wild = random.random() < WILD
    return {
        "features": _features(random, kernels=wild or penalty == "l2"),
        "C": _C(random, loo=wild or (loss == "squared" and penalty == "l2")),
        "fit_intercept": bool(random.random() < 0.7),
        "tol": float(random.choice([1e-6, 1e-6, 1e-3, 1e-10])),
    }


def _solver(random: Random, machine: Any, y: list[float]) -> str:
    """Most often the machine's choice, else one that takes its problem, now and then any."""
    if random.random() < 0.7:
        return "auto"
    names = list(SOLVERS)
    if random.random() > WILD:
        easy = np.arange(12.0).reshape(6, 2) % 5
        (problem, *_) = machine.problems(easy, y)
        names = [name for name in SOLVERS if not er.solvers.find(name).refusal(problem)]
    return str(random.choice(names or ["auto"]))


def _penalty(random: Random) -> str:
    return str(random.choice(PENALTIES))


OWN_LOSS = {"SVM": "hinge", "LogisticRegression": "logistic", "LeastSquaresClassifier": "squared"}
#: Losses that are joint, or have a joint form.
JOINT = ("softmax", "crammer_singer"), ("hinge", "logistic")


def _multiclass(random: Random, loss: str) -> str:
    if loss in JOINT[0] and random.random() > WILD:
        return str(random.choice(["auto", "joint"]))
    schemes = ["auto", "auto", "one_vs_rest", "one_vs_one", "error_correcting", "joint"]
    return str(random.choice(schemes if loss in JOINT[1] or random.random() < WILD else schemes[:-1]))


def _classifier(random: Random) -> tuple[Any, str]:
    name = str(random.choice(["Classifier", "Classifier", *OWN_LOSS]))
    loss = OWN_LOSS.get(name) or str(random.choice(CLASS_LOSSES))
    penalty = _penalty(random)
    options = _common(random, loss, penalty) | {"penalty": penalty, "multiclass": _multiclass(random, loss)}
    options["class_weight"] = "balanced" if random.random() < 0.15 else None
    if name == "Classifier":
        options["loss"] = loss
    machine = getattr(er, name)(**options, random_state=0)
    with contextlib.suppress(EmpiriskError):  # what does not go together is refused by `fit` too
        machine.set_params(solver=_solver(random, machine, [0, 1, 2, 0, 1, 2]))
    if name == "SVM" and random.random() < 0.15:
        machine.set_params(C=np.inf)
    return machine, "classification"


OWN_PARTS = {
    "LeastSquares": ("squared", "none"),
    "Ridge": ("squared", "l2"),
    "Lasso": ("squared", "l1"),
    "ElasticNet": ("squared", "elastic_net"),
}
OPEN_PENALTY = {"Regressor": None, "LeastAbsolute": "absolute", "SVR": "epsilon_insensitive"}


def _regressor(random: Random) -> tuple[Any, str]:
    name = str(random.choice(["Regressor", "Regressor", *OWN_PARTS, "LeastAbsolute", "SVR"]))
    if name in OWN_PARTS:
        options = _common(random, *OWN_PARTS[name])
    else:
        loss, penalty = OPEN_PENALTY[name] or str(random.choice(NUMBER_LOSSES)), _penalty(random)
        options = _common(random, loss, penalty) | {"penalty": penalty}
        if name == "Regressor":
            options["loss"] = loss
    if name == "LeastSquares":
        del options["C"]
    machine = getattr(er, name)(**options, random_state=0)
    with contextlib.suppress(EmpiriskError):
        machine.set_params(solver=_solver(random, machine, [0.0, 1.0, 2.5, 0.5, -1.0, 2.0]))
    return machine, "regression"


def _one_class(random: Random) -> tuple[Any, str]:
    return er.OneClassSVM(nu=float(random.choice([1e-3, 0.1, 0.5, 1.0])), features=_features(random)), "regression"


def _perceptron(random: Random) -> tuple[Any, str]:
    features, average = _features(random), bool(random.random() < 0.5)
    return er.Perceptron(features=features, average=average, max_iter=50), "classification"


def _centroid(random: Random) -> tuple[Any, str]:
    weight = "balanced" if random.random() < 0.3 else None
    return er.NearestCentroid(features=_features(random), class_weight=weight), "classification"


def _knn(random: Random) -> tuple[Any, str]:
    k = "loo" if random.random() < 0.2 else int(random.choice([1, 2, 3, 5]))
    options = {"n_neighbors": k, "weights": str(random.choice(["uniform", "distance"])), "features": _features(random)}
    if random.random() < 0.5:
        return er.KNNClassifier(**options), "classification"
    return er.KNNRegressor(**options), "regression"


def _tree(random: Random) -> tuple[Any, str]:
    options = {"max_depth": None if random.random() < 0.5 else 2, "ccp_alpha": float(random.choice([0.0, 0.0, 0.01]))}
    if random.random() < 0.5:
        return er.TreeClassifier(str(random.choice(["gini", "entropy"])), **options, random_state=0), "classification"
    return er.TreeRegressor(str(random.choice(["squared", "absolute"])), **options, random_state=0), "regression"


def _ensemble(random: Random) -> tuple[Any, str]:
    name = str(random.choice(["Forest", "Bagging", "Boosting", "AdaBoost"]))
    classes = name == "AdaBoost" or random.random() < 0.5
    machine = getattr(er, name + ("Classifier" if classes else "Regressor"))(n_estimators=5, random_state=0)
    return machine, "classification" if classes else "regression"


_MAKERS = {
    "classifier": _classifier,
    "regressor": _regressor,
    "one_class": _one_class,
    "perceptron": _perceptron,
    "centroid": _centroid,
    "knn": _knn,
    "tree": _tree,
    "ensemble": _ensemble,
}
