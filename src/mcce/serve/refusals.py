"""What a service answers to a request that it refuses: a status, and a message for each field.

Always true: messages quote at most a short part of what came, and nothing of other people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from starlette.responses import Response

from ..errors import ConstraintError, McceError, ParameterError, PredictorError, SchemaError

MAX_PROBLEMS = 50


@dataclass(frozen=True)
class Problem:
    """What is wrong with a field."""

    loc: tuple[str | int, ...]
    msg: str
    type: str = "value"


class RefusalError(Exception):
    """A request that is not answered."""

    def __init__(
        self, status: int, problems: Sequence[Problem], headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status)
        self.status, self.problems, self.headers = status, list(problems), headers or {}

    @classmethod
    def of(cls, status: int, message: str, type_: str, *loc: str | int) -> RefusalError:
        """A refusal for one reason."""
        return cls(status, [Problem(loc, message, type_)])

    def response(self) -> Response:
        """The response."""
        detail = [asdict(problem) for problem in self.problems[:MAX_PROBLEMS]]
        content = json.dumps({"detail": detail})
        return Response(content, self.status, self.headers, "application/json")


def refusal_of(error: McceError, *loc: str | int) -> RefusalError:
    """The refusal for an error of ours."""
    if isinstance(error, PredictorError):
        kind = type(error.original).__name__ if error.original is not None else None
        message = f"The predictor failed with a {kind}." if kind else str(error)
        return RefusalError.of(502, message, "predictor", *loc)
    is_request = isinstance(error, (ConstraintError, ParameterError, SchemaError))
    status = 422 if is_request else 500
    return RefusalError.of(status, str(error), type(error).__name__, *(loc or ("body",)))
