"""Whether an object keeps the promises of :class:`mcce.protocols.Distance`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..candidates import Candidates, pair_rows
from ..distances import find_distance
from ..errors import ParameterError
from ..kernels import FloatArray, IntArray
from ..protocols import Distance
from ..tables.schema import EncodedRows, Schema
from ._cases import DESIRED, IMMUTABLE, Case, demand, demand_itself, make_frame, pickled, score

N_PEOPLE, N_DRAWS = 12, 8


def check_distance(distance: Distance) -> None:
    """Check a distance.

    It must have a name of its own; ``fit`` returns the distance; distances are floats of shape
    (n_people, n_draws), at least 0 and never NaN, and 0 for a candidate equal to its person. A
    distance depends on nothing but the person and the candidate: not on other people, other
    candidates or their order. Fitted distances can be pickled. Symmetry is not required.

    Parameters
    ----------
    distance
        The distance, unfitted. It is copied and stays unfitted.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from mcce import Gower
    >>> check_distance(Gower())
    """
    _DistanceCase(distance).run()


class _DistanceCase(Case):
    """A fitted distance, and rows for it to compare."""

    def __init__(self, distance: Distance) -> None:
        try:
            self.blank = find_distance(distance)
        except ParameterError as error:
            raise AssertionError(f"The distance must be usable by MCCE: {error}") from error
        frame = make_frame()
        self.rows = Schema.learn_rows(frame, immutable=IMMUTABLE)
        self.is_desired = score(frame) >= DESIRED[0]
        self.fitted = self.blank.fit(self.rows.schema, self.rows, self.is_desired)
        people = make_frame(N_PEOPLE, seed=1)
        self.factuals: EncodedRows = self.rows.schema.encode(people)
        source = self.rows.frame.iloc[: N_PEOPLE * N_DRAWS].reset_index(drop=True)
        owner = np.repeat(np.arange(N_PEOPLE), N_DRAWS)
        self.frame = source.copy()
        for name in IMMUTABLE:
            self.frame[name] = people[name].to_numpy()[owner]

    def distances(self, people: IntArray, draws: IntArray) -> FloatArray:
        """Distances of some draws of some people."""
        return np.asarray(self.fitted(self.pair(people, draws)))

    def pair(self, people: IntArray, draws: IntArray) -> Candidates:
        """Some draws of some people as candidates."""
        at = (people[:, None] * N_DRAWS + draws).ravel()
        return pair_rows(
            self.factuals, people, self.frame.iloc[at].reset_index(drop=True), draws.size
        )

    def everything(self) -> FloatArray:
        """Distances of all draws of everybody."""
        return self.distances(np.arange(N_PEOPLE), np.arange(N_DRAWS))

    def check_fit_returns_the_distance(self) -> None:
        demand_itself(self.fitted, self.blank, "distance")

    def check_values_are_distances(self) -> None:
        check, values = "The distance of each candidate to its person", self.everything()
        shape = N_PEOPLE, N_DRAWS
        demand(values.shape == shape, check, f"an array of shape {shape}", f"shape {values.shape}")
        demand(values.dtype == np.float64, check, "float64", f"dtype {values.dtype}")
        demand(not np.isnan(values).any(), check, "no NaN", f"{int(np.isnan(values).sum())} NaN")
        demand(bool((values >= 0).all()), check, "nothing below 0", f"{values.min()!r}")

    def check_equal_rows_are_at_distance_zero(self) -> None:
        own = pair_rows(self.factuals, np.arange(N_PEOPLE), self.factuals.frame, 1)
        values = np.asarray(self.fitted(own))
        check = "The distance of a candidate that equals its person"
        demand(bool((values == 0).all()), check, "0 for everybody", f"{values.ravel().tolist()!r}")

    def check_repeated_calls_agree(self) -> None:
        self.demand_equal("Distances of a second call", self.everything())

    def check_other_people_change_nothing(self) -> None:
        alone = [
            self.distances(np.array([person]), np.arange(N_DRAWS)) for person in range(N_PEOPLE)
        ]
        self.demand_equal("A person's distances without other people", np.concatenate(alone))

    def check_the_order_of_people_changes_nothing(self) -> None:
        order = np.arange(N_PEOPLE)[::-1].copy()
        backwards = self.distances(order, np.arange(N_DRAWS))
        self.demand_equal("Distances with the people in another order", backwards[order])

    def check_other_candidates_change_nothing(self) -> None:
        people = np.arange(N_PEOPLE)
        single = [self.distances(people, np.array([draw])) for draw in range(N_DRAWS)]
        self.demand_equal("A candidate's distance without others", np.concatenate(single, axis=1))

    def check_candidates_stay_as_they_are(self) -> None:
        block = self.pair(np.arange(N_PEOPLE), np.arange(N_DRAWS))
        codes, frame = block.comparison.codes.copy(), self.factuals.frame.copy()
        self.fitted(block)
        same = np.array_equal(codes, block.comparison.codes)
        try:
            pd.testing.assert_frame_equal(frame, self.factuals.frame)
        except AssertionError:
            same = False
        demand(same, "Calling the distance", "candidates that stay as they are", "changed ones")

    def check_it_can_be_pickled(self) -> None:
        check = "Pickling the fitted distance"
        copy = pickled(self.fitted, check)
        got = np.asarray(copy(self.pair(np.arange(N_PEOPLE), np.arange(N_DRAWS))))
        self.demand_equal(check, got)

    def demand_equal(self, check: str, values: FloatArray) -> None:
        expected = self.everything()
        n_other = int((values != expected).sum())
        demand(not n_other, check, "the same numbers", f"{n_other} of {expected.size} other ones")
