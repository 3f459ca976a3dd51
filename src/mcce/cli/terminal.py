"""What a terminal shows: lines, tables, JSON, progress, and errors with their exit codes.

====  ==============================================================================
0     done; people without an answer are an answer, not an error
1     a bug of mcce: anything that is not foreseen
2     an option, setting, rule or command cannot work, or a library is not installed
3     a file cannot be read, lacks columns, or has a cell that does not fit
4     the predictor cannot be loaded or called, or is another one
5     the output cannot be written; what was written before stays valid
6     a receipt does not hold
7     a new model refuses more answers than --fail-above
130   interrupted by Ctrl-C
====  ==============================================================================

Always true: names and values are shown with control characters escaped, so that no column name can
move the cursor or forge a line; results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import typer

from ..runtime.progress import ProgressBar, format_traceback
from .arguments import RunArguments

MIN_WIDTH = 20
BUG, USAGE, INPUT, PREDICTOR, OUTPUT, BROKEN, REFUSED, INTERRUPTED = 1, 2, 3, 4, 5, 6, 7, 130


def printable(text: object, *, lines: bool = False) -> str:
    r"""A text without control characters: they are escaped, as in ``\x1b``.

    Examples
    --------
    >>> print(printable("red \x1b[31m\nnew line"))
    red \x1b[31m\nnew line
    """
    return "".join(
        one if one.isprintable() or (lines and one == "\n") else repr(one)[1:-1]
        for one in str(text)
    )


def notify(text: str) -> None:
    """Write a paragraph to standard error, beginning with the name of the command."""
    sys.stderr.write(f"{paragraph(text)}\n")
    sys.stderr.flush()


def paragraph(text: str) -> str:
    """Lines as wide as the terminal, 120 columns at most; one line without it, as in logs."""
    text = f"mcce: {text}"
    if not sys.stderr.isatty():
        return text
    width = max(min(shutil.get_terminal_size((80, 24)).columns, 120), MIN_WIDTH)
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))


def show(text: str) -> None:
    """Write a line to standard output."""
    stream = sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))


def show_json(content: Any, stream: TextIO | None = None) -> None:
    """Write one JSON object in one line, by default to standard output."""
    (stream or sys.stdout).write(f"{json.dumps(content, default=str)}\n")


def conclude(
    run: RunArguments, content: Mapping[str, Any], text: str, stream: TextIO | None = None
) -> None:
    """Show what was done: as JSON, as a paragraph, or not at all."""
    if run.as_json:
        show_json(content, stream)
    elif not run.quiet:
        notify(printable(text))


def table(
    names: Sequence[str], rows: Sequence[Sequence[object]], columns: int | None = None
) -> str:
    """A table of texts that fits the terminal: the widest columns are cut.

    Examples
    --------
    >>> print(table(["feature", "after"], [["Duration", 24], ["Savings", "100-500 DM"]], 22))
    feature   after
    Duration  24
    Savings   100-500 DM
    >>> print(table(["feature"], [["a" * 30]], 10))
    feature
    aaaaaaa...
    """
    cells = [[printable(cell) for cell in row] for row in [names, *rows]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
    room = (columns or shutil.get_terminal_size((80, 24)).columns) - 2 * (len(names) - 1)
    while sum(widths) > room and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    lines = [
        "  ".join(_cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True))
        for row in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 3]}..."


def describe_status(totals: Mapping[str, int], seconds: float) -> str:
    """How many people there were, by status, as a sentence."""
    listed = ", ".join(f"{count:,} {status}" for status, count in sorted(totals.items()))
    return f"{sum(totals.values()):,} people in {seconds:.1f} s: {listed or 'nobody'}."


def can_draw() -> bool:
    """Whether a progress bar can be drawn: on a terminal, with tqdm."""
    from importlib.util import find_spec

    return sys.stderr.isatty() and find_spec("tqdm") is not None


def people_bar(total: int | None, *, wanted: bool, doing: str = "explain") -> ProgressBar:
    """Progress over people: a bar, the rate and the time left; no bar where none can be drawn."""
    return ProgressBar(total, doing, wanted and can_draw(), unit=" people", leave=True)


@contextmanager
def reported(*, debug: bool, as_json: bool = False) -> Iterator[None]:
    """Turn any error inside into a paragraph on standard error and an exit code."""
    try:
        with _warnings_in_one_line():
            yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt as error:
        code, message = INTERRUPTED, _note(error) or "interrupted."
        _show(code, type(error).__name__, message, as_json)
    except SystemExit as error:
        # Typer never raises it, so it comes from the predictor's code.
        code, message = PREDICTOR, f"the predictor ended the program (exit {error.code})."
        _show(code, type(error).__name__, f"{message}{_note(error)}", as_json)
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = OUTPUT
    except Exception as error:
        code, message = _explained(error)
        if debug:
            sys.stderr.write(printable(format_traceback(error), lines=True))
        _show(code, type(error).__name__, message, as_json)
    else:
        return
    raise typer.Exit(code)


def _explained(error: Exception) -> tuple[int, str]:
    """Exit code and paragraph of an error."""
    # Imported late, as everything that loads scikit-learn.
    from ..errors import McceError, PredictorError

    if not isinstance(error, McceError):
        what = f"{type(error).__name__}: {error}"
        return BUG, f"unexpected error. {what}. This is a bug of mcce; --debug shows where."
    hint = ""
    if isinstance(error, PredictorError) and error.original is not None:
        hint = " On the command line, --debug shows it."
        if not isinstance(error.original, (ImportError, SyntaxError)):
            hint += (
                " CSV has no types: if the predictor was trained on texts or categories that look "
                "like numbers, name them with --dtype."
            )
    return _code(error), f"{error}{hint}{_note(error)}"


def _code(error: Exception) -> int:
    from ..errors import (
        PredictorError,
        ReadError,
        SavedFileError,
        SchemaError,
        WorkerError,
        WriteError,
    )

    codes: dict[type[Exception], int] = {
        WriteError: OUTPUT,
        PredictorError: PREDICTOR,
        WorkerError: PREDICTOR,
        ReadError: INPUT,
        SchemaError: INPUT,
        SavedFileError: INPUT,
    }
    return next((code for type_, code in codes.items() if isinstance(error, type_)), USAGE)


def _note(error: BaseException) -> str:
    """Notes that were added to an error, such as how to go on."""
    notes = getattr(error, "__notes__", [])
    return "".join(f" {note}" for note in notes)


def _show(code: int, kind: str, message: str, as_json: bool) -> None:
    if as_json:
        show_json({"error": {"type": kind, "message": message, "exit_code": code}}, sys.stderr)
    else:
        notify(f"{'' if code == INTERRUPTED else 'error: '}{printable(message.strip())}")


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show warnings as one line each, every text once."""
    seen: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in seen:
            seen.add(text)
            notify(f"warning: {printable(text)}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # Deprecations in other people's libraries are not for users of a command.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.showwarning = show
        yield
