"""What responses hold, and the description of the service in OpenAPI.

Plain values are sent; the models here describe them, and responses may hold more than is named. The
description shows people as this explainer takes them, with examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict

from ..report.receipts import ReceiptContent
from .refusals import Problem
from .requests import MAX_LEVELS, PERSON, Body, CellKind, JsonPeople

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
    """The JSON Schema of a person."""
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


def body_of(body_type: type[Body], people: JsonPeople) -> dict[str, Any]:
    """The body of a route, for its description."""
    schema = _with_people(body_type.model_json_schema())
    content = {"application/json": {"schema": schema, "example": body_type.example(people.typical)}}
    return {"requestBody": {"required": True, "content": content}}


def _with_people(schema: Any) -> Any:
    """A schema that refers to what a person is."""
    if isinstance(schema, dict):
        known = {key: schema.get(key) for key in PERSON} == PERSON
        return REFERENCE if known else {key: _with_people(one) for key, one in schema.items()}
    return [_with_people(one) for one in schema] if isinstance(schema, list) else schema


def refused_with(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route may refuse, for its description."""
    return {status: {"model": Refused, "description": MEANINGS[status]} for status in statuses}


class Content(BaseModel):
    """The content of a response, which may hold more than is named."""

    model_config = ConfigDict(extra="allow")


class Refused(Content):
    """Why a request is not answered."""

    detail: list[Problem]


class Status(Content):
    """A status."""

    status: str


class ModelStatus(Content):
    """The status of a model, in the form of KServe."""

    name: str
    ready: bool


class Level(Content):
    """A level of a category."""

    value: Any
    label: str


class Bars(Content):
    """How many accepted people have which values; the levels stand for their own edges."""

    edges: list[Any]
    accepted: list[int]


class FeatureDescription(Content):
    """A feature."""

    name: str
    label: str
    unit: str | None
    scale: float
    grouping: bool
    kind: Literal["numeric", "categorical"]
    type: Literal["integer", "number", "boolean", "text", "date"]
    immutable: bool
    ordered: bool
    missing: bool
    levels: list[Level] | None
    low: Any
    high: Any
    step: float | None
    histogram: Bars | None
    frozen: bool
    follows: bool


class Desired(Content):
    """Which decisions are desired: scores between two ends (null: any), or labels."""

    low: float | None
    high: float | None
    closed: Literal["both", "left", "right", "neither"] | None
    labels: list[Any] | None


class ServiceSchema(Content):
    """What is explained."""

    name: str
    version: str
    fingerprint: str
    seed: str
    desired: Desired
    title: str | None
    language: str
    languages: list[str]
    labelled: list[str]
    features: list[FeatureDescription]
    search: str | None
    searches: list[str]
    n_counterfactuals: int
    limits: dict[str, float]
    people: int | None


class ListedPerson(Content):
    """A person of the list."""

    row: int
    name: str
    score: Any
    desired: bool


class PeopleFound(Content):
    """People whose name holds the query."""

    n_people: int
    n_found: int
    people: list[ListedPerson]


class PersonFound(Content):
    """A person."""

    row: int
    name: str
    person: dict[str, Any]


class Scores(Content):
    """Scores of people, and whether each decision is the desired one."""

    scores: list[Any]
    desired: list[bool]
    people: list[dict[str, Any]] | None = None


class Change(Content):
    """A changed cell."""

    feature: str
    before: Any
    after: Any
    kind: str


class Counterfactual(Content):
    """An answer of a person; with details also text, ranges and robustness."""

    rank: int
    row: dict[str, Any]
    measures: dict[str, Any]
    changes: list[Change]


class PersonAnswer(Content):
    """What became of a person; with details also their letter."""

    factual: int
    status: Literal["answered", "already desired", "no answer"]
    reason: str
    reason_kind: str
    score: Any
    n_counterfactuals: int
    person: dict[str, Any]
    counterfactuals: list[Counterfactual]


class Explained(Content):
    """The answers, in the order of the request."""

    people: list[PersonAnswer]
    stopped: bool
    seed: int
    fingerprint: str
    version: str


class AnswerRanges(Content):
    """Whether a row is accepted, and which other values would do as well."""

    valid: bool
    score: Any
    ranges: list[dict[str, Any]]


class RangesFound(Content):
    """The ranges of answers."""

    answers: list[AnswerRanges]


@dataclass(frozen=True)
class ReceiptMade(ReceiptContent):
    """A receipt, which ``mcce verify`` checks."""

    checksum: str


class Lift(Content):
    """Something that could be lifted, and what the best answer would then cost."""

    lifted: str
    kind: str
    rule: int | None
    answered: bool
    sparsity: int | None
    gower: float | None


class Lifts(Content):
    """What could be lifted, the best first."""

    lifts: list[Lift]


class Predictions(Content):
    """Scores, in the form of KServe."""

    predictions: list[Any]


class Explanations(Predictions):
    """Scores and explanations, in the form of KServe."""

    explanations: list[PersonAnswer]


class JobBegun(Content):
    """The name of an upload."""

    id: str
