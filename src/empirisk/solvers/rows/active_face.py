"""Newton steps on the face of the box that the free dual variables span: the last digits of a kernel machine."""

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from empirisk.linalg.threads import single_threaded_blas
from empirisk.solvers.rows.pairs import DualIterate
from empirisk.solvers.rows.row_cache import gram

Array = NDArray[np.float64]
#: Free variables for which a factorisation is cheap.
SIZE = 1500
#: Those for which all eigenvectors are, which tell flat directions from steep ones.
SMALL = 300
#: Eigenvalues below this share of the largest, times the size, are rounding.
RANK = 1e-13
#: Ridges, in units of the mean diagonal, with which a singular matrix is tried.
BENDINGS = (1e-14, 1e-11, 1e-8)
#: Products for which Newton steps take about a second.
WORK = 1e9


def can_polish(state: DualIterate) -> bool:
    """Whether the free variables are few enough for a factorisation."""
    return bool(0 < np.count_nonzero(state.lift == state.drop) <= SIZE)


def polish(state: DualIterate) -> bool:
    """Minimise over the free variables, the others held; a variable that meets its bound is held from then on.

    The gradient of the state must be exact; it is not kept up to date. Returns whether anything moved.
    """
    if not can_polish(state):
        return False
    places = np.flatnonzero(state.lift == state.drop)
    samples = state.active[places]
    Q = np.asarray(gram(state.problem).block(samples, samples), dtype=np.float64) / state.strength
    Q[np.diag_indices(len(Q))] += state.bends[samples]
    G = state.G[places] + state.lift[places]
    low, high = _pieces(state, samples)
    u = state.u[samples]
    moved = False
    held = np.zeros(len(u), dtype=bool)
    for _ in range(max(5, min(len(u), int(WORK / len(u) ** 3)))):
        inside = np.flatnonzero(~held)
        if len(inside) < 1 + state.problem.intercept:
            break
        with single_threaded_blas():  # starting threads takes longer than these small factorisations
            direction = _direction(Q[np.ix_(inside, inside)], G[inside], state.problem.intercept)
        if direction is None or not np.any(direction):
            break
        length, first = _length(u[inside], direction, low[inside], high[inside])
        change = length * direction
        u[inside] += change
        G += Q[:, inside] @ change
        moved = moved or bool(np.any(change))
        if first < 0:
            break
        bound = low if direction[first] < 0 else high
        u[inside[first]] = bound[inside[first]]
        held[inside[first]] = True
    state.u[samples] = np.clip(u, low, high)
    return moved


def _pieces(state: DualIterate, samples: NDArray) -> tuple[Array, Array]:
    """The interval of each variable on which the conjugate is smooth."""
    low, high = state.low[samples], state.high[samples]
    if state.tube == 0:
        return low, high
    u = state.u[samples]
    return np.where(u > 0, 0.0, low), np.where(u < 0, 0.0, high)


def _direction(Q: Array, G: Array, balanced: bool) -> Array | None:
    """The step to the minimum of 1/2 d'Qd + G'd, with sum d = 0 if it is to stay balanced; None if Q is too bad."""
    if len(Q) <= SMALL:
        return _shortest(Q, G, balanced)
    size = float(np.trace(Q)) / len(Q) or 1.0
    for bending in BENDINGS:
        try:
            factor = cho_factor(Q + bending * size * np.eye(len(Q)), lower=True, check_finite=False)
        except LinAlgError:
            continue
        step = cho_solve(factor, G, check_finite=False)
        if balanced:
            ones = cho_solve(factor, np.ones(len(Q)), check_finite=False)
            step -= ones * (step.sum() / ones.sum())
        return -step if np.all(np.isfinite(step)) else None
    return None


def _shortest(Q: Array, G: Array, balanced: bool) -> Array:
    """The same step, without its part along flat directions, which would only run into bounds."""
    if balanced:
        rows = Q.mean(axis=0)
        Q = Q - rows - rows[:, None] + rows.mean()
        G = G - G.mean()
    values, vectors = np.linalg.eigh(Q)
    steep = values > RANK * len(Q) * max(values[-1], 0.0)
    vectors = vectors[:, steep]
    return -vectors @ ((vectors.T @ G) / values[steep])


def _length(u: Array, direction: Array, low: Array, high: Array) -> tuple[float, int]:
    """How much of the direction fits between the bounds, and which variable stops it (-1 for none)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(direction > 0, (high - u) / direction, np.where(direction < 0, (low - u) / direction, np.inf))
    first = int(np.argmin(limits))
    return (1.0, -1) if limits[first] >= 1 else (max(float(limits[first]), 0.0), first)
