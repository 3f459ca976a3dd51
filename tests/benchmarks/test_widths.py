"""Growth with the number of columns."""

from __future__ import annotations

import pytest

from widths import exponent_of_fit, table


def values(fit):
    names = ("explain s", "rows per person", "answered", "sparsity", "before MB", "peak MB")
    return {"fit s": fit} | dict.fromkeys(names, 1.0)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_exponent_is_the_power_of_the_number_of_columns(power):
    by_width = {width: values(0.01 * width**power) for width in (20, 60, 120)}

    assert exponent_of_fit(by_width) == pytest.approx(power)


def test_a_width_that_took_too_long_has_no_figures_and_no_part_in_the_exponent():
    by_width = {20: values(1.0), 40: values(2.0), 80: None}

    shown = table({"balanced": by_width}, 900)

    assert set(shown.rows[2][2:]) == {""}
    assert shown.note.endswith("balanced 1.00.")


def test_one_width_has_no_exponent():
    assert table({"balanced": {20: values(1.0)}}, 900).note.endswith("unknown.")
