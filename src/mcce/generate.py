"""Step 2: from factuals to candidates.

Paper, section "Generation". A fitted generator makes, block by block, K draws for every group
of people with equal immutable cells.

Always true: a person's draws depend on the seed, the immutable values, the limits and the draw
number alone; peak memory is one block per thread, whatever the number of people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from .candidates import Candidates
from .constraints.limits import FactualLimits
from .kernels import Codes, IntArray, person_keys
from .model.registry import require
from .protocols import DrawRequest, Generator
from .tables.columns import canonical_floats
from .tables.dtypes import cast_like
from .tables.features import Feature
from .tables.schema import EncodedRows

# Approximate memory of one candidate of one person while it is ranked, and of each of its codes,
# which the people of a group share.
BYTES_PER_CANDIDATE = 64
BYTES_PER_CODE = 8
# In each further round, draws that back off need this many rows more.
ROWS_PER_ROUND = 10


@dataclass(frozen=True, eq=False)
class FactualBlock:
    """People sorted by group, and the group of each as numbered among all factuals."""

    positions: IntArray
    group: IntArray


def blocks(
    factual_limits: FactualLimits,
    positions: IntArray,
    n_rows: int,
    memory: float,
    n_smaller: int = 0,
    n_least: int = 1,
) -> Iterator[FactualBlock]:
    """People in blocks whose candidates, ``n_rows`` each, take about ``memory`` megabytes.

    The first ``n_smaller`` blocks are smaller, each half of the next. There are at least
    ``n_least``, unless people are fewer.
    """
    order = np.argsort(factual_limits.group[positions], kind="stable")
    positions, group = positions[order], factual_limits.group[positions[order]]
    opens_group = np.diff(group, prepend=-1) > 0
    code_bytes = BYTES_PER_CODE * factual_limits.rows.schema.mutable.size * opens_group
    row_bytes, block_bytes = np.cumsum(BYTES_PER_CANDIDATE + code_bytes), max(memory * 1e6, 1.0)
    if n_least > 1:
        # One byte more, so that the last person is in the last block.
        block_bytes = min(block_bytes, (row_bytes.max(initial=0) + 1) * n_rows / n_least)
    # Up to each person, in whole blocks.
    n_blocks = row_bytes * (n_rows / block_bytes)
    ends = np.cumsum(0.5 ** np.arange(n_smaller, 0, -1))
    n_small = np.searchsorted(ends, n_blocks, side="right")
    n_whole = np.floor(np.maximum(n_blocks - ends.max(initial=0.0), 0.0))
    starts = np.flatnonzero(np.diff(n_small + n_whole, prepend=-1))
    for start, end in pairwise([*starts.tolist(), positions.size]):
        yield FactualBlock(positions[start:end], group[start:end])


def generate(
    generator: Generator,
    factual_limits: FactualLimits,
    block: FactualBlock,
    draws: IntArray,
    seed: int,
    back_off_after: int | None = None,
) -> Candidates:
    """Candidates of a block of people.

    The paper draws from leaves alone; draws after the first
    ``back_off_after`` may back off to larger nodes.
    """
    rows, capabilities = factual_limits.rows, generator.capabilities
    # One person of each group.
    _, first, group = np.unique(block.group, return_index=True, return_inverse=True)
    positions = block.positions[first]
    given = rows.tree_codes[:, positions]
    keys = person_keys(seed, given[rows.schema.immutable].T)
    limits = least = None
    if capabilities.limits:
        limits = factual_limits.limits(positions, features_of(generator, rows))
    if capabilities.back_off and back_off_after is not None:
        least = least_rows(draws, back_off_after)
    sampled = generator.sample(DrawRequest(given, keys, draws, limits=limits, least=least))
    tables = value_tables(rows, sampled.tables)
    features, codes = _with_tables(rows, tables), sampled.codes
    if not capabilities.limits:
        limits = factual_limits.limits(positions, features)
        codes = codes if limits is None else limits.apply(rows.schema.mutable, codes)
    own_codes = _own_codes(rows, block.positions, features)
    return Candidates.of(rows, block.positions, codes, own_codes, tables, group)


def least_rows(draws: IntArray, back_off_after: int) -> IntArray:
    """Minimum number of allowed training rows in the node that a draw samples from.

    One for the first draws: where a leaf holds nothing that a person may have, they back off. After
    that, every second draw needs more rows the later it comes. Every other draw stays in a leaf:
    more leaf draws may suffice.

    Examples
    --------
    >>> least_rows(np.array([0, 1, 100, 101, 200, 999]), 100)
    array([ 1,  1,  1, 10,  1, 90])
    """
    later = ROWS_PER_ROUND * (draws // back_off_after) * (draws % 2)
    return np.maximum(later, 1)


def features_of(generator: Generator, rows: EncodedRows) -> Sequence[Feature]:
    """The features as a fitted generator draws them, with its own tables if it has any."""
    return _with_tables(rows, tables_of(generator, rows))


def tables_of(generator: Generator, rows: EncodedRows) -> Sequence[pd.Series[Any]]:
    """The value tables of a fitted generator: its own, or those of training."""
    if not generator.capabilities.value_tables:
        return rows.tables
    inventing = require(generator, "value_tables", "The generator draws values of its own")
    return value_tables(rows, inventing.tables_)


def value_tables(
    rows: EncodedRows, tables: Sequence[pd.Series[Any]] | None
) -> Sequence[pd.Series[Any]]:
    """The generator's own value tables in the dtypes of the rows, or those of training."""
    if tables is None:
        return rows.tables
    of_features = zip(tables, rows.tables, strict=True)
    return [canonical_floats(cast_like(own, trained)) for own, trained in of_features]


def _with_tables(rows: EncodedRows, tables: Sequence[pd.Series[Any]]) -> Sequence[Feature]:
    """The features, the mutable ones with other tables of values."""
    if tables is rows.tables:
        return rows.schema.features
    features = list(rows.schema.features)
    for column, table in zip(rows.schema.mutable, tables, strict=True):
        has_missing = bool(table.isna().any())
        features[column] = replace(features[column], table=table, has_missing=has_missing)
    return features


def _own_codes(rows: EncodedRows, positions: IntArray, features: Sequence[Feature]) -> Codes:
    """The people's own codes in the tables of values, -1 where a table lacks the value."""
    mutable = rows.schema.mutable
    if features is rows.schema.features:
        return rows.codes[np.ix_(mutable, positions)]
    own = (features[column].encode(rows.own(int(column), positions)) for column in mutable)
    return np.stack([codes for codes, _ in own])
