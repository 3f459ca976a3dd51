"""A relation that was found, with the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass

from .relation import Relation


@dataclass(frozen=True)
class FoundRelation:
    """A relation that holds in all or nearly all training rows."""

    relation: Relation
    share: float
    n_rows: int
    p_value: float
    enforced: bool
