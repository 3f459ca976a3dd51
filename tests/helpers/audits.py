"""What a release tells of one person: two neighbouring data sets, very many runs, every event.

A run is one release of a tree. Its outcome is which splits the person's own nodes have, and the
noisy count of the person's own cell; everything else has the same distribution for both data sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from mcce.model.private import growing
from mcce.model.private.growing import Binned, Node, release_tree
from mcce.model.private.ledger import TreeBudget
from mcce.model.private.noise import Words

# Two inputs and a response of 20 people.
N_BINS = np.array([3, 2, 2])
PEOPLE = np.random.default_rng(5).integers(0, N_BINS[:, None], (3, 20)).astype(np.int32)
SOMEBODY, ANOTHER = np.array([2, 0, 1]), np.array([0, 1, 0])
FEWEST = 100


def neighbours(relation: str) -> tuple[np.ndarray, np.ndarray]:
    """Bins of two data sets that differ by one person."""
    first = PEOPLE.copy()
    first[:, -1] = SOMEBODY
    if relation == "add_remove":
        return first, first[:, :-1]
    second = first.copy()
    second[:, -1] = ANOTHER
    return first, second


def outcomes(
    bins: np.ndarray, budget: TreeBudget, relation: str, n_runs: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each run: the splits on the way, and the counts of the person's and another's cell."""
    data = Binned(bins, N_BINS, np.array([True, False, True]), [0, 1], 2)
    root = release_tree(data, budget, Words(seed), n_runs)
    label, count = _follow(root, SOMEBODY, n_runs)
    other, minus = _follow(root, ANOTHER, n_runs)
    if relation == "add_remove":
        return label, count, np.zeros_like(count)
    return label * 1000 + other, count, minus


def halve_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every mechanism spend twice what it says."""
    honest = growing.geometric, growing.gaussian, growing.choose
    monkeypatch.setattr(growing, "geometric", lambda w, rate, n: honest[0](w, 2 * rate, n))
    monkeypatch.setattr(growing, "gaussian", lambda w, variance, n: honest[1](w, variance / 4, n))
    monkeypatch.setattr(growing, "choose", lambda w, u, rate, n: honest[2](w, u, 2 * rate, n))


def audit_pure(first: tuple, second: tuple, epsilon: float) -> list:
    """Events whose probabilities differ by more than a factor of exp(epsilon)."""
    return [
        event
        for event, a, b, n_runs in _events(first, second, epsilon)
        if min(a, b) >= FEWEST
        and abs(math.log(a / b)) > epsilon + 3 * math.sqrt(1 / a + 1 / b - 2 / n_runs)
    ]


def audit_approximate(first: tuple, second: tuple, epsilon: float, delta: float) -> list:
    """Events that are more likely than exp(epsilon) times the other probability, plus delta."""
    broken = []
    for event, a, b, n_runs in _events(first, second, epsilon):
        for p, q in ((a / n_runs, b / n_runs), (b / n_runs, a / n_runs)):
            error = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / n_runs)
            if p > math.exp(epsilon) * q + delta + 3 * error:
                broken.append(event)
    return broken


def _events(first: tuple, second: tuple, epsilon: float) -> Iterator[tuple]:
    """Events, how many runs of each data set have them, and of how many runs.

    Every outcome; the half-lines of the counts below every split; and the outcomes that half of the
    runs show to tell most, in the other half.
    """
    n_runs = first[0].size
    keys = [_key(*outcome) for outcome in (first, second)]
    _, number = np.unique(np.concatenate(keys), return_inverse=True)
    of = number[:n_runs], number[n_runs:]
    times = [np.bincount(one, minlength=int(number.max()) + 1) for one in of]
    for at, (a, b) in enumerate(zip(*times, strict=True)):
        yield ("outcome", at), int(a), int(b), n_runs
    for label in np.union1d(first[0], second[0]):
        lines = [
            np.bincount((count - minus)[way == label] + 200, minlength=400)
            for way, count, minus in (first, second)
        ]
        below, above = ([np.cumsum(x[::side]) for x in lines] for side in (1, -1))
        for name, (a, b) in {"at most": below, "at least": above}.items():
            for at in range(a.size):
                yield (name, int(label), at), int(a[at]), int(b[at]), n_runs
    half = n_runs // 2
    size = int(number.max()) + 1
    early = [np.bincount(one[:half], minlength=size) for one in of]
    late = [np.bincount(one[half:], minlength=size) for one in of]
    for name, (p, q) in {"first": early, "second": early[::-1]}.items():
        telling = p > math.exp(epsilon) * q
        yield (name, "told"), int(late[0][telling].sum()), int(late[1][telling].sum()), half


def _key(label: np.ndarray, count: np.ndarray, minus: np.ndarray) -> np.ndarray:
    return (label * 400 + count + 200) * 400 + minus + 200


def _follow(node: Node, person: np.ndarray, n_runs: int) -> tuple[np.ndarray, np.ndarray]:
    """For each run, the splits on a person's way as one number, and the count of the own cell."""
    label, count = np.zeros(n_runs, dtype=np.int64), np.zeros(n_runs, dtype=np.int64)
    if node.counts is not None:
        count[node.runs] = node.counts[:, person[2]]
        return label, count
    for split, left, right in node.below:
        goes_left = split.left[person[split.column]]
        below = left if goes_left else right
        deeper, counted = _follow(below, person, n_runs)
        own = 1 + split.column + 2 * sum(2 ** int(at) for at in np.flatnonzero(split.left))
        label[below.runs] = deeper[below.runs] * 31 + own
        count[below.runs] = counted[below.runs]
    return label, count
