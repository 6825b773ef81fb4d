"""The description of the service in the words of OpenAPI."""

from typing import Any

from empirisk import __version__
from empirisk.tables.columns import LASTING, Column
from empirisk.tables.model import TableModel

_TYPES: dict[str, list[str]] = {
    "number": ["number", "string", "null"],
    "boolean": ["boolean", "string", "number", "null"],
    "date": ["string", "null"],
    "category": ["string", "number", "null"],
    "text": ["string", "null"],
}


def describe(model: TableModel, limit: int, rows: int) -> dict[str, Any]:
    """The OpenAPI document of a model's service."""
    properties = {column.name: _field(column, levels(model, column.name)) for column in model.schema.used}
    row = {"type": "object", "required": list(properties), "properties": properties}
    answer = _answer(model)
    body = {"oneOf": [row, {"type": "array", "items": row, "minItems": 1, "maxItems": rows}]}
    example = example_row(model)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Predictions of {model.target.name}",
            "version": __version__,
            "description": f"{type(model.machine).__name__}; bodies up to {limit} bytes, {rows} rows.",
        },
        "paths": {
            "/predict": {
                "post": {
                    "summary": "Predict one row, or a list of rows",
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": body, "example": example}},
                    },
                    "responses": {
                        "200": _reply("The answer, or a list of them", {"oneOf": [answer, _list(answer)]}),
                        "400": _reply("The body is not JSON", _ERROR),
                        "413": _reply("The body is too large", _ERROR),
                        "422": _reply("A field is missing or wrong", _ERROR),
                    },
                }
            },
            "/health": {"get": {"summary": "Whether the service is up", "responses": {"200": {"description": "Yes"}}}},
        },
    }


#: Values of no training row: a date, and a text.
A_DATE, A_TEXT = "2024-05-31", "some words"
DIGITS = 2  # of an example in the middle of a range: enough to see the size, too few to be anybody's value


def example_row(model: TableModel) -> dict[str, Any]:
    """A row that is none of the training rows: the middle of each range, the most frequent words."""
    return {column.name: example_of(column, levels(model, column.name)) for column in model.schema.used}


def example_of(column: Column, words: list[str]) -> Any:
    """A value that a column may have, as JSON holds it.

    >>> example_of(Column("age", "number", low=18.0, high=90.0), [])
    54.0
    """
    if column.low is not None and column.high is not None:
        middle = column.low / 2 + column.high / 2
        worded = column.kind == "date" or column.form in LASTING
        return column.written(middle // 60 * 60) if worded else float(f"{middle:.{DIGITS}g}")
    usual = {"boolean": True, "date": A_DATE, "text": A_TEXT}
    return usual.get(column.kind, words[0] if words else None)


def levels(model: TableModel, name: str) -> list[str]:
    """The frequent words of a column, the most frequent first."""
    encoder = model.pipeline[0]
    words = model.schema.of_kind("category")
    return list(encoder.words_.levels[words.index(name)]) if name in words and hasattr(encoder, "words_") else []


_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "problems": {"type": "array", "items": {"type": "object"}}},
}


def _field(column: Column, words: list[str]) -> dict[str, Any]:
    field: dict[str, Any] = {"type": _TYPES[column.kind], "description": str(column)}
    example = example_of(column, words)
    if example is not None:
        field["examples"] = [example]
    return field


def _answer(model: TableModel) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "number"} if not model.classes else {"enum": model.classes}
    properties: dict[str, Any] = {"prediction": kind, "warnings": _list({"type": "string"})}
    if model.has_probabilities:
        properties["probabilities"] = {"type": "object", "additionalProperties": {"type": "number"}}
    return {"type": "object", "properties": properties}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _reply(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
