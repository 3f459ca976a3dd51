"""Every error and warning that mcce raises on purpose.

McceError
├── SchemaError         the columns, kinds or values of the data cannot be used
├── ParameterError      an argument has a value that cannot work
├── ConstraintError     a constraint is not valid or does not fit the data
├── LabelsError         the wording of features is not valid or not complete
├── PredictorError      the black box cannot be called or returns something unusable
├── WorkerError         a worker process died while it explained people
├── NotFittedError      the explainer is used before it is fitted
├── TimeLimitError      fitting takes longer than it may
├── SavedFileError      a file cannot be written or read, or does not hold a usable explainer
├── ReadError           a table of people or training rows cannot be read
├── WriteError          output cannot be written
└── MissingExtraError   an optional library is needed but not installed
McceWarning             something the user should know that does not stop the work

Each error is also the builtin it resembles, so ``except ValueError`` keeps working. Messages quote
what the user passed with :func:`shorten`, and never cells of the data.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Any, Self

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

__all__ = [
    "ConstraintError",
    "LabelsError",
    "McceError",
    "McceWarning",
    "MissingExtraError",
    "NotFittedError",
    "ParameterError",
    "PredictorError",
    "ReadError",
    "SavedFileError",
    "SchemaError",
    "TimeLimitError",
    "WorkerError",
    "WriteError",
    "did_you_mean",
    "missing_extra",
    "shorten",
]

_BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")")}


class McceError(Exception):
    """Base class of all errors that mcce raises on purpose.

    Attributes
    ----------
    original : Exception or None
        What a predictor or another function of yours raised, with its traceback. It is neither
        printed nor pickled, because it may quote people's data: logs of services would keep them.
        Where you may see them, ``traceback.print_exception(error.original)`` shows it.

    Examples
    --------
    >>> from mcce import MCCE, McceError
    >>> try:
    ...     MCCE(predictor=None).fit([[1, 2]])
    ... except McceError as error:
    ...     print(type(error).__name__)
    SchemaError
    """

    original: Exception | None = None

    def keeping(self, original: Exception | None) -> Self:
        """The error itself, with what a function of the user raised as ``original``.

        Parameters
        ----------
        original
            What was raised, or None.

        Returns
        -------
        McceError
            Itself.
        """
        self.original = original
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, {**vars(self), "original": None}


class SchemaError(McceError, ValueError):
    """The columns, kinds or values of the data cannot be used.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> mcce.Schema.learn(pd.DataFrame({"age": [36]}), immutable=["Age"])
    Traceback (most recent call last):
        ...
    mcce.errors.SchemaError: immutable names columns that are not in the data: ['Age']. Did you mean
    'age'? The columns are ['age'].
    """


class ParameterError(McceError, ValueError):
    """An argument has a value that cannot work.

    Examples
    --------
    >>> import mcce
    >>> mcce.Interval(1.0, 0.5)
    Traceback (most recent call last):
        ...
    mcce.errors.ParameterError: Interval [1.0, 0.5] is empty: no score lies in it. Pass the lower
    end first.
    """


class ConstraintError(McceError, ValueError):
    """A constraint is not valid or does not fit the data.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.max_changes(0)
    Traceback (most recent call last):
        ...
    mcce.errors.ConstraintError: max_changes: n must be a whole number of at least 1, got 0.
    """


class LabelsError(McceError, ValueError):
    """The wording of features is not valid or not complete.

    Examples
    --------
    >>> from mcce.report import Labels
    >>> Labels.make({"features": {"amount": {"rounding": 0}}})
    Traceback (most recent call last):
        ...
    mcce.errors.LabelsError: labels: features.amount.rounding must be a number above 0, got 0.
    """


class PredictorError(McceError, ValueError):
    """The black box cannot be called or returns something unusable.

    What the black box itself raised is ``original``.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> mcce.MCCE(lambda frame: 0.5, desired=(0.6, 1.0)).fit(pd.DataFrame({"age": [36, 52]}))
    Traceback (most recent call last):
        ...
    mcce.errors.PredictorError: The predictor must return an array of shape (2,) for 2 rows, got
    shape ().
    >>> try:
    ...     mcce.MCCE(lambda frame: frame["Age"], (0, 1)).fit(pd.DataFrame({"age": [36, 52]}))
    ... except mcce.PredictorError as error:
    ...     print(repr(error.original))
    KeyError('Age')
    """


class WorkerError(McceError, RuntimeError):
    """A worker process died while it explained people, or none could be started.

    Examples
    --------
    >>> raise WorkerError("The worker died: it ran out of memory, or the predictor ended it.")
    Traceback (most recent call last):
        ...
    mcce.errors.WorkerError: The worker died: it ran out of memory, or the predictor ended it.
    """


class NotFittedError(McceError, _SklearnNotFittedError):
    """The explainer is used before it is fitted; also scikit-learn's error of that name."""


class TimeLimitError(McceError, TimeoutError):
    """Fitting takes longer than it may, and was stopped."""


class SavedFileError(McceError, OSError, ValueError):
    """A file cannot be written or read, or does not hold a usable explainer."""


