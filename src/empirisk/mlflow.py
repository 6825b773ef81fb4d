"""A flavour of MLflow: models as Empirisk's own files, in which nothing executes, served as ``python_function``.

``empirisk.mlflow.log_model(model, name="spam", X=rows)`` logs a model, and
``mlflow.pyfunc.load_model("models:/spam/1").predict(rows)`` asks it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from empirisk import __version__
from empirisk.errors import EmpiriskError
from empirisk.files.models import load, save

#: The name of the flavour, and of the model inside a folder of MLflow.
FLAVOUR, FILE = "empirisk", "model.empirisk"


def _mlflow(name: str = "mlflow") -> Any:
    """A module of MLflow."""
    try:
        return import_module(name)
    except ImportError as error:
        raise EmpiriskError("empirisk.mlflow needs the package mlflow: pip install mlflow.") from error


def save_model(model: Any, path: str | Path, X: Any = None, mlflow_model: Any = None) -> None:
    """Write a folder as MLflow has them; with rows X it states the signature of the model."""
    models, pyfunc = _mlflow("mlflow.models"), _mlflow("mlflow.pyfunc")
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    save(model, folder / FILE)
    written = models.Model() if mlflow_model is None else mlflow_model
    if X is not None:
        written.signature = models.infer_signature(X, model.predict(X))
    written.add_flavor(FLAVOUR, data=FILE, version=__version__)
    pyfunc.add_to_model(written, loader_module="empirisk.mlflow", data=FILE)
    written.save(str(folder / "MLmodel"))


def log_model(model: Any, name: str = "model", X: Any = None, **options: Any) -> Any:
    """Log a model to the run that is active; ``options`` are those of ``mlflow.models.Model.log``."""
    flavour = import_module(__name__)
    return _mlflow("mlflow.models").Model.log(name=name, flavor=flavour, model=model, X=X, **options)


def load_model(uri: str) -> Any:
    """The model itself, from where MLflow has it."""
    folder = _mlflow("mlflow.artifacts").download_artifacts(artifact_uri=str(uri))
    return load(Path(folder) / FILE)


def _load_pyfunc(path: str) -> Any:
    """What MLflow asks a flavour for: an object with ``predict``."""
    return _Predicts(load(path))


class _Predicts:
    """The answers of a model as MLflow serves them."""

    def __init__(self, model: Any):
        self.model = model

    def predict(self, data: Any, params: Any = None) -> Any:
        """The class or number of each row."""
        return self.model.predict(data)
