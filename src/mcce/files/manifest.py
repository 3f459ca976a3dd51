"""What a long run writes down about itself: its job, and a receipt for every complete part.

The job is everything that decides the output. A run goes on, here or on another machine, only with
the same job, so parts of one folder always belong together. Each time it goes on it is another run,
by name, so that workers of the one before can tell that theirs has ended.

Always true: both are plain JSON; a file that is not exactly what was written is no manifest and no
receipt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import ParameterError, ReadError, shorten

FORMAT, VERSION = "mcce parts", 1
# Settings that are named in the error about another job.
MOST_SHOWN = 5


@dataclass(frozen=True)
class Manifest:
    """What a folder of parts is about.

    Examples
    --------
    >>> manifest = Manifest({"explainer": "ab12", "block_rows": 100}, "ef56")
    >>> Manifest.from_json(manifest.to_json()) == manifest
    True
    """

    job: Mapping[str, Any]
    run: str
    n_parts: int | None = None

    def to_json(self) -> bytes:
        """The manifest as a JSON text."""
        return _dump({"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """The manifest in a JSON text."""
        content = _parse(text, {"format": str, "version": int, "job": dict, "run": str})
        if content is None or content["format"] != FORMAT or content["version"] != VERSION:
            raise ReadError(
                f"The manifest of an unfinished run cannot be read: expected {FORMAT!r} of version "
                f"{VERSION}. Begin anew, or go on with the version of mcce that started the run."
            )
        return cls(content["job"], content["run"], content.get("n_parts"))

    def check_job(self, job: Mapping[str, Any]) -> None:
        """Raise if a run with another job would go on with these parts.

        Examples
        --------
        >>> Manifest({"block_rows": 100}, "ef56").check_job({"block_rows": 50})
        Traceback (most recent call last):
            ...
        mcce.errors.ParameterError: The unfinished run was started with other settings: block_rows
        was 100 and is 50 now. Use the same settings to go on, or begin anew.
        """
        other = list(_differences(self.job, job))
        if other:
            more = ["and others"] if len(other) > MOST_SHOWN else []
            raise ParameterError(
                "The unfinished run was started with other settings: "
                f"{', '.join(other[:MOST_SHOWN] + more)}. Use the same settings to go on, or begin "
                "anew."
            )


def _differences(was: Mapping[str, Any], now: Mapping[str, Any], of: str = "") -> Iterator[str]:
    """What differs between two jobs; of values with names of their own, only those that do."""
    for name in sorted(was.keys() | now.keys()):
        old, new = was.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f" of {name}")
        elif old != new:
            yield f"{shorten(name)[1:-1]}{of} was {shorten(old)} and is {shorten(new)} now"


@dataclass(frozen=True)
class Receipt:
    """A part that is complete.

    Examples
    --------
    >>> receipt = Receipt(0, 10, "ab12", "cd34", {"answered": 9})
    >>> Receipt.from_json(receipt.to_json()) == receipt
    True
    """

    first: int
    n_rows: int
    fingerprint: str
    sha256: str
    counts: Mapping[str, int]

    def to_json(self) -> bytes:
        """The receipt as a JSON text."""
        return _dump(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> Receipt | None:
        """The receipt in a JSON text; None if it holds something else."""
        wanted = {"first": int, "n_rows": int, "fingerprint": str, "sha256": str, "counts": dict}
        content = _parse(text, wanted)
        if content is None or any(type(n) is not int for n in content["counts"].values()):
            return None
        return cls(**{name: content[name] for name in wanted})


def _dump(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"


def _parse(text: bytes, wanted: Mapping[str, type]) -> dict[str, Any] | None:
    """A JSON object that has entries of these types; None for anything else."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    fits = all(isinstance(content.get(name), type_) for name, type_ in wanted.items())
    return content if fits else None
