"""The list of behaviours: functions that assert something, each for every value of its parameters."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, make_blobs, make_classification

#: Stands for no parameter.
ALONE = object()
#: All behaviours, in the order in which their files are imported.
CASES: list["Case"] = []

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
DIABETES_X, DIABETES_Y = (part[:150] for part in load_diabetes(return_X_y=True))
TOY_X = np.array([[-2.0, -1.0], [-1.0, -1.0], [-1.0, -2.0], [1.0, 1.0], [1.0, 2.0], [2.0, 1.0]])
TOY_Y = np.array([1, 1, 1, 2, 2, 2])
TOY_NEW, TOY_TRUTH = np.array([[-1.0, -1.0], [2.0, 2.0], [3.0, 2.0]]), np.array([1, 2, 2])
TWO_X, TWO_Y = make_classification(80, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
BLOBS_X, BLOBS_Y = make_blobs(90, centers=[[0.0, 5.0], [5.0, 0.0], [5.0, 5.0]], cluster_std=0.7, random_state=0)
RANDOM = np.random.default_rng(0)
PLANE_X = RANDOM.normal(size=(60, 4))
PLANE_Y = PLANE_X @ [1.0, -2.0, 0.0, 0.5] + 3 + 0.1 * RANDOM.normal(size=60)


class Case(NamedTuple):
    """One behaviour: what holds, for which parameter, and how it is seen."""

    words: str
    parameter: Any
    check: Callable[..., None]

    def run(self) -> None:
        """Assert that it holds."""
        if self.parameter is ALONE:
            self.check()
        else:
            self.check(self.parameter)


def behaviour(parameters: Iterable[Any] = (ALONE,)) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: the function, whose docstring says what holds, is a behaviour for each of the parameters."""

    def note(check: Callable[..., None]) -> Callable[..., None]:
        assert check.__doc__
        CASES.extend(Case(check.__doc__, parameter, check) for parameter in parameters)
        return check

    return note


def near(a: Any, b: Any, tolerance: float = 1e-6) -> None:
    """Assert that two arrays have the same numbers."""
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def refuses(action: Callable[[], Any], *words: str) -> None:
    """Assert that it raises a ValueError or TypeError, with these words if given."""
    with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
        action()
    assert all(word in str(caught.value) for word in words), caught.value
