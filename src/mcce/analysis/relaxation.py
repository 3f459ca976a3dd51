"""Relaxation: which single constraint or bound, if lifted, would give people an answer.

Beyond the paper. Gives a row for each person without an answer and each thing that could be lifted
alone: a constraint, a bound or the margin of the search, the exclusion of copies and, where the
training data are available to fit again, an immutable feature.
"""

from __future__ import annotations

from collections.abc import Callable
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
from ..search.lifting import lift_each
from ..search.plan import ExplainSettings, SearchRequest, find_answers
from ..search.stage import SearchOutcome
from ..tables.frames import ArrayAdapter
from ..tables.schema import OWN, EncodedRows

COLUMNS = ["factual", "lifted", "kind", "answered", "sparsity", "gower"]


@dataclass(frozen=True, eq=False)
class Refit:
    """Fits an explainer again with one immutable column less."""

    explainer: Any
    fitted: Fitted
    training: Any

    @property
    def positions(self) -> list[int]:
        """The immutable columns that the predictor knows."""
        names, known = self.fitted.schema.names, self.fitted.decision.names
        immutable = self.fitted.schema.immutable.tolist()
        return [at for at in immutable if known is None or names[at] in known]

    def __call__(self, position: int) -> Fitted:
        """What fit learns with the column at this position mutable and the same seed."""
        schema = self.fitted.schema
        immutable = [schema.names[at] for at in schema.immutable.tolist() if at != position]
        free: dict[str, Any] = {"mutable": None, "random_state": self.fitted.seed}
        freer = clone(self.explainer).set_params(immutable=immutable, **free)
        named = isinstance(schema.adapter, ArrayAdapter) and schema.adapter.named
        names = schema.names if named and isinstance(self.training, np.ndarray) else None
        return cast("Fitted", freer.fit(self.training, feature_names=names).fitted_)


def relaxations(
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
        declined,
        callback=lambda progress: None,
        answers_only=True,
        scored=scored,
    )
    positions = np.array(sorted(find_answers(request).reasons), np.int64)
    request = replace(request, positions=positions)
    tried: list[tuple[str, str, Callable[[], SearchOutcome]]] = [
        (one.name, one.kind, partial(one.answers, positions)) for one in lift_each(request)
    ]
    tried.sort(key=lambda one: one[1] == "bound")
    if refit is not None:
        names = fitted.schema.names
        tried += [
            (str(names[at]), "immutable", partial(_free, request, X, refit, at))
            for at in refit.positions
        ]
    return factuals.adapter.table_to_native(_table(factuals, positions, tried, settings.verbose))


def _free(request: SearchRequest, X: Any, refit: Refit, position: int) -> SearchOutcome:
    """The answers that change an immutable column, which shows that it was in the way."""
    freer = refit(position)
    bound = Constraints.bind(request.constraints.listed, freer.schema)
    rows = freer.schema.encode(X)
    freed = replace(request, fitted=freer, constraints=bound, factuals=rows)
    outcome = find_answers(freed)
    place = int(np.searchsorted(freer.schema.mutable, position))
    changes_it = outcome.answers.rows.codes[place] != OWN
    return replace(outcome, answers=outcome.answers.take(changes_it))


def _table(
    factuals: EncodedRows,
    positions: IntArray,
    tried: list[tuple[str, str, Callable[[], SearchOutcome]]],
    verbose: bool,
) -> pd.DataFrame:
    """The outcomes of all searches, by person, the most helpful first."""
    nothing = SearchOutcome.merge(factuals, [])
    parts = [_rows(factuals, positions[:0], nothing).assign(lifted="", kind="")]
    bar = ProgressBar(len(tried), "relax", verbose)
    for n_done, (lifted, kind, run) in enumerate(tried if positions.size else (), 1):
        parts.append(_rows(factuals, positions, run()).assign(lifted=lifted, kind=kind))
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
