"""Files that name solvers which have another name now."""

import json

import numpy as np
import pytest

import empirisk as er
from tests.files.tampering import rewrite


def renamed(members, new, old, kept):
    """The file as it was written: under the old name, with the parameters that the old class had."""
    tree = json.loads(members["tree.json"])

    def walk(node):
        if isinstance(node, dict) and "object" in node and node["object"][0] == f"solvers.{new}":
            node["object"][0] = f"solvers.{old}"
            values = node["object"][2]
            for name in set(values) - set(kept):
                del values[name]
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            walk(child)

    walk(tree)
    members["tree.json"] = json.dumps(tree).encode()


@pytest.mark.parametrize(
    ("old", "solver", "kept", "loss"),
    [
        ("KernelNewton", er.solvers.Newton(direct=10), ["direct"], "logistic"),
        ("JointNewton", er.solvers.Newton(), [], "logistic"),
        ("SmoothingNewton", er.solvers.Envelope(), [], "hinge"),
        ("DualNewton", er.solvers.Envelope(), [], "hinge"),
    ],
)
def test_an_old_name_is_the_new_solver(old, solver, kept, loss, tmp_path):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    machine = er.Classifier(loss, solver=solver).fit(X, y)
    path = tmp_path / "old.model"
    er.save(machine, path)
    rewrite(path, change=lambda members: renamed(members, type(solver).__name__, old, kept))
    again = er.load(path)
    assert repr(again.solver) == repr(solver)
    np.testing.assert_array_equal(again.fit(X, y).coef_, machine.coef_)
