"""MLflow: the safe file as a flavour with its signature, served as a function; autolog notes fits by itself."""

import json
import tempfile
import time
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import mlflow
import pandas as pd
import uvicorn
from mlflow.pyfunc.scoring_server import init
from sklearn.base import is_regressor

import empirisk as er
import empirisk.mlflow
from clients._rows import T, X, Y


def served(model, rows):
    """What MLflow's own server of a model answers to a request with rows."""
    server = uvicorn.Server(uvicorn.Config(init(model), port=0, log_level="error"))
    Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    place = server.servers[0].sockets[0].getsockname()[1]
    sent = json.dumps({"dataframe_split": rows.to_dict("split", index=False)}).encode()
    request = Request(f"http://127.0.0.1:{place}/invocations", sent, {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)["predictions"]


#: Machines of other kinds, whose fits are logged too.
OTHERS = [
    er.ForestClassifier(5),
    er.SVR(features="gaussian"),
    er.BoostingRegressor(n_estimators=5),
    er.KMeans(3),
    er.PCA(2),
]
OTHERS += [
    er.VoteClassifier(),
    er.AdaBoostClassifier(n_estimators=3),
    er.SVM(multiclass="one_vs_one"),
    er.Hierarchical(),
]
frame = pd.DataFrame(X, columns=list("abcd"))
machine = er.LogisticRegression().fit(frame, Y)
with tempfile.TemporaryDirectory() as folder:
    place = Path(folder) / "model"
    empirisk.mlflow.save_model(machine, place, frame)
    loaded = mlflow.pyfunc.load_model(str(place))
    assert list(loaded.predict(frame)) == machine.predict(frame).tolist()
    assert loaded.metadata.signature.inputs.input_names() == list("abcd")
    assert served(loaded, frame) == machine.predict(frame).tolist()
    assert isinstance(empirisk.mlflow.load_model(str(place)), er.LogisticRegression)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.set_experiment("spam")
    empirisk.mlflow.autolog()
    with mlflow.start_run() as run:
        er.LogisticRegression(C=0.3).fit(frame, Y)
    for other in OTHERS:
        other.fit(frame, T if is_regressor(other) else Y)
        assert mlflow.last_active_run().data.params.keys() == other.get_params(deep=False).keys()
    empirisk.mlflow.autolog(disable=True)
    with mlflow.start_run():
        logged = empirisk.mlflow.log_model(OTHERS[0], "forest", frame)
    assert list(mlflow.pyfunc.load_model(logged.model_uri).predict(frame)) == OTHERS[0].predict(frame).tolist()
    assert isinstance(empirisk.mlflow.load_model(logged.model_uri), er.ForestClassifier)
    kept = mlflow.get_run(run.info.run_id).data
    assert kept.params["C"] == "0.3"
    assert kept.metrics["relative_gap"] < 1e-5
print("saved, served, loaded, logged by itself")
