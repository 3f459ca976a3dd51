"""Step 2's blocks: who is explained together."""

import numpy as np
import pandas as pd
import pytest

from mcce import Schema
from mcce.constraints.collection import Constraints
from mcce.constraints.limits import FactualLimits
from mcce.generate import blocks


def rows(ages):
    train = pd.DataFrame({"age": np.arange(20), "salary": np.arange(20), "debt": np.arange(20)})
    schema = Schema.learn(train, immutable=["age"])
    people = schema.encode(train.iloc[ages].reset_index(drop=True))
    return FactualLimits(Constraints(schema), people)


def test_everybody_is_in_one_block_once_beside_people_alike():
    people = rows([3, 1, 2, 1, 3, 1])

    for memory in (1e-6, 0.1, 0.2, 1e3):
        parts = list(blocks(people, np.arange(6), 1000, memory))

        assert np.concatenate([part.people for part in parts]).tolist() == [0, 4, 1, 3, 5, 2]
        assert all(part.people.size for part in parts)


def test_blocks_grow_to_their_size_where_the_first_are_smaller():
    people, everybody = rows([7] * 400), np.arange(400)
    whole = next(iter(blocks(people, everybody, 1000, 2.0))).people.size

    parts = list(blocks(people, everybody, 1000, 2.0, n_smaller=3))

    assert np.concatenate([part.people for part in parts]).tolist() == everybody.tolist()
    sizes = [part.people.size for part in parts]
    expected = [whole / 8, whole / 4, whole / 2, whole, whole]
    assert np.abs(np.array(sizes[:5]) - expected).max() <= 1


@pytest.mark.parametrize("n_least", [2, 3, 8])
def test_there_are_as_many_blocks_as_asked_for_of_like_size(n_least):
    people, everybody = rows([7] * 400), np.arange(400)

    parts = list(blocks(people, everybody, 1000, 1e6, n_least=n_least))

    assert np.concatenate([part.people for part in parts]).tolist() == everybody.tolist()
    sizes = [part.people.size for part in parts]
    assert len(sizes) == n_least
    assert max(sizes) - min(sizes) <= 2


def test_people_who_share_their_candidates_take_less_memory():
    alike, different = rows([7] * 12), rows(list(range(12)))

    counts = [len(list(blocks(people, np.arange(12), 1000, 0.2))) for people in (alike, different)]

    assert counts[0] < counts[1]


def test_nobody_makes_no_block():
    assert not list(blocks(rows([1]), np.empty(0, dtype=np.int64), 1000, 1.0))
