"""Answers of two versions, compared person by person."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from paired import COUNTED, MEASURES, SCORES, differences, tables, verdict


def both(n_people, gap, n_changes=(1, 1)):
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(index=range(n_people))
    for when, more, sparsity in zip(("before", "after"), (0, gap), n_changes, strict=True):
        for score in SCORES:
            frame[f"{score} {when}"] = 1 + more + 0.01 * chance.random(n_people)
        frame[f"sparsity {when}"] = sparsity
        for name in ("plausibility", "gower", "rows_per_person", *COUNTED):
            frame[f"{name} {when}"] = 0.5
    return frame.assign(case="toy", search="sparse")


@pytest.mark.parametrize(
    ("worse", "margin", "expected"),
    [
        (0.05, 0.02, "worse"),
        (0.05, 0.04, "same"),
        (0.015, 0.001, "same"),
        (0.0, 0.0, "same"),
        (-0.05, 0.06, "same"),
        (-0.05, 0.04, "better"),
        (-0.001, 0.0, "better"),
        (9.0, np.inf, "same"),
    ],
)
def test_only_whole_intervals_are_better_or_worse(worse, margin, expected):
    assert verdict(worse, margin, 0.02) == expected


def test_a_score_is_worse_or_better_if_its_interval_says_so():
    for gap, expected in ((0.1, "worse"), (0.0, "same"), (0.005, "same"), (-0.1, "better")):
        n_people, by = differences(both(50, gap))

        assert n_people == 50
        assert {by[score].verdict for score in SCORES} == {expected}


def test_more_changes_and_less_plausibility_are_worse():
    rows = both(50, 0.0, n_changes=(1, 2)).assign(**{"plausibility after": 0.4})

    _, by = differences(rows)

    assert (by["sparsity"].mean, by["sparsity"].verdict) == (1, "worse")
    assert by["plausibility"].mean == pytest.approx(-20)
    assert by["plausibility"].verdict == "worse"


def test_verdicts_are_listed_and_counted():
    _, paired, counts, *_ = tables(both(50, 0.1))

    assert paired.rows[0][-2:] == ["none", "lof, forest, pca"]
    assert counts.rows[-1] == ["all", "0", str(len(MEASURES) - 3), "3"]


def test_people_with_fewer_changes_are_told_from_those_with_as_many():
    found = pd.concat([both(50, 0.0), both(20, 0.2, n_changes=(2, 1))])

    _, everybody, _, as_many, fewer = tables(found)

    assert [table.rows[0][1] for table in (everybody, as_many, fewer)] == ["70", "50", "20"]
    assert [table.markdown().count("**worse**") for table in (as_many, fewer)] == [0, 3]


def test_people_whom_one_version_does_not_explain_count_as_unanswered_only():
    found = both(50, 0.1)
    found.loc[:9, [f"{score} after" for score in SCORES]] = np.nan

    overview, paired, *_ = tables(found)

    assert overview.rows[0][1] == "1.000 → 0.800"
    assert paired.rows[0][1] == "40"


def test_a_few_people_have_no_verdict():
    _, paired, *_ = tables(both(5, 0.1))

    assert set(paired.rows[0][2:8]) == {""}
