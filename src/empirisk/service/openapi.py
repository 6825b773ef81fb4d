"""The OpenAPI document of the service."""

from typing import Any

from empirisk import __version__
from empirisk.tables.model import TableModel
from empirisk.tables.understanding.column import Column


def describe(model: TableModel, limit: int, rows: int) -> dict[str, Any]:
    """The OpenAPI document of a model's service."""
    example = example_row(model)
    properties = {column.name: _field(column, example[column.name]) for column in model.asked.used}
    row = {"type": "object", "properties": properties, "minProperties": 1}
    answer = _answer(model)
    body = {"oneOf": [row, {"type": "array", "items": row, "minItems": 1, "maxItems": rows}]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Predictions of {model.target.name}",
            "version": __version__,
            "description": f"{type(model.machine).__name__}; bodies up to {limit:,} bytes, {rows:,} rows.",
        },
        "paths": {
            "/predict": {
                "post": {
                    "summary": "Predict one row, or a list of rows; fields that are not sent are missing",
                    "parameters": [
                        {
                            "name": "explain",
                            "in": "query",
                            "description": "true adds the columns that move the prediction most",
                            "schema": {"type": "boolean"},
                        }
                    ],
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": body, "example": example}},
                    },
                    "responses": {
                        "200": _reply("The answer, or a list of them", {"oneOf": [answer, _list(answer)]}),
                        "400": _reply("The body is not JSON", _ERROR),
                        "413": _reply("The body is too large", _ERROR),
                        "422": _reply("A field is wrong, or all are missing", _ERROR),
                    },
                }
            },
            "/table": {
                "post": {
                    "summary": "Predict the rows of a file: CSV, JSON lines or Parquet in, CSV out",
                    "parameters": [{"name": "name", "in": "query", "schema": {"type": "string"}}],
                    "requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}},
                    "responses": {
                        "200": {"description": "The rows with predictions", "content": {"text/csv": {}}},
                        "413": _reply("The file is too large", _ERROR),
                        "422": _reply("The file is no table with the columns of the model", _ERROR),
                    },
                }
            },
            "/health": {"get": {"summary": "Whether the service is up", "responses": {"200": {"description": "Yes"}}}},
        },
    }


def example_row(model: TableModel) -> dict[str, Any]:
    """A row that was learned from, numbers rounded; where it is not known the middle of a range, and frequent words."""
    usual = {column.name: column.type.example(column, levels(model, column.name)) for column in model.asked.used}
    return {name: model.example.get(name, value) for name, value in usual.items()}


def levels(model: TableModel, name: str) -> list[str]:
    """The frequent words of a column, the most frequent first."""
    encoder = model.pipeline[0]
    return encoder.levels(name) if hasattr(encoder, "levels") else []


_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "problems": {"type": "array", "items": {"type": "object"}}},
}


def _field(column: Column, example: Any) -> dict[str, Any]:
    field: dict[str, Any] = {"type": list(column.type.json), "description": str(column)}
    if example is not None:
        field["examples"] = [example]
    return field


def _answer(model: TableModel) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "number"} if not model.classes else {"enum": model.classes}
    properties: dict[str, Any] = {
        "prediction": kind,
        "warnings": _list({"type": "string"}),
        "because": {"type": "string"},
    }
    if model.has_probabilities:
        properties["probabilities"] = {"type": "object", "additionalProperties": {"type": "number"}}
    if model.residuals is not None:
        ends = {name: {"type": "number"} for name in ("coverage", "low", "high")}
        properties["interval"] = {"type": "object", "properties": ends}
    return {"type": "object", "properties": properties}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _reply(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
