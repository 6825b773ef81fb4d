"""Callbacks of scikit-learn on every machine."""

import warnings

import numpy as np
import pytest

import empirisk as er
from tests.callbacks import Watching
from tests.test_names import public_estimators

X = np.random.default_rng(0).normal(size=(24, 3))
Y = (X[:, 0] > 0).astype(int)
#: What is no machine: maps, parts of other machines, and selections.
OTHERS = ("kernels", "maps", "nets", "selection", "tables", "projections.learned_kernel")


class Counting(Watching):
    """Counts the tasks that begin and end."""

    begun = ended = 0

    def on_fit_task_begin(self, estimator, context, **data):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, **data):
        self.ended += 1


def test_every_machine_tells_its_callbacks_when_a_fit_begins_and_ends():
    wrong, seen = [], 0
    for cls in public_estimators():
        room = cls.__module__.removeprefix("empirisk.")
        if not hasattr(cls, "fit") or room.startswith(OTHERS) or cls is er.Parametric:
            continue
        watch, machine = Counting(), cls()
        if not hasattr(machine, "set_callbacks"):
            wrong.append((cls.__name__, "has no set_callbacks"))
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.set_callbacks(watch).fit(X, Y)
        seen += 1
        if not (watch.begun == watch.ended >= 1):
            wrong.append((cls.__name__, watch.begun, watch.ended))
    assert not wrong
    assert seen >= 35


@pytest.mark.parametrize(
    "selection",
    [
        er.selection.Search(er.Ridge(), {"C": [0.1, 1.0]}),
        er.selection.Threshold(er.SVM()),
        er.selection.Balanced(er.SVM()),
    ],
)
def test_selections_of_machines_tell_their_callbacks_too(selection):
    watch = Counting()
    selection.set_callbacks(watch).fit(X, Y)
    assert watch.begun == watch.ended == 1
