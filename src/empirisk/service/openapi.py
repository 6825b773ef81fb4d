"""The description of the service in the words of OpenAPI."""

from typing import Any

from empirisk import __version__
from empirisk.tables.columns import Column
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
    properties = {column.name: _field(column) for column in model.schema.used}
    row = {"type": "object", "required": list(properties), "properties": properties}
    answer = _answer(model)
    body = {"oneOf": [row, {"type": "array", "items": row, "minItems": 1, "maxItems": rows}]}
    example = {column.name: example_of(column) for column in model.schema.used}
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


def example_of(column: Column) -> Any:
    """A value of a column, as JSON holds it."""
    text = column.examples[0] if column.examples else None
    if column.kind != "number" or text is None:
        return text
    try:
        return float(text)
    except ValueError:
        return text


_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "problems": {"type": "array", "items": {"type": "object"}}},
}


def _field(column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {"type": _TYPES[column.kind], "description": str(column)}
    if column.examples:
        field["examples"] = [example_of(column)]
    return field


def _answer(model: TableModel) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "number"} if not model.classes else {"enum": model.classes}
    properties: dict[str, Any] = {"prediction": kind}
    if model.has_probabilities:
        properties["probabilities"] = {"type": "object", "additionalProperties": {"type": "number"}}
    return {"type": "object", "properties": properties}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _reply(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
