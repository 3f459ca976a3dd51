"""The checks for distances: ours passes, and each check can fail."""

from __future__ import annotations

import numpy as np
import pytest

from mcce import Gower
from mcce.testing import check_distance


class Largest(Gower):
    """The largest difference in one feature, as a share of its training range."""

    name = "largest"

    def __call__(self, candidates):
        from mcce.kernels import differences

        block = candidates.comparison
        gaps = [differences(block, feature)[1] for feature in range(len(block.codes))]
        return np.max(gaps, axis=0)


@pytest.mark.parametrize("distance", [Gower(), Gower(weights=np.arange(5.0)), Largest()])
def test_our_distance_and_others_pass(distance):
    check_distance(distance)


class Nameless:
    def fit(self, schema, rows, decision):
        return self

    def __call__(self, candidates): ...


class Score(Largest):
    name = "score"


class Forgetful(Largest):
    name = "forgetful"

    def fit(self, schema, rows, decision):
        return Largest()


class Changed(Largest):
    """A distance with another result."""

    name = "changed"

    def __init__(self, change):
        super().__init__()
        self.change = change

    def __call__(self, candidates):
        return self.change(super().__call__(candidates))


class Offset(Largest):
    name = "offset"

    def __call__(self, candidates):
        return super().__call__(candidates) + 0.5


class Moody(Largest):
    name = "moody"
    n_calls = 0

    def __call__(self, candidates):
        Moody.n_calls += 1
        return super().__call__(candidates) * Moody.n_calls


class Relative(Largest):
    """Depends on who else is there."""

    name = "relative"

    def __call__(self, candidates):
        return super().__call__(candidates) * candidates.people.size


class Positional(Largest):
    """Depends on the order of people."""

    name = "positional"

    def __call__(self, candidates):
        backwards = candidates.people[0] > candidates.people[-1]
        return super().__call__(candidates) * (1 + backwards)


class Ranked(Largest):
    """Depends on the other candidates of the person."""

    name = "ranked"

    def __call__(self, candidates):
        distances = super().__call__(candidates)
        return distances / np.maximum(distances.max(axis=1, keepdims=True), 1e-9)


class Scribbling(Largest):
    name = "scribbling"

    def __call__(self, candidates):
        distances = super().__call__(candidates)
        candidates.comparison.codes[:] = 0
        return distances


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        (Nameless(), "must be usable by MCCE: distance must be one of"),
        (Score(), "must be usable by MCCE: The name of a distance"),
        (Forgetful(), "fit returns the distance itself"),
        (Changed(lambda d: d[:, :1]), r"an array of shape \(12, 8\), got shape \(12, 1\)"),
        (Changed(lambda d: d.astype(np.float32)), "expected float64"),
        (Changed(lambda d: np.where(d > 0, np.nan, d)), "expected no NaN"),
        (Changed(lambda d: -d), "expected nothing below 0"),
        (Offset(), "that equals its person: expected 0"),
        (Moody(), "Distances of a second call"),
        (Relative(), "without other people"),
        (Positional(), "with the people in another order"),
        (Ranked(), "A candidate's distance without others"),
        (Scribbling(), "candidates that stay as they are"),
        (Changed(lambda d: d), "Pickling the fitted distance"),
    ],
)
def test_a_broken_promise_is_named(distance, message):
    with pytest.raises(AssertionError, match=message):
        check_distance(distance)
