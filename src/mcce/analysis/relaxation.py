"""Relaxation: which single constraint or bound, if lifted, would give people an answer.

Beyond the paper. Gives a row for each person without an answer and each thing that could be lifted
alone: a constraint, a bound or the margin of the search, the exclusion of copies and, where the
training data are available to fit again, an immutable feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..constraints.collection import Constraints
from ..fitted import Fitted
from ..kernels import IntArray
from ..runtime.progress import ProgressBar
from ..search.config import ExplainSettings
from ..search.plan import find_answers
from ..search.relaxing import Relaxation, relaxations
from ..search.stage import Monitor, SearchOutcome, SearchRequest
from ..tables.frames import ArrayAdapter
from ..tables.schema import OWN, EncodedRows

COLUMNS = ["factual", "lifted", "kind", "answered", "sparsity", "gower"]


@dataclass(frozen=True, eq=False)
class Refit:
    """Fits an explainer again with one immutable column less."""

    explainer: Any
    fitted: Fitted
    training: Any

    def relaxations(self, request: SearchRequest, X: Any) -> list[Relaxation]:
        """A search with each immutable column mutable that the predictor knows."""
        names, known = self.fitted.schema.names, self.fitted.decision.names
        immutable = self.fitted.schema.immutable.tolist()
        return [
            Relaxation("immutable", str(names[at]), partial(self._answers, request, X, at))
            for at in immutable
            if known is None or names[at] in known
        ]

    def _answers(
        self, request: SearchRequest, X: Any, position: int, positions: IntArray
    ) -> SearchOutcome:
        """The answers that change an immutable column, which shows that it was in the way."""
        refitted = self._fit(position)
        bound = Constraints.bind(request.constraints.listed, refitted.schema)
        rows = refitted.schema.encode(X)
        refitted_request = replace(request, fitted=refitted, constraints=bound, factuals=rows)
        outcome = find_answers(refitted_request, positions)
        place = int(np.searchsorted(refitted.schema.mutable, position))
        changes_it = outcome.answers.rows.codes[place] != OWN
        return replace(outcome, answers=outcome.answers.take(changes_it))

    def _fit(self, position: int) -> Fitted:
        """What fit learns with the column at this position mutable and the same seed."""
        schema = self.fitted.schema
        immutable = [schema.names[at] for at in schema.immutable.tolist() if at != position]
        free: dict[str, Any] = {"mutable": None, "random_state": self.fitted.seed}
        explainer = clone(self.explainer).set_params(immutable=immutable, **free)
        named = isinstance(schema.adapter, ArrayAdapter) and schema.adapter.named
        names = schema.names if named and isinstance(self.training, np.ndarray) else None
        return cast("Fitted", explainer.fit(self.training, feature_names=names).fitted_)


def relaxation_table(
    fitted: Fitted,
    settings: ExplainSettings,
    X: Any,
    constraints: Constraints,
    refit: Refit | None,
) -> Any:
    """One row for each person without an answer and each thing that could be lifted."""
    factuals = fitted.schema.encode(X)
    scored = fitted.decision.score(factuals.frame)
    declined = np.flatnonzero(~scored.valid)
    # No time limit: a stopped search would blame things that are not in the way.
    request = SearchRequest(
        fitted,
        settings,
        constraints,
        factuals,
        scored,
        monitor=Monitor(declined.size, lambda progress: None),
        effort="answers",
    )
    positions = np.array(sorted(find_answers(request, declined).reasons), np.int64)
    tried = sorted(relaxations(request), key=lambda one: one.kind == "bound")
    if refit is not None:
        tried += refit.relaxations(request, X)
    return factuals.adapter.table_to_native(_table(factuals, positions, tried, settings.verbose))


def _table(
    factuals: EncodedRows,
    positions: IntArray,
    tried: list[Relaxation],
    verbose: bool,
) -> pd.DataFrame:
    """The outcomes of all searches, by person, the most helpful first."""
    nothing = SearchOutcome.merge(factuals, [])
    parts = [_rows(factuals, positions[:0], nothing).assign(lifted="", kind="")]
    bar = ProgressBar(len(tried), "relax", verbose)
    for n_done, one in enumerate(tried if positions.size else (), 1):
        rows = _rows(factuals, positions, one.answers(positions))
        parts.append(rows.assign(lifted=one.name, kind=one.kind))
        bar.show(n_done)
    bar.close()
    table = pd.concat(parts[1:] or parts, ignore_index=True)
    order = table.sort_values(["position", "answered", "sparsity"], ascending=[True, False, True])
    return order[COLUMNS].reset_index(drop=True)


def _rows(factuals: EncodedRows, positions: IntArray, outcome: SearchOutcome) -> pd.DataFrame:
    """Whether each person has an answer now, and what the best one costs."""
    best = outcome.answers.take(outcome.answers.rank == 1)
    row = np.searchsorted(positions, best.owner)
    answered = np.zeros(positions.size, dtype=bool)
    sparsity, gower = np.full((2, positions.size), np.nan)
    answered[row], sparsity[row], gower[row] = True, best.sparsity, best.gower
    labels = factuals.labels.take(positions)
    return pd.DataFrame(
        {
            "factual": pd.Series(
                list(labels), dtype=labels.dtype if labels.nlevels == 1 else object
            ),
            "position": positions,
            "answered": answered,
            "sparsity": pd.array(sparsity, dtype="Int64"),
            "gower": gower,
        }
    )
