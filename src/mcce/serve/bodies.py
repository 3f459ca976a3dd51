"""What requests hold, and how their JSON is read.

Always true: NaN, infinite numbers, repeated keys and half characters are refused; what is not known
is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from ..constraints.builders import BUILDERS
from ..errors import shorten
from .refusals import Problem, RefusalError

# What a person is depends on the explainer: the description puts it in the place of this.
PERSON = {"title": "Person", "type": "object"}
Person = Annotated[dict[str, Any], WithJsonSchema(PERSON)]
Rule = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {name: {} for name in BUILDERS},
            "additionalProperties": False,
        }
    ),
]
Rules = Annotated[list[Rule], Field(description="Entries of a rule file.")]
People = Annotated[list[Person], Field(min_length=1)]


class Body(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def example(cls, person: dict[str, Any]) -> dict[str, Any]:
        """A request about a person, for the description."""
        return {"people": [person]}


class ScoreBody(Body):
    """People to score; as rows of one person, with what follows from the changes."""

    people: People
    person: Person | None = None


class ExplainBody(Body):
    """People to explain, and how."""

    people: People
    rules: Rules = []
    search: str | None = None
    n_counterfactuals: Annotated[int, Field(ge=1, le=1000)] | None = None
    seconds: Annotated[float, Field(gt=0, le=3600)] | None = None
    details: bool = False
    language: str | None = None


class RangesBody(Body):
    """Answers of a person, to find their ranges."""

    person: Person
    answers: People
    rules: Rules = []

    @classmethod
    def example(cls, person: dict[str, Any]) -> dict[str, Any]:
        """A request about a person, for the description."""
        return {"person": person, "answers": [person], "rules": []}


class ReceiptBody(Body):
    """A person and the answer that they keep."""

    person: Person
    answer: Person
    rules: Rules = []

    @classmethod
    def example(cls, person: dict[str, Any]) -> dict[str, Any]:
        """A request about a person, for the description."""
        return {"person": person, "answer": person, "rules": []}


class RelaxBody(Body):
    """A person without an answer, and the rules."""

    person: Person
    rules: Rules = []

    @classmethod
    def example(cls, person: dict[str, Any]) -> dict[str, Any]:
        """A request about a person, for the description."""
        return {"person": person, "rules": [{"max_changes": 1}]}


class InstancesBody(Body):
    """People in the form of KServe: objects, or lists of cells in the order of the columns."""

    instances: Annotated[list[Person | list[Any]], Field(min_length=1)]

    @classmethod
    def example(cls, person: dict[str, Any]) -> dict[str, Any]:
        """A request about a person, for the description."""
        return {"instances": [person]}


class UploadBody(Body):
    """What goes with an upload."""

    rules: Rules = []
    search: str | None = None
    n_counterfactuals: Annotated[int, Field(ge=1, le=1000)] | None = None
    language: str | None = None
    name: str | None = None
    delimiter: str = ","

    @classmethod
    def described(cls) -> dict[str, Any]:
        """The form of an upload, for the description."""
        texts = ("rules", "search", "n_counterfactuals", "language", "name", "delimiter")
        fields: dict[str, Any] = {name: {"type": "string"} for name in texts}
        fields["file"] = {"type": "string", "format": "binary"}
        return {"type": "object", "properties": fields, "required": ["file"]}


BodyT = TypeVar("BodyT", bound=Body)


def check_media(headers: Mapping[str, str], expected: str) -> None:
    """Raise if a body is of another type than expected."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != expected:
        raise RefusalError.of(415, f"expected {expected}", "media", "header", "Content-Type")


def parse(content: bytes, model: type[BodyT]) -> BodyT:
    """A request of a kind."""
    return check_fields(parse_json(content, "body"), model)


def parse_json(content: bytes, *loc: str | int) -> Any:
    """What JSON stands for, strictly."""
    try:
        given = json.loads(content.decode(), parse_constant=_no_number, object_pairs_hook=_distinct)
        # Half a character could not be answered.
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeError:
        raise RefusalError.of(422, "expected JSON in UTF-8", "json", *loc) from None
    except json.JSONDecodeError as error:
        message = f"expected JSON, got something else at character {error.pos}"
        raise RefusalError.of(422, message, "json", *loc) from None
    except RecursionError:
        raise RefusalError.of(422, "expected JSON, nested less deeply", "json", *loc) from None
    except ValueError as error:
        raise RefusalError.of(422, f"expected JSON: {shorten(error)}", "json", *loc) from None
    return given


def check_fields(given: Any, model: type[BodyT]) -> BodyT:
    """Fields as a request of a kind."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise RefusalError(422, [_problem(dict(one)) for one in error.errors()]) from None


def _problem(error: dict[str, Any]) -> Problem:
    came = error["input"]
    got = "" if error["type"] == "missing" else f", got {shorten(came)}"
    return Problem(("body", *error["loc"]), f"{error['msg']}{got}", error["type"])


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"JSON has no {text}: write null")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object names the same key twice")
    return made
