"""Differential privacy, measured: the noise of fits against closed forms, and what fits tell.

The noise has no seed, so the samples are so large that a test fails by chance less than once in a
million times; half the noise, or half the sensitivity, is far outside all the same. The large audit
(slow) compares thousands of fits on two data sets that differ by one person: no event may be
likelier than the budget allows.
"""

from __future__ import annotations

import math
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

from mcce import Domain, PrivateTrees

N_LEVELS, N_EACH = 1000, 100


def test_counts_have_the_noise_that_their_budget_buys():
    levels = [f"{at:03}" for at in range(N_LEVELS)]
    domains, given = {"level": Domain(levels=levels)}, {"epsilon": 0.25, "depth": 0}
    frame = pd.DataFrame({"level": np.repeat(levels, N_EACH)})
    rows = PrivateTrees(domains=domains).encode_training(frame)
    one_of_each = rows.schema.encode(pd.DataFrame({"level": levels}))

    found = []
    for _ in range(8):
        fitted = PrivateTrees(domains=domains, **given).fit(rows, np.ones(len(frame), dtype=bool))
        counts = np.exp(fitted.log_likelihood(one_of_each)) * fitted.n_desired_
        found.append(counts - N_EACH)

    p = math.exp(-0.25)
    expected = math.sqrt(2 * p) / (1 - p)
    assert np.std(found) == pytest.approx(expected, rel=0.12)
    assert abs(np.mean(found)) < 6 * expected / math.sqrt(np.size(found))
    # Most of the mass of geometric noise is nearer to 0 than that of a Gaussian, 0.383.
    assert np.mean(np.abs(found) < expected / 2) == pytest.approx(0.507, abs=0.06)


def test_a_cell_that_no_row_has_gets_noise_too():
    domains = {"x": Domain(levels=["a", "b", "nobody"])}
    rows = PrivateTrees(domains=domains).encode_training(pd.DataFrame({"x": ["a", "b"] * 300}))
    nobody = rows.schema.encode(pd.DataFrame({"x": ["nobody"]}))

    shares = []
    for _ in range(60):
        fitted = PrivateTrees(domains=domains, epsilon=0.1, depth=0)
        fitted.fit(rows, np.ones(600, bool))
        shares.append(math.exp(fitted.log_likelihood(nobody)[0]))

    assert np.ptp(shares) > 0.01


def test_the_number_of_rows_that_decides_on_depths_has_noise():
    # About as many rows as decide between two depths; a chosen depth gives always the same.
    domains = {"a": Domain(levels=[0, 1]), "x": Domain(levels=[0, 1, 2, 3])}
    frame = pd.DataFrame({"a": [0, 1] * 100, "x": [0, 1, 2, 3] * 50})
    rows = PrivateTrees(domains=domains).encode_training(frame, immutable=["a"])

    def numbers_of_nodes(**settings):
        given = {"domains": domains, "epsilon": 0.5, **settings}
        fits = (PrivateTrees(**given) for _ in range(40))
        return {fitted.fit(rows, np.ones(200, bool)).trees_.feature.size for fitted in fits}

    assert len(numbers_of_nodes()) > 1
    assert len(numbers_of_nodes(depth=1)) == 1


# The large audit.
LEVELS = {"sex": ["f", "m"], "job": ["none", "some"]}
PEOPLE = pd.DataFrame({"sex": ["m", "f", "m", "f"], "job": ["some", "none", "none", "some"]})
# Events that fewer fits show tell too little.
FEWEST = 50


def releases(people, epsilon, n_fits, first_seed):
    """What each fit releases: parts as numbers, (n_parts, n_fits), and all of it as one number."""
    domains = {name: Domain(levels=levels) for name, levels in LEVELS.items()}
    given = {"domains": domains, "epsilon": epsilon}
    encode = PrivateTrees(**given).encode_training
    rows, somebody = (encode(some, immutable=["sex"]) for some in (people, PEOPLE[-1:]))
    desired, parts, wholes = np.ones(len(people), dtype=bool), [], []
    for seed in range(first_seed, first_seed + n_fits):
        fitted = PrivateTrees(**given).fit(rows, desired, seed=seed)
        trees = fitted.to_arrays()["trees"]
        likely = float(fitted.log_likelihood(somebody).round(6)[0])
        splits = crc32(trees["feature"].tobytes() + trees["sets"].tobytes())
        parts.append((trees["feature"].size, fitted.n_desired_, likely, splits))
        wholes.append(crc32(repr(fitted.n_desired_).encode(), crc32(trees["values"], splits)))
    return np.array(parts).T, np.array(wholes)


def events(first, second):
    """How many fits of each data set show an event, and of how many fits."""
    n_fits = first[1].size
    for one, other in zip(first[0], second[0], strict=True):
        values, number = np.unique(np.concatenate([one, other]), return_inverse=True)
        times = [np.bincount(part, minlength=values.size) for part in np.split(number, 2)]
        for counts in (times, *([np.cumsum(t[::way]) for t in times] for way in (1, -1))):
            yield from zip(*counts, [n_fits] * values.size, strict=True)
    # Of everything together, the outcomes that half of the fits show to tell most.
    wholes, number = np.unique(np.concatenate([first[1], second[1]]), return_inverse=True)
    halves = [np.array_split(part, 2) for part in np.split(number, 2)]
    early, late = (
        [np.bincount(part[half], minlength=wholes.size) for part in halves] for half in (0, 1)
    )
    for telling in (early[0] > early[1], early[1] > early[0]):
        yield int(late[0][telling].sum()), int(late[1][telling].sum()), n_fits // 2


def beyond_one(epsilon, n_fits):
    """Events that fits with some epsilon show more often than an epsilon of 1 allows."""
    first = releases(PEOPLE, epsilon, n_fits, 0)
    second = releases(PEOPLE[:-1], epsilon, n_fits, n_fits)
    return [
        (a, b)
        for a, b, n in events(first, second)
        if min(a, b) >= FEWEST and abs(math.log(a / b)) > 1 + 6 * math.sqrt(1 / a + 1 / b - 2 / n)
    ]


@pytest.mark.slow
def test_no_event_of_a_whole_fit_tells_more_of_a_person_than_epsilon():
    assert not beyond_one(1.0, 3000)


@pytest.mark.slow
def test_half_the_noise_of_a_whole_fit_is_noticed():
    assert beyond_one(2.0, 1500)
