"""Parts of machines, drawn from the lists of instances that feed the generic tests: what is added there is fuzzed."""

import functools
import importlib.util
import inspect
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import StandardScaler

import empirisk as er
from tests import catalog, kernel_catalog
from tests.public import EXPORTS

Random = np.random.Generator


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


#: What a machine for long runs need not have, and what is left out there.
OPTIONAL = {
    "cvxpy": "the points of CVXPY as rivals",
    "pandas": "data frames of pandas",
    "polars": "data frames of Polars, tables and model files",
    "jax": "networks",
}
MISSING = tuple(name for name in OPTIONAL if not installed(name))


@functools.cache
def public_classes() -> dict[str, type]:
    """Every public class with parameters that can be made here: machines, maps, kernels, losses and whatever comes."""
    found = {cls: name for name in EXPORTS if inspect.isclass(cls := _found(name))}  # one name for each
    return {name: cls for cls, name in found.items() if _is_whole(cls)}


def _found(name: str) -> Any:
    """What has a public name; nothing where it needs what is not installed."""
    try:
        return attrgetter(name)(er)
    except ImportError:  # the sentence for the user is one too
        if not MISSING:
            raise
    return None


def _is_whole(cls: type) -> bool:
    """Whether a class is made to be used, and not to be derived from."""
    base = cls in (er.kernels.Kernel, er.losses.Loss, er.penalties.Penalty, er.solvers.Solver)
    base = base or cls.__name__ == "Layer"
    return issubclass(cls, BaseEstimator) and not base and not inspect.isabstract(cls)


def pick(random: Random, options: Any) -> Any:
    """One of some options, a fresh copy where it is a part."""
    found = options[int(random.integers(len(options)))]
    return clone(found) if isinstance(found, BaseEstimator) else found


def margin_loss(random: Random) -> Any:
    """A loss of labels, or of all classes together; the loss 0-1 is refused, so it is seldom drawn."""
    losses = [loss for loss in catalog.MARGIN_LOSSES + catalog.JOINT_LOSSES if loss.convex or random.random() < 0.25]
    return pick(random, losses)


def residual_loss(random: Random) -> Any:
    """A loss of numbers, now and then of those that are never negative."""
    return pick(random, catalog.DEVIANCES if random.random() < 0.2 else catalog.RESIDUAL_LOSSES)


def penalty(random: Random) -> Any:
    """A norm, now and then of weights that are never negative, or whole groups of columns.

    Labels of groups fit one number of columns only.
    """
    groups = [one for one in catalog.GROUPS if np.ndim(one.groups) == 0 or random.random() < 0.2]
    norms = catalog.POSITIVE if random.random() < 0.1 else catalog.NORMS
    return pick(random, norms if random.random() < 0.85 else groups)


def _first_column(X: Any) -> Any:
    """A function of a user gets rows in any format as they come."""
    if hasattr(X, "tocsr"):
        return np.ravel(X.tocsr()[:, [0]].toarray()) + 0.1
    return np.asarray(X)[:, 0] + 0.1


def _dot(x: Any, z: Any) -> Any:
    """<x, z> of rows in any format: a function of a user gets them as they come."""
    first, second = (np.ravel(row.toarray() if hasattr(row, "toarray") else row) for row in (x, z))
    return float(first @ second)


def kernel(random: Random) -> Any:
    """A kernel of vectors, now and then made of one or two others, or of a function."""
    first = pick(random, kernel_catalog.VECTOR_KERNELS)
    way = random.random()
    if way < 0.6:
        return first
    if way < 0.8:
        names = [name for name in kernel_catalog.UNARY if name != "times"]
        return kernel_catalog.UNARY[str(random.choice(names))](first)
    if way < 0.95:
        name = str(random.choice(list(kernel_catalog.BINARY)))
        return kernel_catalog.BINARY[name](first, pick(random, kernel_catalog.VECTOR_KERNELS))
    return er.kernels.Callable(_dot) if random.random() < 0.5 else first.times(_first_column)


