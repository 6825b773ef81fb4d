"""Scripts of scikit-learn's gallery, run as they are and with class names swapped alone.

The rule that chose them: for each of the kinds of machines below, of its folder in the gallery the first script by name
that fits one, needs no download, and fits no estimator of scikit-learn that has no counterpart here. They are written
in our own words: the calls that the scripts make, without their pictures, on smaller grids.
"""

import re
from pathlib import Path

import empirisk as er
from empirisk.names import CLASSES

#: The script of each kind of machine.
SCRIPTS = {
    "SVM": "plot_custom_kernel",
    "ridge": "plot_huber_vs_ridge",
    "lasso": "plot_lasso_dense_vs_sparse_data",
    "logistic regression": "plot_iris_logistic",
    "trees of classes": "plot_cost_complexity_pruning",
    "trees of numbers": "plot_tree_regression",
    "forests": "plot_ensemble_oob",
    "boosting": "plot_adaboost_multiclass",
    "k-means": "plot_cluster_iris",
    "mixtures": "plot_gmm_covariances",
    "PCA": "plot_kernel_pca",
    "neighbours of classes": "plot_classification",
    "neighbours of numbers": "plot_regression",
}
#: Those that ask for what has another form here, and what they would write.
OTHER_FORM = {
    "plot_custom_kernel": "SVM(features=f): the function stands in the slot, and is tested for being a kernel",
    "plot_huber_vs_ridge": "C=er.scales.from_ridge(alpha)",
    "plot_lasso_dense_vs_sparse_data": "C=er.scales.from_lasso(alpha, n)",
}


def swapped(source: str) -> str:
    """The script with our classes in place of theirs."""

    def line(found: re.Match[str]) -> str:
        ours, theirs = [], []
        for name in found[2].split(", "):
            known = CLASSES.get(name, name)
            (ours if known in er._HOMES else theirs).append((known, name))
        lines = [f"from {found[1]} import {', '.join(name for _, name in theirs)}"] if theirs else []
        return "\n".join([*lines, *(f"from empirisk import {known} as {name}" for known, name in ours)])

    return re.sub(r"^from (sklearn\.\w+) import (.+)$", line, source, flags=re.MULTILINE)


ran = []
for name in SCRIPTS.values():
    text = (Path(__file__).parent / "gallery" / f"{name}.py").read_text()
    wanted, found = {}, {}
    exec(compile(text, name, "exec"), wanted)
    source = swapped(text)
    assert "from empirisk import" in source, name
    try:
        exec(compile(source, name, "exec"), found)
    except (TypeError, ValueError):
        if name not in OTHER_FORM:
            raise
        continue
    assert str(found["result"]) == str(wanted["result"]), (name, found["result"], wanted["result"])
    ran.append(name)
assert len(ran) >= 10
print(f"{len(ran)} of {len(SCRIPTS)} scripts run with class names swapped alone")
