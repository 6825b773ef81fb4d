"""Second-order cones: the norms of groups of weights, as an interior-point method keeps them.

The norm of a group is  limit |w| = max of <v, w> over |v| <= limit,  the least limit * t with t >= |w|. The optimality
conditions, relaxed by mu > 0, say that s = (t, w) and z = (limit, -v) lie inside of the cone  first > |rest|  with

    t limit - <v, w> = 2 mu,   t v = limit w,

which for a single weight are those of a kink. Newton's method on them, in the scaling of Nesterov and Todd, adds to the
equations of the weights a block for each group: a multiple of the identity less a matrix of rank one.
"""

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Array, Problem
from empirisk.solvers.corners.kinks import TINY, Floors, Kinks, weight_spread

#: How near to the boundary of its cone a point may be, as a share of the square of its norm: a few units of rounding.
NEAREST = 1e-15
#: The slack of weights begins at no more than this many times what the penalty allows them at the solution, where it is
#: below the objective of w = 0: columns of tiny numbers would begin a hundred digits away.
FARTHEST = 1e6


def inside_of(problem: Problem, w: Array) -> Array:
    """The weights nearest to w from which a path may begin: above zero where none may be negative.

    No further than twice what the penalty allows them at the solution, where it is below the objective of w = 0.
    """
    penalty, origin = problem.penalty, problem.origin_value
    if not penalty.positive:
        return w
    first = weight_spread(problem)
    first = np.minimum(first, 2 * origin / penalty.l1) if penalty.l1 else first
    first = np.minimum(first, 2 * np.sqrt(origin / penalty.l2)) if penalty.l2 else first
    return np.maximum(w.T, np.maximum(first, TINY)).T


def penalty_corners(problem: Problem, w: Array) -> "list[Kinks | Floors | Cones]":
    """The corners of the penalty at weights w: of single weights, of groups, or none."""
    penalty, farthest = problem.penalty, FARTHEST * problem.origin_value
    if penalty.positive:
        return [Floors(w, penalty.l1, problem.origin_value / w.size)]
    limits = penalty.group_limits(w.shape)
    if limits is not None:
        blocks = penalty.blocks(len(w))
        slack = np.zeros(len(limits))
        np.maximum.at(slack, blocks, weight_spread(problem))
        return [Cones(w, blocks, limits, np.minimum(slack, farthest / limits))]
    if not penalty.l1:
        return []
    bound = np.full(w.shape, penalty.l1)
    slack = np.minimum(weight_spread(problem), farthest / penalty.l1)
    return [Kinks(w, -bound, bound, np.broadcast_to(slack, w.T.shape).T)]


