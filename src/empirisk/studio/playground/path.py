"""The path over C: errors and support vectors along the slider."""

from typing import Any

import numpy as np

from empirisk.errors import Unsuitable
from empirisk.selection.path import machines_along
from empirisk.studio.playground.controls import LOG_C
from empirisk.studio.playground.fitting import SECONDS, at_most, errors, is_convex
from empirisk.studio.playground.question import Question

PLACES = 29  # values of C: four in a decade
#: Weights up to this share of the largest are zero, but for rounding.
NEGLIGIBLE = 1e-8


def path(question: Question) -> dict[str, Any]:
    """Training and test error at every C, and how large the weights are."""
    question.require_enough()
    machine = question.machine()
    if not is_convex(machine) or "C" not in machine.get_params(deep=False):
        raise Unsuitable("Only convex machines of the equation have a path over C.")
    Cs = np.logspace(*LOG_C, PLACES)
    with at_most(SECONDS):
        problems = machine.set_params(C=1.0).problems(*question.data())
        found = [errors(question, one) for one in machines_along(problems, Cs)]
    return {"C": Cs, "train": _values(found, "train"), "test": _values(found, "test")}


def _values(found: list[dict[str, Any]], part: str) -> list[float] | None:
    return None if found[0][part] is None else [one[part]["value"] for one in found]
