"""Every named distance keeps the promises of the protocol, and each check can fail."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mcce import HVDM, L1, MCCE, Gower, ParameterError
from mcce.protocols import differences
from mcce.testing import check_distance

# Those of the lab are checked in lab/tests.
LAB = {"heom", "ivdm"}
OURS = {"gower": Gower, "l1": L1, "hvdm": HVDM}


def test_every_name_is_checked():
    with pytest.raises(ParameterError, match="distance must be one of") as said:
        MCCE(lambda frame: frame["a"], distance="none").fit(pd.DataFrame({"a": [0.0, 1.0]}))

    listed = re.search(r"\[(.*?)\]", str(said.value)).group(1)
    assert set(re.findall(r"'(\w+)'", listed)) == set(OURS) | LAB


@pytest.mark.parametrize("name", OURS)
def test_a_named_distance_keeps_the_promises(name):
    check_distance(name)
    check_distance(OURS[name](missing="ignore"))


class Largest(Gower):
    """The largest difference in one feature, as a share of its training range."""

    name = "largest"

    def __call__(self, candidates):
        block = candidates.comparison
        return np.max([differences(block, at)[1] for at in range(len(block.codes))], axis=0)


def test_variants_and_the_distances_of_users_keep_them_too():
    for distance in (
        Gower(weights=np.arange(5.0)),
        HVDM(variant="N1", alpha=0.0),
        HVDM(variant="N3"),
        Largest(),
    ):
        check_distance(distance)


class Nameless:
    def fit(self, schema, rows, is_desired):
        return self

    def __call__(self, candidates): ...


class Score(Largest):
    name = "score"


class Forgetful(Largest):
    def fit(self, schema, rows, is_desired):
        return Largest()


class Changed(Largest):
    """A distance with another result."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def __call__(self, candidates):
        return self.change(super().__call__(candidates))


class Offset(Largest):
    def __call__(self, candidates):
        return super().__call__(candidates) + 0.5


class Moody(Largest):
    n_calls = 0

    def __call__(self, candidates):
        Moody.n_calls += 1
        return super().__call__(candidates) * Moody.n_calls


class Relative(Largest):
    """Depends on who else is there."""

    def __call__(self, candidates):
        return super().__call__(candidates) * candidates.positions.size


class Positional(Largest):
    """Depends on the order of people."""

    def __call__(self, candidates):
        backwards = candidates.positions[0] > candidates.positions[-1]
        return super().__call__(candidates) * (1 + backwards)


class Ranked(Largest):
    """Depends on the other candidates of the person."""

    def __call__(self, candidates):
        distances = super().__call__(candidates)
        return distances / np.maximum(distances.max(axis=1, keepdims=True), 1e-9)


class Scribbling(Largest):
    def __call__(self, candidates):
        distances = super().__call__(candidates)
        candidates.comparison.codes[:] = 0
        return distances


def test_a_broken_promise_is_named():
    for distance, message in [
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
    ]:
        with pytest.raises(AssertionError, match=message):
            check_distance(distance)
