"""Calls of the compiled module itself, one of each kernel, with arguments that work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcce.kernels import _native, native, reference
from mcce.kernels.cancellation import watch
from mcce.kernels.reference import Columns, Growth, Numbers, fixed_point


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


@dataclass(frozen=True)
class Rows:
    """Random training rows of a number of many codes, a category and a number of few."""

    n_rows: int

    def __post_init__(self):
        set_ = lambda name, value: object.__setattr__(self, name, value)
        chance = np.random.default_rng(0)
        n_codes = np.array([4200, 30, 30], dtype=np.int32)
        codes = np.array([chance.integers(0, n, self.n_rows) for n in n_codes], dtype=np.int32)
        by_set = np.array([False, True, False])
        set_("columns", Columns(codes, by_set, ~by_set, n_codes))
        set_("units", fixed_point(chance.normal(size=self.n_rows)))
        set_("points", chance.random((self.n_rows, 3)))

    def forest(self, responses=(1, 2)):
        """Trees of some columns given those before."""
        columns, growth = self.columns, Growth(min_samples_leaf=max(self.n_rows // 100, 2))
        trees = [
            reference.grow_tree(
                columns, np.arange(at), Numbers(self.units), columns.codes[at], growth
            )
            for at in responses
        ]
        n_levels = np.where(columns.by_set, columns.n_codes, 0)
        return native.Forest(reference.join(trees, columns.by_set), np.array(responses), n_levels)

    def grow(self):
        columns = self.columns
        flags = columns.by_set.view(np.uint8), columns.ordered.view(np.uint8)
        inputs, no_classes = np.arange(3, dtype=np.int32), np.empty(0, np.int32)
        split = columns.narrow, columns.n_codes, *flags, inputs
        return Call(
            _native.grow_tree,
            (
                *split,
                self.units,
                no_classes,
                0,
                columns.codes[0],
                5,
                2,
                -1,
                -1,
                False,
                64,
                1024,
                10,
                -1,
                0,
                None,
            ),
        )

    def boost(self):
        bins, n_bins = (self.columns.codes % 200).astype(np.uint8), np.full(3, 200, np.int32)
        return Call(_native.boost, (bins, n_bins, self.units // 512, 20, 8, 5, 8))

    def ensemble(self):
        nodes = reference.BoostedNodes(*self.boost()(watch()))
        first = np.append(0, np.cumsum(self.columns.n_codes))
        bins = (np.arange(first[-1]) % 200).astype(np.uint8)
        return native.Ensemble(nodes, np.arange(3, dtype=np.int32), first, bins)

    def sample(self, forest, n_draws):
        given = self.columns.codes[:, :20].copy()
        keys = reference.person_keys(0, given[:1].T)
        return Call(
            forest.bound.sample,
            (given, keys, np.arange(n_draws), None, None, np.arange(n_draws), False),
        )

    def enumerate_rows(self, forest):
        given = self.columns.codes[:, 0].copy()
        costs, offsets = np.ones(int(self.columns.n_codes.sum())), np.array([0, 4200, 4230])
        after = np.zeros(2, dtype=np.int32)
        arguments = given, given, given, None, costs, offsets, 2, 1000, 10**6, -1.0, after
        return Call(forest.bound.enumerate_rows, arguments)

    def rank(self, n_best):
        codes = self.columns.codes
        numbers = [np.linspace(0.0, 1.0, 4200), None]
        candidates = codes[:2].reshape(2, 1, -1)
        people = codes[:2, :5].copy(), np.zeros((2, 5)), np.ones(2), np.zeros(5, dtype=np.int64)
        allowed = np.ones((5, self.n_rows), np.uint8)
        rules = 2, n_best, 0, 1, 0.0, 9, np.inf, _native.Measure(*self.places())
        arguments = candidates, numbers, *people, allowed, np.empty((0, 0)), *rules
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
        return Call(
            _native.weigh_errors, (cells, rows, *between, rows[:n_errors].copy(), errors, *sums)
        )


def kernel_calls(n_rows=5000, n_draws=2000):
    """A call of every kernel by name."""
    rows = Rows(n_rows)
    codes, points, levels = rows.columns.codes, rows.points, np.zeros(3, dtype=np.uint8)
    forest, of_levels = rows.forest(), rows.forest([1])
    held = native.gather_holdings(of_levels, contradictions=False)
    neighbours = native.build_neighbours(points, levels.view(bool))
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
