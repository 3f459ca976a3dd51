"""Audits of releases of which the truth is known: copies, fresh draws, and what lies between."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, TreeChain, metrics, privacy
from mcce.privacy.release import release_rows

AUCS = ["distance_auc", "calibrated_auc", "rare_values_auc"]


def draw(n, seed):
    """People with numbers that are nearly unique, few and skewed, and with levels."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05])
    return pd.DataFrame(
        {
            "income": np.round(rng.lognormal(3, 0.6, n) + 5 * (job == "a"), 2),
            "age": rng.integers(20, 70, n),
            "job": job,
            "home": rng.choice(["own", "rent"], n),
        }
    )


def split(n, seed):
    people = draw(3 * n, seed)
    return people[:n], people[n : 2 * n], people[2 * n :]


def test_a_release_of_the_training_rows_is_found_by_every_attack():
    training, holdout, reference = split(300, 0)

    found = privacy.audit_rows(training, training, holdout, reference)

    table = found.to_frame()
    assert table.loc["distance_auc", "value"] > 0.99
    assert table.loc["calibrated_auc", "value"] > 0.99
    assert table.loc["rare_values_auc", "value"] > 0.9
    assert table.loc["copies", "value"] == 1.0
    assert table.loc["holdout_share", "value"] > 0.97
    assert table.loc["distance_tpr_1%", "value"] > 0.9
    assert (table.loc[[*AUCS, "copies", "holdout_share"], "finding"] == "leak").all()
    assert found.n_copies == 300
    assert found.finding == "leak"


@pytest.mark.parametrize("seed", range(4))
def test_fresh_draws_tell_nothing(seed):
    training, holdout, reference = split(300, seed)

    found = privacy.audit_rows(draw(400, 1000 + seed), training, holdout, reference)

    for name in AUCS:
        assert abs(found[name].value - 0.5) <= 3 * np.sqrt(601 / (12 * 300 * 300))
    assert found.leaks == ()


def test_findings_about_fresh_draws_are_as_rare_as_they_should_be(monkeypatch):
    monkeypatch.setattr("mcce.privacy.membership.N_RESAMPLES", 2)
    excess = []
    for seed in range(25):
        training, holdout, reference = split(100, seed)
        found = privacy.audit_rows(draw(150, 1000 + seed), training, holdout, reference)
        excess += [found[name].excess for name in [*AUCS, "holdout_share", "copies"]]

    # 125 figures, not independent: beyond two standard errors one in twenty, beyond four none.
    assert np.mean(np.abs(excess) > 2) < 0.12
    assert np.max(np.abs(excess)) < 4
    assert np.std(excess[::5]) == pytest.approx(1, abs=0.4)


def test_training_rows_in_place_of_the_holdout_cannot_be_told_apart():
    training, _, reference = split(600, 1)
    explainer = MCCE(score, (40, np.inf), random_state=0, generator=TreeChain()).fit(training)
    released = release_rows(explainer, reference, 600).frame

    # Both halves were learned from: neither of them is outside.
    found = privacy.audit_rows(released, training[:300], training[300:], reference)

    for name in AUCS:
        assert abs(found[name].value - 0.5) <= 3 * np.sqrt(601 / (12 * 300 * 300))


def score(frame):
    return frame["income"] + frame["age"] / 10


@pytest.mark.parametrize("release", ["answers", "rows"])
def test_trees_give_away_values_that_one_person_has(release):
    training, holdout, reference = split(300, 2)
    explainer = MCCE(score, (30, np.inf), immutable=["age"], random_state=0).fit(training)

    found = privacy.audit(explainer, training, holdout, reference, release=release)

    assert found.release == release
    assert found["value_copies"].value > 0.5
    assert found["value_copies"].null < 0.3
    assert found["value_copies"].finding == "leak"
    assert found["rare_values_auc"].finding == "leak"


def test_excluding_copies_is_seen_as_rows_that_avoid_training():
    """With few values, rows that skip every training row tell who was in it."""
    rng = np.random.default_rng(0)
    grid = pd.DataFrame([(a, b) for a in range(30) for b in range(30)], columns=["a", "b"])
    grid = grid.iloc[rng.permutation(900)]
    training, holdout, reference = grid[:300], grid[300:600], grid[600:]
    released = pd.concat([holdout, reference])

    found = privacy.audit_rows(released, training, holdout, reference)

    assert found["distance_auc"].finding == "reversed"
    assert "distance_auc" in found.leaks


def test_figures_are_those_of_the_metrics_and_of_scikit_learn():
    from sklearn.metrics import roc_auc_score

    training, holdout, reference = split(200, 3)
    released = pd.concat([draw(100, 9), training[:60]], ignore_index=True)

    found = privacy.audit_rows(released, training, holdout, reference)

    closest = metrics.closest_record(released, training, holdout=holdout)
    assert found["copies"].value == metrics.copies(released, training).mean()
    assert found["value_copies"].value == metrics.value_copies(released, training)
    assert found["closest_median"].value == closest["median"]
    assert found["closest_q05"].value == closest["q05"]
    assert found["closest_zero"].value == closest["zero"]
    assert found["holdout_share"].value == pytest.approx(closest["holdout_share"])
    is_member = np.repeat([1, 0], 200)
    for name, (members, nonmembers) in found.scores.items():
        area = roc_auc_score(is_member, np.concatenate([members, nonmembers]))
        assert found[f"{name}_auc"].value == pytest.approx(area)


def test_scores_are_those_of_brute_force():
    training, holdout, reference = split(40, 4)
    holdout = holdout.assign(job=["new", "newer"] * 20)
    released = draw(30, 5).assign(job="new")

    found = privacy.audit_rows(released, training, holdout, reference)

    spread = {name: np.ptp(training[name].to_numpy()) for name in ("income", "age")}
    for side, rows in enumerate((training, holdout)):
        distance = np.array(
            [
                min(
                    abs(row.income - other.income) / spread["income"]
                    + abs(row.age - other.age) / spread["age"]
                    + (row.job != other.job)
                    + (row.home != other.home)
                    for other in released.itertuples()
                )
                for row in rows.itertuples()
            ]
        )
        rare = [
            sum(
                value in set(released[name]) - set(reference[name])
                for name, value in zip(rows.columns, row, strict=True)
            )
            for row in rows.itertuples(index=False)
        ]
        np.testing.assert_allclose(found.scores["distance"][side], -distance)
        assert found.scores["rare_values"][side].tolist() == rare


def test_the_true_positive_rate_is_read_off_the_curve():
    training, holdout, reference = split(300, 6)
    released = pd.concat([draw(300, 7), training[:30]], ignore_index=True)

    found = privacy.audit_rows(released, training, holdout, reference)

    members, nonmembers = found.scores["distance"]
    threshold = np.sort(nonmembers)[::-1][3]
    assert found["distance_tpr_1%"].value == pytest.approx(np.mean(members > threshold))
    assert found["distance_tpr_1%"].null == pytest.approx(4 / 301, abs=0.004)
    assert found["distance_tpr_1%"].finding == "leak"
    assert np.isnan(found["distance_tpr_0.1%"].value)
    assert found["distance_tpr_0.1%"].finding == "unknown"
