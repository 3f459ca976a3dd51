"""A black box behind HTTP: rows go out as JSON, predictions come back as JSON.

Rows are posted in batches as ``{"instances": [{"age": 36, "sex": "f"}, ...]}``; the response must
be ``{"predictions": [0.3, ...]}``: one number, one list of probabilities or one label per row.
Common model servers use these keys; both can be changed.

Always true: temporary failures (no connection, a timeout, status 429 or 5xx) are retried with
growing pauses; anything else is an error at once; predictions are never cut, padded or cast.
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
from typing import Any, Literal, get_args
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
import pandas as pd

from ..errors import ParameterError, PredictorError
from ..tables.columns import is_missing, is_time, plain
from .base import FrameLike, Output, Wrapper, check_output

LONGEST_PAUSE = 60.0
RemoteOutput = Literal["score", "probabilities", "labels"]


@dataclass(frozen=True, eq=False)
class Remote(Wrapper):
    """A model behind a web address as a predictor.

    Parameters
    ----------
    url
        Address that rows are posted to, ``http://`` or ``https://``.
    output : {"score", "probabilities", "labels"}
        What the server returns for each row: one number; one number per class, or that of the
        second of two classes; or one label.
    classes
        The labels in the order of the probabilities.
    batch_size
        Rows per request.
    timeout
        Seconds to wait for the server, per attempt.
    retries
        How often a request is sent again after a temporary failure: no connection, a timeout, or
        status 429 or 5xx.
    backoff
        Seconds before the first retry; doubles with each retry, up to a minute. A ``Retry-After``
        in seconds is respected, up to the same minute.
    headers
        Further request headers, e.g. ``{"Authorization": "Bearer ..."}``; never shown.
    rows_key, predictions_key
        Keys of the rows in the request and of the predictions in the response. None if the list
        stands there without a key.

    Raises
    ------
    ParameterError
        If a parameter cannot work, such as a ``url`` that is not a web address.

    Examples
    --------
    >>> Remote("https://models.example/credit", timeout=5)
    Remote('https://models.example/credit')
    """

    url: str
    output: RemoteOutput = "score"
    classes: Sequence[Hashable] | None = None
    batch_size: int = 1000
    timeout: float = 30.0
    retries: int = 4
    backoff: float = 0.5
    headers: Mapping[str, str] = field(default_factory=dict)
    rows_key: str | None = "instances"
    predictions_key: str | None = "predictions"

    def __post_init__(self) -> None:
        check_output(self.output, get_args(RemoteOutput), self.classes)
        parts = urlsplit(self.url) if isinstance(self.url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(
                f"url must be a web address that begins with http:// or https://, got {self.url!r}."
            )
        _check("batch_size", self.batch_size, Integral, 1)
        _check("retries", self.retries, Integral, 0)
        _check("timeout", self.timeout, Real, 1e-3)
        _check("backoff", self.backoff, Real, 0)

    def __repr__(self) -> str:
        return f"Remote({self._public_url!r})"

    @property
    def _output(self) -> Output:
        return self.output

    @property
    def _labels(self) -> Sequence[Hashable] | None:
        return self.classes

    def _query(self, rows: FrameLike) -> np.ndarray:
        records = _to_records(rows)
        predictions: list[Any] = []
        for start in range(0, len(records), self.batch_size):
            batch = records[start : start + self.batch_size]
            predictions += self._read(self._send(_encode(batch, self.rows_key)), len(batch))
        if len({isinstance(prediction, list) for prediction in predictions}) > 1:
            raise self._unexpected("predictions of one shape", predictions)
        return np.array(predictions, dtype=object if self.output == "labels" else float)

    @property
    def _public_url(self) -> str:
        """The address without user, password and query, which may be secret."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def _send(self, body: bytes) -> bytes:
        """The response to a request, sent again after temporary failures."""
        for attempt in range(self.retries + 1):
            try:
                return self._post(body)
            except (OSError, HTTPException) as error:
                retry_after = _check_temporary(error, self._public_url)
                if attempt == self.retries:
                    raise PredictorError(
                        f"The predictor at {self._public_url} did not respond (attempts: "
                        f"{attempt + 1}, last failure: {_reason(error)}). Check that it is running "
                        "and reachable, or raise timeout, retries or backoff."
                    ) from error
            time.sleep(min(max(self.backoff * 2.0**attempt, retry_after), LONGEST_PAUSE))
        raise AssertionError("the last attempt returns or raises")

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self.headers}
        request = Request(self.url, data=body, headers=headers, method="POST")
        with build_opener(_NoRedirect).open(request, timeout=self.timeout) as response:
            return bytes(response.read())

    def _read(self, body: bytes, n_rows: int) -> list[Any]:
        """The predictions in a response, one per row."""
        try:
            content = json.loads(body)
        except ValueError as error:
            raise self._unexpected("JSON", body.decode("utf-8", "replace")) from error
        if self.predictions_key is not None:
            if not isinstance(content, dict) or self.predictions_key not in content:
                raise self._unexpected(f"an object with the key {self.predictions_key!r}", content)
            content = content[self.predictions_key]
        if not isinstance(content, list):
            raise self._unexpected("a list of predictions", content)
        if len(content) != n_rows:
            expected = f"a list of {n_rows} predictions, one per row,"
            raise self._unexpected(expected, content, len(content))
        for prediction in content:
            self._check_prediction(prediction)
        return content

    def _check_prediction(self, prediction: Any) -> None:
        """Raise unless it is one label, one number, or one number per class."""
        if self.output == "labels":
            if not isinstance(prediction, (str, int)):
                raise self._unexpected("one label per row, a string or whole number,", prediction)
        elif isinstance(prediction, list) and self.classes is not None:
            if len(prediction) != len(self.classes) or not all(map(_is_number, prediction)):
                raise self._unexpected(f"{len(self.classes)} numbers per row", prediction)
        elif not _is_number(prediction) or (self.classes is not None and len(self.classes) != 2):
            n_numbers = "one number" if self.classes is None else f"{len(self.classes)} numbers"
            raise self._unexpected(f"{n_numbers} per row", prediction)

    def _unexpected(self, expected: str, got: Any, n_got: int | None = None) -> PredictorError:
        shown = repr(got)
        shown = shown if len(shown) <= 200 else shown[:200] + "…"
        count = "" if n_got is None else f"{n_got}: "
        return PredictorError(
            f"The predictor at {self._public_url} must return {expected}"
            f"{'' if expected.endswith(',') else ','} got {count}{shown}. "
            "Check output, classes, rows_key and predictions_key."
        )


