"""Columns that do not describe people: identifiers, row numbers and constants.

Nothing can be learned from a column in which almost every row has a level of its own. If it is
immutable, trees tell people apart by it, and there are hardly any answers; if it is mutable, people
are told to become somebody else. Numbers of rows and constants matter only if they are mutable.
"""

from __future__ import annotations

import warnings

import numpy as np

from ..errors import McceWarning, shorten
from ..tables.columns import is_missing
from ..tables.features import Feature
from ..tables.schema import EncodedRows

# Levels per row above which a column is taken for an identifier, and the fewest rows for it.
SHARE, MIN_ROWS = 0.9, 100
# Integers that number the rows: the share of distinct ones, and how many could lie between them.
# Of as many random integers from such a range only four fifths would be distinct.
DISTINCT, SPAN = 0.99, 2.0


def is_identifier(feature: Feature, n_rows: int) -> bool:
    """Whether almost every one of ``n_rows`` has a level of its own."""
    return not feature.ordered and n_rows >= MIN_ROWS and feature.n_codes > SHARE * n_rows


def warn_of_useless_columns(rows: EncodedRows, *, stacklevel: int) -> None:
    """Warn of columns that look like identifiers, row numbers or constants."""
    if len(rows) < MIN_ROWS:
        return
    features = list(enumerate(rows.schema.features))
    mutable = [(at, feature) for at, feature in features if not feature.immutable]
    found = {
        "Almost every row has its own level in {}": [
            feature.name for _, feature in features if is_identifier(feature, len(rows))
        ],
        "{} look like row numbers": [
            feature.name for at, feature in mutable if _numbers_rows(rows, at, feature)
        ],
        "{} have one value in all rows": [
            feature.name for _, feature in mutable if feature.n_codes == 1
        ],
    }
    parts = [text.format(shorten(names)) for text, names in found.items() if names]
    if parts:
        warnings.warn(
            f"{'; '.join(parts)}. Nothing can be learned from such columns, and an answer that "
            "changes one is of no use. Leave them out of the data, or make them immutable if the "
            "predictor needs them.",
            McceWarning,
            stacklevel=stacklevel + 1,
        )


def _numbers_rows(rows: EncodedRows, position: int, feature: Feature) -> bool:
    """Whether nearly distinct integers lie close together, or rise or fall from row to row."""
    column = rows.frame.iloc[:, position]
    if column.dtype.kind not in "iu" or feature.kind != "numeric" or is_missing(column).any():
        return False
    if feature.n_codes < DISTINCT * len(rows):
        return False
    numbers, steps = feature.numbers, np.diff(rows.codes[position])
    if numbers is None:
        return False
    dense = float(numbers[-1] - numbers[0]) < SPAN * len(rows)
    return dense or bool((steps > 0).all() or (steps < 0).all())
