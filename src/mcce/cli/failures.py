"""Errors as one readable paragraph, and what the exit codes mean.

====  ==============================================================================
0     done; people without an answer are an answer, not an error
1     a bug of mcce: anything that is not foreseen
2     an option, setting, rule or command cannot work, or a library is not installed
3     a file cannot be read, lacks columns, or has a cell that does not fit
4     the predictor cannot be loaded or called, or is another one
5     the output cannot be written; what was written before stays valid
6     a receipt does not hold
130   interrupted by Ctrl-C
====  ==============================================================================
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from .terminal import printable, say, show_json, wrap

BUG, USAGE, INPUT, PREDICTOR, OUTPUT, BROKEN, INTERRUPTED = 1, 2, 3, 4, 5, 6, 130


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
        # Typer raises others, so this is from the code of a predictor: nothing is done.
        code, message = PREDICTOR, f"the predictor ended the program (exit {error.code})."
        _show(code, type(error).__name__, f"{message}{_note(error)}", as_json)
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = OUTPUT
    except Exception as error:
        code, message = _explained(error)
        if debug:
            _show_traceback(error)
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
    """What was added to an error on its way, such as how to go on."""
    notes = getattr(error, "__notes__", [])
    return "".join(f" {note}" for note in notes)


def _show(code: int, kind: str, message: str, as_json: bool) -> None:
    if as_json:
        show_json({"error": {"type": kind, "message": message, "exit_code": code}}, sys.stderr)
    else:
        say(wrap(f"mcce: {'' if code == INTERRUPTED else 'error: '}{printable(message.strip())}"))


def _show_traceback(error: Exception) -> None:
    from ..runtime.tracebacks import format_traceback

    sys.stderr.write(printable(format_traceback(error), lines=True))


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show warnings as one line each, every text once."""
    seen: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in seen:
            seen.add(text)
            say(wrap(f"mcce: warning: {printable(text)}"))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # Deprecations in other people's libraries are not for users of a command.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.showwarning = show
        yield