class _NoRedirect(HTTPRedirectHandler):
    """No redirects: they would send our headers elsewhere, in a GET without rows."""

    def redirect_request(self, *_: Any) -> None:
        """None, which makes a redirect an error."""


def _check_temporary(error: Exception, url: str) -> float:
    """Seconds that the server asks to wait; raises if a retry would not help."""
    if not isinstance(error, HTTPError):
        return 0.0
    with error:
        body = error.read(200).decode("utf-8", "replace")
    status = error.code
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        wait = error.headers.get("Retry-After", "")
        return float(wait) if wait.isdecimal() else 0.0
    remedy = "Check rows_key, the columns and the headers."
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        remedy = f"It redirects to {error.headers.get('Location')!r}: pass the final address."
    raise PredictorError(
        f"The predictor at {url} responded with {status} {error.reason}: {body!r}. {remedy}"
    ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{error.code} {error.reason}"
    cause = error.reason if isinstance(error, URLError) else error
    return f"{type(cause).__name__}: {cause}" if isinstance(cause, Exception) else str(cause)


def _to_records(rows: FrameLike) -> list[Any]:
    """Rows of a frame as objects by column name, rows of an array as lists."""
    if isinstance(rows, np.ndarray):
        return [list(row) for row in pd.DataFrame(rows).pipe(_cells)]
    other = [name for name in rows.columns if not isinstance(name, str)]
    if other:
        raise PredictorError(
            f"Rows are sent as JSON objects, whose keys are strings, but the columns {other!r} "
            "have other names. Rename them."
        )
    return [dict(zip(rows.columns, row, strict=True)) for row in _cells(rows)]


def _cells(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows of plain cells: missing ones are None, dates and durations ISO 8601 strings."""
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
            f"dates or missing; the first row is {records[0]!r}."
        ) from error


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check(name: str, value: Any, kind: type, least: float) -> None:
    number = isinstance(value, kind) and not isinstance(value, bool)
    if not number or not least <= value < math.inf:
        whole = "a whole number" if kind is Integral else "a finite number"
        raise ParameterError(f"{name} must be {whole} of at least {least}, got {value!r}.")
