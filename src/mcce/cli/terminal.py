"""What a terminal shows: lines, tables, JSON and progress.

Always true: names and values are shown with control characters escaped, so that no column name can
move the cursor or forge a line; results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import Any, Self, TextIO

LEAST_WIDTH = 20


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


def wrap(text: str) -> str:
    """A paragraph in lines as wide as the terminal; one line where there is none, as in logs."""
    if not sys.stderr.isatty():
        return text
    return "\n".join(textwrap.wrap(text, width(), break_on_hyphens=False)) or text


def width() -> int:
    """Columns of the terminal, at most 120 of them; 80 if there is none."""
    return max(min(shutil.get_terminal_size((80, 24)).columns, 120), LEAST_WIDTH)


def say(text: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show(text: str) -> None:
    """Write a line to standard output."""
    stream = sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))


def show_json(content: Any, stream: TextIO | None = None) -> None:
    """Write one JSON object in one line, to standard output unless said otherwise."""
    (stream or sys.stdout).write(f"{json.dumps(content, default=str)}\n")


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


def can_draw() -> bool:
    """Whether a progress bar can be drawn: on a terminal, with tqdm."""
    from importlib.util import find_spec

    return sys.stderr.isatty() and find_spec("tqdm") is not None


class PeopleBar:
    """Progress over people on a terminal: a bar, the rate and the time left.

    Drawn only if standard error is a terminal and tqdm is installed.
    """

    def __init__(self, total: int | None, wanted: bool, doing: str = "explain") -> None:
        self.began = time.monotonic()
        self.done = 0
        self._bar: Any = None
        if not wanted or not can_draw():
            return
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit=" people", desc=doing, dynamic_ncols=True)

    def show(self, n_done: int) -> None:
        """So many people are done."""
        if self._bar is not None:
            self._bar.update(n_done - self._bar.n)

    def reuse(self, n_done: int) -> None:
        """So many people were answered by an earlier run: they do not count for the rate."""
        if self._bar is not None:
            self._bar.initial = self._bar.n = n_done
            self._bar.refresh()

    def say(self, text: str) -> None:
        """Write a line to standard error, above the bar."""
        if self._bar is None:
            say(text)
        else:
            self._bar.write(text, file=sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began
