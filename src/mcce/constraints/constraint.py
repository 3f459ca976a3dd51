"""What all constraints have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from ..tables.features import Feature


@dataclass(frozen=True)
class Constraint:
    """Anything that may be asked of an answer; ``features`` are the columns it speaks of."""

    features: tuple[Hashable, ...]
    source: str = field(default="", kw_only=True, compare=False, repr=False)  # file and line
    kind: ClassVar[str]

    @property
    def conditions(self) -> tuple[str, ...]:
        """Further columns that a condition asks for."""
        return ()

    @property
    def name(self) -> str:
        """How the constraint is called where it is given as a reason."""
        return f"{self.kind} {', '.join(str(feature) for feature in self.features)}"

    def check(self, features: Sequence[Feature]) -> None:
        """An error where the constraint does not fit its features."""

    def builder_call(self) -> tuple[str, dict[str, Any]]:
        """The word and the arguments that users write for it."""
        names = [field.name for field in fields(self)]
        told = {name: getattr(self, name) for name in names if name not in ("features", "source")}
        return self.kind, {"feature": self.features[0]} | told
