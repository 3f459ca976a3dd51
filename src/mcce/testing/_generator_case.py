"""A fitted generator and groups of people, for the checks to draw with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..generate import features_of
from ..kernels import Codes, IntArray, WordArray, person_keys
from ..model import encode_training, find_generator
from ..protocols import DrawRequest, Draws, Generator
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from ._cases import DESIRED, IMMUTABLE, demand, make_frame, score

N_GROUPS, N_DRAWS, SEED = 15, 40, 7


class GeneratorCase:
    """A fitted generator, and groups of people for it to draw for."""

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self.frame = make_frame()
        self.rows: EncodedRows = encode_training(self.new(), self.frame, immutable=IMMUTABLE)
        self.decision = score(self.frame) >= DESIRED[0]
        self.blank = self.new()
        self.fitted = self.fit(self.blank)
        self.people: EncodedRows = self.schema.encode(make_frame(N_GROUPS, seed=1))
        self.given: Codes = self.people.descent
        self.keys: WordArray = person_keys(SEED, self.given[self.schema.immutable].T)
        self.draws: IntArray = np.arange(N_DRAWS)

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.rows.schema

    @property
    def features(self) -> Sequence[Feature]:
        """The features with the tables that limits and guides refer to."""
        return features_of(self.fitted, self.people)

    def new(self) -> Any:
        """An unfitted copy, as MCCE makes one."""
        try:
            return find_generator(self.generator)
        except ParameterError as error:
            raise AssertionError(f"The generator must be usable by MCCE: {error}") from error

    def fit(self, generator: Any) -> Any:
        """Fit a generator as MCCE does."""
        return generator.fit(self.rows, self.decision, seed=SEED, n_jobs=1, verbose=False)

    def sample(self, groups: IntArray | None = None, draws: IntArray | None = None) -> np.ndarray:
        """Values drawn for some groups, shape (n_mutable, n_groups, n_draws)."""
        at = np.arange(N_GROUPS) if groups is None else groups
        numbers = self.draws if draws is None else draws
        request = DrawRequest(self.given[:, at], self.keys[at], numbers)
        return self.values(self.fitted.sample(request))

    def request(self, **wishes: Any) -> DrawRequest:
        """All draws of all groups."""
        return DrawRequest(self.given, self.keys, self.draws, **wishes)

    def values(self, drawn: Draws) -> np.ndarray:
        """The values of codes as strings, so that a missing one equals itself."""
        tables = self.tables(drawn)
        pairs = zip(tables, drawn.codes, strict=True)
        return np.array([np.array([repr(v) for v in table])[codes] for table, codes in pairs])

    def tables(self, drawn: Draws) -> list[pd.Series[Any]]:
        """The value of each code of each mutable feature."""
        if drawn.tables is not None:
            return list(drawn.tables)
        return [self.schema.features[position].table for position in self.schema.mutable]


def demand_same(case: GeneratorCase, drawn: np.ndarray, check: str) -> None:
    """Raise unless values drawn are those of the case."""
    expected = case.sample()
    n_other = int((drawn != expected).sum()) if drawn.shape == expected.shape else drawn.size
    demand(not n_other, check, "the same draws", f"{n_other} of {expected.size} other values")
