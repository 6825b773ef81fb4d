"""MLflow: the safe file as a flavour with its signature, served as a function; autolog notes fits by itself."""

import tempfile
from pathlib import Path

import mlflow
import pandas as pd

import empirisk as er
import empirisk.mlflow
from clients._rows import X, Y

frame = pd.DataFrame(X, columns=list("abcd"))
machine = er.LogisticRegression().fit(frame, Y)
with tempfile.TemporaryDirectory() as folder:
    place = Path(folder) / "model"
    empirisk.mlflow.save_model(machine, place, frame)
    loaded = mlflow.pyfunc.load_model(str(place))
    assert list(loaded.predict(frame)) == machine.predict(frame).tolist()
    assert loaded.metadata.signature.inputs.input_names() == list("abcd")
    assert isinstance(empirisk.mlflow.load_model(str(place)), er.LogisticRegression)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.set_experiment("spam")
    empirisk.mlflow.autolog()
    with mlflow.start_run() as run:
        er.LogisticRegression(C=0.3).fit(frame, Y)
    empirisk.mlflow.autolog(disable=True)
    kept = mlflow.get_run(run.info.run_id).data
    assert kept.params["C"] == "0.3"
    assert kept.metrics["relative_gap"] < 1e-5
print("saved, served, loaded, logged by itself")
