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


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [0.0, 0.0], [1e-300], []])
def test_beyond_the_largest_strangeness_still_increases(values):
    tail = Tail.of(np.array(values))
    beyond = tail.largest + np.array([0.0, 1.0, 2.0, 50.0])

    found = tail.inverse(beyond)

    assert (np.diff(found) > 0).all()
    assert found[0] <= tail.values.size + 1 < found[1]
    assert np.isfinite(tail.inverse(np.array([1.0, 5.0]))).all()


def test_the_strangest_part_decides():
    chance = np.random.default_rng(0)
    nonconformity, nobody = chance.random((3, 999)), np.zeros((3, 999), dtype=bool)
    calibration = Calibration.fit(nonconformity, nobody)
    rows = np.array([[0.5, 0.5, 0.5, 2.0], [0.5, 0.5, 0.99, 0.5], [0.5, 0.1, 0.5, 0.5]])

    strangeness = calibration(rows, np.zeros(rows.shape, dtype=bool))
    p_values = calibration.p_value(strangeness)

    assert min(p_values[:2]) > p_values[2] > p_values[3] == 1 / 1000


def test_p_values_of_rows_like_the_held_out_ones_are_uniform():
    chance = np.random.default_rng(0)
    nonconformity, fresh = chance.random((5, 4000)), chance.random((5, 20_000))
    calibration = Calibration.fit(nonconformity, np.zeros(nonconformity.shape, dtype=bool))

    p_values = calibration.p_value(calibration(fresh, np.zeros(fresh.shape, dtype=bool)))

    for level in (0.01, 0.05, 0.25, 0.5):
        assert abs((p_values <= level).mean() - level) < 4 * np.sqrt(level / 3000)


def test_rows_with_a_rare_level_are_compared_with_their_own_kind_if_there_are_enough():
    chance = np.random.default_rng(0)
    nonconformity, rare = chance.random((1, 2000)), np.zeros((1, 2000), dtype=bool)
    for n_rare in (N_RARE - 1, N_RARE):
        rare[0, :n_rare] = True
        nonconformity[0, :n_rare] = 10 + chance.random(n_rare)

        calibration = Calibration.fit(nonconformity, rare)

        value = np.full((1, 1), 10.5)
        usual = calibration.p_value(calibration(value, np.ones((1, 1), dtype=bool)))
        odd = calibration.p_value(calibration(value, np.zeros((1, 1), dtype=bool)))
        assert (usual > odd) == (n_rare == N_RARE)
        far = np.full((1, 1), 99.0)
        assert calibration.p_value(calibration(far, np.ones((1, 1), dtype=bool))) < 0.01
