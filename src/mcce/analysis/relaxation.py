"""Relaxation: which single constraint or bound, if lifted, would give people an answer.

Beyond the paper. Gives a row for each person without an answer and each thing that could be lifted
alone: a constraint, a bound or the margin of the search, the exclusion of copies and, where the
training data are available to fit again, an immutable feature.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..constraints.collection import Constraints
from ..fitted import Fitted
from ..kernels import IntArray
from ..postprocess.remembered import RememberedScores
from ..predictors.decision import ScoredRows
from ..runtime.progress import ProgressBar
from ..search.plan import Settings, search
from ..search.remedies import lift_bounds
from ..search.stage import Outcome
from ..tables.frames import ArrayAdapter
from ..tables.schema import OWN, EncodedRows

COLUMNS = ["factual", "lifted", "kind", "answered", "sparsity", "gower"]


@dataclass(frozen=True, eq=False)
class Refit:
    """Fits an explainer again with other immutable columns."""

    explainer: Any
    fitted: Fitted
    training: Any

    def __call__(self, immutable: list[Hashable]) -> Fitted:
        """What it learns with these columns immutable, by the same seed."""
        free: dict[str, Any] = {"mutable": None, "random_state": self.fitted.seed}
        freer = clone(self.explainer).set_params(immutable=immutable, **free)
        schema = self.fitted.schema
        named = isinstance(schema.adapter, ArrayAdapter) and schema.adapter.named
        names = schema.names if named and isinstance(self.training, np.ndarray) else None
        return cast("Fitted", freer.fit(self.training, feature_names=names).fitted_)


def relaxations(
    fitted: Fitted,
    settings: Settings,
    X: Any,
    constraints: Constraints,
    *,
    refit: Refit | None,
    verbose: bool,
) -> Any:
    """One row for each person without an answer and each thing that could be lifted."""
    factuals = fitted.schema.encode(X)
    scored = fitted.decision.score(factuals.frame)
    declined = np.flatnonzero(~scored.valid)
    remembered = RememberedScores(fitted.schema.mutable.size, settings.memory)
    # No time limit: a search that was stopped would blame what is not in the way.
    outcome = _search(fitted, settings, constraints, factuals, declined, scored, remembered)
    people = np.array(sorted(outcome.reasons), np.int64)
    parts: list[pd.DataFrame] = []
    if people.size:
        again = partial(_search, remembered=remembered)
        given = factuals, people, scored
        lifts = list(_lifts(again, fitted, settings, X, constraints, *given, refit))
        bar = ProgressBar(len(lifts), "relax", verbose)
        for n_done, (lifted, kind, lift) in enumerate(lifts, 1):
            parts.append(_rows(factuals, people, lift()).assign(lifted=lifted, kind=kind))
            bar.show(n_done)
        bar.close()
    if not parts:
        text = pd.Series(dtype=object)
        nobody = _rows(factuals, people[:0], outcome.without_answers(declined))
        empty = nobody.assign(lifted=text, kind=text)
        return factuals.adapter.table_to_native(empty[COLUMNS])
    table = pd.concat(parts, ignore_index=True)
    order = table.sort_values(["place", "answered", "sparsity"], ascending=[True, False, True])
    return factuals.adapter.table_to_native(order[COLUMNS].reset_index(drop=True))


def _search(
    fitted: Fitted,
    settings: Settings,
    constraints: Constraints,
    factuals: EncodedRows,
    people: IntArray,
    scored: ScoredRows,
    remembered: RememberedScores | None = None,
) -> Outcome:
    # Most of these searches find nothing, and draw as often as they may.
    return search(
        fitted,
        settings,
        constraints,
        factuals,
        people,
        lambda progress: None,
        gradual=False,
        remembered=remembered,
        scored=scored,
    )


def _lifts(
    search_again: Callable[..., Outcome],
    fitted: Fitted,
    settings: Settings,
    X: Any,
    constraints: Constraints,
    factuals: EncodedRows,
    people: IntArray,
    scored: ScoredRows,
    refit: Refit | None,
) -> Iterator[tuple[str, str, Callable[[], Outcome]]]:
    """What can be lifted, of which kind, and the search without it."""
    given = factuals, people, scored
    for constraint in constraints.limiting:
        yield (
            constraint.name,
            "constraint",
            partial(search_again, fitted, settings, constraints.without(constraint), *given),
        )
    for name, lifted in lift_bounds(settings.search):
        freer = replace(settings, search=lifted)
        # With another margin, other rows are valid.
        how = _search if name == "margin" else search_again
        yield name, "bound", partial(how, fitted, freer, constraints, *given)
    if refit is None:
        return
    names, immutable = fitted.schema.names, fitted.schema.immutable.tolist()
    known = names if fitted.decision.names is None else fitted.decision.names
    for position in (at for at in immutable if names[at] in known):
        left = [names[at] for at in immutable if at != position]
        new = partial(refit, left), position
        lift = partial(_search_with_mutable, *new, settings, X, constraints, people, scored)
        yield str(names[position]), "immutable", lift


def _search_with_mutable(
    refit: Callable[[], Fitted],
    position: int,
    settings: Settings,
    X: Any,
    constraints: Constraints,
    people: IntArray,
    scored: ScoredRows,
) -> Outcome:
    """The search by an explainer for which the feature at this position is mutable."""
    fitted = refit()
    bound = Constraints.bind(constraints.listed, fitted.schema)
    outcome = _search(fitted, settings, bound, fitted.schema.encode(X), people, scored)
    # Only an answer that changes the feature shows that it was in the way.
    place = int(np.searchsorted(fitted.schema.mutable, position))
    changes_it = outcome.answers.rows.codes[place] != OWN
    return replace(outcome, answers=outcome.answers.take(changes_it))


def _rows(factuals: EncodedRows, people: IntArray, outcome: Outcome) -> pd.DataFrame:
    """Whether each person has an answer now, and what the best one costs."""
    best = outcome.answers.take(outcome.answers.rank == 1)
    place = np.searchsorted(people, best.owner)
    answered = np.zeros(people.size, dtype=bool)
    sparsity, gower = np.full((2, people.size), np.nan)
    answered[place], sparsity[place], gower[place] = True, best.sparsity, best.gower
    labels = factuals.labels.take(people)
    return pd.DataFrame(
        {
            "factual": pd.Series(
                list(labels), dtype=labels.dtype if labels.nlevels == 1 else object
            ),
            "place": people,
            "answered": answered,
            "sparsity": pd.array(sparsity, dtype="Int64"),
            "gower": gower,
        }
    )
