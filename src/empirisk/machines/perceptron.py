"""The perceptron: the oldest machine, which learns from its mistakes alone."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.compose import composed
from empirisk.contract.inputs import generator
from empirisk.linalg.design import Design
from empirisk.losses.base import Loss
from empirisk.machines.equation import Classifier
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Problem
from empirisk.solvers.stochastic.perceptron import Perceptron as PerceptronSolver

MOST_VISITS = 10  # of a row in an epoch on average: heavier ones move by more than one unit at a time


@composed(
    {"loss": "perceptron", "penalty": "none", "C": 1.0, "solver": None, "rule": "best", "Cs": 20, "cv": 5},
    average=False,
    random_state=0,
)
class Perceptron(Classifier):
    """The perceptron: visit the rows in turn, and add y_i x_i to w, y_i to b, wherever y_i f(x_i) <= 0.

    Stochastic gradient descent with rate 1 on the sum of max(0, -y_i f(x_i)). It ends with the first epoch without a
    mistake, which comes if the classes are separable; else after ``max_iter`` epochs, with the weights that missed the
    least weight of rows, and ``certificate_.reason`` tells how many rows that were.
    Rows are visited in an order drawn from their content and ``random_state``, a row of weight c about c times in
    turn, so that the order of the data does not matter and weight 2 equals the row twice.

    Parameters
    ----------
    average : bool
        Whether to return the average of the weights after every visit, which generalises better.
    features, multiclass, class_weight, fit_intercept, tol, max_iter, max_time, random_state
        As for `Classifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, certificate_, history_, n_iter_, solver_
        As for `Classifier`; ``history_["mistakes"]`` counts the mistakes of each epoch.

    Examples
    --------
    >>> machine = er.Perceptron().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> machine.predict([[0.2], [2.7]])
    array([0, 1])
    >>> int(machine.history_["mistakes"][-1])
    0
    """

    @property
    def solver(self) -> PerceptronSolver:
        """Visits in the order of the rows."""
        return PerceptronSolver(average=self.average)

    def _problems(
        self, loss: Loss, design: Design, targets: list[NDArray], weights: NDArray, classes: int = 0
    ) -> list[Problem]:
        problems = super()._problems(loss, design, targets, weights, classes)
        return [_in_order_of_visits(problem, generator(self.random_state)) for problem in problems]


def _in_order_of_visits(problem: Problem, random: np.random.Generator) -> Problem:
    """The rows sorted by a random projection, each repeated as often as its weight says."""
    keys = _projection(problem, random)
    order = np.lexsort((problem.y, keys))
    unit = max(1.0, float(problem.weights.sum()) / (MOST_VISITS * len(order)))
    weights = problem.weights[order] / unit
    times = np.ceil(weights).astype(int)
    visits = np.repeat(order, times)
    # The last visit of a row has what is left of its weight.
    amounts = np.ones(len(visits))
    amounts[np.cumsum(times) - 1] = weights - (times - 1)
    return replace(problem.part(visits), weights=amounts * unit)


def _projection(problem: Problem, random: np.random.Generator) -> NDArray:
    """A number for each row that depends on its content: <r, x> with a random r, or its similarity to all others."""
    design = problem.design
    if not isinstance(design, GramDesign):
        return design.dot(random.normal(size=design.shape[1]))
    if design.kernel.takes != "vectors":
        return design.dot(problem.weights)
    rows = design.root.source[slice(None) if problem.rows is None else problem.rows]
    return rows @ random.normal(size=rows.shape[1])
