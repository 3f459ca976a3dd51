"""How plausible rows are that change few cells of known ones.

A model of a number looks at few columns of a wide table. What it says of a row is what it said of
the person's own row, unless one of these columns was changed.

Always true: the result equals that of :meth:`PlausibilityModel.assess`, bit for bit.
"""

from __future__ import annotations

import threading

import numpy as np

from ..kernels import BoolArray, Codes, FloatArray, IntArray
from ..tables.schema import EncodedRows
from .conformal import Plausibility
from .model import PlausibilityModel


class ChangedRows:
    """Assesses rows in which people change some of their cells."""

    def __init__(self, model: PlausibilityModel, people: EncodedRows) -> None:
        self.model, self.people = model, people
        self._depends = model.conditionals_.depends(len(people.schema.features))
        # By place of the people so far: how unusual each number is in their own rows.
        self._place: IntArray = np.full(len(people), -1)
        self._own: FloatArray = np.empty((2 * len(self._depends), 0))
        self._lock = threading.Lock()

    def assess(
        self, owner: IntArray, changed: BoolArray, descent: Codes, numbers: FloatArray
    ) -> Plausibility:
        """How plausible rows are."""
        model, inverse = self.model, self._inverse_of_own(owner)
        affected = self._affected(changed)
        rows = [np.flatnonzero(row) for row in affected]
        of_levels, tails = model.support_.nonconformity(descent), model.calibration_.parts
        found = model.conditionals_.some(rows, descent, numbers)
        for part, (tail, values) in enumerate(zip(tails[len(of_levels) :], found, strict=True)):
            if values.size:
                inverse[part, rows[part // 2]] = tail.inverse(values) if values.any() else 1.0
        largest = inverse.max(axis=0, initial=1.0)
        for tail, values in zip(tails, of_levels, strict=False):
            largest = np.maximum(largest, tail.inverse(values))
        return model.calibration_.compare(largest, model.has_rare(descent))

    def _affected(self, changed: BoolArray) -> BoolArray:
        """Which models look at a changed cell of each row, shape (n_models, n_rows)."""
        affected = np.zeros((len(self._depends), changed.shape[1]), dtype=bool)
        for at in np.flatnonzero(changed.any(axis=1)).tolist():
            models = np.flatnonzero(self._depends[:, self.people.schema.mutable[at]])
            affected[models] |= changed[at]
        return affected

    def _inverse_of_own(self, owner: IntArray) -> FloatArray:
        """Inverses of the numbers of people's own rows, each person's computed once."""
        with self._lock:
            self._look_at(owner)
            return self._own[:, self._place[owner]]

    def _look_at(self, owner: IntArray) -> None:
        new = np.unique(owner[self._place[owner] < 0])
        if new.size:
            model, rows = self.model, self.people
            found = model.conditionals_.nonconformity(
                rows.descent[:, new], rows.all_numbers[:, new]
            )
            n_before = len(model.calibration_.parts) - len(found)
            full = np.concatenate([np.zeros((n_before, new.size)), found])
            self._place[new] = self._own.shape[1] + np.arange(new.size)
            inverse = model.calibration_.inverse(full)[n_before:]
            self._own = np.concatenate([self._own, inverse], axis=1)
