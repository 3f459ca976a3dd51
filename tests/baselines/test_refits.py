"""A method that is fitted again while it explains, or fails to: one fit counts, as a whole."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce import ParameterError
from mcce.baselines import FACE, NICE
from mcce.baselines.reconstruction import Reconstruction
from row_methods import FORMS, answers, explain

DESIRED = (6.0, 99.0)
TRAIN = pd.DataFrame({"x": [0.0, 1.0, 2.0, 5.0, 8.0], "k": list("aabba"), "n": [1, 2, 3, 4, 5]})
OTHER = pd.DataFrame({"x": [9.0, 0.0, 7.0], "k": list("dec"), "n": [9, 8, 7]})


class Refitting:
    """A predictor that fits its method again, on other rows, when it is called next."""

    def __init__(self):
        self.method = None

    def __call__(self, rows):
        if self.method is not None:
            method, self.method = self.method, None
            method.fit(OTHER)
        return rows["x"]


def refitted_on_call(kind):
    predictor = Refitting()
    predictor.method = kind(predictor, DESIRED)
    method, predictor.method = predictor.method, None
    method.fit(TRAIN)
    predictor.method = method
    return method


@pytest.mark.parametrize("name", FORMS)
def test_a_fit_during_a_call_changes_nothing_for_that_call(name):
    expected = answers(explain(FORMS[name](Refitting(), DESIRED).fit(TRAIN), TRAIN))
    method = refitted_on_call(FORMS[name])

    found = answers(explain(method, TRAIN))

    assert len(method.training_.rows) == len(OTHER)
    assert found == expected


def test_a_fit_during_a_call_changes_no_paths():
    expected = FACE(Refitting(), DESIRED).fit(TRAIN).paths(TRAIN)

    found = refitted_on_call(FACE).paths(TRAIN)

    pd.testing.assert_frame_equal(found, expected)


def test_a_fit_that_fails_leaves_the_one_before(monkeypatch):
    method = NICE(lambda rows: rows["x"], DESIRED, reward="plausibility").fit(TRAIN)
    expected = answers(method.explain(TRAIN))

    def fail(rows, seed):
        raise ParameterError("no")

    monkeypatch.setattr(Reconstruction, "learn", fail)
    with pytest.raises(ParameterError):
        method.fit(OTHER)

    assert answers(method.explain(TRAIN)) == expected
