"""Slow, obvious references that the fast code must equal. Formulas of losses and penalties work in extended precision.

Losses are functions of z, the margin t = y f or the residual e = f - y, by the loss's name.
"""

from fractions import Fraction

import numpy as np

from tests.catalog import OF_ONE_WEIGHT, PHI, SMOOTH_SLOPE


def kinks(loss) -> list[tuple[float, float, float]]:
    """(place, slope it adds on the left, on the right) of every corner in a convex loss of one number."""
    name = loss.name()
    if name in ("perceptron", "hinge"):
        return [(0.0 if name == "perceptron" else 1.0, -1.0, 0.0)]
    if name == "absolute" or (name == "power" and loss.p == 1):
        return [(0.0, -1.0, 1.0)]
    if name == "epsilon_insensitive":
        return [(-loss.epsilon, -1.0, 0.0), (loss.epsilon, 0.0, 1.0)]
    if name == "squared_absolute":
        return [(0.0, -loss.weight, loss.weight)]
    if name == "quantile":
        return [(0.0, -loss.level, 1 - loss.level)]
    return []


def phi(loss, z):
    """The loss as the catalogue writes it."""
    with np.errstate(over="ignore"):
        return PHI[loss.name()](loss, z)


def slopes(loss, z):
    """The left and the right derivative of a convex loss: the ends of its subdifferential."""
    with np.errstate(over="ignore"):
        smooth = SMOOTH_SLOPE[loss.name()](loss, z) if loss.name() in SMOOTH_SLOPE else 0 * z
    left = smooth + sum(np.where(z <= place, before, after) for place, before, after in kinks(loss))
    right = smooth + sum(np.where(z < place, before, after) for place, before, after in kinks(loss))
    return left, right


def deviance(loss, y, f):
    """The unit deviance of a Tweedie distribution, by the logarithm e of mean over y: without its powers of 1e8."""
    y, f = np.asarray(y, dtype=np.longdouble), np.asarray(f, dtype=np.longdouble)
    a, c = np.longdouble(2 - loss.power), np.longdouble(loss.power - 1)
    some = np.where(y > 0, y, 1)
    e = f - np.log(some)
    rise = np.expm1(a * e) / a if a else e
    fall = np.expm1(-c * e) / c if c else -e
    return np.where(y > 0, 2 * some**a * (rise + fall), 2 * np.exp(a * f) / a if a else np.inf)


def on_targets(loss, y, f):
    """loss(y, f) of a loss of one number."""
    if loss.positive:
        return deviance(loss, y, f)
    return phi(loss, y * f if loss.tasks == {"classification"} else f - y)


def slopes_on_targets(loss, y, f):
    """Left and right derivative in f."""
    if loss.tasks != {"classification"}:
        return slopes(loss, f - y)
    left, right = slopes(loss, y * f)
    return np.where(y > 0, left, -right), np.where(y > 0, right, -left)


def joint_value(loss, y: int, row) -> float:
    """A joint loss of one sample."""
    if loss.name() == "softmax":
        return float(np.log(sum(np.exp(score - row[y]) for score in row)))
    if loss.name() == "soft_crammer_singer":
        ahead = [(loss.margin * (j != y) + score - row[y]) / loss.temperature for j, score in enumerate(row)]
        return float(loss.temperature * np.log(sum(np.exp(ahead))))
    return float(max((j != y) + score - row[y] for j, score in enumerate(row)))


def penalty_value(penalty, w) -> float:
    """R(w) as the catalogue writes it."""
    return float(sum(OF_ONE_WEIGHT[penalty.name()](penalty, x) for x in np.ravel(w)))


def crammer_singer_prox(y: int, row, step) -> list[float]:
    """argmin_x  max_j(1[j != y] + x_j - x_y) + |x - row|^2 / (2 step), in exact fractions.

    By Moreau x = row - step (p - onehot), where p is the projection of (row + cost) / step + onehot on the simplex.
    """
    row, step = [Fraction(float(score)) for score in row], Fraction(float(step))
    goal = [(score + (j != y)) / step + (j == y) for j, score in enumerate(row)]
    ordered = sorted(goal, reverse=True)
    threshold = max((sum(ordered[:m]) - 1) / m for m in range(1, len(row) + 1))
    p = [max(Fraction(0), entry - threshold) for entry in goal]
    assert sum(p) == 1
    return [float(score - step * (p[j] - (j == y))) for j, score in enumerate(row)]


def lloyd(X, centres, rounds):
    """k-means, one half-step after the other; the labels are those of the last means."""
    for _ in range(rounds):
        labels = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.array([X[labels == k].mean(axis=0) for k in range(len(centres))])
    return centres, ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)


def slide_naively(x, size, stride, padding, outside, pool):
    """pool(window) for every window of images n x height x width x channels, with ``outside`` around them."""
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    x = np.pad(x, around, constant_values=outside)
    rows, columns = ((length - size) // stride + 1 for length in x.shape[1:3])
    windows = [[[image[i * stride : i * stride + size, j * stride : j * stride + size] for j in range(columns)]
                for i in range(rows)] for image in x]  # fmt: skip
    return np.array([[[pool(window) for window in line] for line in image] for image in windows])
