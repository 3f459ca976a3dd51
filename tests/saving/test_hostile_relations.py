"""Relations of a file that says something else are refused with our error."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce import SavedFileError
from mcce.relations import Condition, Dependency, Equivalence, FoundRelation, Linear, Ordering
from mcce.relations.discovery import most_relations
from mcce.saving.archive import refused
from mcce.saving.relations import pack_relation, unpack_relations
from mcce.tables.schema import Schema

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": ["x", "y"]})
SCHEMA = Schema.learn(FRAME)
RELATIONS = [
    Linear("a", (("b", 2.0),), (("c", (("x", 0.0), ("y", 1.5))),), 1.0, 0.1, True),
    Ordering("a", "b", True),
    Equivalence(Condition("a", 1.0), Condition("c", "x")),
    Equivalence(Condition("a", None), Condition("c", "x")),
    Dependency("c", "a", (("x", 1.0), ("y", None))),
]


def packed(relation=RELATIONS[0]):
    return pack_relation(FoundRelation(relation, 0.99, 500, 1e-9, False))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.kind)
def test_what_was_packed_comes_back(relation):
    assert unpack_relations([packed(relation)], SCHEMA)[0].relation == relation


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "magic"},
        {"kind": ["linear"]},
        {"kind": "ordering"},
        {"parts": {}},
        {"parts": None},
        {"share": 2.0},
        {"share": None},
        {"n_rows": -1},
        {"p_value": float("nan")},
        {"enforced": 1},
    ],
    ids=str,
)
def test_evidence_or_parts_that_make_no_sense_are_refused(change):
    with pytest.raises(SavedFileError), refused("file"):
        unpack_relations([packed() | change], SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        {"result": "c"},
        {"result": "unknown"},
        {"result": ["a"]},
        {"terms": 3},
        {"terms": {"tuple": [{"tuple": ["c", 1.0]}]}},
        {"terms": {"tuple": [{"tuple": ["b", "much"]}]}},
        {"terms": {"tuple": [{"tuple": ["b", 0.0]}]}},
        {"terms": {"tuple": [{"tuple": ["b", 5e-324]}]}},
        {"amounts": {"tuple": [{"tuple": ["c", {"tuple": [{"tuple": [[1], 0.0]}]}]}]}},
        {"constant": {"float": "inf"}},
        {"tolerance": -1.0},
        {"relative": 0},
        {"rounding": "none"},
    ],
    ids=str,
)
def test_a_sum_that_cannot_be_computed_is_refused(change):
    plain = packed()

    with pytest.raises(SavedFileError), refused("file"):
        unpack_relations([plain | {"parts": plain["parts"] | change}], SCHEMA)


def test_more_relations_than_there_can_be_are_refused_before_any_is_read():
    most = most_relations(len(FRAME.columns))

    assert len(unpack_relations([packed()] * most, SCHEMA)) == most
    with pytest.raises(SavedFileError, match=f"has {most + 1} relations, but fit finds at most"):
        unpack_relations([None] * (most + 1), SCHEMA)
