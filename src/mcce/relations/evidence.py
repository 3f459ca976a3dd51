"""A relation that was found, with the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass

from .relation import Relation


@dataclass(frozen=True)
class FoundRelation:
    """A relation that holds in all or nearly all training rows.

    Parameters
    ----------
    relation
        The relation.
    share
        Share of training rows in which it holds.
    n_rows
        Held-out rows that confirm it.
    p_value
        Upper bound on the probability that any of the relations tried would be confirmed this well
        if the columns were independent.
    enforced
        Whether it holds in all training rows, so that answers must keep it.
    """

    relation: Relation
    share: float
    n_rows: int
    p_value: float
    enforced: bool
