"""Random problems of every shape that a solver must survive, one generator for all tests."""

import numpy as np
from scipy import sparse

from empirisk import losses, penalties
from empirisk.linalg.design import design_of
from empirisk.problem import Problem

SHAPES = {"tall": (60, 5), "wide": (20, 40)}
KINDS = ("plain", "badly scaled", "constant and duplicate columns", "sparse")


def matrix(shape: str, kind: str, random: np.random.Generator):
    """Data of a shape and a kind."""
    n, d = SHAPES[shape]
    X = random.normal(size=(n, d))
    if kind == "badly scaled":
        X = X * np.logspace(-3, 3, d) + 1.0
    if kind == "constant and duplicate columns":
        X[:, 1], X[:, 3] = 2.0, X[:, 2]
    if kind == "sparse":
        X = sparse.csr_matrix(X * (random.random((n, d)) < 0.3))
    return X


def targets(loss, X, random: np.random.Generator):
    """Labels or numbers that follow the first column, with noise."""
    first = X[:, [0]].toarray().ravel() if sparse.issparse(X) else X[:, 0]
    f = first / first.std() + 0.5 * random.normal(size=len(first))
    if loss.joint:
        return np.digitize(f, np.quantile(f, [0.33, 0.66])).astype(float)
    if loss.positive:  # amounts, of which some are zero where the loss allows it
        return np.exp(0.5 * (f - f.mean())) * ((loss.power == 2) | (random.random(len(f)) < 0.8))
    return 2 * f + 1 if "regression" in loss.tasks else np.where(f > np.median(f), 1.0, -1.0)


def make(loss, penalty, C, shape="tall", kind="plain", intercept=True, seed=0) -> tuple[Problem, tuple]:
    """A problem, and the arguments with which `truth.optimum` finds its value."""
    random = np.random.default_rng([seed, *map(ord, f"{shape}{kind}")])
    loss, penalty = losses.find(loss), penalties.find(penalty)
    X = matrix(shape, kind, random)
    y = targets(loss, X, random)
    weights = random.uniform(0.3, 3.0, X.shape[0])
    classes = 3 if loss.joint else 0
    problem = Problem(loss, penalty, C, design_of(X, centre=intercept), y, weights, intercept, classes)
    return problem, (loss, penalty, C, X, y, weights, intercept, classes)
