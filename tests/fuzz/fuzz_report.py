"""What a fuzzing case did: what it counted, its largest measurements, and the promises it broke."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """The outcome of one case, or of many together.

    ``counts`` add up over cases, of ``peaks`` the largest counts, and every entry of ``broken``
    is a finding.
    """

    counts: Counter[str] = field(default_factory=Counter)
    peaks: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def check(self, holds: bool, message: str) -> None:
        """Count a check, and note what it found."""
        self.counts["checks"] += 1
        if not holds:
            self.broken.append(message)

    def peak(self, name: str, value: float) -> None:
        self.peaks[name] = max(value, self.peaks.get(name, value))

    def add(self, other: Report) -> None:
        self.counts.update(other.counts)
        for name, value in other.peaks.items():
            self.peak(name, value)
        self.broken.extend(other.broken)

    def to_json(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "peaks": self.peaks, "broken": self.broken}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Report:
        return cls(Counter(plain["counts"]), dict(plain["peaks"]), list(plain["broken"]))

    def summary(self) -> str:
        counts = [f"{value:,} {name}" for name, value in sorted(self.counts.items())]
        peaks = [f"{name} at most {value:.3g}" for name, value in sorted(self.peaks.items())]
        return ", ".join([*counts, *peaks, f"{len(self.broken)} broken"])
