"""What the finders of relations hand on: a relation and how well held-out rows confirm it."""

from __future__ import annotations

from dataclasses import dataclass

from .relation import Relation


@dataclass(frozen=True)
class Proposal:
    """A relation that held-out rows confirm."""

    relation: Relation
    log_chance: float
    n_rows: int


@dataclass(frozen=True)
class Findings:
    """The proposals of one finder."""

    proposals: tuple[Proposal, ...]
    n_tried: int
