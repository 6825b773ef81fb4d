"""What a type checker knows of a user's script, in its strict mode."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SCRIPT = """
import numpy as np

import empirisk as er

X = np.random.default_rng(0).normal(size=(20, 3))
y = X[:, 0] > 0
svm = er.SVM(C=1.0, features=er.kernels.Gaussian(2.0), class_weight={True: 2.0}).fit(X, y)
lasso = er.Lasso(C=1.0).fit(X, X[:, 0])
forest = er.ForestClassifier(n_estimators=10).fit(X, y)
(problem,) = lasso.problems(X, X[:, 0])
fit = er.solve(problem, start=er.Point(np.zeros(3)))
proof: er.Certificate = fit.certificate
"""
#: The type of each expression after the script, a pattern.
TYPES = {
    "svm": "SVM",
    "svm.predict(X)": "ndarray.*",
    "svm.predict_proba(X)": "ndarray.*float64.*",
    "lasso.coef_": "ndarray.*float64.*",
    "lasso.intercept_": "ndarray.*float64.* [|] float",
    "lasso.predict(X)": "ndarray.*float64.*",
    "lasso.certificate_.gap": "float",
    "forest.predict(X)": "ndarray.*",
    "forest.feature_importances_": "ndarray.*float64.*",
    "er.TreeRegressor().fit(X, X[:, 0]).feature_importances_": "ndarray.*float64.*",
    "er.BoostingRegressor().fit(X, X[:, 0]).feature_importances_": "ndarray.*float64.*",
    "er.BaggingClassifier().fit(X, y).feature_importances_": "ndarray.*float64.*",
    "er.VoteClassifier().fit(X, y).predict(X)": "ndarray.*",
    "problem": "Problem",
    "fit": "Fit",
    "fit.point.w": "ndarray.*float64.*",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("user")
    reveals = "".join(f"reveal_type({expression})\n" for expression in TYPES)
    (folder / "script.py").write_text(SCRIPT + reveals)
    settings = {"typeCheckingMode": "strict", "venvPath": str(ROOT), "venv": ".venv", "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [str(Path(sys.executable).with_name("pyright")), "--outputjson"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["generalDiagnostics"]


def test_a_script_has_no_errors_in_strict_mode(found):
    assert [one["message"] for one in found if one["severity"] == "error"] == []


def test_attributes_and_answers_have_their_types(found):
    told = [re.findall('Type of "(.*)" is "(.*)"', one["message"]) for one in found if one["severity"] == "information"]
    types = dict(pair for pairs in told for pair in pairs)
    wrong = {expression: types.get(expression) for expression in TYPES}
    assert {name: said for name, said in wrong.items() if not re.fullmatch(TYPES[name], said or "")} == {}
