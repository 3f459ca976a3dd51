"""The bodies of requests and responses, as pydantic checks them and OpenAPI describes them.

What a person's cells may be is in :mod:`.people`. Responses may hold more than is named here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from fastapi import UploadFile
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    WithJsonSchema,
    model_validator,
)
from typing_extensions import TypeAliasType, TypedDict

from ..constraints.files import BUILDERS
from ..report.receipts import ReceiptContent
from ..runtime.json_text import read_json

MAX_RULES = 200
MAX_FIELDS = 40
RULE_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {name: {} for name in BUILDERS},
    "additionalProperties": False,
}
# Aliases with a name are parts of the description that others refer to.
Person = TypeAliasType("Person", dict[str, Any])
Rule = TypeAliasType("Rule", Annotated[dict[str, Any], WithJsonSchema(RULE_SCHEMA)])
People = Annotated[list[Person], Field(min_length=1), FailFast()]
Rules = Annotated[
    list[Rule],
    Field(
        max_length=MAX_RULES,
        description="Entries of a rule file.",
        examples=[[{"max_changes": 1}]],
    ),
]


def _read_field(value: Any) -> Any:
    """The JSON in a field of a form, which has a list of what came under its name."""
    texts = value if isinstance(value, list) else [value]
    if not texts:
        return []
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise ValueError("expected a text of JSON")
    return read_json(texts[0])


class Body(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_size(cls, content: Any) -> Any:
        """Refuse more fields than any body has before each of them is named."""
        if isinstance(content, dict) and len(content) > MAX_FIELDS:
            raise ValueError(f"expected at most {MAX_FIELDS} fields, got {len(content)}")
        return content


class ScoreBody(Body):
    """People to score; as rows of one person, with what follows from the changes."""

    people: People
    person: Person | None = None


class SearchBody(Body):
    """How people are explained."""

    rules: Rules = []
    search: str | None = None
    n_counterfactuals: Annotated[int, Field(ge=1, le=1000)] | None = None
    language: str | None = None


class ExplainBody(SearchBody):
    """People to explain, and how."""

    people: People
    seconds: Annotated[float, Field(gt=0, le=3600)] | None = None
    details: bool = False


class UploadForm(SearchBody):
    """A file of people, and how they are explained."""

    # All fields of a form are texts.
    model_config = ConfigDict(strict=False)

    rules: Annotated[Rules, BeforeValidator(_read_field, json_schema_input_type=str)] = []
    file: UploadFile
    name: str | None = None
    delimiter: str | None = None


class RelaxBody(Body):
    """A person without an answer, and the rules."""

    person: Person
    rules: Rules = []


class RangesBody(RelaxBody):
    """Answers of a person, to find their ranges."""

    answers: People


class ReceiptBody(RelaxBody):
    """A person and the answer that they keep."""

    answer: Person


class Scores(TypedDict):
    """Scores of people, and whether each decision is the desired one."""

    scores: list[Any]
    desired: list[bool]
    people: NotRequired[list[Person]]


class Change(TypedDict):
    """A changed cell."""

    feature: str
    before: Any
    after: Any
    kind: str


class Counterfactual(TypedDict):
    """An answer of a person; with details also text, ranges and robustness."""

    rank: int
    row: Person
    measures: dict[str, Any]
    changes: list[Change]


class PersonAnswer(TypedDict):
    """What became of a person; with details also their letter."""

    factual: int
    status: Literal["answered", "already desired", "no answer"]
    reason: str
    reason_kind: str
    score: Any
    n_counterfactuals: int
    person: Person
    counterfactuals: list[Counterfactual]


class Explained(TypedDict):
    """The answers, in the order of the request."""

    people: list[PersonAnswer]
    stopped: bool
    seed: int
    fingerprint: str
    version: str


class AnswerRanges(TypedDict):
    """Whether a row is accepted, and which other values would do as well."""

    valid: bool
    score: Any
    ranges: list[dict[str, Any]]


class RangesFound(TypedDict):
    """The ranges of answers."""

    answers: list[AnswerRanges]


@dataclass(frozen=True)
class ReceiptMade(ReceiptContent):
    """A receipt, which ``mcce verify`` checks."""

    checksum: str


class Lift(TypedDict):
    """Something that could be lifted, and what the best answer would then cost."""

    lifted: str
    kind: str
    rule: int | None
    answered: bool
    sparsity: int | None
    gower: float | None


class Lifts(TypedDict):
    """What could be lifted, the best first."""

    lifts: list[Lift]


class JobState(TypedDict):
    """How far an upload is."""

    state: Literal["waiting", "running", "done", "failed"]
    done: int
    total: int | None
    error: str | None
    files: list[str]
    summary: dict[str, Any] | None