def explicit_map(random: Random) -> Any:
    """A transformer: of ours, or scikit-learn's scaler."""
    kernels = er.kernels
    landmarks = str(random.choice(["uniform", "kmeans", "leverage"]))
    maps = (
        StandardScaler(with_mean=False),
        er.maps.Polynomial(int(random.choice([1, 2, 3])), interaction_only=bool(random.random() < 0.3)),
        er.maps.Periodic(int(random.choice([1, 3]))),
        er.maps.Nystrom(kernels.Gaussian(1.0), rank=4, landmarks=landmarks, random_state=0),
        er.maps.RandomFourier(kernels.Gaussian(1.0), rank=8, random_state=0),
        er.maps.RandomFourier(kernels.Laplacian(2.0), rank=4, random_state=0),
    )
    return maps[int(random.integers(len(maps)))]


def features(random: Random, kernels: bool = True, learns: bool = False) -> Any:
    """Half of the time none; then kernels, where they have a meaning, and maps; seldom what learns with the machine."""
    if random.random() < 0.5:
        return None
    if learns and kernels and random.random() < 0.1:
        return er.LearnedKernel(*pick(random, [("gaussian", 2), ("laplacian", 1, "diagonal", 20)]))
    if learns and kernels and random.random() < 0.1:
        return er.maps.SeveralKernels([kernel(random), er.kernels.Linear()], norm=int(random.choice([1, 2])))
    return kernel(random) if kernels and random.random() < 0.6 else explicit_map(random)


def solver(random: Random) -> Any:
    """Any solver as it comes, or one with other parameters."""
    solvers = er.solvers
    varied = (
        solvers.ClosedForm(str(random.choice(["cholesky", "svd"]))),
        solvers.Decomposition(4),
        solvers.DoublyStochastic(batch_size=8, columns=16),
        solvers.EarlyStopping(solvers.Newton(), n_iter_no_change=2),
        solvers.GradientDescent(str(random.choice(["backtracking", "exact", "bold_driver"]))),
        solvers.Perceptron(average=True),
        solvers.Proximal(accelerated=False),
        solvers.SGD(4, adapt=str(random.choice(["adagrad", "rmsprop", "adam"]))),
        solvers.SGD(4, average=True),
    )
    plain = [cls for name, cls in public_classes().items() if name.startswith("solvers.")]
    number = int(random.integers(len(plain) + len(varied)))
    return varied[number - len(plain)] if number >= len(plain) else plain[number]()


def network(random: Random) -> Any:
    """A network of a few numbers, seen a few times."""
    activation = str(random.choice(["relu", "tanh", "sigmoid"]))
    layers = [[3], [], [er.nets.Dense(2), er.nets.Activation("tanh")]][int(random.integers(3))]
    options = {"init": str(random.choice(["auto", "he", "glorot", "normal"])), "epochs": int(random.choice([1, 3]))}
    return er.Network(layers, activation, **options, n_init=1, random_state=0)


def image_network(random: Random) -> Any:
    """Every kind of layer and of random change, on images of 6 x 6."""
    nets = er.nets
    layers = [
        nets.Branch([nets.Conv(1, 3, padding=1), nets.Filter("gaussian", 3)]),
        nets.BatchNorm(),
        nets.MaxPool(2),
        nets.MeanPool(2, 1),
        nets.Activation("tanh"),
        nets.Flatten(),
        nets.Reshape((2, 2, 2)),
        nets.Upsample(3, 3),
        nets.ConvTranspose(1, 2),
        nets.Flatten(),
        nets.Dropout(0.1),
        nets.Dense(3),
        nets.LayerNorm(),
        nets.Residual([3]),
    ]
    augment = [nets.Mirror(), nets.Shift(1), nets.Noise(), nets.Masking(), nets.Scale(), nets.Crop()]
    return er.Network(layers, shape=(6, 6, 1), augment=augment, epochs=1, n_init=1, random_state=0)


def classes_in(value: Any) -> set[type]:
    """The classes of an estimator and of everything that its parameters hold."""
    if isinstance(value, (list, tuple)):
        return set().union(*map(classes_in, value)) if value else set()
    if isinstance(value, dict):
        return classes_in(list(value.values()))
    if not isinstance(value, BaseEstimator):
        return set()
    return {type(value)} | classes_in(list(value.get_params(deep=False).values()))
