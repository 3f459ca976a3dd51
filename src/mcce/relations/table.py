"""The relations that were found, as a frame to read."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from .evidence import FoundRelation
from .relation import Equality


def table_of_relations(found: Sequence[FoundRelation]) -> pd.DataFrame:
    """One row for each relation, with the evidence.

    Examples
    --------
    >>> from mcce.relations import FoundRelation, Ordering
    >>> found = FoundRelation(Ordering("start", "end"), 1.0, 500, 1e-90, True)
    >>> table_of_relations([found])[["relation", "kind", "holds", "enforced"]]
           relation      kind  holds  enforced
    0  start <= end  ordering    1.0      True
    """
    relations = [item.relation for item in found]
    equalities = [r if isinstance(r, Equality) else None for r in relations]
    return pd.DataFrame(
        {
            "relation": pd.Series([r.name for r in relations], dtype=object),
            "kind": pd.Series([r.kind for r in relations], dtype=object),
            "target": pd.Series([r.target for r in relations], dtype=object),
            "features": pd.Series([list(r.features) for r in relations], dtype=object),
            "holds": pd.Series([item.share for item in found], dtype=float),
            "n_rows": pd.Series([item.n_rows for item in found], dtype="int64"),
            "p_value": pd.Series([item.p_value for item in found], dtype=float),
            "tolerance": pd.Series([e.tolerance if e else None for e in equalities], dtype=float),
            "relative": pd.Series([e is not None and e.relative for e in equalities], dtype=bool),
            "enforced": pd.Series([item.enforced for item in found], dtype=bool),
        }
    )
