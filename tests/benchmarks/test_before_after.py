"""Answers of two versions, compared person by person."""

from __future__ import annotations

import numpy as np
import pandas as pd

from before_after import SCORES, tables


def both(n_people, gap, n_changes=(1, 1)):
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(index=range(n_people))
    for when, more, sparsity in zip(("before", "after"), (0, gap), n_changes, strict=True):
        for score in SCORES:
            frame[f"{score} {when}"] = 1 + more + 0.01 * chance.random(n_people)
        frame[f"sparsity {when}"] = sparsity
        frame[f"plausibility {when}"] = 0.5
    return frame.assign(case="toy", search="sparse")


def test_a_score_is_worse_if_its_interval_says_so():
    for gap, worse in ((0.1, 3), (0.0, 0), (-0.1, 0)):
        _, scores, *_ = tables(both(50, gap))

        assert scores.markdown().count("**worse**") == worse


def test_people_with_fewer_changes_are_told_from_those_with_as_many():
    found = pd.concat([both(50, 0.0), both(20, 0.2, n_changes=(2, 1))])

    _, everybody, as_many, fewer = tables(found)

    assert [table.rows[0][1] for table in (everybody, as_many, fewer)] == ["70", "50", "20"]
    assert [table.markdown().count("**worse**") for table in (as_many, fewer)] == [0, 3]


def test_people_whom_one_version_does_not_explain_count_as_unanswered_only():
    found = both(50, 0.1)
    found.loc[:9, [f"{score} after" for score in SCORES]] = np.nan

    overview, scores, *_ = tables(found)

    assert overview.rows[0][1] == "1.000 → 0.800"
    assert scores.rows[0][1] == "40"
