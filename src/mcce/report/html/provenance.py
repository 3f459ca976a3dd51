"""Where a report comes from, and how anybody gets the same answers again.

Always true: a fingerprint depends on a person's own row and answers, never on others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Hexadecimal digits of a person's fingerprint.
FINGERPRINT_DIGITS = 16


@dataclass(frozen=True)
class Provenance:
    """How a report was made.

    Examples
    --------
    >>> made = Provenance("mcce report bank.mcce people.csv", "report.html")
    >>> made.run
    'mcce report bank.mcce people.csv -o report.html'
    >>> made.of_person(17)
    'mcce report bank.mcce people.csv --row 17 -o person-17.html'
    >>> Provenance().of_person(17)
    'explainer.explain(people.iloc[[17]])'
    """

    command: str | None = None
    output: str = "report.html"
    rows: Sequence[int] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """What makes the whole report again."""
        if self.command is None:
            return "write_report(explainer, explainer.explain(people), path)"
        rows = "".join(f" --row {row}" for row in self.rows)
        return f"{self.command}{rows} -o {self.output}"

    def of_person(self, row: int) -> str:
        """What gives one person the same answers again."""
        if self.command is None:
            return f"explainer.explain(people.iloc[[{row}]])"
        return f"{self.command} --row {row} -o person-{row}.html"


def fingerprint(content: Any) -> str:
    """A checksum of plain values, cells included.

    Examples
    --------
    >>> fingerprint({"age": np.int64(25)}) == fingerprint({"age": 25})
    True
    """
    text = json.dumps(content, default=_plain, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else str(cell)
