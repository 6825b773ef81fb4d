"""The network as a feature map: what stands in the slot ``features`` of a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_number
from empirisk.contract.inputs import check_weights, generator
from empirisk.errors import EmpiriskError
from empirisk.fits.fit import Fit, Limits, SolverRun
from empirisk.machines.online import OnlineSteps
from empirisk.names import Estimator
from empirisk.nets.autoencoder import decoder_plan
from empirisk.nets.layers import Conv, Dense, Layer, MaxPool, Shape, whole
from empirisk.nets.learning import advance, learn, rebuild
from empirisk.nets.objective import BIAS, FROM, HEAD, UNIT
from empirisk.nets.plan import NetworkPlan, checked_layers, through
from empirisk.problem import Problem
from empirisk.settings import require
from empirisk.solvers.base import Watch
from empirisk.stop import CUT, interruptible, keeping
from empirisk.validation import available_if, check_array, validate_data

FLOATS = (np.float64, np.float32)


def _rebuilds(network: Network) -> bool:
    """Whether the network has learned to rebuild rows."""
    if not hasattr(network, "decoder_"):
        raise AttributeError("The network has no way back from its features; learn_to_rebuild makes one.")
    return True


@dataclass(eq=False, repr=False)
class Network(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """phi_W: a feed-forward network whose weights are learned with the machine in whose slot ``features`` it stands.

    A machine with a network minimises

        decay sum_l R_W(W_l)  +  R(w)  +  C sum_i c_i loss(y_i, <w, phi_W(x_i)> + b),

    biases free and R_W(W) = |W|_F^2 / 2 unless ``penalty`` says otherwise, by mini-batches in which the sum of losses
    of B of n rows stands for n/B times as much. Where rows and weights are few, several first weights are tried and
    L-BFGS on all rows follows. When training ends, the head w, b is solved to its optimum on phi_W(X) by the solver of
    the machine, whose certificate proves it, and notes the norm of the gradient in all weights beside the gap. Equal
    rows count once with all their weight and the order of the rows does not matter.

    Parameters
    ----------
    layers : list of int and Layer
        The hidden layers; a number is a dense layer of that width, others are objects of `empirisk.nets`. An empty list
        is the identity.
    activation : {"relu", "leaky_relu", "gelu", "softplus", "tanh", "sigmoid", "linear", "sign"}
        What follows every dense or convolutional layer that states nothing else.
    widths : list of int, optional
        The widths of the dense layers, in place of those in ``layers``.
    shape : tuple, optional
        (height, width, channels) of the images that flat rows stand for.
    init : {"auto", "he", "glorot", "normal"}
        First weights; "auto" is "he" before relu, leaky_relu and gelu, else "glorot".
    weights : dict of arrays, optional
        Weights and running moments to begin with by name, such as ``{"0.weight": ...}``: those of a fitted network are
        ``weights_ | state_``. Names that it lacks are drawn.
    freeze : bool or list of int
        Layers whose weights, and running moments, stay as they begin; True for all.
    masks : dict of arrays, optional
        Zero where a weight, by name, is to stay zero.
    batch_norm : bool
        Whether batches are normalised before every activation.
    dropout : float
        The share of numbers dropped after every dense layer in training.
    decay : float
        The factor of the penalty on the weights of the network.
    penalty : str or Penalty
        That penalty: "l2", "l1", "elastic_net", "none" or an object of `empirisk.penalties`. With l1, weights become
        exactly zero where training ends with L-BFGS.
    augment : list of Augmentation
        Random changes of the rows in training: `Mirror`, `Shift`, `Noise`, `Masking`, `Scale`, `Crop`. An autoencoder
        rebuilds the rows as they were: it takes the noise away.
    optimiser : str or Optax object
        "adam", "sgd", "momentum", "nesterov", "rmsprop", "adagrad", or an object with a step size of its own.
    learning_rate_init : float or "auto"
        The first step size, for J divided by the sum of all C c_i; "auto" is 0.01 where every step sees all rows, else
        0.001.
    schedule : str or callable
        "cosine", "constant", "linear", "exponential" or "steps": how the step size falls; or a function of the step
        that gives a factor.
    batch_size : int
        Rows in a step.
    epochs : int or None
        Times that the rows are seen; None is 20, and no fewer than give 2000 steps.
    validation_fraction : float
        The share of rows that are held out from training, for early stopping; 0 for none.
    look_every : int or None
        Steps between looks at the held-out rows; None is an epoch, but at least 50 steps.
    n_iter_no_change : int
        Looks without a better held-out loss after which training stops; the best weights are restored.
    n_init : int or None
        How many first weights to try for a tenth of the steps; the best goes on, and L-BFGS starts from each. None is
        10 where every step sees all rows, or L-BFGS is cheap, else 1.
    finish : bool or "auto"
        Whether training ends with L-BFGS on the whole objective, in double precision. "auto" does so where rows times
        weights are few (10^7), with no ``epochs`` asked for, and nothing random in training: no rows held out, dropout,
        batch normalisation or augmentation.
    tied : bool
        For an autoencoder: whether the decoder has the weights of the encoder, transposed.
    checkpoint : str or Path, optional
        A file in which the training is kept at every look; a fit that was killed goes on from it to the same result.
    verbose : bool
        Whether to print a line at every look, with the time left.
    random_state : int, RandomState or None
        Seed of first weights, order of rows, dropout and augmentation.

    Attributes
    ----------
    weights_, state_ : dicts of arrays
        The weights by name, layer number first, and running moments.
    history_ : dict of arrays
        Of every look: "step", "seconds", "objective", "validation_objective", and for every weight in
        ``history_names_`` the "gradient_norm" and the "drift" |W - W0| / |W0|.
    n_steps_, stopped_ : int, str
        Steps taken, and why training ended.
    head_ : dict of arrays
        The head as training has it, in units of the targets: where `partial_fit` and ``warm_start`` go on.
    gradient_norm_ : float
        The norm of the gradient of the whole objective in all weights, head included, where rows and weights are few.

    Examples
    --------
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    >>> network = er.Network([4], activation="tanh", random_state=0)
    >>> machine = er.LogisticRegression(C=100.0, features=network).fit(X, y)
    >>> machine.predict(X), machine.certificate_.converged
    (array([0, 1, 1, 0]), True)
    """

    _state = state.State(
        lambda its: _wrong_weights(its),
        shape_=state.anything(),
        layers_=state.anything(),
        between_=state.anything(),
        seed_=state.whole(),
        weights_=state.anything(),
        state_=state.anything(),
        decoder_=state.optional(state.anything()),
        history_=state.optional(state.anything()),
        history_names_=state.optional(state.anything()),
        n_steps_=state.optional(state.whole()),
        gradient_norm_=state.optional(state.number(0)),
        head_=state.optional(state.anything()),
        seen_scale_=state.optional(state.number(0)),
        memory_=state.optional(state.anything()),
        stopped_=state.optional(state.text()),
        _n_features_out=state.size("width"),
    )

    layers: Sequence[Any] = (100,)
    activation: str = "relu"
    _: KW_ONLY
    widths: Sequence[int] | None = None
    shape: Sequence[int] | None = None
    init: str = "auto"
    weights: dict[str, ArrayLike] | None = None
    freeze: bool | Sequence[int] = ()
    masks: dict[str, ArrayLike] | None = None
    batch_norm: bool = False
    dropout: float = 0.0
    decay: float = 1.0
    penalty: Any = "l2"
    augment: Sequence[Any] = ()
    optimiser: Any = "adam"
    learning_rate_init: float | str = "auto"
    schedule: Any = "cosine"
    batch_size: int = 128
    epochs: int | None = None
    validation_fraction: float = 0.0
    look_every: int | None = None
    n_iter_no_change: int = 10
    n_init: int | None = None
    finish: bool | str = "auto"
    tied: bool = False
    checkpoint: str | Path | None = None
    verbose: bool = False
    random_state: Any = None

    # --- presets ------------------------------------------------------------------------------------------------------

    @classmethod
    def convolutional(
        cls,
        filters: Sequence[int] = (16, 32),
        size: int = 3,
        dense: Sequence[int] = (128,),
        **parameters: Any,
    ) -> Network:
        """Convolutions that keep the size of the image, each with a pooling to half of it, and dense layers.

        >>> er.Network.convolutional((8,), dense=(32,), shape=(28, 28, 1)).layers
        [Conv(filters=8, padding=1), MaxPool(), Dense(width=32)]
        """
        layers: list[Layer] = []
        for count in filters:
            layers += [Conv(count, size, padding=size // 2), MaxPool(2)]
        return cls([*layers, *(Dense(width) for width in dense)], **parameters)

    @classmethod
    def alexnet(cls, shape: Sequence[int], width: int = 16, **parameters: Any) -> Network:
        """Five convolutions, three poolings and two dense layers with dropout, scaled to the image.

        The filters are those of AlexNet in proportion (96, 256, 384, 384, 256 over 4096 dense units), ``width`` for the
        first; the first stride and the poolings are left out where the image would become too small.

        >>> len(er.Network.alexnet((32, 32, 3)).layers)
        10
        """
        side = min(shape[0], shape[1])
        large = side >= 64  # below, a first stride would leave nothing to pool
        counts = [width * share // 6 for share in (6, 16, 24, 24, 16)]
        layers: list[Layer] = [Conv(counts[0], 11, 4, 2) if large else Conv(counts[0], 5, 1, 2)]
        side = layers[0].output((side, side, 1))[0]
        for number, count in enumerate(counts[1:]):
            if number in (0, 1) and side >= 6:
                layers.append(MaxPool(3, 2))
                side = layers[-1].output((side, side, 1))[0]
            layers.append(Conv(count, 5 if number == 0 else 3, 1, 2 if number == 0 else 1))
        if side >= 3:
            layers.append(MaxPool(3, 2) if side >= 6 else MaxPool(2))
        layers += [Dense(32 * width), Dense(32 * width)]
        parameters.setdefault("dropout", 0.5)
        return cls(layers, shape=tuple(shape), **parameters)

    # --- the map ------------------------------------------------------------------------------------------------------

    @state.renewing
    def fit(self, X: ArrayLike, y: Any = None) -> Network:
        """Note the shape of the rows and draw first weights; a machine then learns better ones."""
        rows = validate_data(self, X, dtype=FLOATS, allow_nd=True)
        self.shape_ = self._sample_shape(rows)
        self.layers_ = checked_layers(self.layers, self.widths)
        # Between layers, as it was at the fit.
        dropout = check_number("dropout", self.dropout, 0, 1)
        self.between_ = (str(self.activation), bool(self.batch_norm), dropout)
        self.seed_ = int(generator(self.random_state).integers(2**31))
        self.weights_, self.state_ = self.first_weights(0), self._first_moments()
        self._n_features_out = self.plan().width
        self._rows = rows
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """phi_W of every row, in the precision of X."""
        return through(self.plan(), self.weights_, self.state_, self._images(X))

    def layer_outputs(self, X: ArrayLike) -> list[NDArray]:
        """What comes out of every layer, activation included: n x width, or n x height x width x channels."""
        return through(self.plan(), self.weights_, self.state_, self._images(X), all_layers=True)

    @property
    def cut(self) -> str | None:
        """Why training was not let finish; None where it was."""
        return self.stopped_ if getattr(self, "stopped_", None) in CUT else None

    def learn_with(self, problems: list[Problem], run: SolverRun) -> tuple[list[Problem], list[Fit]]:
        """Learn W with the problems of a machine; they come back on phi_W(X), with the fits of their heads.

        Parameters
        ----------
        problems : list of Problem
            What the machine minimises, on the rows given to `fit`.
        run : SolverRun
            Solves problems with the solver and within the limits of the machine.
        """
        rows = self.__dict__.pop("_rows")
        try:
            return learn(self, rows, problems, run)
        finally:
            self.__dict__.pop("_earlier", None)

    def continue_from(self, earlier: Network | None) -> None:
        """Begin the training that follows with the weights of an earlier one, if they fit the layers."""
        if not isinstance(earlier, Network) or not hasattr(earlier, "head_"):
            return
        shapes = [{name: value.shape for name, value in network.weights_.items()} for network in (self, earlier)]
        if shapes[0] == shapes[1]:
            self.weights_, self.state_, self._earlier = earlier.weights_, earlier.state_, earlier.head_

    @property
    def earlier(self) -> dict[str, NDArray] | None:
        """The head that the training begins with, where it goes on from an earlier one."""
        return getattr(self, "_earlier", None)

    def step_with(self, X: ArrayLike, problems: list[Problem], watch: Watch) -> OnlineSteps:
        """One pass over some rows with the problems of a machine: what `partial_fit` does.

        Steps of ``batch_size`` rows, at the step size ``learning_rate_init`` throughout, lower the objective over all
        rows so far, for which those of the call stand; weights, head and the memory of the optimiser stay for the next
        call.

        Parameters
        ----------
        X : array
            The rows.
        problems : list of Problem
            What the machine minimises, on phi of the rows.
        watch : Watch
            Limits of time, and Ctrl-C.
        """
        self.__dict__.pop("_rows", None)
        return advance(self, self._images(X), problems, watch)

    def learn_to_rebuild(self, n_components: int, sample_weight: ArrayLike | None = None, run: Any = None) -> Network:
        """Learn codes of ``n_components`` numbers from which the rows given to `fit` can be rebuilt: an autoencoder.

        A last linear layer gives the codes; the decoder has the layers in reverse, transposed convolutions for
        convolutions and places repeated for pooling. `transform` then gives codes, and `inverse_transform` rows.
        Minimised is  decay/2 sum_l |W_l|_F^2 + sum_i c_i |x_i - decoder(encoder(x_i))|^2, where the encoder gets x_i as
        ``augment`` has changed it, if that is given.

        Parameters
        ----------
        n_components : int
            Numbers in a code.
        sample_weight : array, optional
            Weights of the rows.
        run : Run, optional
            Limits of time, and Ctrl-C.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(50, 1)) * np.array([1.0, 2.0, -1.0])
        >>> network = er.Network([], random_state=0).fit(X).learn_to_rebuild(1)
        >>> bool(np.abs(network.inverse_transform(network.transform(X)) - X).max() < 0.1)
        True
        """
        if "_rows" not in vars(self):
            raise EmpiriskError("learn_to_rebuild learns from the rows of `fit`, and once; call fit(X) first.")
        width, weights = whole("n_components", n_components), check_weights(sample_weight, len(self._rows))
        with keeping(type(self).__name__, self), interruptible():
            run = SolverRun("auto", Limits(0.0, None, None)) if run is None else run
            rebuild(self, self.__dict__.pop("_rows"), weights, width, run)
        return self

    @available_if(_rebuilds)
    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Rows from codes, after `learn_to_rebuild`."""
        codes = check_array(X, dtype=FLOATS)
        if codes.shape[1] != self._n_features_out:
            raise EmpiriskError(f"X has {codes.shape[1]} columns, but the codes have {self._n_features_out}.")
        return through(decoder_plan(self.plan()), self.decoder_, {}, codes)

    def first_weights(self, attempt: int) -> dict[str, NDArray]:
        """The weights that training begins with: those given, the others drawn; another draw for every attempt."""
        count = sum(math.prod(shape) for shape in self.plan().shapes_of_weights().values())
        require(8 * count, f"A network of {count} weights", "use fewer or narrower layers")  # drawn in double precision
        drawn = self.plan().weights(self.init, np.random.default_rng([self.seed_, attempt]))
        moments = self.plan().shapes_of_moments()
        for given, value in (("weights", self.weights), ("masks", self.masks)):
            if not isinstance(value, (Mapping, type(None))):
                raise EmpiriskError(f"{given}={value!r} must be a table of arrays by the names of weights, or None.")
        for name in self.weights or {}:
            if name not in drawn and name not in moments:
                known = sorted([*drawn, *moments])
                raise EmpiriskError(f"weights has {name!r}, but the network has {known}; rename it.")
        drawn = self._as_given(drawn)
        for name, mask in (self.masks or {}).items():
            if name not in drawn or np.shape(mask) != drawn[name].shape:
                raise EmpiriskError(f"masks[{name!r}] fits no weight of the network; it has {sorted(drawn)}.")
            drawn[name] = drawn[name] * np.asarray(mask, dtype=np.float32)
        return drawn

    def _first_moments(self) -> dict[str, NDArray]:
        """The running moments that training begins with: those given, or mean 0 and variance 1."""
        return self._as_given(self.plan().state())

    def _as_given(self, arrays: dict[str, NDArray]) -> dict[str, NDArray]:
        """The arrays, those among ``weights`` in place of their own."""
        given = {name: np.asarray(value, np.float32) for name, value in (self.weights or {}).items() if name in arrays}
        for name, value in given.items():
            if value.shape != arrays[name].shape:
                raise EmpiriskError(f"weights[{name!r}] has shape {value.shape}, but must have {arrays[name].shape}.")
        return arrays | given

    def frozen_names(self) -> frozenset[str]:
        """The names of the weights that stay."""
        if self.freeze is True:
            return frozenset(self.weights_)
        numbers = () if self.freeze is False else tuple(self.freeze)
        for number in numbers:
            if whole("freeze", number, 0) >= len(self.layers_):
                raise EmpiriskError(f"freeze={self.freeze!r} names layer {number}, but there are {len(self.layers_)}.")
        return frozenset(name for name in self.weights_ if int(name.split(".")[0]) in numbers)

    def plan(self) -> NetworkPlan:
        """The network as a function of weights and samples."""
        check_is_fitted(self, "shape_")
        return NetworkPlan(self.layers_, self.shape_, *self.between_)

    def _sample_shape(self, rows: NDArray) -> Shape:
        if self.shape is None:
            return (*rows.shape[1:], 1) if rows.ndim == 3 else tuple(rows.shape[1:])
        if not hasattr(self.shape, "__len__"):
            raise EmpiriskError(f"shape={self.shape!r} must be a list of sizes, such as (28, 28, 1).")
        shape = tuple(whole("shape", side) for side in self.shape)
        shape = (*shape, 1) if len(shape) == 2 else shape
        if int(np.prod(shape)) != int(np.prod(rows.shape[1:])):
            raise EmpiriskError(f"shape={self.shape!r} does not fit rows of {int(np.prod(rows.shape[1:]))} numbers.")
        return shape

    def _images(self, X: ArrayLike) -> NDArray:
        """Validated rows in the shape of the network's input."""
        check_is_fitted(self, "shape_")
        rows = validate_data(self, X, dtype=FLOATS, allow_nd=True, reset=False)
        return self.shaped(rows)

    def shaped(self, rows: NDArray) -> NDArray[Any]:
        """Rows in the shape of the network's input."""
        if int(np.prod(rows.shape[1:])) != int(np.prod(self.shape_)):
            raise EmpiriskError(f"X has rows of shape {rows.shape[1:]}, but the network was fitted on {self.shape_}.")
        return rows.reshape(len(rows), *self.shape_)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_rows", "_earlier")}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _wrong_weights(its: Mapping[str, Any]) -> str | None:
    """What is wrong with the weights of a state, if anything: the layers say which there must be."""
    if not isinstance(its["layers_"], list) or not all(isinstance(layer, Layer) for layer in its["layers_"]):
        return "layers_ is no list of layers"
    try:
        plan = NetworkPlan(its["layers_"], tuple(whole("shape_", side) for side in its["shape_"]), *its["between_"])
        wanted = [plan.shapes_of_weights(), plan.shapes_of_moments()]
        if "decoder_" in its:
            wanted.append(decoder_plan(plan).shapes_of_weights())
    except (EmpiriskError, TypeError, ValueError, IndexError, OverflowError):
        return "layers_ do not fit shape_"
    names = ("weights_", "state_") if "decoder_" not in its else ("weights_", "state_", "decoder_")
    for name, shapes in zip(names, wanted, strict=False):
        held = its[name]
        if not isinstance(held, dict) or not all(isinstance(value, np.ndarray) for value in held.values()):
            return f"{name} is no table of arrays"
        if {key: (value.shape, value.dtype) for key, value in held.items()} != {
            key: (shape, np.dtype(np.float32)) for key, shape in shapes.items()
        }:
            return f"{name} does not fit layers_"
        if not all(np.isfinite(value).all() for value in held.values()):
            return f"{name} holds numbers that are not finite"
    if "head_" in its and not _is_head(its["head_"], plan.width):
        return "head_ does not fit layers_"
    if "memory_" in its and not _are_arrays(its["memory_"], list):
        return "memory_ is no list of arrays"
    return None if plan.width == its["_n_features_out"] else "layers_ do not give as many columns as are noted"


def _are_arrays(held: Any, kind: type) -> bool:
    """Whether it is a list, or a table, of arrays of finite numbers."""
    arrays = list(held.values()) if isinstance(held, dict) else held
    return (
        isinstance(held, kind)
        and all(isinstance(a, np.ndarray) and a.dtype.kind in "iuf" for a in arrays)
        and all(np.isfinite(array).all() for array in arrays)
    )


def _is_head(held: Any, width: int) -> bool:
    """Whether it is a head, in units of the targets, on so many features."""
    if not _are_arrays(held, dict) or not {HEAD, UNIT, FROM} <= held.keys() <= {HEAD, BIAS, UNIT, FROM}:
        return False
    outputs = held[UNIT].shape
    wanted = {HEAD: (width, *outputs), BIAS: outputs, UNIT: outputs, FROM: outputs}
    return len(outputs) == 1 and all(
        value.shape == wanted[name] and value.dtype == np.float32 for name, value in held.items()
    )
