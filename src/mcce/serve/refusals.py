"""What a service answers to a request that it refuses: a status, and a message for each field.

Always true: messages quote at most a short part of what came, and nothing of other people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from typing_extensions import TypedDict

from ..errors import (
    ConstraintError,
    ParameterError,
    PredictorError,
    ReadError,
    SchemaError,
    shorten,
)

MAX_PROBLEMS = 50


@dataclass(frozen=True)
class Problem:
    """What is wrong with a field."""

    loc: tuple[str | int, ...]
    msg: str
    type: str = "value"


class Refused(TypedDict):
    """Why a request is not answered."""

    detail: list[Problem]


class RefusalError(HTTPException):
    """A request that is not answered."""

    def __init__(
        self, status: int, problems: Sequence[Problem], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, headers=headers)
        self.problems = list(problems)

    @classmethod
    def of(cls, status: int, message: str, type_: str, *loc: str | int) -> RefusalError:
        """A refusal for one reason."""
        return cls(status, [Problem(loc, message, type_)], {})

    def response(self) -> Response:
        """The response."""
        detail = [asdict(problem) for problem in self.problems[:MAX_PROBLEMS]]
        content = json.dumps({"detail": detail})
        return Response(content, self.status_code, self.headers, "application/json")


def refusal_of(error: Exception) -> RefusalError:
    """The refusal for an error of ours, or of the web framework."""
    match error:
        case RefusalError():
            return error
        case RequestValidationError():
            return RefusalError(422, [_problem(one) for one in error.errors()[:MAX_PROBLEMS]])
        case HTTPException(status_code=status, headers=headers):
            # 400 is how FastAPI says that it cannot parse a form.
            status = 422 if status == 400 else status
            return RefusalError(status, [Problem((), str(error.detail), "http")], headers)
        case PredictorError(original=original) if original is not None:
            message = f"The predictor failed with a {type(original).__name__}."
            return RefusalError.of(502, message, "predictor")
        case PredictorError():
            return RefusalError.of(502, str(error), "predictor")
    is_request = isinstance(error, (ConstraintError, ParameterError, ReadError, SchemaError))
    return RefusalError.of(422 if is_request else 500, str(error), type(error).__name__, "body")


def _problem(error: dict[str, Any]) -> Problem:
    """What pydantic found wrong, and what it found there."""
    loc = tuple(one if isinstance(one, int) else shorten(one)[1:-1] for one in error["loc"])
    got = "" if error["type"] == "missing" else f", got {shorten(error['input'])}"
    return Problem(loc, f"{error['msg'].removeprefix('Value error, ')}{got}", error["type"])