class Cones:
    """One cone for each group of weights; it begins at v = 0, with the given slack between t and |w|.

    Kept are the squared distances to the boundary, t^2 - |w|^2 and limit^2 - |v|^2, because near it their terms have
    no digits left.

    Parameters
    ----------
    w : array of d, or d x K
        The weights.
    blocks : array of d
        The number of the group of each row of w.
    limits, slack : arrays
        The factor of the norm of each group, and the first t - |w|.
    """

    #: The slope of a norm turns with the weights: no linear system gives the solution.
    straight = False

    def __init__(self, w: Array, blocks: NDArray[np.intp], limits: Array, slack: Array):
        self.w, self.v, self._blocks, self._limits = w, np.zeros_like(w), blocks, limits
        self._above, self._room = slack * (slack + 2 * np.sqrt(self._products(w, w))), limits**2
        self.pairs, self.count = (self,), 2 * len(limits)
        self._aim: Array | float = 0.0
        self._second = np.zeros(len(limits)), np.zeros_like(w)
        self._t_step, self._w_step, self._v_step = np.zeros(len(limits)), np.zeros_like(w), np.zeros_like(w)
        self._scale()

    def _products(self, a: Array, b: Array) -> Array:
        """<a_g, b_g> of every group."""
        sums = (a * b).sum(axis=tuple(range(1, a.ndim)))
        return np.bincount(self._blocks, sums, len(self._limits)).astype(float, copy=False)

    def _spread(self, values: NDArray) -> NDArray:
        """A number of every group, for each of its weights."""
        return values[self._blocks].reshape(-1, *[1] * (self.w.ndim - 1))

    def _scale(self) -> None:
        """The scaling point of s and z: its first entries, the others, their squares, and the factor of its matrix.

        The matrix W of a group takes z and W^-1 takes s to the same point ``even``.
        """
        limits, (w_norm, v_norm) = self._limits, (np.sqrt(self._products(x, x)) for x in (self.w, self.v))
        self._t = np.sqrt(w_norm**2 + self._above)
        turned = np.maximum(w_norm * v_norm - self._products(self.w, self.v), 0.0)
        # <s, z> as a sum of terms of one sign.
        self._gap = limits * self._above / (self._t + w_norm) + w_norm * self._room / (limits + v_norm) + turned
        s_root, z_root = np.sqrt(self._above), np.sqrt(self._room)
        middle = np.sqrt(0.5 * (1 + self._gap / (s_root * z_root)))
        s, z = (
            (self._t / s_root, self._spread(1 / s_root) * self.w),
            (limits / z_root, self._spread(1 / z_root) * self.v),
        )
        self._first = (s[0] + z[0]) / (2 * middle)
        self._rest = self._spread(0.5 / middle) * (s[1] + z[1])
        self._square = self._products(self._rest, self._rest)
        self._factor = s_root / z_root
        size, total = np.sqrt(s_root * z_root), s[0] + z[0] + 2 * middle
        parts = self._spread((middle + z[0]) / total) * s[1] - self._spread((middle + s[0]) / total) * z[1]
        self._even = size * middle, self._spread(size) * parts
        self._determinant = s_root * z_root

    def _scaled(self, first: Array, rest: Array, sign: float) -> tuple[Array, Array]:
        """W (first, rest) for the sign 1, W^-1 (first, rest) for -1."""
        factor = self._factor ** (0.5 * sign)
        along = self._products(self._rest, rest)
        turned = rest + self._spread(sign * first + along / (1 + self._first)) * self._rest
        return factor * (self._first * first + sign * along), self._spread(factor) * turned

    def aim(self, mu: float) -> None:
        """Aim at mu, without second-order terms."""
        self._aim, self._second = 2 * mu, (np.zeros_like(self._limits), np.zeros_like(self.w))

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before (Mehrotra's corrector)."""
        s_first, s_rest = self._scaled(self._t_step, self._w_step, -1.0)
        z_first, z_rest = self._scaled(np.zeros_like(self._t_step), -self._v_step, 1.0)
        first = s_first * z_first + self._products(s_rest, z_rest)
        rest = self._spread(s_first) * z_rest + self._spread(z_first) * s_rest
        even, others = self._even
        share = (even * first - self._products(others, rest)) / self._determinant
        self._aim, self._second = (
            2 * mu,
            self._scaled(share, (rest - self._spread(share) * others) / self._spread(even), 1.0),
        )

    def centralise(self, t: float, mu: float) -> None:
        """Aim also at bringing back what the step, gone t along, would throw far off (Gondzio's corrector)."""
        gaps = self._gaps_after(t)
        self._aim = self._aim + np.maximum(np.clip(gaps, 0.2 * mu, 20 * mu) - gaps, -20 * mu)

    def stiffened(self, stiffness: Array) -> Array:
        """The stiffness of single weights with dv/dw on the central path added: d x d, or d x K x d x K."""
        root = (self._spread(np.sqrt(2 / ((1 + 2 * self._square) * self._factor))) * self._rest).ravel()
        group = np.repeat(self._blocks, self.w.size // len(self.w))
        matrix = np.multiply.outer(-root, root)
        matrix[group[:, None] != group] = 0.0
        matrix.flat[:: len(matrix) + 1] += (stiffness + self._spread(1 / self._factor)).ravel()
        return matrix.reshape(*self.w.shape, *self.w.shape)

    def offset(self) -> Array:
        """h, such that dv = (dv/dw) (dw + h) aims at the target."""
        return self.w - self._spread(self._aim / self._room) * self.v + self._second[1]

    def direct(self, x: Array) -> float:
        """Compute the step for x = dw + h, and return the longest t <= 1 that keeps everything inside of its cone."""
        along = self._products(self._rest, x)
        # The part of x along `rest` is taken out first: on the boundary nearly all of it vanishes.
        share = along / np.maximum(self._square, TINY)
        across = x - self._spread(share) * self._rest
        self._v_step = self._spread(1 / self._factor) * (
            across + self._spread(share / (1 + 2 * self._square)) * self._rest
        )
        self._w_step = x - self.offset()
        self._t_step = (
            self._aim * self._limits / self._room
            - self._t
            - self._second[0]
            + 2 * self._first * along / (1 + 2 * self._square)
        )
        return min(1.0, *(float(_first_root(*line).min(initial=np.inf)) for line in self._lines()))

    def _lines(self) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
        """The squared distances of s and z to the boundary along the step:  constant, half the slope, and curvature."""
        w, v, dw, dv, products = self.w, self.v, self._w_step, self._v_step, self._products
        return (
            (self._above, self._t * self._t_step - products(w, dw), self._t_step**2 - products(dw, dw)),
            (self._room, -products(v, dv), -products(dv, dv)),
        )

    def _gaps_after(self, t: float) -> Array:
        w, v, dw, dv, products = self.w, self.v, self._w_step, self._v_step, self._products
        slope = self._limits * self._t_step - products(w, dv) - products(v, dw)
        return self._gap + t * (slope - t * products(dw, dv))

    def gap_after(self, t: float) -> float:
        """The sum of  t limit - <v, w>,  the duality gap of the groups, after going t along the step."""
        return float(self._gaps_after(t).sum())

    def barrier(self, t: float, mu: float) -> float:
        """limit t - mu log(t^2 - |w|^2), which the central path minimises, after going t along the step."""
        constant, slope, bend = self._lines()[0]
        distances = constant + t * (2 * slope + t * bend)
        return float(self._limits @ (self._t + t * self._t_step) - mu * np.log(distances).sum())

    def move(self, t: float) -> None:
        """Go t along the step."""
        self._above, self._room = (constant + t * (2 * slope + t * bend) for constant, slope, bend in self._lines())
        self.w, self.v = self.w + t * self._w_step, self.v + t * self._v_step

    def absorb(self, w: Array) -> Array:
        """Take the weights as they are, no nearer to the boundary than rounding."""
        self.w = w
        self._above = np.maximum(self._above, NEAREST * self._products(w, w))
        self._room = np.maximum(self._room, NEAREST * self._limits**2)
        self._scale()
        return w

    def idle(self, value: float) -> NDArray[np.bool_]:
        """The weights of groups that seem to be zero at the solution, where the objective is about ``value``.

        On the central path  limit t  and the room of v within its ball, each as a share of what it can be, have a
        product that vanishes with mu: the smaller of them is the one that vanishes.
        """
        return self._spread(self._limits * self._t / value < self._room / self._limits**2)


def _first_root(constant: Array, slope: Array, bend: Array) -> Array:
    """The smallest t > 0 with  constant + 2 slope t + bend t^2 = 0,  constant > 0; infinite where there is none."""
    discriminant = slope**2 - bend * constant
    root = np.sqrt(np.maximum(discriminant, 0.0))
    # Either form of the root has no difference in it where it is used.
    t = np.where(slope < 0, constant / (root - slope), (root + slope) / -bend)
    return np.where((discriminant >= 0) & (t > 0), t, np.inf)
