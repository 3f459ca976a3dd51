"""Columns that name their row instead of describing it.

Nothing can be learned from a column in which almost every row has a level of its own. If it is
immutable, trees tell people apart by it, and there are hardly any answers; if it is mutable, people
are told to become somebody else.
"""

from __future__ import annotations

import warnings

from ..errors import McceWarning, shorten
from ..tables.schema import EncodedRows

# Levels per row above which a column is taken for an identifier, and the fewest rows for it.
SHARE, MIN_ROWS = 0.9, 100


def warn_of_identifiers(rows: EncodedRows, *, stacklevel: int) -> None:
    """Warn of columns in which almost every training row has a level of its own."""
    if len(rows) < MIN_ROWS:
        return
    names = [
        feature.name
        for feature in rows.schema.features
        if not feature.ordered and feature.n_codes > SHARE * len(rows)
    ]
    if names:
        warnings.warn(
            f"Almost every row has its own level in {shorten(names)}. Nothing can be learned from "
            "such identifiers, and few people get a useful answer. Leave them out of the data.",
            McceWarning,
            stacklevel=stacklevel + 1,
        )
