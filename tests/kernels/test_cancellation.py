"""Kernels end when they are cancelled or their time is up, and leave nothing half done."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kernel_calls import kernel_calls
from mcce.kernels import (
    CancelledError,
    ExpiredError,
    RowTable,
    cancellable,
    check_cancellation,
    context_with,
    first_of_each,
    inner_cancellation,
    reference,
)
from mcce.kernels.cancellation import watch

CALLS = kernel_calls(n_rows=300, n_draws=50)
ONE_DRAW = np.zeros((1, 1, 1), dtype=np.int32)


def arrays(result):
    return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", CALLS)
def test_a_cancelled_kernel_raises(name):
    with cancellable() as cancellation:
        cancellation.cancel()

        with pytest.raises(CancelledError, match="cancelled"):
            CALLS[name](watch())


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_past_its_deadline_raises(name):
    with cancellable(0.0), pytest.raises(ExpiredError, match="time limit"):
        CALLS[name](watch())


@pytest.mark.parametrize("name", CALLS)
def test_a_limit_that_is_not_reached_changes_no_bit(name):
    free = arrays(CALLS[name](watch()))

    with cancellable(3600):
        limited = arrays(CALLS[name](watch()))

    assert all(map(np.array_equal, free, limited))


def test_the_limits_around_a_block_count_in_it_too():
    with cancellable() as outer:
        with cancellable(3600) as inner:
            assert not inner.cancelled
            outer.cancel()
            assert inner.cancelled
        assert outer.cancelled
    with cancellable(0.0), cancellable(3600) as inner:
        assert inner.expired


def test_a_block_does_not_outlive_itself():
    with cancellable() as cancellation:
        cancellation.cancel()
    with cancellable(0.0):
        pass

    check_cancellation()
    assert first_of_each(ONE_DRAW).all()


def test_a_limit_within_another_does_not_shorten_it():
    with cancellable(3600) as outer:
        with cancellable(0.0), pytest.raises(ExpiredError):
            check_cancellation()
        check_cancellation()

        assert not outer.expired


@pytest.mark.parametrize("seconds", [1e-300, 1e9, 1e300, float("inf"), -1.0, -float("inf")])
def test_any_number_of_seconds_is_a_limit(seconds):
    assert inner_cancellation(seconds).expired == (seconds < 1)


def test_a_limit_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="max_seconds"):
        inner_cancellation(float("nan"))


def test_a_thread_sees_the_cancellation_that_it_is_given():
    cancellation, caught = inner_cancellation(), []

    def work():
        try:
            while True:
                first_of_each(ONE_DRAW)
        except CancelledError as error:
            caught.append(error)

    thread = threading.Thread(target=context_with(cancellation).run, args=(work,))
    thread.start()
    cancellation.cancel()
    thread.join()

    assert len(caught) == 1
    check_cancellation()


def test_a_table_that_was_interrupted_has_placed_no_row():
    chance = np.random.default_rng(0)
    table, expected = RowTable(4), reference.RowTable(4)
    known = chance.integers(0, 9, (1000, 4), dtype=np.int32)
    assert np.array_equal(table.place(known), expected.place(known))

    for seconds in [0.0, 1e-4, 1e-3, 2e-3, 4e-3]:
        rows = chance.integers(0, 2**31 - 1, (200_000, 4), dtype=np.int32)
        try:
            with cancellable(seconds):
                table.place(rows)
        except ExpiredError:
            rows = rows[:500]
            table.place(rows)
        expected.place(rows)

    assert np.array_equal(table.place(known), expected.place(known))
    assert np.array_equal(table.place(rows[::-1]), expected.place(rows[::-1]))
