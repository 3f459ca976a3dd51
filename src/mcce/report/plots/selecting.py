"""Which person and which answers a picture shows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...counterfactuals import Counterfactuals
from ...errors import ParameterError, SchemaError, shorten
from ...kernels import BoolArray, IntArray
from ...tables.columns import differ
from ...tables.frames import read_frame


@dataclass(frozen=True, eq=False)
class PersonAnswers:
    """A person and some of their answers, the best first."""

    rows: pd.DataFrame
    measures: pd.DataFrame
    ranks: Sequence[int]
    consequences: frozenset[Hashable]

    def changed(self, feature: Hashable) -> BoolArray:
        """Which answers change a feature."""
        column = self.rows[feature].reset_index(drop=True)
        own = column.iloc[np.zeros(len(self.ranks), dtype=np.int64)].reset_index(drop=True)
        return differ(own, column.iloc[1:].reset_index(drop=True))

    @property
    def features(self) -> list[Hashable]:
        """The features that an answer changes, in the order of the columns."""
        return [name for name in self.rows.columns if self.changed(name).any()]


def select_answers(
    result: Any, person: Hashable | None, ranks: Sequence[int] | None = None
) -> PersonAnswers:
    """The answers of a person."""
    inside = check_result(result)
    position = _position(inside, person)
    places = np.flatnonzero(inside.owner == position)
    known = inside.frame.index.get_level_values("rank")[places].tolist()
    absent = [rank for rank in ranks or () if rank not in known]
    if absent or not known:
        raise ParameterError(
            f"The person has answers of the ranks {known!r}, none of rank {absent[0]!r}."
            if known
            else "The person has no answer. result.people says why."
        )
    places = places if ranks is None else places[[known.index(rank) for rank in ranks]]
    own = inside.factuals.iloc[[position]]
    rows = pd.concat([own, inside.frame.iloc[places]], ignore_index=True)
    same = {name: dtype for name, dtype in inside.frame.dtypes.items() if own[name].dtype == dtype}
    return PersonAnswers(
        rows=rows.astype(same),
        measures=inside.measures.iloc[places],
        ranks=known if ranks is None else list(ranks),
        consequences=frozenset(inside._consequences),
    )


def check_result(result: Any) -> Counterfactuals[pd.DataFrame]:
    """The result in pandas."""
    if not isinstance(result, Counterfactuals):
        raise ParameterError(
            f"result must be what explain returned, a Counterfactuals, got {shorten(result)}."
        )
    return result.to_pandas()


def best_answers(result: Counterfactuals[pd.DataFrame]) -> IntArray:
    """Places of people's best answers."""
    return np.flatnonzero(result.frame.index.get_level_values("rank") == 1)


def read_accepted(accepted: Any, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Accepted people in pandas, with at least the columns of a result."""
    if accepted is None:
        return None
    frame, _ = read_frame(accepted, list(rows.columns))
    absent = [name for name in rows.columns if name not in frame.columns]
    if absent:
        raise SchemaError(
            f"accepted must have the columns of the people, but lacks {shorten(absent, 200)}. Pass "
            "training rows with the desired decision."
        )
    return frame


def _position(result: Counterfactuals[pd.DataFrame], person: Hashable | None) -> int:
    if person is None:
        if not len(result.owner):
            raise ParameterError("Nobody in the result has an answer, so there is none to draw.")
        return int(result.owner[0])
    places = np.flatnonzero(np.array([label == person for label in result.people.index]))
    if places.size != 1:
        found = "nobody" if not places.size else f"{places.size} people"
        raise ParameterError(
            f"person must be the label of one person in the index of result.people, but "
            f"{shorten(person)} is that of {found}. Explain that person alone, or pass None for "
            "the first with an answer."
        )
    return int(places[0])
