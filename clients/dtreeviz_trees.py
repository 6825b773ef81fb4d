"""dtreeviz, ``plot_tree`` and ``export_text``: our trees as scikit-learn's own."""

import dtreeviz
import numpy as np
from sklearn.tree import export_text

import empirisk as er
from clients._rows import T, X, Y
from empirisk.exports.scikit_learn_trees import scikit_learn_trees

for machine, target in ((er.TreeRegressor(max_depth=3), T), (er.TreeClassifier(max_depth=3), (Y == "yes").astype(int))):
    tree = scikit_learn_trees(machine.fit(X, target), X)
    assert np.array_equal(tree.predict(X), machine.predict(X))
    classes = {"class_names": ["no", "yes"]} if target is not T else {}
    seen = dtreeviz.model(tree, X, target, feature_names=list("abcd"), target_name="target", **classes)
    assert seen.shadow_tree.nnodes() == len(machine.nodes_)
    assert len(seen.shadow_tree.leaves) == machine.get_n_leaves()
    assert seen.explain_prediction_path(X[0])
    assert export_text(tree).count("---") > 3
print("a tree of numbers and a tree of classes")
