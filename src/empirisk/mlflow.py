"""A flavour of MLflow: models as Empirisk's own files, in which nothing executes, served as ``python_function``.

``empirisk.mlflow.log_model(model, name="spam", X=rows)`` logs a model, and
``mlflow.pyfunc.load_model("models:/spam/1").predict(rows)`` asks it.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import wraps
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import empirisk
from empirisk import __version__
from empirisk.errors import EmpiriskError
from empirisk.files.models import load, save

#: Letters of a parameter's value that are logged: MLflow takes 6 000, and nobody reads them.
LONGEST = 250
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
    return _mlflow("mlflow.models").Model.log(None, flavour, name=name, model=model, X=X, **options)


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


#: The fits of classes as they were before `autolog`; None where it is inherited.
_OWN_FITS: dict[type, Any] = {}


def autolog(disable: bool = False, log_models: bool = True) -> None:
    """Log every fit of a public machine: its parameters, its certificate and out-of-bag score, and the model itself.

    A fit goes to the run that is active, else to one of its own; machines that are fitted inside of another are part
    of its fit.

    Parameters
    ----------
    disable : bool
        Whether to stop doing so.
    log_models : bool
        Whether models are logged too, as by `log_model`.
    """
    for cls, fit in _OWN_FITS.items():
        if fit is None:
            del cls.fit
        else:
            cls.fit = fit
    _OWN_FITS.clear()
    if disable:
        return
    mlflow, inside = _mlflow(), Lock()
    for cls in {getattr(empirisk, name) for name in empirisk._HOMES}:
        if isinstance(cls, type) and hasattr(cls, "fit"):
            _OWN_FITS[cls] = vars(cls).get("fit")
            cls.fit = _logging(cls.fit, mlflow, inside, log_models)


def _logging(fit: Any, mlflow: Any, inside: Lock, log_models: bool) -> Any:
    """A fit that logs what it has learned, unless another one is under way."""

    @wraps(fit)
    def call(machine: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not inside.acquire(blocking=False):
            return fit(machine, X, *args, **kwargs)
        try:
            found = fit(machine, X, *args, **kwargs)
            with nullcontext() if mlflow.active_run() else mlflow.start_run():
                mlflow.log_params(
                    {name: str(value)[:LONGEST] for name, value in machine.get_params(deep=False).items()}
                )
                mlflow.log_metrics(_metrics(machine))
                if log_models and hasattr(machine, "predict"):
                    log_model(machine, X=X)
            return found
        finally:
            inside.release()

    return call


def _metrics(machine: Any) -> dict[str, float]:
    """Numbers that say how a fit went."""
    proof, found = getattr(machine, "certificate_", None), {}
    if proof is not None:
        found = {name: getattr(proof, name) for name in ("primal", "gap", "relative_gap", "iterations", "seconds")}
    for name in ("oob_score_", "inertia_", "n_iter_"):
        if isinstance(getattr(machine, name, None), int | float):
            found[name.rstrip("_")] = getattr(machine, name)
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}
