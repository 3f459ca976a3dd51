"""What would have to be lifted: for people without an answer, one constraint at a time.

Beyond the paper. Takes a fitted explainer and people; gives a line for each person without an
answer and each thing that stands in the way alone: a constraint, an upper bound, the ban on copies
of training rows and, where the training data are at hand to learn anew, an immutable feature.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..constraints.collection import Constraints
from ..kernels import IntArray
from ..search.outcome import Outcome
from ..tables.frames import ArrayAdapter
from ..tables.schema import OWN, EncodedRows

if TYPE_CHECKING:
    from ..explainer import MCCE

# Settings that exclude candidates, and what they are when they do not.
BOUNDS: dict[str, Any] = {
    "max_sparsity": None,
    "max_distance": None,
    "exclude_training_rows": False,
}
COLUMNS = ["factual", "lifted", "kind", "answered", "sparsity", "gower"]


def relaxations(explainer: MCCE, X: Any, training: Any, constraints: Constraints) -> Any:
    """One line for each person without an answer and each thing that could be lifted."""
    # However long it takes: a search that was stopped would blame what is not in the way.
    explainer = copy.copy(explainer).set_params(max_seconds=None)
    rows = explainer.schema_.encode(X)
    declined = np.flatnonzero(~explainer.decision_.score(rows.frame).valid)
    people = np.array(sorted(explainer._search(rows, declined, constraints).reasons), np.int64)
    lines: list[pd.DataFrame] = []
    if people.size:
        for lifted, kind, found in _lift(explainer, X, rows, people, training, constraints):
            lines.append(_lines(rows, people, found).assign(lifted=lifted, kind=kind))
    if not lines:
        empty = pd.DataFrame({name: [] for name in COLUMNS}).astype({"answered": bool})
        return rows.adapter.table_to_native(empty)
    table = pd.concat(lines, ignore_index=True)
    order = table.sort_values(["place", "answered", "sparsity"], ascending=[True, False, True])
    return rows.adapter.table_to_native(order[COLUMNS].reset_index(drop=True))


def _lift(
    explainer: MCCE,
    X: Any,
    rows: EncodedRows,
    people: IntArray,
    training: Any,
    constraints: Constraints,
) -> Iterator[tuple[str, str, Outcome]]:
    """What is found when one thing is lifted, thing by thing."""
    for constraint in constraints.limiting:
        left = constraints.without(constraint)
        yield constraint.name, "constraint", explainer._search(rows, people, left)
    for name, free in BOUNDS.items():
        if getattr(explainer, name) != free:
            freer = copy.copy(explainer).set_params(**{name: free})
            yield name, "bound", freer._search(rows, people, constraints)
    if training is None:
        return
    for position in explainer.schema_.immutable:
        name = explainer.schema_.names[position]
        fixed = [other for other in explainer.immutable or () if other != name]
        freer = clone(explainer).set_params(immutable=fixed, random_state=explainer.seed_)
        adapter = explainer.schema_.adapter
        named = (
            isinstance(adapter, ArrayAdapter) and adapter.named and isinstance(training, np.ndarray)
        )
        freer.fit(training, feature_names=explainer.schema_.names if named else None)
        bound = Constraints.bind(constraints.listed, freer.schema_)
        found = freer._search(freer.schema_.encode(X), people, bound)
        # Only an answer that makes use of it shows that it stood in the way.
        place = int(np.searchsorted(freer.schema_.mutable, position))
        uses_it = found.answers.chosen.codes[place] != OWN
        yield str(name), "immutable", replace(found, answers=found.answers.take(uses_it))


def _lines(rows: EncodedRows, people: IntArray, found: Outcome) -> pd.DataFrame:
    """Whether each person has an answer now, and what the best one costs."""
    best = found.answers.take(found.answers.rank == 1)
    place = np.searchsorted(people, best.owner)
    answered = np.zeros(people.size, dtype=bool)
    sparsity, gower = np.full((2, people.size), np.nan)
    answered[place], sparsity[place], gower[place] = True, best.sparsity, best.gower
    labels = rows.labels.take(people)
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
