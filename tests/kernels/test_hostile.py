"""Whatever the compiled kernels are given, they return a result or raise; they never crash.

``make check-native`` runs this under the address and undefined-behaviour sanitizers.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forests import limits_of
from kernel_calls import Call, Rows, kernel_calls
from mcce.kernels import _native, cancellable, native
from mcce.kernels.cancellation import watch

ERRORS = ValueError, TypeError, MemoryError, OverflowError, IndexError, BufferError, TimeoutError
WHOLE = -1, 0, 1, 2, 29, 30, 31, 63, 64, 299, 300, 4200, 65_536, -(2**31), 2**62, 2**63 - 1, 2**64
REAL = 0.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e308, 5e-324
# Larger ones are allowed, and would only take memory.
MAX_CODES = 65_536
ROWS = Rows(300)
CALLS = kernel_calls(n_rows=300, n_draws=50)
FOREST, OF_LEVELS = ROWS.forest(), ROWS.forest([1])
HELD = native.gather_holdings(OF_LEVELS, contradictions=False)
COUNTED = native.gather_holdings(OF_LEVELS, contradictions=True, most_levels=0)
NEAR = native.build_neighbours(ROWS.points, np.array([False, True, False]))
ENSEMBLE = ROWS.ensemble()
LIMITS = limits_of((3, 20), [4200, 30, 30], [1, 2], np.random.default_rng(0))
GIVEN = ROWS.columns.codes[:, :20].copy()


def parts(value):
    return tuple(getattr(value, field.name) for field in fields(value))


def bound_forest(*arrays):
    forest = _native.Forest(*arrays)
    use_forest(forest)


def use_forest(forest, limits=None, guide=None):
    """Draw from a forest, and list its rows."""
    keys, draws = np.arange(20, dtype=np.uint64), np.arange(30)
    for least in (None, np.arange(30) * 20):
        for pooled in (False, True):
            what = GIVEN, keys, draws, limits, guide, least, pooled
            attempt(lambda w=what: forest.sample(*w, watch()))
    listing = ROWS.enumerate_rows(FOREST).arguments
    attempt(lambda: forest.enumerate_rows(*listing, watch()))


def bound_levels(*arrays):
    forest = _native.Forest(*arrays)
    for rules in product((False, True), (0, 1024)):
        attempt(lambda r=rules: use_holdings(forest, *r))


def use_holdings(forest, contradictions, most_levels):
    values = forest.gather_holdings(contradictions, most_levels, watch())
    held = _native.Holdings(forest, contradictions, *values)
    held.nonconformity(ROWS.columns.codes, watch())


def bound_holdings(*arrays):
    _native.Holdings(*arrays).nonconformity(ROWS.columns.codes, watch())


def bound_neighbours(*arrays):
    _native.Neighbours(*arrays).nearest(ROWS.points[:30].copy(), 3, watch())


def bound_ensemble(*arrays):
    _native.Ensemble(*arrays).predict(
        ROWS.columns.codes, np.arange(ROWS.columns.codes.shape[1]), watch()
    )


def bound_limits(*arrays):
    use_forest(FOREST.bound, limits=_native.Limits(*arrays))


def one_person(*arrays):
    listing = list(ROWS.enumerate_rows(FOREST).arguments)
    listing[3] = _native.Limits(*arrays)
    FOREST.bound.enumerate_rows(*listing, watch())


def bound_guide(own, stays, often):
    use_forest(FOREST.bound, guide=_native.Guide(own, stays, often))


def bound_measure(*arrays):
    call = ROWS.measure()
    call.with_argument(3, _native.Measure(*arrays))(watch())


def grow_classes(*arguments):
    return _native.grow_tree(*arguments, watch())


def with_classes(n_classes):
    """The arguments of a tree that predicts classes."""
    arguments = list(ROWS.grow().arguments)
    arguments[6:8] = ROWS.columns.codes[1] % n_classes, n_classes
    return tuple(arguments)


def forest_arrays(forest):
    """The arguments of a forest."""
    bound = forest.responses.astype(np.int32), forest.n_levels.astype(np.int32)
    return (*parts(forest.trees), *bound)


single = tuple(np.ascontiguousarray(part[:, :1]) for part in parts(LIMITS)[:3])
single += (LIMITS.runs, np.ascontiguousarray(LIMITS.near[:, :1]))
TARGETS = {
    **{name: Call(lambda *all_, k=call.kernel: k(*all_, watch()), call.arguments)
       for name, call in CALLS.items()},
    "grow_tree of two classes": Call(grow_classes, with_classes(2)),
    "grow_tree of classes": Call(grow_classes, with_classes(5)),
    "Forest": Call(bound_forest, forest_arrays(FOREST)),
    "Forest of levels": Call(bound_levels, forest_arrays(OF_LEVELS)),
    "Holdings": Call(bound_holdings, (OF_LEVELS.bound, *parts(HELD)[1:])),
    "Holdings without sets": Call(bound_holdings, (OF_LEVELS.bound, *parts(COUNTED)[1:])),
    "Neighbours": Call(bound_neighbours, (*parts(NEAR)[:-1], NEAR.is_level.view(np.uint8))),
    "Ensemble": Call(bound_ensemble, (*parts(ENSEMBLE.nodes)[:-1], *parts(ENSEMBLE)[1:])),
    "Limits": Call(bound_limits, parts(LIMITS)),
    "Limits of one person": Call(one_person, single),
    "Measure": Call(bound_measure, ROWS.places()),
    "Guide": Call(bound_guide, (GIVEN, GIVEN, 2**31)),
}  # fmt: skip


def attempt(call):
    """Call, and swallow the errors that are allowed; what takes long is stopped."""
    try:
        with cancellable(2.0):
            call()
    except ERRORS:
        pass


def corrupt(value, chance):
    """The value, with something wrong."""
    if isinstance(value, np.ndarray):
        return ARRAYS[chance.integers(len(ARRAYS))](value, chance)
    if isinstance(value, list):
        changed = list(value)
        if not changed or chance.random() < 0.2:
            return [*changed, *changed[:1]][: chance.integers(len(changed) + 2)]
        at = chance.integers(len(changed))
        changed[at] = (
            chance.choice([None, 7]) if changed[at] is None else corrupt(changed[at], chance)
        )
        return changed
    if isinstance(value, bool):
        return bool(chance.random() < 0.5)
    if isinstance(value, int):
        return WHOLE[chance.integers(len(WHOLE))]
    if isinstance(value, float):
        return REAL[chance.integers(len(REAL))]
    return None


def entry_for(array, chance):
    """Any value that fits in the array."""
    if array.dtype.kind not in "iu":
        return chance.choice(REAL)
    info = np.iinfo(array.dtype)
    near = [len(array), array.size, *(array.max(initial=0) + np.array([-1, 1])).tolist()]
    return int(
        np.clip(int(chance.choice([*WHOLE[:-3], *near])), info.min, min(info.max, MAX_CODES))
    )


def change_one(array, chance):
    changed = array.copy()
    if array.size:
        changed.flat[chance.integers(array.size)] = entry_for(array, chance)
    return changed


def change_many(array, chance):
    changed = array.copy()
    changed[chance.random(array.shape) < 0.3] = entry_for(array, chance)
    return changed


def exchange_two(array, chance):
    changed = array.copy()
    if array.size:
        one, other = chance.integers(array.size, size=2)
        changed.flat[one], changed.flat[other] = array.flat[other], array.flat[one]
    return changed


def cast(array, chance):
    types = [
        "i1",
        "u1",
        "i2",
        "u2",
        "i4",
        "u4",
        "i8",
        "u8",
        "f4",
        "f8",
        ">i4",
        ">f8",
        "?",
        "c16",
        "O",
    ]
    with np.errstate(all="ignore"):
        return np.nan_to_num(array).astype(chance.choice(types))


def stretch(array, chance):
    axis = int(chance.integers(max(array.ndim, 1)))
    return np.concatenate([array, array[tuple([slice(None)] * axis + [slice(1)])]], axis=axis)


ARRAYS = [
    change_one,
    change_one,
    change_many,
    change_many,
    exchange_two,
    cast,
    stretch,
    lambda array, chance: array[: chance.integers(len(array) + 1)],
    lambda array, chance: array[..., : chance.integers(array.shape[-1] + 1)],
    lambda array, chance: array[::-1],
    lambda array, chance: np.repeat(array, 2, axis=-1)[..., ::2],
    lambda array, chance: array.T,
    lambda array, chance: array[None],
    lambda array, chance: array.ravel(),
    lambda array, chance: np.empty((0,) * array.ndim, array.dtype),
    lambda array, chance: np.broadcast_to(array, (2, *array.shape))[0],
    lambda array, chance: None,
]  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), n_changes=st.integers(1, 3))
def test_corrupted_arguments_give_an_error_or_a_result(name, seed, n_changes):
    chance, call = np.random.default_rng(seed), TARGETS[name]

    for _ in range(n_changes):
        at = int(chance.integers(len(call.arguments)))
        call = call.with_argument(at, corrupt(call.arguments[at], chance))

    attempt(lambda: call.kernel(*call.arguments))


@pytest.mark.parametrize("name", TARGETS)
def test_arguments_that_are_not_corrupted_work(name):
    TARGETS[name].kernel(*TARGETS[name].arguments)
