"""Compiled code as such: it never crashes, lets others run, ends when told to, owns its arrays."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import numpy_kernels
from kernel_cases import limits_of
from mcce.kernels import (
    BoostedNodes,
    CancelledError,
    Classes,
    Ensemble,
    ExpiredError,
    Forest,
    Growth,
    Numbers,
    RowTable,
    SplitColumns,
    Trees,
    _native,
    build_neighbours,
    cancellable,
    cancellation,
    check_cancellation,
    context_with,
    first_of_each,
    fixed_point,
    gather_holdings,
    grow_tree,
    inner_cancellation,
    join_trees,
    native,
    person_keys,
)

watch = cancellation.watch


# ---------------------------------------------------------------------------------------------
# Calls of the compiled module itself, one of each kernel, with arguments that work.


@dataclass(frozen=True)
class Call:
    """A kernel and its arguments, but for the watch that comes last."""

    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self, watch):
        return self.kernel(*self.arguments, watch)

    def with_argument(self, at, value):
        arguments = (*self.arguments[:at], value, *self.arguments[at + 1 :])
        return replace(self, arguments=arguments)


class Rows:
    """Random training rows of a number of many codes, a category and a number of few."""

    def __init__(self, n_rows):
        chance = np.random.default_rng(0)
        n_codes = np.array([4200, 30, 30], dtype=np.int32)
        codes = np.array([chance.integers(0, n, n_rows) for n in n_codes], dtype=np.int32)
        by_set = np.array([False, True, False])
        self.n_rows, self.columns = n_rows, SplitColumns(codes, by_set, ~by_set, n_codes)
        self.units = fixed_point(chance.normal(size=n_rows))
        self.points = chance.random((n_rows, 3))

    def forest(self, responses=(1, 2)):
        """Trees of some columns given those before."""
        columns, growth = self.columns, Growth(min_samples_leaf=max(self.n_rows // 100, 2))
        trees = [
            grow_tree(columns, np.arange(at), Numbers(self.units), columns.codes[at], growth)
            for at in responses
        ]
        n_levels = np.where(columns.by_set, columns.n_codes, 0)
        return Forest(join_trees(trees, columns.by_set), np.array(responses), n_levels)

    def grow(self, n_classes=0):
        columns, nothing = self.columns, np.empty(0, np.int32)
        flags = columns.by_set.view(np.uint8), columns.ordered.view(np.uint8)
        split = columns.narrow, columns.n_codes, *flags, np.arange(3, dtype=np.int32)
        classes = columns.codes[1] % n_classes if n_classes else nothing
        response = self.units, classes, n_classes, columns.codes[0]
        growth = 5, 2, -1, -1, False, 64, 1024, 10, -1, 0, None
        return Call(_native.grow_tree, (*split, *response, *growth))

    def boost(self):
        bins, n_bins = (self.columns.codes % 200).astype(np.uint8), np.full(3, 200, np.int32)
        return Call(_native.boost, (bins, n_bins, self.units // 512, 20, 8, 5, 8))

    def ensemble(self):
        nodes = BoostedNodes(*self.boost()(watch()))
        first = np.append(0, np.cumsum(self.columns.n_codes))
        bins = (np.arange(first[-1]) % 200).astype(np.uint8)
        return Ensemble(nodes, np.arange(3, dtype=np.int32), first, bins)

    def sample(self, forest, n_draws):
        given = self.columns.codes[:, :20].copy()
        keys, draws = person_keys(0, given[:1].T), np.arange(n_draws)
        return Call(forest.bound.sample, (given, keys, draws, None, draws, False))

    def enumerate_rows(self, forest):
        given = self.columns.codes[:, 0].copy()
        costs, offsets = np.ones(int(self.columns.n_codes.sum())), np.array([0, 4200, 4230])
        after = np.zeros(2, dtype=np.int32)
        arguments = given, given, given, None, costs, offsets, 2, 1000, 10**6, -1.0, after
        return Call(forest.bound.enumerate_rows, arguments)

    def rank(self, n_best):
        codes = self.columns.codes
        numbers = [np.linspace(0.0, 1.0, 4200), None]
        people = codes[:2, :5].copy(), np.zeros((2, 5)), np.ones(2), np.zeros(5, dtype=np.int64)
        allowed = np.ones((5, self.n_rows), np.uint8)
        rules = 2, n_best, 0, 1, 0.0, 9, np.inf, _native.Measure(*self.places())
        arguments = codes[:2].reshape(2, 1, -1), numbers, *people, allowed, np.empty((0, 0)), *rules
        return Call(_native.rank, arguments)

    def places(self):
        """Places of two features: points, and numbers."""
        tables = [np.linspace(0.0, 1.0, 8400).reshape(4200, 2), np.arange(30.0)[:, None]]
        own = [np.zeros((5, 2)), np.zeros((5, 1))]
        return tables, own, *np.ones((2, 2)), np.full(5, 2.0), True, False, True, True

    def measure(self):
        codes = self.columns.codes[:2].reshape(2, 1, -1)
        people = self.columns.codes[:2, :5].copy(), np.zeros(5, dtype=np.int64)
        return Call(_native.measure, (codes, *people, _native.Measure(*self.places())))

    def weigh_errors(self, n_errors=20):
        cells, rows = np.ascontiguousarray(self.columns.codes.T), np.arange(self.n_rows)
        between = np.zeros(rows.size, dtype=np.int64), np.full(rows.size, n_errors)
        errors, sums = np.linspace(-1.0, 1.0, n_errors), np.zeros((2, rows.size))
        arguments = cells, rows, *between, rows[:n_errors].copy(), errors, *sums
        return Call(_native.weigh_errors, arguments)


@cache
def kernel_calls(n_rows=300, n_draws=50):
    """A call of every kernel by name."""
    rows = Rows(n_rows)
    codes, points, levels = rows.columns.codes, rows.points, np.zeros(3, dtype=np.uint8)
    forest, of_levels = rows.forest(), rows.forest([1])
    held = gather_holdings(of_levels, contradictions=False)
    neighbours = build_neighbours(points, levels.view(bool))
    place = lambda cells, watch: _native.RowTable(3).place(cells, watch)
    return {
        "grow_tree": rows.grow(),
        "sample": rows.sample(forest, n_draws),
        "enumerate_rows": rows.enumerate_rows(forest),
        "gather_holdings": Call(of_levels.bound.gather_holdings, (False, 1024)),
        "nonconformity": Call(held.bound.nonconformity, (codes,)),
        "build_neighbours": Call(_native.build_neighbours, (points, levels)),
        "boost": rows.boost(),
        "predict": Call(rows.ensemble().bound.predict, (codes, np.arange(codes.shape[1]))),
        "nearest": Call(neighbours.bound.nearest, (points[: n_rows // 15].copy(), 5)),
        "place": Call(place, (np.ascontiguousarray(codes.T),)),
        "first_of_each": Call(_native.first_of_each, (codes[:2].reshape(2, 1, n_rows),)),
        "rank": rows.rank(100 if n_rows > 100 else 10),
        "measure": rows.measure(),
        "weigh_errors": rows.weigh_errors(),
    }


def test_every_kernel_is_called():
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

    assert methods | functions == set(kernel_calls())


# ---------------------------------------------------------------------------------------------
# Other threads run meanwhile.


def lets_others_run(call, n_tries):
    """Whether a waiting thread comes to run during one of the calls.

    Nobody is forced to let go of the GIL meanwhile, so it runs if and only if a call does.
    """
    gate, ran, end = threading.Lock(), [], time.monotonic() + 120
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
            if ran or time.monotonic() > end:
                break
        return bool(ran)
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_every_kernel_releases_the_gil():
    # As in a thread that handles no signals: the main one lets others run to handle them.
    quiet = _native.Watch(None, signals=False)

    for name, call in kernel_calls(n_rows=3000, n_draws=1000).items():
        assert lets_others_run(lambda call=call: call(quiet), n_tries=10**9), name


def test_calls_that_hold_the_gil_are_recognised():
    assert not lets_others_run(lambda: sum(range(50_000)), n_tries=50)
    assert not lets_others_run(watch, n_tries=50)


# ---------------------------------------------------------------------------------------------
# Kernels end when they are cancelled or their time is up, and leave nothing half done.


def test_every_kernel_ends_when_told_to_and_a_limit_not_reached_changes_no_bit():
    def arrays(result):
        return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]

    for call in kernel_calls().values():
        with cancellable() as cancelled:
            cancelled.cancel()
            with pytest.raises(CancelledError, match="cancelled"):
                call(watch())
        with cancellable(0.0), pytest.raises(ExpiredError, match="time limit"):
            call(watch())
        free = arrays(call(watch()))
        with cancellable(3600):
            assert all(map(np.array_equal, free, arrays(call(watch()))))


def test_a_block_counts_the_limits_around_it_and_does_not_outlive_itself():
    with cancellable() as outer:
        with cancellable(3600) as inner:
            assert not inner.cancelled
            outer.cancel()
            assert inner.cancelled
        assert outer.cancelled
    with cancellable(3600) as outer:
        with cancellable(0.0), cancellable(3600) as inner:
            assert inner.expired
        assert not outer.expired
        check_cancellation()
    check_cancellation()


def test_any_number_of_seconds_is_a_limit():
    for seconds in (1e-300, 1e9, 1e300, float("inf"), -1.0, -float("inf")):
        assert inner_cancellation(seconds).expired == (seconds < 1)
    with pytest.raises(ValueError, match="max_seconds"):
        inner_cancellation(float("nan"))


def test_a_thread_sees_the_cancellation_that_it_is_given():
    given_, caught = inner_cancellation(), []

    def work():
        try:
            while True:
                first_of_each(np.zeros((1, 1, 1), dtype=np.int32))
        except CancelledError as error:
            caught.append(error)

    thread = threading.Thread(target=context_with(given_).run, args=(work,))
    thread.start()
    given_.cancel()
    thread.join()

    assert len(caught) == 1
    check_cancellation()


def test_a_table_that_was_interrupted_has_placed_no_row():
    chance = np.random.default_rng(0)
    table, expected = RowTable(4), numpy_kernels.RowTable(4)
    known = chance.integers(0, 9, (1000, 4), dtype=np.int32)
    assert np.array_equal(table.number_rows(known), expected.number_rows(known))

    for seconds in [0.0, 1e-4, 1e-3, 2e-3]:
        rows = chance.integers(0, 2**31 - 1, (100_000, 4), dtype=np.int32)
        try:
            with cancellable(seconds):
                table.number_rows(rows)
        except ExpiredError:
            rows = rows[:500]
            table.number_rows(rows)
        expected.number_rows(rows)

    assert np.array_equal(table.number_rows(known), expected.number_rows(known))
    assert np.array_equal(table.number_rows(rows[::-1]), expected.number_rows(rows[::-1]))


# ---------------------------------------------------------------------------------------------
# What is bound to compiled code outlives its arrays, and survives copies.

GIVEN = np.array([[3, 20], [0, 0], [0, 0], [1, 1]], dtype=np.int32)
KEYS, DRAWS = np.array([5, 6], dtype=np.uint64), np.arange(50)
ROWS = np.array([[3, 20, 39], [5, 69, 70], [0, 4, 5], [1, 0, 1]], dtype=np.int32)


def grown():
    """Trees of the columns 1 and 2, which are levels, given those before and the decision."""
    chance, n_codes = np.random.default_rng(0), np.array([40, 70, 5, 2], dtype=np.int32)
    by_set = np.array([False, True, True, False])
    codes = np.array([chance.integers(0, n, 400) for n in n_codes], dtype=np.int32)
    columns = SplitColumns(codes, by_set, ~by_set, n_codes)
    trees = [
        grow_tree(
            columns,
            np.array([*range(column), 3]),
            Classes(codes[column].astype(np.int64), int(n_codes[column])),
            codes[column],
            Growth(min_samples_leaf=20),
        )
        for column in (1, 2)
    ]
    return Forest(join_trees(trees, by_set), np.array([1, 2]), np.where(by_set, n_codes, 0))


def bound_structs():
    """A forest, what its nodes hold, and neighbours."""
    forest, points = grown(), np.random.default_rng(1).random((100, 2))
    held = gather_holdings(forest, contradictions=False)
    return forest, held, build_neighbours(points, np.array([False, False]))


def answers(forest, held, near):
    return (
        native.sample(forest, GIVEN, KEYS, DRAWS),
        native.largest_rejecting_nodes(held, ROWS),
        native.nearest_distances(near, np.array([[0.1, 0.3], [0.9, 0.2]]), 3),
    )


@pytest.mark.parametrize(
    "copied",
    [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy, replace],
    ids=["pickle", "copy", "deepcopy", "replace"],
)
def test_copies_leave_the_compiled_half_behind_and_give_the_same(copied):
    structs = bound_structs()
    expected, halves = answers(*structs), [value.bound for value in structs]

    others = [copied(value) for value in structs]

    assert all("bound" not in vars(other) for other in others)
    assert [value.bound for value in structs] == halves
    assert all(map(np.array_equal, answers(*others), expected))


def test_arrays_that_change_or_are_gone_after_binding_are_not_read_again():
    forest, held, near = bound_structs()
    expected = answers(forest, held, near)

    for value in (forest.trees, held):
        for name in ("feature", "cut", "left", "right", "start", "count", "values", "offset"):
            if hasattr(value, name):
                getattr(value, name)[:] = 2**30

    assert all(map(np.array_equal, answers(forest, held, near), expected))
    halves = held.bound, near.bound
    del forest, held, near
    gc.collect()
    _ = [np.full(10_000, 2**30, dtype=np.int32) for _ in range(100)]
    assert np.array_equal(halves[0].nonconformity(ROWS, watch()), expected[1])


# ---------------------------------------------------------------------------------------------
# What does not go together is refused.


def test_trees_that_could_not_have_been_grown_are_refused():
    forest = grown()
    leaf = int(np.flatnonzero(forest.trees.feature == -1)[0])

    def refused(**arrays):
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            native.sample(
                replace(forest, trees=replace(forest.trees, **arrays)), GIVEN, KEYS, DRAWS
            )

    for name, at, value in [
        ("roots", 0, 1), ("roots", 1, 0), ("roots", 1, 10**6), ("feature", 0, 4),
        ("feature", 0, -2), ("left", 0, 0), ("left", 0, -1), ("right", 0, 10**6),
        ("start", leaf, -1), ("count", leaf, -1), ("count", leaf, 10**6), ("values", 0, -1),
        ("values", 0, 70), ("values", -1, 5),
    ]:  # fmt: skip
        changed = getattr(forest.trees, name).copy()
        changed[at] = value
        refused(**{name: changed})
    for name in ("cut", "left", "right", "start", "count", "values", "feature", "sets"):
        refused(**{name: getattr(forest.trees, name)[:-1]})


def test_nodes_with_two_parents_are_refused():
    """Each level would double the rows of a node, and so reach beyond the values."""
    n = 20
    inner = np.arange(n, dtype=np.int32)
    array = lambda numbers, last: np.array([*numbers, last], dtype=np.int32)
    trees = Trees(
        roots=np.array([0]),
        feature=array(0 * inner, -1),
        cut=array(0 * inner, 0),
        left=array(inner + 1, 0),
        right=array(inner + 1, 0),
        start=np.zeros(n + 1, dtype=np.int64),
        count=array(0 * inner, 1),
        sets=np.empty(0, dtype=np.uint64),
        values=np.array([0], dtype=np.int32),
    )

    with pytest.raises(ValueError, match="preorder"):
        gather_holdings(Forest(trees, np.array([1]), np.array([0, 0])), contradictions=False)


def test_a_tree_of_neighbours_with_too_many_levels_is_refused():
    n, (_, _, near) = 1000, bound_structs()
    numbers = np.arange(n, dtype=np.int64)
    deep = replace(
        near,
        first=0 * numbers,
        last=0 * numbers,
        left=np.minimum(2 * (numbers // 2) + 1, n - 1),
        right=np.minimum(2 * (numbers // 2) + 2, n - 1),
        column=np.where(numbers % 2 | (numbers >= n - 2), -1, 0).astype(np.int32),
        left_edge=np.zeros(n),
        right_edge=np.zeros(n),
    )

    with pytest.raises(ValueError, match="too deep"):
        native.nearest_distances(deep, np.zeros((1, 2)), 1)


def test_results_beyond_any_memory_are_refused():
    with pytest.raises(MemoryError):
        native.nearest_distances(bound_structs()[2], np.zeros((8, 2)), 2**61)


# ---------------------------------------------------------------------------------------------
# Whatever the compiled kernels are given, they return a result or raise. `make check-native` runs
# this under the address and undefined-behaviour sanitizers.

ERRORS = ValueError, TypeError, MemoryError, OverflowError, IndexError, BufferError, TimeoutError
WHOLE = -1, 0, 1, 2, 29, 30, 31, 63, 64, 299, 300, 4200, 65_536, -(2**31), 2**62, 2**63 - 1, 2**64
REAL = 0.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e308, 5e-324
# Larger ones are allowed, and would only take memory.
MAX_CODES = 65_536


def attempt(call):
    """Call, and swallow the errors that are allowed; what takes long is stopped."""
    try:
        with cancellable(2.0):
            call()
    except ERRORS:
        pass


def parts(value):
    return tuple(getattr(value, field.name) for field in fields(value))


@cache
def targets():
    """Kernels and structs of the compiled module, each with arguments that work."""
    rows = Rows(300)
    codes, given_ = rows.columns.codes, rows.columns.codes[:, :20].copy()
    forest, of_levels = rows.forest(), rows.forest([1])
    held = gather_holdings(of_levels, contradictions=False)
    counted = gather_holdings(of_levels, contradictions=True, most_levels=0)
    near = build_neighbours(rows.points, np.array([False, True, False]))
    limits = limits_of((3, 20), [4200, 30, 30], [1, 2], np.random.default_rng(0))
    single = [np.ascontiguousarray(part[:, :1]) for part in parts(limits)[:3]]
    single += [limits.runs, np.ascontiguousarray(limits.near[:, :1])]
    ensemble = rows.ensemble()

    def use_forest(bound, limits=None):
        """Draw from a forest, and list its rows."""
        keys, draws = np.arange(20, dtype=np.uint64), np.arange(30)
        for least, pooled in product((None, draws * 20), (False, True)):
            what = given_, keys, draws, limits, least, pooled
            attempt(lambda w=what: bound.sample(*w, watch()))
        listing = rows.enumerate_rows(forest).arguments
        attempt(lambda: bound.enumerate_rows(*listing, watch()))

    def use_levels(*arrays):
        bound = _native.Forest(*arrays)
        for contradictions, most_levels in product((False, True), (0, 1024)):
            attempt(lambda c=contradictions, m=most_levels: use_holdings(bound, c, m))

    def use_holdings(bound, contradictions, most_levels):
        values = bound.gather_holdings(contradictions, most_levels, watch())
        _native.Holdings(bound, contradictions, *values).nonconformity(codes, watch())

    def list_rows(*arrays):
        call = rows.enumerate_rows(forest)
        call.with_argument(3, _native.Limits(*arrays))(watch())

    def forest_arrays(forest):
        bound = forest.responses.astype(np.int32), forest.n_levels.astype(np.int32)
        return (*parts(forest.trees), *bound)

    hold = lambda *a: _native.Holdings(*a).nonconformity(codes, watch())
    find = lambda *a: _native.Neighbours(*a).nearest(rows.points[:30].copy(), 3, watch())
    predict = lambda *a: _native.Ensemble(*a).predict(codes, np.arange(codes.shape[1]), watch())
    measure = lambda *a: rows.measure().with_argument(3, _native.Measure(*a))(watch())
    return {
        **{
            name: Call(lambda *all_, k=call.kernel: k(*all_, watch()), call.arguments)
            for name, call in kernel_calls().items()
        },
        "grow_tree of two classes": Call(
            lambda *a: _native.grow_tree(*a, watch()), rows.grow(2).arguments
        ),
        "grow_tree of classes": Call(
            lambda *a: _native.grow_tree(*a, watch()), rows.grow(5).arguments
        ),
        "Forest": Call(lambda *a: use_forest(_native.Forest(*a)), forest_arrays(forest)),
        "Forest of levels": Call(use_levels, forest_arrays(of_levels)),
        "Holdings": Call(hold, (of_levels.bound, *parts(held)[1:])),
        "Holdings without sets": Call(hold, (of_levels.bound, *parts(counted)[1:])),
        "Neighbours": Call(find, (*parts(near)[:-1], near.is_level.view(np.uint8))),
        "Ensemble": Call(predict, (*parts(ensemble.nodes)[:-1], *parts(ensemble)[1:])),
        "Limits": Call(
            lambda *a: use_forest(forest.bound, limits=_native.Limits(*a)), parts(limits)
        ),
        "Limits of one person": Call(list_rows, tuple(single)),
        "Measure": Call(measure, rows.places()),
    }


def corrupt(value, chance):
    """The value, with something wrong."""
    if isinstance(value, np.ndarray):
        return WAYS[chance.integers(len(WAYS))](value, chance)
    if isinstance(value, list):
        changed = list(value)
        if not changed or chance.random() < 0.2:
            return [*changed, *changed[:1]][: chance.integers(len(changed) + 2)]
        at = chance.integers(len(changed))
        old = changed[at]
        changed[at] = chance.choice([None, 7]) if old is None else corrupt(old, chance)
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
    chosen = int(chance.choice([*WHOLE[:-3], *near]))
    return int(np.clip(chosen, info.min, min(info.max, MAX_CODES)))


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
    kind = chance.choice([*"?bBhHiIqQfdDO", ">i4", ">f8"])
    with np.errstate(all="ignore"):
        return np.nan_to_num(array).astype(kind)


def stretch(array, chance):
    axis = int(chance.integers(max(array.ndim, 1)))
    return np.concatenate([array, array[tuple([slice(None)] * axis + [slice(1)])]], axis=axis)


WAYS = [
    *[change_one, change_many] * 2,
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


def test_arguments_that_are_not_corrupted_work():
    for call in targets().values():
        call.kernel(*call.arguments)


@settings(max_examples=20 * settings.default.max_examples, suppress_health_check=list(HealthCheck))
@given(at=st.integers(0, 1000), seed=st.integers(0, 2**32 - 1), n_changes=st.integers(1, 3))
def test_corrupted_arguments_give_an_error_or_a_result(at, seed, n_changes):
    chance, call = np.random.default_rng(seed), list(targets().values())[at % len(targets())]

    for _ in range(n_changes):
        at = int(chance.integers(len(call.arguments)))
        call = call.with_argument(at, corrupt(call.arguments[at], chance))

    attempt(lambda: call.kernel(*call.arguments))
