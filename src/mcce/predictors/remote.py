"""A black box behind HTTP: rows go out as JSON, predictions come back as JSON.

Rows are posted in batches as ``{"instances": [{"age": 36, "sex": "f"}, ...]}``; the response must
be ``{"predictions": [0.3, ...]}``: one number, one list of probabilities or one label per row.
Common model servers use these keys; both can be changed.

Always true: temporary failures (no connection, a timeout, status 429 or 5xx) are retried with
growing pauses, in which nothing else is sent; anything else is an error at once; predictions come
in the order of the rows and are never cut, padded or cast. A cell is written as it is or the row
is refused.
Errors quote neither headers, user, password and query of an address, nor rows and responses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args
from urllib.request import getproxies, proxy_bypass

import numpy as np
import pandas as pd

from ..errors import PredictorError, missing_extra
from ..parameters import check_count, check_real
from ..runtime.json_text import NotJsonError, UnusableJsonError, read_json
from ..runtime.threads import map_ordered
from ..tables.columns import is_missing, is_time, plain
from .calls import FrameLike
from .transport import Address, RateLimiter, check_headers, read_address
from .wrapper import Wrapper, check_output

if TYPE_CHECKING:
    from .exchange import Response

LONGEST_PAUSE = 60.0
# The largest response in bytes, and for each row and class.
MAX_BYTES, MAX_BYTES_PER_NUMBER = 1_000_000, 1_000
# Requests at a time if a rate bounds the load.
IN_FLIGHT = 4
# Media types that say what came instead of JSON; others might repeat a secret.
MEDIA_TYPES = ("application/json", "text/html", "text/plain", "application/problem+json")
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
RemoteOutput = Literal["score", "probabilities", "labels"]


@dataclass(frozen=True, eq=False)
class Remote(Wrapper):
    """A model behind a web address as a predictor; needs the extra ``remote``.

    Parameters
    ----------
    url
        Address that rows are posted to, ``http://`` or ``https://``. ``user:password@`` before the
        host is sent as Basic authentication. User, password and query are never shown.
    output : {"score", "probabilities", "labels"}
        What the server returns for each row: one number; one number per class, or that of the
        second of two classes; or one label.
    classes
        The labels in the order of the probabilities.
    batch_size
        Rows per request; with ``rows_per_second`` at most a tenth of that, or one.
    timeout
        Seconds until an attempt is given up, from connecting to the last byte of the response.
        Each retry has as many again.
    retries
        How often a request is sent again after a temporary failure: no connection, a timeout, or
        status 429 or 5xx.
    backoff
        Seconds before the first retry; doubles with each retry, up to a minute. A ``Retry-After``
        in seconds is respected, up to the same minute. Meanwhile no other request is sent, and
        after that one at a time until one succeeds.
    headers
        Further request headers, e.g. ``{"Authorization": "Bearer ..."}``. Values are never shown.
    rows_key, predictions_key
        Keys of the rows in the request and of the predictions in the response. None if the list
        stands there without a key.
    proxy
        Address of an HTTP proxy, ``"environment"`` for the one that environment variables such as
        ``https_proxy`` name, or None to connect directly, whatever the environment says.
    rows_per_second
        The most rows that are sent in any second, evenly; below 10 and not whole, in the time of 10
        rows. None for no limit.
    in_flight
        The most requests at a time, of all threads together. None for one of each thread, or with
        ``rows_per_second`` for 4 in all.

    Raises
    ------
    ParameterError
        If a parameter cannot work, such as a ``url`` that is not a web address.
    MissingExtraError
        If httpcore is not installed.

    Notes
    -----
    Pickles and copies hold the address, the headers and the proxy, secrets included. Files of
    ``MCCE.save`` hold no predictor.

    Threads and copies share the limits, processes do not: divide ``rows_per_second`` and
    ``in_flight`` by their number and round down, so that the parts are whole.

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
    proxy: str | None = None
    rows_per_second: float | None = None
    in_flight: int | None = None
    _limiter: RateLimiter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _exchange()
        check_output(self.output, get_args(RemoteOutput), self.classes)
        read_address("url", self.url)
        check_headers(self.headers)
        if self.proxy not in (None, "environment"):
            read_address("proxy", self.proxy, ("http",))
        check_count("batch_size", self.batch_size)
        check_count("retries", self.retries, least=0)
        check_real("timeout", self.timeout, "a finite number of seconds > 0", zero=False)
        check_real("backoff", self.backoff, "a finite number of seconds")
        if self.in_flight is not None:
            check_count("in_flight", self.in_flight)
        if self.rows_per_second is not None:
            rate = self.rows_per_second
            check_real("rows_per_second", rate, "None or a finite number > 0", zero=False)
        default = None if self.rows_per_second is None else IN_FLIGHT
        object.__setattr__(
            self, "_limiter", RateLimiter(self.rows_per_second, self.in_flight or default)
        )

    def __repr__(self) -> str:
        return f"Remote({str(self._address)!r})"

    def _query(self, rows: FrameLike) -> np.ndarray:
        records, n_rows = to_records(rows), self._limiter.n_rows(self.batch_size)

        def predict(start: int) -> list[Any]:
            batch = records[start : start + n_rows]
            response = self._send(encode(batch, self.rows_key, start), len(batch))
            return self._read(response, len(batch))

        starts = range(0, len(records), n_rows)
        n_threads = min(self._limiter.in_flight or 1, max(len(starts), 1))
        predictions = list(chain.from_iterable(map_ordered(predict, starts, n_threads)))
        shapes = [isinstance(prediction, list) for prediction in predictions]
        if len(set(shapes)) > 1:
            self._refuse("predictions of one shape", "lists and single numbers")
        return np.array(predictions, dtype=object if self.output == "labels" else float)

    @property
    def thread_safe(self) -> bool:
        """Whether threads may call it concurrently: True if ``in_flight`` bounds the load."""
        return self._limiter.in_flight is not None

    def hold_back(self) -> None:
        """Wait until rows that another process sent under the same limits no longer count.

        For a process that replaces another one: without it, both could use the whole rate in the
        same second.
        """
        self._limiter.hold_back()

    @property
    def _address(self) -> Address:
        return read_address("url", self.url)

    def _send(self, body: bytes, n_rows: int) -> Response:
        """The response to a request, sent again after temporary failures."""
        reason = ""
        for attempt in range(self.retries + 1):
            with self._limiter.turn(n_rows) as n_failures:
                outcome = self._post(body, n_rows)
                if not isinstance(outcome, str) and outcome.status < HTTPStatus.MULTIPLE_CHOICES:
                    self._limiter.resume(n_failures)
                    return outcome
                reason, wait = self._check_temporary(outcome)
                if attempt < self.retries:
                    pause = self.backoff * 2.0 ** min(attempt, 60)
                    self._limiter.pause(min(max(pause, wait), LONGEST_PAUSE))
        raise PredictorError(
            f"The predictor at {self._address} did not respond (attempts: {self.retries + 1}, last "
            f"failure: {reason}). Check that it is running and reachable, or raise timeout, "
            "retries or backoff."
        )

    def _post(self, body: bytes, n_rows: int) -> Response | str:
        """The response, or why there is none."""
        given = check_headers(self.headers)
        names = {name.lower() for name in given}
        headers = {name: HEADERS[name] for name in HEADERS if name.lower() not in names} | given
        limit = MAX_BYTES + MAX_BYTES_PER_NUMBER * n_rows * len(self.classes or (None,))
        limits = {"seconds": self.timeout, "max_bytes": limit}
        response = _exchange().post(self._address, body, headers, proxy=self._proxy(), **limits)
        if response is None:
            raise PredictorError(
                f"The predictor at {self._address} returned more than {limit} bytes for {n_rows} "
                "rows. Check the address."
            )
        return response

    def _check_temporary(self, outcome: Response | str) -> tuple[str, float]:
        """Why a request failed, and how long the server wants us to wait; raises if for good."""
        if isinstance(outcome, str):
            return outcome, 0.0
        status = outcome.status
        known = HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown status"
        reason = f"{status} {known}"
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            wait = outcome.headers.get("retry-after", "")
            return reason, float(wait) if wait.isdecimal() else 0.0
        remedy = "Check rows_key, the columns and the headers."
        if status < HTTPStatus.BAD_REQUEST:
            remedy = "Redirects are not followed: pass the final address."
        raise PredictorError(
            f"The predictor at {self._address} responded with {reason}{_media_type(outcome)}. Its "
            f"body is not shown, because it may repeat rows or secrets. {remedy}"
        )

    def _proxy(self) -> Address | None:
        """The proxy to use for the address."""
        name, proxy = "proxy", self.proxy
        if proxy == "environment":
            scheme, found = self._address.scheme, getproxies()
            proxy = found.get(scheme) or found.get("all")
            if proxy is None or proxy_bypass(self._address.host.strip("[]")):
                return None
            name = f"The environment variable {scheme}_proxy"
            proxy = proxy if "://" in proxy else f"http://{proxy}"
        return None if proxy is None else read_address(name, proxy, ("http",))

    def _read(self, response: Response, n_rows: int) -> list[Any]:
        """The predictions in a response, one per row."""
        content = self._parse(response)
        if self.predictions_key is not None:
            if not isinstance(content, dict) or self.predictions_key not in content:
                self._refuse(f"an object with the key {self.predictions_key!r}", _kind(content))
            content = content[self.predictions_key]
        if not isinstance(content, list):
            self._refuse("a list of predictions", _kind(content))
        if len(content) != n_rows:
            self._refuse(f"a list of {n_rows} predictions, one per row", f"{len(content)}")
        for position, prediction in enumerate(content):
            self._check_prediction(prediction, position)
        return content

    def _parse(self, response: Response) -> Any:
        """The content of a response that is JSON."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            self._refuse("plain JSON", "a compressed response: leave Accept-Encoding out")
        try:
            return read_json(response.body)
        except UnusableJsonError as error:
            flaw = str(error)
        except NotJsonError:
            flaw = f"{len(response.body)} bytes{_media_type(response)} that are not"
        return self._refuse("JSON", flaw)

    def _check_prediction(self, prediction: Any, position: int) -> None:
        """Raise unless it is one label, one number, or one number per class."""
        if self.output == "labels":
            if not isinstance(prediction, (str, int)) or isinstance(prediction, bool):
                self._refuse(
                    "one label per row, a string or whole number", _kind(prediction, position)
                )
        elif isinstance(prediction, list) and self.classes is not None:
            if len(prediction) != len(self.classes) or not all(map(_fits_float, prediction)):
                self._refuse(f"{len(self.classes)} numbers per row", _kind(prediction, position))
        elif not _fits_float(prediction) or (self.classes is not None and len(self.classes) != 2):
            n_numbers = "one number" if self.classes is None else f"{len(self.classes)} numbers"
            self._refuse(f"{n_numbers} per row", _kind(prediction, position))

    def _refuse(self, expected: str, got: str) -> NoReturn:
        raise PredictorError(
            f"The predictor at {self._address} must return {expected}, got {got}. "
            "Check output, classes, rows_key and predictions_key."
        )


def _exchange() -> ModuleType:
    """The module that needs httpcore."""
    try:
        return import_module(".exchange", __package__)
    except ModuleNotFoundError:
        raise missing_extra("httpcore", "remote", "A remote predictor") from None


def _kind(content: Any, position: int | None = None) -> str:
    """What a piece of JSON is, without quoting it."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    name = "null" if content is None else kinds.get(type(content), "a number")
    if isinstance(content, (list, dict)):
        name += f" of length {len(content)}"
    elif name == "a number" and not _fits_float(content):
        name = "a number too large for a float"
    elif isinstance(content, float):
        name = name if content.is_integer() else "a fraction"
    return name if position is None else f"{name} for row {position} of the request"


def _media_type(response: Response) -> str:
    named = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return f" of {named}" if named in MEDIA_TYPES else ""


def _fits_float(value: Any) -> bool:
    """Whether it is a number, not a boolean, that a float can hold."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and -sys.float_info.max <= value <= sys.float_info.max


def to_records(rows: FrameLike) -> list[Any]:
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


def encode(records: list[Any], key: str | None, start: int) -> bytes:
    """Records as JSON, under a key if there is one; the first is that of row ``start``."""
    try:
        return json.dumps(records if key is None else {key: records}, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        place = _first_unwritable(records, start)
    raise PredictorError(
        f"{place} cannot be written as JSON. Cells must be finite numbers, strings, booleans, "
        "dates or missing. Convert the column."
    )


def _first_unwritable(records: list[Any], start: int) -> str:
    """Row and column of the first cell that JSON cannot hold."""
    for position, record in enumerate(records, start):
        for name, cell in record.items() if isinstance(record, dict) else enumerate(record):
            try:
                json.dumps(cell, allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                return f"A {type(cell).__name__} in row {position} of column {name!r}"
    return "A row"
