"""From nonconformities of held-out rows to strangeness and p-values."""

from __future__ import annotations

import numpy as np
import pytest

from mcce.plausibility.conformal import N_RARE, Calibration, Tail


def test_a_p_value_is_the_share_of_held_out_rows_at_least_as_large_and_the_row_itself():
    tail = Tail.of(np.array([3.0, 1.0, 2.0, 2.0]))

    assert tail.share(np.array([0.0, 1.0, 2.0, 2.5, 3.0, 4.0])).tolist() == [
        1.0, 1.0, 4 / 5, 2 / 5, 2 / 5, 1 / 5,
    ]  # fmt: skip


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [0.0, 0.0], [1e-100], []])
def test_beyond_the_largest_strangeness_still_increases(values):
    tail = Tail.of(np.array(values))
    beyond = tail.largest + np.array([0.0, 1.0, 2.0, 50.0])

    found = tail.inverse(beyond)

    assert (np.diff(found) > 0).all()
    assert found[0] <= tail.values.size + 1 < found[1]
    assert np.isfinite(tail.inverse(np.array([1.0, 5.0]))).all()


def test_a_held_out_value_among_the_others_is_like_a_new_one():
    values = np.array([0.0, 0.0, 1.0, 2.0, 4.0])

    own = Tail.of(values).inverse_of_own(values)

    assert own[:2] == pytest.approx(6 / 5)
    # Half way between its neighbours, two others are as large; beyond the largest, twice as far.
    assert own[2:] == pytest.approx([6 / 3.5, 6 / (2 + 2 / 3), 6 * 2])


def test_the_strangest_part_decides():
    chance = np.random.default_rng(0)
    calibration = Calibration.fit(chance.random((3, 999)), np.zeros(999, dtype=bool))
    rows = np.array([[0.5, 0.5, 0.5, 2.0], [0.5, 0.5, 0.99, 0.5], [0.5, 0.1, 0.5, 0.5]])

    found = calibration(rows, np.zeros(4, dtype=bool))

    assert min(found.p_value[:2]) > found.p_value[2] > found.p_value[3] == 1 / 1000
    assert found.strangeness[:2].max() < found.strangeness[2] < found.strangeness[3]


@pytest.mark.parametrize("n_parts", [1, 5, 40])
def test_p_values_of_rows_like_the_held_out_ones_are_uniform(n_parts):
    chance = np.random.default_rng(0)
    nobody, found = np.zeros(500, dtype=bool), []
    for _ in range(40):
        calibration = Calibration.fit(chance.random((n_parts, 500)) ** 3, nobody)
        found.append(calibration(chance.random((n_parts, 500)) ** 3, nobody).p_value)

    for level in (0.01, 0.05, 0.25, 0.5):
        margin = 3 * np.sqrt(level * 2 / 500 / 40)
        assert abs((np.concatenate(found) <= level).mean() - level) < margin


@pytest.mark.parametrize("n_rare", [N_RARE - 1, N_RARE])
def test_rows_with_a_rare_level_are_compared_with_their_own_kind_if_there_are_enough(n_rare):
    chance = np.random.default_rng(0)
    rare = np.arange(2000) < n_rare
    nonconformity = np.where(rare, 10, 0) + chance.random((1, 2000))
    calibration = Calibration.fit(nonconformity, rare)

    odd, own, far = calibration(np.array([[10.5, 10.5, 99.0]]), np.array([False, True, True]))[0]

    assert (own > 2 * odd) == (n_rare == N_RARE)
    assert odd < 0.05
    assert far < 0.01
