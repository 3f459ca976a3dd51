"""Every compiled kernel lets other threads run while it works."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from mcce.kernels import _native, native, reference
from mcce.kernels.cancellation import watch
from mcce.kernels.reference import Columns, Growth, Numbers, fixed_point

# A thread that may run might still be woken too late for one call of a kernel, but not for so many.
N_TRIES = 500


def lets_others_run(call, n_tries=N_TRIES):
    """Whether a waiting thread comes to run during one of the calls.

    Nobody is forced to let go of the GIL meanwhile, so it runs if and only if a call does.
    """
    gate, ran = threading.Lock(), []
    gate.acquire()

    def run():
        with gate:
            ran.append(True)

    thread, interval = threading.Thread(target=run), sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread.start()
        gate.release()
        for _ in range(n_tries):
            call()
            if ran:
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def kernels():
    """Calls of the compiled module itself, as NumPy lets go of the GIL too."""
    chance = np.random.default_rng(0)
    n_rows, n_codes = 5000, np.array([4000, 30, 30], dtype=np.int32)
    codes = np.array([chance.integers(0, n, n_rows) for n in n_codes], dtype=np.int32)
    by_set = np.array([False, True, False])
    columns = Columns(codes, by_set, ~by_set, n_codes)
    units = fixed_point(chance.normal(size=n_rows))
    flags = by_set.view(np.uint8), (~by_set).view(np.uint8)
    grow = columns.narrow, n_codes, *flags, columns.sorted_rows
    inputs, no_classes = np.arange(3, dtype=np.int32), np.empty(0, np.int32)
    look = watch()
    limits = 5, 2, -1, -1, False, look

    trees = [
        reference.grow_tree(
            columns, np.arange(column), Numbers(units), codes[column], Growth(min_samples_leaf=50)
        )
        for column in (1, 2)
    ]
    joined = reference.join(trees, by_set)
    forest = native.Forest(joined, np.array([1, 2]), np.where(by_set, n_codes, 0))
    missing = np.array([-1, -1], dtype=np.int32)
    held = native.gather_holdings(forest, n_codes, missing, contradictions=False)
    given = codes[:, :20].copy()
    keys, draws = reference.person_keys(0, given[:1].T), np.arange(2000)
    person = {
        "given": given[:, 0].copy(),
        "own": given[:, 0].copy(),
        "limits": None,
        "costs": np.ones(int(n_codes.sum())),
        "offsets": np.array([0, 4000, 4030]),
        "n_changes": 2,
        "n_best": 1000,
        "max_nodes": 10**6,
        "after_total": -1.0,
        "after": np.zeros(2, dtype=np.int32),
        "watch": look,
    }
    points, levels = chance.random((n_rows, 3)), np.zeros(3, dtype=np.uint8)
    neighbours = native.build_neighbours(points, levels.view(bool))
    some, least = points[:300].copy(), np.zeros(2, dtype=np.int32)
    rows = np.ascontiguousarray(codes.T)
    candidates = codes[:2].reshape(2, 1, n_rows)
    group, spreads = np.zeros(5, dtype=np.int64), np.ones(2)
    compared = candidates, [None, None], codes[:2, :5].copy(), np.zeros((2, 5)), spreads, group
    rules = 2, 100, 0, 1, 0.0, 9, np.inf, look
    rank = *compared, np.ones((5, n_rows), np.uint8), np.empty((0, 0)), *rules
    return {
        "grow_tree": lambda: _native.grow_tree(
            *grow, inputs, units, no_classes, 0, codes[0], *limits
        ),
        "sample": lambda: forest.bound.sample(given, keys, draws, None, None, look),
        "enumerate_rows": lambda: forest.bound.enumerate_rows(**person),
        "gather_holdings": lambda: forest.bound.gather_holdings(missing, False, look),
        "nonconformity": lambda: held.bound.nonconformity(codes, least, look),
        "build_neighbours": lambda: _native.build_neighbours(points, levels, look),
        "nearest": lambda: neighbours.bound.nearest(some, 5, look),
        "place": lambda: _native.RowTable(rows.shape[1]).place(rows, look),
        "first_of_each": lambda: _native.first_of_each(candidates, look),
        "rank": lambda: _native.rank(*rank),
    }


CALLS = kernels()


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_releases_the_gil(name):
    assert lets_others_run(CALLS[name])


def test_every_kernel_is_checked():
    methods = {
        name
        for value in vars(_native).values()
        if value is not _native.Cancellation
        for name in (vars(value) if isinstance(value, type) else ())
        if not name.startswith("_")
    }
    functions = {
        name
        for name, value in vars(_native).items()
        if callable(value) and not isinstance(value, type) and not name.startswith("_")
    }

    assert methods | functions == set(CALLS)


def test_calls_that_hold_the_gil_are_recognised():
    assert not lets_others_run(lambda: sum(range(50_000)), n_tries=50)
