"""Programs of other people with Empirisk's machines: each test says what must work."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er

pytestmark = pytest.mark.filterwarnings("ignore")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 4))
Y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
T = X @ [1.0, 2.0, 0.0, -1.0]

TREES = [
    (er.TreeRegressor(max_depth=4), T, "predict"),
    (er.ForestRegressor(5, random_state=0), T, "predict"),
    (er.BoostingRegressor(n_estimators=10), T, "predict"),
    (er.BoostingClassifier(n_estimators=5), Y, "decision_function"),
    (er.ForestClassifier(5, random_state=0), Y, "predict_proba"),
]


@pytest.mark.parametrize(("machine", "target", "method"), TREES, ids=lambda each: type(each).__name__)
def test_shap_explains_trees(machine, target, method):
    import shap

    from empirisk.exports.shap import tree_model

    machine.fit(X, target)
    explainer = shap.TreeExplainer(tree_model(machine), X[:30])
    wanted = getattr(machine, method)(X[:9])
    wanted = wanted[:, 1] if wanted.ndim == 2 else wanted
    total = explainer.shap_values(X[:9]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, wanted, atol=1e-5)  # SHAP computes in single precision


def test_shap_explains_any_machine():
    import shap

    machine = er.SVM(features=er.kernels.Gaussian()).fit(X, Y)
    explained = shap.Explainer(machine.decision_function, X[:30])(X[:3])
    np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, machine.decision_function(X[:3]))


@pytest.mark.parametrize("machine", [er.LogisticRegression(), er.SVM(), er.SVM(features=er.kernels.Gaussian())])
def test_skl2onnx_converts_pipelines(machine):
    import onnxruntime
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType

    from empirisk.exports.skl2onnx import register

    register()
    model = make_pipeline(StandardScaler(), machine).fit(X, Y)
    proto = skl2onnx.convert_sklearn(
        model, initial_types=[("X", DoubleTensorType([None, 4]))], target_opset={"": 20, "ai.onnx.ml": 3}
    )
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    label, numbers = session.run(None, {"X": X})
    assert label.tolist() == model.predict(X).tolist()
    wanted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    np.testing.assert_allclose(numbers, wanted, atol=1e-12)


def test_skops_keeps_machines():
    import skops.io

    machine = er.SVM(features=er.kernels.Gaussian()).fit(X, Y)
    data = skops.io.dumps(machine)
    types = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("empirisk.") for name in types)
    assert skops.io.loads(data, trusted=types).predict(X).tolist() == machine.predict(X).tolist()


def test_optuna_searches_and_prunes():
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        machine = er.BoostingRegressor(n_estimators=5, learning_rate=trial.suggest_float("rate", 0.01, 1.0, log=True))
        for step, predicted in enumerate(machine.fit(X, T).staged_predict(X)):
            trial.report(float(np.mean((predicted - T) ** 2)), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean((predicted - T) ** 2))

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner(2))
    study.optimize(objective, n_trials=12)
    assert study.best_value < np.var(T)
    assert optuna.trial.TrialState.PRUNED in {trial.state for trial in study.trials}


def test_mlflow_loads_the_safe_file_as_a_function(tmp_path):
    import mlflow
    import pandas as pd

    import empirisk.mlflow

    frame = pd.DataFrame(X, columns=list("abcd"))
    machine = er.LogisticRegression().fit(frame, Y)
    empirisk.mlflow.save_model(machine, tmp_path / "model", frame)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert list(loaded.predict(frame)) == machine.predict(frame).tolist()
    assert loaded.metadata.signature.inputs.input_names() == list("abcd")
    assert isinstance(empirisk.mlflow.load_model(str(tmp_path / "model")), er.LogisticRegression)


@pytest.mark.parametrize("machine", [er.Ridge(), er.TreeRegressor(), er.KNNRegressor()])
def test_lazy_frames_and_arrow_tables(machine):
    import polars as pl
    import pyarrow as pa

    columns = {"a": X[:, 0], "b": X[:, 1]}
    wanted = machine.fit(np.column_stack([*columns.values()]), T).predict(np.column_stack([*columns.values()]))
    for table in (pl.DataFrame(columns).lazy(), pa.table(columns), pl.DataFrame(columns)):
        np.testing.assert_array_equal(machine.fit(table, T).predict(table), wanted)
