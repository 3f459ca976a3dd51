"""What responses hold, for the description of routes; what is sent are plain values.

Always true: nothing is computed here, and responses may hold more than is named.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Content(BaseModel):
    """The content of a response, which may hold more than is named."""

    model_config = ConfigDict(extra="allow")


class FieldProblem(Content):
    """What is wrong with a field."""

    loc: list[str | int]
    msg: str
    type: str


class Refused(Content):
    """Why a request is not answered."""

    detail: list[FieldProblem]


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


class Messages(BaseModel):
    """Words by key."""

    model_config = ConfigDict(extra="allow")


class ListedPerson(Content):
    """A person of the list."""

    row: int
    name: str
    score: Any
    desired: bool


class PeopleFound(Content):
    """People whose name holds what was asked for."""

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


class ReceiptMade(Content):
    """A receipt, which ``mcce verify`` checks."""

    receipt: int
    mcce: str
    made: str
    seed: int
    explainer: str
    predictor: str
    desired: str
    rules: list[dict[str, Any]]
    person: dict[str, Any]
    answer: dict[str, Any]
    changes: list[dict[str, Any]]
    score_before: float
    score_after: float
    sparsity: int
    gower: float
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


class Job(Content):
    """How far an upload is."""

    state: Literal["waiting", "running", "done", "failed"]
    done: int
    total: int | None
    error: str | None
    files: list[str]
