"""What rows must pass to be answers of a search, beside the decision and the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..candidates import ReadColumns
from ..constraints.collection import Constraints
from ..errors import NotFittedError
from ..fitted import Fitted
from ..postprocess.filters import ExcludeTrainingRows, KeepsRelation, ObeysConstraint
from ..protocols import RowFilter
from .config import ExactSearch, Search

if TYPE_CHECKING:
    from ..relations import Relation


def row_filters(
    fitted: Fitted,
    search: Search | ExactSearch,
    constraints: Constraints,
    relations: list[Relation],
    read: ReadColumns,
) -> list[RowFilter]:
    """The filters of whole rows: constraints, copies of training rows, relations."""
    filters: list[RowFilter] = [
        ObeysConstraint(constraints, constraint) for constraint in constraints.of_rows
    ]
    if search.copies == "never":
        if fitted.training_rows is None:
            raise NotFittedError(
                f"search was set to {search!r} after fit, which did not keep the training "
                "rows. Fit again."
            )
        filters.append(ExcludeTrainingRows(fitted.training_rows))
    return filters + [KeepsRelation(one, read) for one in relations]
