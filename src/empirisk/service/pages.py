"""Two HTML pages, a form to try the model and the documentation, which load nothing from other servers."""

import json
from typing import Any, NamedTuple

from empirisk.service.openapi import example_row, levels
from empirisk.tables.model import TableModel
from empirisk.templates import render, text_of

ROOM = "empirisk.service"


class Field(NamedTuple):
    """An input of the form: the column, what it holds, the element, an example, and the values that are offered."""

    name: str
    hint: str
    tag: str
    example: str
    choices: list[str]


def script() -> str:
    """The script that sends the form and shows the answer."""
    return text_of(ROOM, "form.js")


def form(model: TableModel) -> str:
    """The page with a form to try the model."""
    target, machine = model.target.name, type(model.machine).__name__
    return render(ROOM, "form.html", title=f"Predict {target}", target=target, machine=machine, fields=_fields(model))


def docs(model: TableModel, document: dict[str, Any]) -> str:
    """The page that describes the service."""
    row = json.dumps(example_row(model), ensure_ascii=False, indent=1)
    return render(ROOM, "docs.html", **document["info"], paths=document["paths"], row=row, fields=_fields(model))


def _fields(model: TableModel) -> list[Field]:
    found = []
    row = example_row(model)
    for column in model.asked.used:
        words, value = levels(model, column.name), row[column.name]
        example = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        tag, choices = column.type.input(words)
        found.append(Field(column.name, str(column).removeprefix(f"{column.name}: "), tag, example, list(choices)))
    return found
