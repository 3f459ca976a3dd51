"""The description of the service in OpenAPI: people as this explainer takes them, with examples."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from . import responses
from .bodies import PERSON, Body
from .cells import MAX_LEVELS, CellKind, JsonPeople

REFERENCE = {"$ref": "#/components/schemas/Person"}
MEANINGS = {
    401: "The token is missing or wrong.",
    403: "A page of another origin sent it.",
    404: "There is no such thing.",
    408: "The body took too long to arrive.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "Something in the request does not fit.",
    429: "Too many requests wait; Retry-After says how long to wait.",
    502: "The predictor failed.",
    503: "The service is not ready, or ending.",
    504: "The predictor does not answer.",
}


def refused_with(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route may refuse, for its description."""
    return {
        status: {"model": responses.Refused, "description": MEANINGS[status]} for status in statuses
    }


def body_of(model: type[Body], people: JsonPeople) -> dict[str, Any]:
    """The body of a route, for its description."""
    schema = _with_people(model.model_json_schema())
    content = {"application/json": {"schema": schema, "example": model.example(people.typical)}}
    return {"requestBody": {"required": True, "content": content}}


def _with_people(schema: Any) -> Any:
    """A schema that refers to what a person is."""
    if isinstance(schema, dict):
        known = {key: schema.get(key) for key in PERSON} == PERSON
        return REFERENCE if known else {key: _with_people(one) for key, one in schema.items()}
    return [_with_people(one) for one in schema] if isinstance(schema, list) else schema


def describe_api(app: FastAPI, people: JsonPeople, has_token: bool) -> None:
    """Let an application describe itself with the columns of an explainer."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, routes=app.routes)
            parts = made.setdefault("components", {})
            parts.setdefault("schemas", {})["Person"] = person_schema(people)
            if has_token:
                parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                made["security"] = [{"token": []}]
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def person_schema(people: JsonPeople) -> dict[str, Any]:
    """What a person is, in JSON Schema."""
    return {
        "type": "object",
        "title": "Person",
        "properties": {name: _cell_schema(kind) for name, kind in people.kinds.items()},
        "required": list(people.kinds),
        "additionalProperties": False,
        "example": people.typical,
    }


def _cell_schema(kind: CellKind) -> dict[str, Any]:
    if kind.levels is not None and len(kind.levels) <= MAX_LEVELS:
        levels = [value for _, value in kind.levels]
        return {"enum": [*levels, None] if kind.missing else levels}
    name = {"text": "string", "date": "string"}.get(kind.type, kind.type)
    cell: dict[str, Any] = {"type": [name, "null"] if kind.missing else name}
    if kind.low is not None and kind.high is not None:
        cell |= {"minimum": kind.low, "maximum": kind.high}
    return cell
