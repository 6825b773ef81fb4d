"""SHAP: trees by ``TreeExplainer``, any machine by ``Explainer``; values add up to the answer."""

import numpy as np
import shap

import empirisk as er
from clients._rows import T, X, Y
from empirisk.exports.shap import tree_model

TREES = [
    (er.TreeRegressor(max_depth=4), T, "predict"),
    (er.ForestRegressor(5, random_state=0), T, "predict"),
    (er.BoostingRegressor(n_estimators=10), T, "predict"),
    (er.BoostingClassifier(n_estimators=5), Y, "decision_function"),
    (er.ForestClassifier(5, random_state=0), Y, "predict_proba"),
]
for machine, target, method in TREES:
    machine.fit(X, target)
    explainer = shap.TreeExplainer(tree_model(machine), X[:30])
    wanted = getattr(machine, method)(X[:9])
    wanted = wanted[:, 1] if wanted.ndim == 2 else wanted
    total = explainer.shap_values(X[:9]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, wanted, atol=1e-5)  # SHAP computes in single precision
machine = er.SVM(features=er.kernels.Gaussian()).fit(X, Y)
explained = shap.Explainer(machine.decision_function, X[:30])(X[:3])
np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, machine.decision_function(X[:3]))
print(f"{len(TREES)} kinds of trees and a kernel machine")
