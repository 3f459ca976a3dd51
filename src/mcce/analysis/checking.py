"""Whether changed rows may be shown to people: the same requirements as for answers.

Beyond the paper. Rows that an analysis makes of answers, such as rounded ones, are put to the
predictor again, and to the constraints, relations, bounds and plausibility of the search.

Always true: nothing is drawn here; a row's reply does not depend on other rows.
"""

from __future__ import annotations

import numpy as np

from ..candidates import CandidateRows
from ..constraints.collection import Constraints
from ..distances import measure_rows
from ..fitted import Fitted
from ..kernels import BoolArray
from ..postprocess.filters import IsPlausible
from ..search.config import ExactSearch, Search
from ..search.filters import row_filters
from ..search.needs import weighted
from ..search.plan import Settings
from ..search.relations import kept_relations
from ..tables.schema import OWN


class RowChecks:
    """What rows must pass to be shown.

    Parameters
    ----------
    fitted, settings, constraints
        What ``fit`` learned, and what the call of ``explain`` requested.
    """

    def __init__(self, fitted: Fitted, settings: Settings, constraints: Constraints) -> None:
        search = settings.search
        relations = kept_relations(fitted, search, settings.ignore_relations, constraints)
        self._decision = fitted.decision.with_margin(search.margin)
        self._constraints = constraints
        self._filters = row_filters(fitted, search, constraints, relations, {})
        self._plausible = _plausibility_check(fitted, search)
        self._distance = weighted(fitted.distance, constraints)
        self._max_sparsity, self._max_distance = search.max_sparsity, search.max_distance

    def is_valid(self, selected: CandidateRows) -> BoolArray:
        """Rows with the desired decision, by a fresh call, that break no constraint."""
        if not selected.owner.size:
            return np.zeros(0, dtype=bool)
        valid = self._decision.score(selected.frame).valid.copy()
        broken = self._constraints.broken(selected.rows, selected.owner, selected.frame)
        for breaks in broken.values():
            valid &= ~breaks
        return valid

    def passed(self, selected: CandidateRows) -> BoolArray:
        """Which further requirements rows meet, shape (n_requirements, n_rows).

        An answer may miss one: searches fall back on rows that are less plausible, or break
        relations that few training rows break. What is made of it must then meet the others.
        """
        passed = [check.keeps(selected) for check in self._filters]
        if self._plausible is not None:
            passed.append(self._plausible.keeps(selected))
        if self._max_sparsity is not None:
            passed.append((selected.codes != OWN).sum(axis=0) <= self._max_sparsity)
        if self._max_distance is not None:
            passed.append(measure_rows(self._distance, selected) <= self._max_distance)
        return np.array(passed, dtype=bool).reshape(len(passed), selected.owner.size)


def _plausibility_check(fitted: Fitted, search: Search | ExactSearch) -> IsPlausible | None:
    least = search.min_plausibility if isinstance(search, Search) else 0.0
    if fitted.plausibility is None or not least:
        return None
    return IsPlausible(fitted.plausibility, least)
