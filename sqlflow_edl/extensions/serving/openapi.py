"""OpenAPI document of a server: the paths of its models, with the columns that each reads and predicts."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import pyarrow as pa

from edl.installation import VERSION
from sqlflow_edl.extensions.serving.arrow_stream import MEDIA_TYPE
from sqlflow_edl.extensions.serving.catalog import Loaded
from sqlflow_edl.extensions.serving.rows import describe_expected, json_type

Document = dict[str, object]

_SETTINGS = [
    {
        "name": name,
        "in": "query",
        "description": text,
        "schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    }
    for name, text in (
        ("interval", "Share of the labels that an interval around each predicted number is to hold"),
        ("threshold", "Least probability of the second of two classes"),
    )
]
_SETTINGS.append(
    {
        "name": "extra_outputs",
        "in": "query",
        "description": "Further outputs of the model, such as logits,embedding; each is a column",
        "schema": {"type": "string"},
    }
)
_ERROR: Document = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "column": {"type": "string"},
                "row": {"type": "integer", "description": "Counted from 0"},
                "value": {},
                "expected": {"type": "string"},
            },
        }
    },
}
_STATUS = {
    "400": "The request is wrong; the error names the column, the row and the value",
    "401": "The bearer token is missing or wrong",
    "404": "No such model or version",
    "413": "The request has too many bytes or rows",
    "503": "The server has too much to do, or is ending",
    "504": "The prediction takes too long",
}


def document(models: Mapping[str, Loaded], *, secured: bool) -> Document:
    """Return the document. secured: requests need a bearer token."""
    paths: Document = {
        "/v1/models": {"get": _get("List the models", "listModels")},
        "/healthz": {"get": _get("Tell that the server runs", "health")},
        "/readyz": {"get": _get("Tell whether the server takes requests", "ready")},
        "/metrics": {"get": _get("Return metrics for Prometheus", "metrics")},
    }
    schemas: Document = {"Error": _ERROR}
    for name, loaded in sorted(models.items()):
        path = f"/v1/models/{quote(name, safe='')}"
        schemas[f"{_key(name)}.Row"] = _row(loaded.model.schema, required=True)
        schemas[f"{_key(name)}.Prediction"] = _row(loaded.model.results, required=False)
        paths[path] = {"get": _get(f"Describe {name}", f"describe.{_key(name)}")}
        paths[f"{path}/predict"] = {"post": _predict(name, loaded)}
        versioned = _predict(name, loaded)
        versioned["operationId"] = f"predictVersion.{_key(name)}"
        versioned["parameters"] = [
            {"name": "version", "in": "path", "required": True, "schema": {"type": "integer"}},
            *_SETTINGS,
        ]
        paths[f"{path}/versions/{{version}}/predict"] = {"post": versioned}
    components: Document = {"schemas": schemas}
    result: Document = {
        "openapi": "3.0.3",
        "info": {"title": "sqlflow serve", "version": VERSION},
        "paths": paths,
        "components": components,
    }
    if secured:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        result["security"] = [{"token": []}]
    return result


def _get(summary: str, name: str) -> Document:
    return {"summary": summary, "operationId": name, "responses": {"200": {"description": "OK"}}}


def _predict(name: str, loaded: Loaded) -> Document:
    row, prediction = (
        {"$ref": f"#/components/schemas/{_key(name)}.{kind}"} for kind in ("Row", "Prediction")
    )
    columns = {
        "type": "object",
        "required": list(loaded.model.schema.names),
        "properties": {
            field.name: {"type": "array", "items": json_type(field.type)} for field in loaded.model.schema
        },
    }
    answer = {
        "type": "object",
        "properties": {
            "model": {"type": "string"},
            "version": {"type": "integer"},
            "predictions": {
                "oneOf": [
                    {"type": "array", "items": prediction},
                    {"type": "object", "additionalProperties": {"type": "array", "items": {}}},
                ]
            },
        },
    }
    body = {
        "oneOf": [
            {
                "type": "object",
                "required": ["records"],
                "properties": {"records": {"type": "array", "items": row}},
            },
            {"type": "object", "required": ["columns"], "properties": {"columns": columns}},
        ]
    }
    arrow = {"schema": {"type": "string", "format": "binary"}}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "summary": f"Predict {loaded.model.archive.spec.label.column} with {name}",
        "operationId": f"predict.{_key(name)}",
        "parameters": _SETTINGS,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body}, MEDIA_TYPE: arrow},
        },
        "responses": {
            "200": {
                "description": "The predictions, in the order of the rows",
                "content": {"application/json": {"schema": answer}, MEDIA_TYPE: arrow},
            },
            **{status: {"description": text, "content": error} for status, text in _STATUS.items()},
        },
    }


def _row(schema: pa.Schema, *, required: bool) -> Document:
    properties = {}
    for field in schema:
        text = f"{field.type}: {describe_expected(field.type)}"
        properties[field.name] = {**json_type(field.type), "description": text}
    return {
        "type": "object",
        **({"required": list(schema.names)} if required else {}),
        "properties": properties,
    }


def _key(name: str) -> str:
    """Return the name in the characters that a component's key may have."""
    plain = (
        character
        if character.isascii() and (character.isalnum() or character in "._-")
        else f"-{ord(character):x}-"
        for character in name
    )
    return "".join(plain)