class ReadError(McceError, OSError, ValueError):
    """A table of people or training rows cannot be read, or holds a cell that does not fit.

    Messages name the column and the row, counted from 1, and never quote the cell.
    """


class WriteError(McceError, OSError):
    """Output cannot be written; what was written before is complete and stays valid."""


class MissingExtraError(McceError, ImportError):
    """An optional library is needed but not installed; the message names the extra to install."""


class McceWarning(UserWarning):
    """Something the user should know that does not stop the work."""


def missing_extra(
    library: str, extra: str, what: str, *, instead: str = "", folder: str = "."
) -> MissingExtraError:
    """The error for an optional library that is not installed.

    Parameters
    ----------
    library
        What is not installed.
    extra
        The extra that it comes with, or an empty text for a package without one.
    what
        What needs it: the beginning of the sentence.
    instead
        A sentence on what else can be done.
    folder
        The package of that extra, as seen from mcce's folder.

    Returns
    -------
    MissingExtraError
        To be raised.

    Examples
    --------
    >>> from mcce.errors import missing_extra
    >>> print(missing_extra("matplotlib", "report", "A picture"))
    A picture needs matplotlib, which is not installed: pip install ".[report]" in mcce's folder.
    """
    target = f"{folder}[{extra}]" if extra else folder
    text = (
        f'{what} needs {library}, which is not installed: pip install "{target}" in mcce\'s folder.'
    )
    return MissingExtraError(f"{text} {instead}".rstrip())


def did_you_mean(name: object, known: Iterable[object], likeness: float = 0.6) -> str:
    """A sentence that suggests the closest known name, or nothing.

    Parameters
    ----------
    name
        What the user wrote.
    known
        The names there are.
    likeness
        How alike names must be, from 0 to 1.

    Returns
    -------
    str
        The sentence after a space, or an empty text.

    Examples
    --------
    >>> from mcce.errors import did_you_mean
    >>> did_you_mean("salry", ["age", "salary"])
    " Did you mean 'salary'?"
    """
    if not isinstance(name, str) or len(name) > 100:
        return ""  # comparing takes time that grows with the square of the length
    close = difflib.get_close_matches(name, map(str, known), n=1, cutoff=likeness)
    return f" Did you mean {shorten(close[0])}?" if close else ""


def shorten(value: object, limit: int = 80) -> str:
    """A value for an error message: its repr, of bounded length and cost.

    Frames and arrays appear as their type and shape, since cells must not stand in messages. An
    exception appears as its message, on one line. A path keeps its end.

    Parameters
    ----------
    value
        An argument of the user, part of a file, or an exception.
    limit
        The largest number of characters, at least 20.

    Returns
    -------
    str
        At most ``limit`` characters; what was left out is shown as ``...``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from mcce.errors import shorten
    >>> shorten(["age", 36])
    "['age', 36]"
    >>> shorten("a" * 1_000_000, limit=20)
    "'aaaaaaaaaaaaaaa...'"
    >>> shorten(list(range(1_000_000)), limit=20)
    '[0, 1, 2, 3, 4, 5...'
    >>> shorten(Path("very/long/folder/rules.toml"), limit=20)
    "'...lder/rules.toml'"
    >>> shorten(10**100_000)
    'an integer of 332193 bits'
    """
    try:
        text = _describe(value, limit, depth=4)
    except Exception:
        # A repr may fail or be too deep; the message must still be made.
        text = f"a {type(value).__qualname__}"
    if len(text) <= limit:
        return text
    if isinstance(value, PurePath):
        return f"{text[0]}...{text[4 - limit :]}"
    closing = text[-1] if isinstance(value, (str, bytes)) else ""
    return f"{text[: limit - 3 - len(closing)]}...{closing}"


def _describe(value: object, limit: int, depth: int) -> str:
    """A repr that looks at no more of a value than fits; it may exceed the limit."""
    if isinstance(value, (str, bytes)):
        return repr(value[: limit + 1])
    if isinstance(value, PurePath):
        return repr(str(value))
    if isinstance(value, int) and not -(1 << 256) < value < 1 << 256:
        # Its digits take quadratic time, and Python refuses more than a few thousand.
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, BaseException):
        return " ".join(str(value)[: 2 * limit].split())
    if isinstance(value, (list, tuple, set, frozenset, dict)) and value:
        return _describe_items(value, limit, depth)
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        return f"a {type(value).__qualname__} of shape {shape!r}"
    if hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__"):
        return f"a {type(value).__qualname__}"
    return " ".join(repr(value).split())


def _describe_items(value: Collection[object], limit: int, depth: int) -> str:
    """A collection up to the limit of characters and some depth, whatever it refers to."""
    opening, closing = _BRACKETS.get(type(value), ("{", "}"))
    if depth == 0:
        return f"{opening}...{closing}"
    parts: list[str] = []
    left = limit
    for item in value:
        part = _describe(item, left, depth - 1)
        if isinstance(value, dict):
            part += f": {_describe(value[item], left, depth - 1)}"
        parts.append(part)
        left -= len(part) + 2
        if left < 0:
            break
    comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return f"{opening}{', '.join(parts)}{comma}{closing}"
