"""Points that may be better than the one a machine found: no certificate may deny what one of them attains.

Each is judged by `Piece.value` alone, so it does not matter how well its solver works, or whose it is.
"""

import importlib.util
from typing import Any

import numpy as np
from scipy import optimize

from tests.fuzz.equation import Piece, Point

#: Where CVXPY is installed its point is one more rival; machines for long runs need not have it.
CVXPY = importlib.util.find_spec("cvxpy") is not None
#: Losses whose corners a linear or quadratic programme takes: (slope, offset) of each straight piece of phi(z).
PIECES = {
    "hinge": lambda loss: ((0.0, 0.0), (-1.0, 1.0)),
    "perceptron": lambda loss: ((0.0, 0.0), (-1.0, 0.0)),
    "absolute": lambda loss: ((1.0, 0.0), (-1.0, 0.0)),
    "quantile": lambda loss: ((1 - loss.level, 0.0), (-loss.level, 0.0)),
    "epsilon_insensitive": lambda loss: ((0.0, 0.0), (1.0, -loss.epsilon), (-1.0, -loss.epsilon)),
}
STEPS = 200
VANISHING = 1e-150


def points(piece: Piece) -> list[Point]:
    """A constant, least squares, and what general solvers make of the problem."""
    out = [piece.constant()]
    if not piece.classes and not piece.gram:
        out += _least_squares(piece)
    phi, back = _explicit(piece)
    solvers = (_programme, _descent, _convex) if CVXPY else (_programme, _descent)
    for solver in solvers:
        try:
            with np.errstate(all="ignore"):
                found = solver(piece, phi)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):  # numbers that a general solver does not take
            continue
        out += [(w if back is None else back @ w, b) for w, b in found]
    # Columns whose squares are zero count as zero: no fit gives them the weights that would make them count.
    vanishing = np.zeros(len(piece.phi), dtype=bool) if piece.gram else np.abs(piece.phi).max(axis=0) < VANISHING
    out = [(np.where(vanishing, 0.0, w.T).T, b) for w, b in out]
    return [point for point in out if all(np.all(np.isfinite(part)) for part in point)]


def _least_squares(piece: Piece) -> list[Point]:
    ones = np.ones((len(piece.phi), 1))
    matrix = np.hstack([piece.phi, ones]) if piece.intercept else piece.phi
    root = np.sqrt(piece.weights / piece.weights.max())[:, None]
    with np.errstate(all="ignore"):
        sizes = np.abs(matrix).max(axis=0)
        sizes[sizes == 0] = 1.0
        try:
            least = np.linalg.lstsq(root * (matrix / sizes), root[:, 0] * piece.y, rcond=None)[0] / sizes
        except np.linalg.LinAlgError:
            return []
    return [(least[: piece.phi.shape[1]], least[-1] if piece.intercept else np.zeros(()))]


def _explicit(piece: Piece) -> tuple[np.ndarray, np.ndarray | None]:
    """Columns that stand for the features, and what turns weights of them into the piece's coefficients."""
    if not piece.gram:
        return piece.phi, None
    values, vectors = np.linalg.eigh(piece.phi)
    kept = values > 1e-12 * max(values[-1], 1e-300)
    roots = np.sqrt(values[kept])
    return vectors[:, kept] * roots, vectors[:, kept] / roots


def _convex(piece: Piece, phi: np.ndarray) -> list[Point]:
    from tests import truth

    if hasattr(piece.penalty, "groups"):
        return []
    found = truth.minimiser(
        piece.loss, piece.penalty, piece.C, phi, piece.y, piece.weights, piece.intercept, piece.classes
    )
    return [found.point]


def _programme(piece: Piece, phi: np.ndarray) -> list[Point]:
    """Corners alone, without a square: a linear programme in (w+, w-, b, one slack per row)."""
    straight = PIECES.get(piece.loss.name())
    if straight is None or piece.penalty.l2 or piece.classes:
        return []
    n, d = phi.shape
    sizes = np.abs(phi).max(axis=0)
    sizes[sizes == 0] = 1.0
    scaled, scale = phi / sizes, piece.C * piece.weights.max()
    margin = piece.loss.margin_form
    signed, ones = (piece.y[:, None] * scaled, piece.y) if margin else (scaled, np.ones(n))
    shift = np.zeros(n) if margin else -piece.y
    above, below = [], []
    for slope, offset in straight(piece.loss):  # slope z + offset <= slack
        above.append(np.hstack([slope * signed, -slope * signed, slope * ones[:, None], -np.eye(n)]))
        below.append(-offset - slope * shift)
    cost = np.concatenate([np.repeat([piece.penalty.l1 / scale / sizes], 2, axis=0).ravel(), [0.0]])
    cost = np.concatenate([cost, piece.weights / piece.weights.max()])
    free = (None, None) if piece.intercept else (0.0, 0.0)
    bounds = [(0, None)] * (2 * d) + [free] + [(None, None)] * n
    best = optimize.linprog(cost, np.vstack(above), np.concatenate(below), bounds=bounds, method="highs")
    if best.x is None:
        return []
    return [((best.x[:d] - best.x[d : 2 * d]) / sizes, best.x[2 * d])]


def _descent(piece: Piece, phi: np.ndarray) -> list[Point]:
    """Quasi-Newton steps on columns of size one, with w = w+ - w-, from zero and from the point that was found."""
    d, K = phi.shape[1], piece.classes
    sizes = np.sqrt(np.mean(phi * phi, axis=0))
    sizes[sizes == 0] = 1.0
    scaled = phi / sizes
    shape = (d, K) if K else (d,)
    width = int(np.prod(shape))
    inverse = (1 / sizes)[:, None] if K else 1 / sizes
    factor = 1 / (piece.C * piece.weights.max())

    def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = x[2 * width :].reshape((K,) if K else ())
        return (x[:width] - x[width : 2 * width]).reshape(shape), b if piece.intercept else np.zeros_like(b)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = split(x)
        true = w * inverse
        f = scaled @ w + b
        l1, l2 = piece.penalty.l1 * factor, piece.penalty.l2 * factor
        share = piece.weights / piece.weights.max()
        value = share @ piece.loss.value(piece.y, f) + 0.5 * l2 * np.sum(true * true)
        value += l1 * np.sum((x[:width] + x[width : 2 * width]).reshape(shape) * inverse)
        slope = (share[:, None] if K else share) * piece.loss.derivative(piece.y, f)
        down = (scaled.T @ slope + l2 * true * inverse).ravel()
        pull = (l1 * inverse * np.ones(shape)).ravel()
        at_b = slope.sum(axis=0) if piece.intercept else np.zeros(b.shape)
        return float(value), np.concatenate([down + pull, pull - down, np.atleast_1d(at_b)])

    bounds = [(0, None)] * (2 * width) + [(None, None)] * (K or 1)
    out = []
    for w, b in _starts(piece, shape):
        own = np.asarray(w) / inverse
        flat = np.concatenate([np.maximum(own, 0).ravel(), np.maximum(-own, 0).ravel(), np.atleast_1d(b).ravel()])
        if not np.all(np.isfinite(flat)):
            continue
        best = optimize.minimize(
            objective, flat, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": 0.0}
        )
        w, b = split(best.x)
        out.append((w * inverse, b))
    return out


def _starts(piece: Piece, shape: tuple[int, ...]) -> list[Any]:
    zero = (np.zeros(shape), piece.constant()[1])
    return [zero] if piece.gram else [zero, piece.found]
