"""A black box behind HTTP: rows out as JSON, answers in as JSON.

Rows are posted in batches as ``{"instances": [{"age": 36, "sex": "f"}, ...]}`` and
``{"predictions": [0.3, ...]}`` is expected back: one number per row, one list of probabilities,
or one label. These are the words of common model servers; both keys may be others.

Always true: what failed for a moment (no connection, a timeout, 429, 5xx) is asked again, later
each time; anything else is an error at once; an answer is never cut, padded or cast.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from numbers import Integral, Real
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
import pandas as pd

from ..errors import ParameterError, PredictorError
from ..tables.columns import is_missing, is_time, plain
from .wrapper import FrameLike, Output, Wrapper, check_output

LONGEST_PAUSE = 60.0
OUTPUTS = ("score", "probabilities", "labels")


@dataclass(frozen=True, eq=False)
class Remote(Wrapper):
    """A scorer behind a web address, asked with rows as JSON.

    Parameters
    ----------
    url
        Where rows are posted, ``http://`` or ``https://``.
    output
        What comes back for each row: ``"score"``, one number; ``"probabilities"``, one for each
        class or that of the second of two; ``"labels"``, one label.
    classes
        The labels in the order of the probabilities.
    batch_size
        Rows per request.
    timeout
        Seconds to wait for the server at each attempt.
    retries
        How often a request is sent again if there is no connection, no answer in time, or the
        answer is 429 or 5xx.
    backoff
        Seconds before it is sent again, twice as long each time, a minute at most. A server that
        says ``Retry-After`` in seconds is obeyed up to that minute.
    headers
        Further headers, e.g. ``{"Authorization": "Bearer ..."}``; never shown.
    rows_key, answers_key
        Where the rows stand in what is sent, and the answers in what comes; None if they stand
        alone.

    Examples
    --------
    >>> Remote("https://scores.example/credit", timeout=5)
    Remote('https://scores.example/credit')
    """

    url: str
    output: Output = "score"
    classes: Sequence[Hashable] | None = None
    batch_size: int = 1000
    timeout: float = 30.0
    retries: int = 4
    backoff: float = 0.5
    headers: Mapping[str, str] = field(default_factory=dict)
    rows_key: str | None = "instances"
    answers_key: str | None = "predictions"

    def __post_init__(self) -> None:
        check_output(self.output, OUTPUTS, self.classes)
        parts = urlsplit(self.url) if isinstance(self.url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(
                f"url must be a web address with http:// or https://, got {self.url!r}."
            )
        _check("batch_size", self.batch_size, Integral, 1)
        _check("retries", self.retries, Integral, 0)
        _check("timeout", self.timeout, Real, 1e-3)
        _check("backoff", self.backoff, Real, 0)

    def __repr__(self) -> str:
        return f"Remote({self._place!r})"

    @property
    def output_(self) -> Output:
        """What comes back for each row."""
        return self.output

    @property
    def labels(self) -> Sequence[Hashable] | None:
        """The classes in the order of their probabilities; None if it has none."""
        return self.classes

    def ask(self, rows: FrameLike) -> np.ndarray:
        """The server's answers, one entry per row."""
        records = _records(rows)
        answers: list[Any] = []
        for start in range(0, len(records), self.batch_size):
            batch = records[start : start + self.batch_size]
            answers += self._read(self._send(_encode(batch, self.rows_key)), len(batch))
        if len({isinstance(answer, list) for answer in answers}) > 1:
            raise self._wrong("all answers in one shape", answers)
        return np.array(answers, dtype=object if self.output == "labels" else float)

    @property
    def _place(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def _send(self, body: bytes) -> bytes:
        """What the server answers to one request, after as many attempts as it takes."""
        for attempt in range(self.retries + 1):
            try:
                return self._post(body)
            except (OSError, HTTPException) as error:
                asked_to_wait = _check_passing(error, self._place)
                if attempt == self.retries:
                    raise PredictorError(
                        f"The predictor at {self._place} gave no answer in {attempt + 1} "
                        f"attempts, the last time: {_reason(error)}. Is it running and reachable? "
                        "timeout, retries and backoff set how long it is waited for."
                    ) from error
            time.sleep(min(max(self.backoff * 2.0**attempt, asked_to_wait), LONGEST_PAUSE))
        raise AssertionError("the last attempt returns or raises")

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self.headers}
        request = Request(self.url, data=body, headers=headers, method="POST")
        with build_opener(_NoRedirect).open(request, timeout=self.timeout) as response:
            return bytes(response.read())

    def _read(self, body: bytes, n_rows: int) -> list[Any]:
        """The answers in a response: one per row, all of one shape."""
        try:
            said = json.loads(body)
        except ValueError as error:
            raise self._wrong("JSON", body.decode("utf-8", "replace")) from error
        if self.answers_key is not None:
            if not isinstance(said, dict) or self.answers_key not in said:
                raise self._wrong(f"an object with the key {self.answers_key!r}", said)
            said = said[self.answers_key]
        if not isinstance(said, list):
            raise self._wrong("a list of answers", said)
        if len(said) != n_rows:
            raise self._wrong(f"a list of {n_rows} answers, one per row,", said, len(said))
        for answer in said:
            self._check_answer(answer)
        return said

    def _check_answer(self, answer: Any) -> None:
        """One label, one number, or a list of as many numbers as there are classes."""
        if self.output == "labels":
            if not isinstance(answer, (str, int)):
                raise self._wrong("one label per row, a string or a whole number,", answer)
        elif isinstance(answer, list) and self.classes is not None:
            if len(answer) != len(self.classes) or not all(map(_is_number, answer)):
                raise self._wrong(f"{len(self.classes)} numbers per row", answer)
        elif not _is_number(answer) or (self.classes is not None and len(self.classes) != 2):
            n_numbers = "one number" if self.classes is None else f"{len(self.classes)} numbers"
            raise self._wrong(f"{n_numbers} per row", answer)

    def _wrong(self, expected: str, got: Any, n_got: int | None = None) -> PredictorError:
        told = repr(got)
        told = told if len(told) <= 200 else told[:200] + "…"
        count = "" if n_got is None else f"{n_got}: "
        return PredictorError(
            f"The predictor at {self._place} must answer with {expected}"
            f"{'' if expected.endswith(',') else ','} got {count}{told}. "
            "output, classes, rows_key and answers_key say what is sent and expected."
        )


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would become a GET without rows, with our headers, elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere: the redirect is an error."""


def _check_passing(error: Exception, place: str) -> float:
    """Seconds the server asks to wait; raises if another attempt would not help."""
    if not isinstance(error, HTTPError):
        return 0.0
    with error:
        said = error.read(200).decode("utf-8", "replace")
    status = error.code
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        wait = error.headers.get("Retry-After", "")
        return float(wait) if wait.isdecimal() else 0.0
    to_do = "Check the rows_key, the columns and the headers."
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        to_do = f"It sends you on to {error.headers.get('Location')!r}; give the final address."
    raise PredictorError(
        f"The predictor at {place} answered {status} {error.reason}: {said!r}. {to_do}"
    ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{error.code} {error.reason}"
    cause = error.reason if isinstance(error, URLError) else error
    return f"{type(cause).__name__}: {cause}" if isinstance(cause, Exception) else str(cause)


def _records(rows: FrameLike) -> list[Any]:
    """Rows as objects by column name; rows of an array as lists."""
    if isinstance(rows, np.ndarray):
        return [list(row) for row in pd.DataFrame(rows).pipe(_cells)]
    odd = [name for name in rows.columns if not isinstance(name, str)]
    if odd:
        raise PredictorError(
            f"Rows are sent as JSON objects, whose keys are strings, but the columns {odd!r} "
            "are named otherwise. Rename them."
        )
    return [dict(zip(rows.columns, row, strict=True)) for row in _cells(rows)]


def _cells(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows of plain cells: None for missing, dates and durations in ISO 8601."""
    columns = []
    for _, column in frame.items():
        cells = plain(column).copy()
        if is_time(column.dtype):
            cells = np.array(
                [cell if pd.isna(cell) else cell.isoformat() for cell in cells], object
            )
        cells[is_missing(column)] = None
        columns.append(cells.tolist())
    return list(zip(*columns, strict=True))


def _encode(records: list[Any], key: str | None) -> bytes:
    try:
        return json.dumps(records if key is None else {key: records}, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise PredictorError(
            f"A row cannot be written as JSON: {error}. Cells must be numbers, strings, booleans, "
            f"dates or missing, got {records[0]!r}."
        ) from error


def _is_number(answer: Any) -> bool:
    return isinstance(answer, (int, float)) and not isinstance(answer, bool)


def _check(name: str, value: Any, kind: type, least: float) -> None:
    number = isinstance(value, kind) and not isinstance(value, bool)
    if not number or not least <= value < math.inf:
        whole = "a whole number" if kind is Integral else "a finite number"
        raise ParameterError(f"{name} must be {whole} of at least {least}, got {value!r}.")
