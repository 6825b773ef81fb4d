"""Loading of model files, shared by the commands."""

from pathlib import Path

from empirisk.errors import EmpiriskError
from empirisk.files.models import load
from empirisk.tables.model import TableModel


def load_model(path: Path) -> TableModel:
    """The model of a table in a file."""
    model = load(path)
    if not isinstance(model, TableModel):
        raise EmpiriskError(
            f"{str(path)!r} holds a {type(model).__name__} that was saved without a table; "
            "use it in Python with er.load, or make a model with `empirisk learn`."
        )
    return model
