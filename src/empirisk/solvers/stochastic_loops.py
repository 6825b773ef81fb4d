"""The compiled loops of stochastic gradients: predictions and steps of one batch, and passes of the perceptron.

Weights are rows, one per output, with the intercept as the last entry: K x (d + 1).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.solvers.rows import row_add, row_dot

Array = NDArray[np.float64]


class Buffers(NamedTuple):
    """The weights, their gradient, its running mean and mean square, and the average of the weights over the steps."""

    weights: Array
    gradient: Array
    mean: Array
    square: Array
    average: Array


# Places among the numbers of a step: the step size, l1 and l2 penalties, the share of the new weights in their
# average, how slowly mean and mean square forget, what a new square counts, both corrected for their start at zero,
# and what keeps the divisor above zero. A square that counts nothing means a plain step.
RATE, L1, L2, SHARE, KEEP_MEAN, KEEP_SQUARE, GAIN, MEAN_UP, SQUARE_UP, FLOOR = range(10)
NUMBERS = 10


@njit(cache=True, nogil=True)
def predict(rows, chosen, weights, out):
    """out = the predictions of the chosen rows, one column per output."""
    width = weights.shape[1] - 1
    for k in range(len(weights)):
        w, b = weights[k, :width], weights[k, width]
        for r in range(len(chosen)):
            out[r, k] = row_dot(rows, chosen[r], w) + b


@njit(cache=True, nogil=True)
def step(rows, chosen, slopes, buffers, numbers, intercept):
    """One step along the gradient  sum_r slopes_r a_r + l2 w,  followed by the soft threshold of the l1 penalty."""
    weights, gradient = buffers.weights, buffers.gradient
    width = weights.shape[1] - 1
    gradient[:, :] = 0.0
    for k in range(len(weights)):
        w = gradient[k, :width]
        for r in range(len(chosen)):
            if slopes[r, k] != 0.0:
                row_add(rows, chosen[r], slopes[r, k], w)
                if intercept:
                    gradient[k, width] += slopes[r, k]
        for j in range(width):
            w[j] += numbers[L2] * weights[k, j]
    move(buffers, numbers)


@njit(cache=True, nogil=True)
def move(buffers, numbers):
    """Move every weight by its own step size, and the average towards the weights."""
    weights, gradient, mean, square, average = buffers
    rate, l1, share = numbers[RATE], numbers[L1], numbers[SHARE]
    width = weights.shape[1] - 1
    adaptive = numbers[GAIN] > 0
    for k in range(len(weights)):
        for j in range(width + 1):
            direction, size = gradient[k, j], rate
            if adaptive:
                square[k, j] = numbers[KEEP_SQUARE] * square[k, j] + numbers[GAIN] * direction * direction
                mean[k, j] = numbers[KEEP_MEAN] * mean[k, j] + (1 - numbers[KEEP_MEAN]) * direction
                direction = mean[k, j] * numbers[MEAN_UP]
                size = rate / (np.sqrt(square[k, j] * numbers[SQUARE_UP]) + numbers[FLOOR])
            value = weights[k, j] - size * direction
            if l1 > 0 and j < width:
                value -= min(max(value, -size * l1), size * l1)
            weights[k, j] = value
            average[k, j] += share * (value - average[k, j])


class Tally(NamedTuple):
    """The perceptron's weights with the intercept last, the same times the moment of each change, and the moment."""

    weights: Array
    changes: Array
    moment: Array


@njit(cache=True, nogil=True)
def correct(rows, y, amounts, order, tally, intercept):
    """Visit rows in order, and add amount_i y_i a_i to the weights wherever y_i f_i <= 0; how often that was."""
    weights, changes, moment = tally
    width = len(weights) - 1
    w, timed = weights[:width], changes[:width]
    mistakes = 0
    for k in range(len(order)):
        i = order[k]
        if y[i] * (row_dot(rows, i, w) + weights[width]) <= 0:
            mistakes += 1
            amount = amounts[i] * y[i]
            row_add(rows, i, amount, w)
            row_add(rows, i, amount * moment[0], timed)
            if intercept:
                weights[width] += amount
                changes[width] += amount * moment[0]
        moment[0] += 1.0
    return mistakes
