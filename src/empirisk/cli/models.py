"""What the commands share: the model in a file, and scores in the words of JSON."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


def in_json(scores: Iterable[Any]) -> list[dict[str, Any]]:
    """Scores with their intervals, in the words of JSON."""
    return [{"name": one.name, "value": one.value, "low": one.interval[0], "high": one.interval[1]} for one in scores]
