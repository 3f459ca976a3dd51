"""Made-up columns, responses, limits and chains of trees for the tests of kernels."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from mcce.candidates import Draws
from mcce.kernels import Classes, Columns, Forest, Growth, Limits, Numbers, fixed_point, reference
from mcce.protocols import Capabilities


def assert_equal(one, other):
    """Every array of one struct has the bits of the other's."""
    for field in fields(one):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        assert ours.dtype == theirs.dtype, field.name
        assert np.array_equal(ours, theirs), field.name


def response_of(kind, n_rows, chance):
    if kind == "binary":
        return Classes(chance.integers(0, 2, n_rows), 2)
    if kind == "classes":
        return Classes(chance.integers(0, 7, n_rows), 7)
    if kind == "levels as many as rows":
        return Classes(np.arange(n_rows), n_rows)
    if kind == "tenths":
        return Numbers(fixed_point(chance.integers(0, 4, n_rows) / 10))
    return Numbers(fixed_point(chance.normal(size=n_rows)))


def columns_of(sizes, by_set, ordered, n_rows, chance):
    codes = np.array([chance.integers(0, n, n_rows) for n in sizes], dtype=np.int32)
    return Columns(codes, np.array(by_set), np.array(ordered), np.array(sizes))


def limits_of(shape, sizes, responses, chance):
    """Some columns and groups held to a few runs of codes, some with a neighbourhood."""
    first, last = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
    near = np.tile(np.array([1, 0], np.int32), (*shape, 1))
    own = np.array([chance.integers(-1, size, shape[1]) for size in sizes], np.int32)
    runs = []
    for column, group in np.ndindex(shape):
        if column not in responses or chance.random() < 0.4:
            continue
        first[column, group] = len(runs)
        ends = np.sort(chance.choice(sizes[column] + 4, 2 * chance.integers(0, 3), replace=False))
        runs += ends.reshape(-1, 2).tolist()
        last[column, group] = len(runs)
        near[column, group] = np.sort(chance.integers(0, sizes[column], 2))
    return Limits(own, first, last, np.array(runs, np.int32).reshape(-1, 2), near)


def forest_of(chance, by_set, n_groups):
    """A chain of three trees on four columns, and groups with any codes."""
    sizes = [5, 80, 3, 200]
    columns = columns_of(
        sizes, [by_set, True, False, by_set], [not by_set, False, True, not by_set], 300, chance
    )
    order = chance.permutation(3) + 1
    trees = [
        reference.grow_tree(
            columns,
            np.sort(np.array([0, *order[:place]])),
            response_of("numbers", 300, chance),
            columns.codes[column],
            Growth(),
        )
        for place, column in enumerate(order)
    ]
    joined = reference.join(trees, columns.by_set)
    chain = Forest(joined, order, columns.n_codes * columns.by_set)
    given_codes = np.array([chance.integers(0, size, n_groups) for size in sizes], dtype=np.int32)
    unseen = chance.random(given_codes.shape) < 0.1
    return sizes, chain, given_codes, np.where(unseen, -1, given_codes).astype(np.int32)


def stays_of(own, chance):
    """What own values need to stay: their code, any other, any leaf, or nothing will do."""
    others = np.where(chance.random(own.shape) < 0.5, chance.integers(-2, 5, own.shape), own)
    return np.where(own < 0, others, own).astype(np.int32)


class Halves:
    """A generator that cannot keep anything."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        self.n_mutable = rows.schema.mutable.size
        return self

    def sample(self, given, keys, draws):
        codes = np.tile(draws.astype(np.int32) % 2, (self.n_mutable, keys.size, 1))
        return Draws(codes)
