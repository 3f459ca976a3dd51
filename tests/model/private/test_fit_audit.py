"""Differential privacy of the whole fit, measured: 6,000 fits on four rows, 6,000 on three of them.

`test_audit.py` measures one tree, with many more runs. Here nothing is left out: the noisy count of
rows that decides on depths, splits and histograms of all trees, and the leaves that are made of
them. Every event must have nearly the same probability for both data sets, by the budget and three
standard errors. A build with half the noise must not pass.
"""

import math
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

from audits import halve_the_noise
from mcce import Domain, PrivateTrees

N_FITS = 6_000
EPSILON = 1.0
# Events that fewer fits show tell too little.
FEWEST = 50
DOMAINS = {
    "sex": Domain(levels=["f", "m"]),
    "job": Domain(levels=["none", "some"]),
    "housing": Domain(levels=["own", "rent"]),
}
PEOPLE = pd.DataFrame(
    {
        "sex": ["m", "f", "m", "f"],
        "job": ["some", "none", "none", "some"],
        "housing": ["rent", "own", "own", "rent"],
    }
)


def releases(people, n_fits, first_seed):
    """What each fit releases: parts as numbers, (n_parts, n_fits), and all of it as one number."""
    settings = {"domains": DOMAINS, "epsilon": EPSILON, "structure": "expmech"}
    encode = PrivateTrees(**settings).encode_training
    rows, somebody = (encode(some, immutable=["sex"]) for some in (people, PEOPLE[-1:]))
    desired, parts, wholes = np.ones(len(people), dtype=bool), [], []
    for seed in range(first_seed, first_seed + n_fits):
        fitted = PrivateTrees(**settings, seed=seed).fit(rows, desired)
        trees = fitted.trees_
        likely = float(fitted.log_likelihood(somebody).round(6)[0])
        splits = crc32(trees.feature.tobytes() + trees.sets.tobytes())
        parts.append((*fitted.depths_, fitted.n_desired_, likely, splits))
        wholes.append(crc32(repr(fitted.n_desired_).encode(), crc32(trees.values, splits)))
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


def broken(n_fits):
    """Events beyond the budget: how many fits of each data set show them."""
    first, second = releases(PEOPLE, n_fits, 0), releases(PEOPLE[:-1], n_fits, n_fits)
    return [
        (a, b)
        for a, b, n in events(first, second)
        if min(a, b) >= FEWEST
        and abs(math.log(a / b)) > EPSILON + 3 * math.sqrt(1 / a + 1 / b - 2 / n)
    ]


@pytest.mark.slow
def test_no_event_of_a_whole_fit_tells_more_of_a_person_than_epsilon():
    assert not broken(N_FITS)


@pytest.mark.slow
def test_half_the_noise_of_a_whole_fit_is_noticed(monkeypatch):
    halve_the_noise(monkeypatch)

    assert broken(N_FITS // 3)
