"""The columns that a predictor knows by name, and a decision that hands it no others.

Scikit-learn estimators, their pipelines and the boosting libraries keep the names they were trained
with. Columns beyond them cannot change a decision: mutable ones are a mistake, immutable ones may
condition the draws.

Always true: a predictor without names gets every column, as does one that knows them all.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from ..errors import SchemaError, shorten
from ..tables.frames import ArrayAdapter
from ..tables.schema import Schema
from .adapters import known_columns, written_name
from .decision import Decision
from .desired import make_decision


def decision_on(
    schema: Schema, predictor: Any, desired: Any, score_class: Hashable | None
) -> Decision:
    """The desired decision of a predictor on rows of a schema."""
    decision = make_decision(predictor, desired, score_class=score_class, adapter=schema.adapter)
    known = None if isinstance(schema.adapter, ArrayAdapter) else known_columns(decision.predictor)
    if known is None:
        return decision
    by_name = {written_name(decision.predictor, name): name for name in schema.names}
    surplus = [name for written, name in by_name.items() if written not in set(known)]
    mutable = {schema.names[position] for position in schema.mutable}
    unknown = [name for name in surplus if name in mutable]
    lacking = [name for name in known if name not in by_name]
    if unknown:
        trained = f" It knows {shorten(lacking, 500)}, which the data lack." if lacking else ""
        raise SchemaError(
            f"The predictor was trained without the columns {shorten(unknown, 500)}, so changing "
            f"them cannot change its decision, but they are mutable.{trained} Leave them out of "
            "the data, or make them immutable: the draws may then depend on them."
        )
    if not surplus or lacking:
        return decision
    return replace(decision, names=tuple(by_name[name] for name in known))
