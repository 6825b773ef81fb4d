"""The neural tangent kernel: how alike two inputs are to a network that has not learned yet."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from empirisk.errors import EmpiriskError
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import as_matrix
from empirisk.kernels.vectors import Linear
from empirisk.nets.device import on_device
from empirisk.nets.layers import Pass, Weights
from empirisk.nets.network import Network
from empirisk.nets.objective import BIAS, HEAD
from empirisk.nets.plan import BLOCK, NetworkPlan, bucket
from empirisk.settings import require

#: Eigenvalues of the Gram matrix below this share of the largest are taken for zero.
NOTHING = 1e-9


class Tangent(Kernel):
    """k(x, z) = <gradient of f(x), gradient of f(z)> in all weights, for f = <w, phi_W(x)> + b at its first weights.

    To first order, training a network is fitting a linear machine on these gradients; the wider the network, the longer
    that stays true.

    Parameters
    ----------
    network : Network
        Its layers, first weights and seed; a ``random_state`` of None counts as 0, so that the kernel is one function.

    Examples
    --------
    >>> kernel = er.kernels.Tangent(er.Network([50], random_state=0))
    >>> bool(np.linalg.eigvalsh(kernel([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))[0] > 0)
    True
    """

    def __init__(self, network: Any = None):
        self.network = network

    def check(self):
        if not isinstance(self.network, Network):
            raise EmpiriskError(f"network={self.network!r} of Tangent must be a Network, such as er.Network([100]).")

    def prepare(self, X):
        self.check()
        return self.gradients(as_matrix(X, False))

    def between(self, A, B=None, out=None):
        return Linear().between(A, B, out)

    def diagonals(self, A):
        return Linear().diagonals(A)

    def gradients(self, X: ArrayLike) -> NDArray[Any]:
        """The gradient of f in all weights for every row, n x weights."""
        parts = self._gradients(np.asarray(X))
        return np.concatenate([part.reshape(len(part), -1) for _, part in sorted(parts.items())], axis=1)

    def influence(self, X: ArrayLike) -> dict[str, NDArray]:
        """The mean squared derivative of f in every weight, by name: which weights matter for these rows."""
        return {name: (part**2).mean(axis=0) for name, part in self._gradients(as_matrix(X, False)).items()}

    def blind_spots(self, X: ArrayLike) -> NDArray[Any]:
        """Patterns on the rows that no small change of the weights can make f follow: orthonormal columns.

        They are the eigenvectors of the Gram matrix with eigenvalue zero.
        """
        values, vectors = np.linalg.eigh(self.block(X))
        return vectors[:, values <= NOTHING * values[-1]]

    def _gradients(self, X: NDArray) -> dict[str, NDArray]:
        plan, weights, state = self._first(X)
        count = sum(value.size for value in weights.values())
        size = X.dtype.itemsize * len(X) * count
        require(size, f"The gradients of {len(X)} rows in {count} weights", "use fewer rows or a narrower network")
        X = X.reshape(len(X), *plan.shape)
        parts = []
        with on_device(), jax.enable_x64(X.dtype == np.float64):
            weights, state = ({k: np.asarray(v, X.dtype) for k, v in part.items()} for part in (weights, state))
            for start in range(0, len(X), BLOCK):
                block = X[start : start + BLOCK]
                padded = np.zeros((bucket(len(block)), *block.shape[1:]), X.dtype)
                padded[: len(block)] = block
                found = _slopes(plan, weights, state, padded)
                parts.append({name: np.asarray(part)[: len(block)] for name, part in found.items()})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _first(self, X: NDArray) -> tuple[NetworkPlan, dict[str, NDArray], dict[str, NDArray]]:
        """The network at its first weights, with a head."""
        network = clone(self.network)
        if network.random_state is None:
            network.set_params(random_state=0)
        network.fit(X)
        random = np.random.default_rng([network.seed_, 1])
        plan = network.plan()
        head = random.normal(size=(plan.width, 1)) / np.sqrt(max(plan.width, 1))
        return plan, network.weights_ | {HEAD: head, BIAS: np.zeros(1)}, network.state_


@partial(jax.jit, static_argnums=0)
def _slopes(plan: NetworkPlan, weights: Weights, state: Weights, x: Any) -> Any:
    def f(weights, row):
        return (plan.apply(weights, row[None], Pass(state)) @ weights[HEAD] + weights[BIAS])[0, 0]

    return jax.vmap(jax.grad(f), (None, 0))(weights, x)
