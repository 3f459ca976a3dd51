"""Saved files that were damaged, edited or made to harm: each is refused, in a few words.

Checksums are good wherever the test is not about them, so that only the checks of what a file says
stand between it and the compiled code.
"""

from __future__ import annotations

import copy
import json
import pickle
import struct
import time
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import MCCE, McceError, PredictorError, SavedFileError, Search
from mcce import constraints as c
from mcce.cli import main
from saved import answers, assert_same_answers
from saved_files import (
    DOCUMENT,
    MANIFEST,
    document_bytes,
    members_of,
    npy_of,
    parts_of,
    read_document,
    with_checksums,
    zip_of,
)
from searches import slow

N_TRAIN = 400
# Its multiples have one hash.
M61 = 2**61 - 1


def score(frame):
    return frame["points"].to_numpy() + 3 * (frame["size"] == "l").to_numpy()


@pytest.fixture(scope="module")
def train():
    chance = np.random.default_rng(0)
    group = chance.integers(0, 3, N_TRAIN)
    frame = pd.DataFrame(
        {
            "group": np.array(["x", "y", "z"])[group],
            "points": group * 4 + chance.integers(0, 6, N_TRAIN),
            "size": np.array(["s", "m", "l"])[(group + chance.integers(0, 2, N_TRAIN)) % 3],
            "debt": group + chance.integers(0, 4, N_TRAIN),
            "home": np.array(["own", "rent"])[(group + chance.integers(0, 2, N_TRAIN)) // 2],
        }
    )
    frame["sum"] = 2 * frame["points"] + frame["debt"]
    return frame.astype({"group": object, "size": object, "home": object})


@pytest.fixture(scope="module")
def explainer(train):
    """It learned all that a file can hold: trees, relations, distances, a surrogate and counts."""
    search = Search("balanced", copies="never")
    given = {"immutable": ["group"], "distance": "hvdm", "constraints": [c.only_up("debt")]}
    return MCCE(score, (8, 99), search=search, n_samples=40, random_state=1, **given).fit(train)


@pytest.fixture(scope="module")
def whole(explainer, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "whole.mcce"
    explainer.save(path)
    return path


@pytest.fixture(scope="module")
def small(train, tmp_path_factory):
    """The bytes of a small file: the paper's search."""
    path = tmp_path_factory.mktemp("saved") / "small.mcce"
    frame = train.head(30)[["group", "points", "size"]]
    MCCE(score, (8, 99), immutable=["group"], n_samples=20, random_state=1).fit(frame).save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Load a file with these bytes."""
    path = tmp_path_factory.mktemp("loaded") / "file.mcce"

    def load(data, **given):
        path.write_bytes(data)
        return mcce.load(path, score, **given)

    return load


def why(load, data, **given):
    """Why a file is refused; None if it is not."""
    try:
        load(data, **given)
    except SavedFileError as error:
        reason = str(error)
    else:
        return None
    assert len(reason) < 1500
    return reason


def test_the_files_themselves_are_laid_out_by_the_standard_library_and_load(whole, small, load):
    for data in (whole.read_bytes(), small):
        assert zip_of(members_of(data)) == data
        assert why(load, data) is None
    assert document_bytes(read_document(whole)) == whole.read_bytes()


# The bytes of a file.
def with_extra_field(data):
    n_name = struct.unpack("<H", data[26:28])[0]
    start = data[:28] + struct.pack("<H", 4) + data[30 : 30 + n_name]
    return start + b"\x99\x99\0\0" + data[30 + n_name :]


def with_members(data, **more):
    return zip_of(members_of(data) | {f"{name}.npy": part for name, part in more.items()})


def edited(data, old, new, name=DOCUMENT):
    """The file with a change in one member, and its old checksums."""
    members = members_of(data)
    assert old in members[name]
    return zip_of(members | {name: members[name].replace(old, new, 1)})


def rewritten(data, old, new):
    """The file with a change in its document, and good checksums."""
    return with_checksums(members_of(edited(data, old, new)))


def with_stranger(data, name, part):
    return with_checksums(members_of(data) | {name: part})


def with_array(data, header):
    text = header.encode() + b"\n"
    array = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + b"\0" * 4
    return with_checksums(members_of(data) | {"model/visit_order.npy": array})


SEED = b'"seed": 1'
MIDDLE = b"PK\1\2"
NPY = "{'descr': '<i4', 'fortran_order': False, 'shape': "
BYTES = {
    "empty": (lambda data: b"", "the file is empty"),
    "pickle": (lambda data: pickle.dumps({"a": 1}), "it is no saved explainer"),
    "two bytes": (lambda data: b"PK", "it is no saved explainer"),
    "no member": (lambda data: b"PK\3\4 and nothing else", "was cut short"),
    "another zip": (lambda data: zip_of({"a.txt": b"hello"}), "it is a zip file, but no saved"),
    "no format": (lambda data: zip_of({MANIFEST: b"{}"}), "does not say 'mcce explainer'"),
    "list": (lambda data: zip_of({MANIFEST: b"[]"}), "holds no JSON object"),
    "NaN": (lambda data: zip_of({MANIFEST: b'{"format": NaN}'}), "does not say"),
    "deep": (lambda data: zip_of({MANIFEST: b"[" * 10**6}), "nested too deeply"),
    "large": (lambda data: zip_of({MANIFEST: b" " * (2**26 + 1)}), "is missing or too large"),
    "compressed": (lambda data: zip_of(members_of(data), zipfile.ZIP_DEFLATED), "compressed"),
    "cut short": (lambda data: data[:-1], "Cannot load"),
    "half": (lambda data: data[: len(data) // 2], "cut short"),
    "one byte more": (lambda data: data + b"\0", "not laid out as mcce writes it"),
    "twice": (lambda data: data + data, "Cannot load"),
    "script": (lambda data: b"#!/bin/sh\n" + data, "no saved explainer"),
    "comment": (lambda data: data[:-2] + b"\5\0hello", "not laid out as mcce writes it"),
    "extra field": (with_extra_field, "not laid out as mcce writes it"),
    "between": (lambda data: data.replace(MIDDLE, b"between" + MIDDLE, 1), "Cannot load"),
    "locator": (
        lambda data: data.replace(b"PK\5\6", b"PK\6\7" + b"\0" * 16 + b"PK\5\6"),
        "Cannot load",
    ),
    "one name twice": (lambda data: data[: data.index(b"PK\3\4", 4)] + data, "not laid out as"),
    "hidden member": (partial(with_members, stranger=b"1"), "its checksum differs"),
    "listed stranger": (
        lambda data: with_stranger(data, "stranger.npy", npy_of(np.ones(3))),
        "refers",
    ),
    "no signature": (lambda data: zip_of(members_of(data) | {"signature.txt": b"1"}), "signature"),
    "missing member": (
        lambda data: zip_of({k: v for k, v in members_of(data).items() if "cut" not in k}),
        "its checksum differs",
    ),
    "seed": (lambda data: edited(data, SEED, b'"seed": 2'), "damaged or was edited: its checksum"),
    "swapped arrays": (
        lambda data: zip_of(
            members_of(data) | {"model/trees/cut.npy": members_of(data)["model/trees/count.npy"]}
        ),
        "its checksum differs",
    ),
    "future": (
        lambda data: edited(data, b'"version": 12', b'"version": 13', MANIFEST),
        r"version 13, .* reads version 12 alone; load it with the mcce that wrote it",
    ),
    "past": (
        lambda data: edited(data, b'"version": 12', b'"version": 11', MANIFEST),
        r"version 11, .* reads version 12 alone",
    ),
    "key twice": (lambda data: rewritten(data, SEED, b'"seed": 1, "seed": 1'), "not written as"),
    "key of the manifest twice": (
        lambda data: edited(data, b'{"format', b'{"format": 1, "format', MANIFEST),
        "manifest.json is not written as",
    ),
    "long integer": (lambda data: rewritten(data, SEED, b'"seed": ' + b"9" * 5000), "Cannot load"),
    "infinite": (lambda data: rewritten(data, SEED, b'"seed": 1e999'), "Cannot load"),
    "space": (lambda data: rewritten(data, SEED, b'"seed":  1'), "not written as mcce writes it"),
    "nested": (lambda data: rewritten(data, SEED, SEED[:-1] + b"[" * 5000 + b"]" * 5000), "deep"),
    "packed": (
        lambda data: rewritten(data, SEED, SEED[:-1] + b'{"set": ' * 400 + b"0" + b"}" * 400),
        "Cannot load",
    ),
    "half a pair": (lambda data: rewritten(data, b'"points"', b'"\\ud800"'), "Cannot load"),
    "escape": (lambda data: rewritten(data, b'"points"', b'"\\u0070oints"'), "not written as"),
    "no UTF-8": (lambda data: rewritten(data, b'"points"', b'"\xed\xa0\x80"'), "Cannot load"),
    "another place": (
        lambda data: rewritten(data, b'"model/trees/cut.npy"', b'"model/trees/count.npy"'),
        "at another place",
    ),
    "negative shape": (partial(with_array, header=NPY + "(-1,), }"), "header"),
    "huge shape": (partial(with_array, header=NPY + "(4611686018427387904, 4), }"), "Cannot load"),
    "empty shape": (partial(with_array, header=NPY + "(0, 999999999999999999), }"), "Cannot load"),
    "more than there is": (partial(with_array, header=NPY + "(1000000000000,), }"), "claims dtype"),
    "columns first": (
        partial(with_array, header=NPY.replace("False", "True") + "(1,), }"),
        "header",
    ),
    "objects": (partial(with_array, header=NPY.replace("<i4", "|O") + "(1,), }"), "header"),
    "records": (
        partial(with_array, header=NPY.replace("'<i4'", "[('a', '<i4')]") + "(1,), }"),
        "Cannot load",
    ),
    "parentheses": (partial(with_array, header="(" * 200 + ")" * 200), "header"),
    "long header": (partial(with_array, header=NPY + "(1,), }" + " " * 60000), "header"),
}


@pytest.mark.parametrize("name", BYTES)
def test_a_file_with_other_bytes_than_ours_is_refused(small, load, name):
    change, message = BYTES[name]

    with pytest.raises(SavedFileError, match=message):
        load(change(small))


def test_any_few_bytes_that_change_are_noticed(small, load):
    chance = np.random.default_rng(0)
    # The end of the file, the directory of the zip, decides how all else is read.
    places = [
        *chance.integers(len(small), size=150),
        *chance.integers(len(small) - 900, len(small), 100),
    ]
    for place in places:
        changed = bytearray(small)
        changed[place] ^= 1 << int(chance.integers(8))

        assert why(load, bytes(changed)), place
    for length in [*range(0, len(small), 997), *range(len(small) - 30, len(small))]:
        assert why(load, small[:length]), length


@pytest.mark.slow
def test_any_single_byte_that_changes_is_noticed(small, load):
    for place in range(0, len(small), 7):
        changed = bytearray(small)
        changed[place] ^= 1 << place % 8

        assert why(load, bytes(changed)), place


# What a file says. Each change makes of one part what no explainer has there.
def put(*way, to):
    """A change of one part: another value, or what a function makes of it."""

    def change(document):
        place = document
        for key in way[:-1]:
            place = place[key]
        place[way[-1]] = to(place[way[-1]]) if callable(to) else to

    return change


def cell(*way, at, to):
    """A change of one cell of an array."""

    def changed(array):
        array.reshape(-1)[at] = to
        return array

    return put(*way, to=changed)


def without(*way):
    return put(*way[:-1], to=lambda part: {k: v for k, v in part.items() if k != way[-1]})


def inner(trees, at=0):
    return np.flatnonzero(trees["feature"] >= 0)[at]


def of_trees(change):
    """A change of one split of the trees."""

    def changed(trees):
        change(trees)
        return trees

    return changed


def empty_a_leaf(trees):
    leaf = np.flatnonzero(trees["feature"] == -1)
    trees["count"][leaf[1]] += trees["count"][leaf[0]]
    trees["count"][leaf[0]] = 0
    trees["values"][: trees["count"][leaf[1]]] = 0


def shrink_a_leaf(trees):
    first, second = np.flatnonzero(trees["count"])[:2]
    trees["count"][second] += trees["count"][first] - 1
    trees["count"][first] = 1
    start = trees["count"][:second].sum()
    trees["values"][start:][: trees["count"][second]].sort()


MODEL, ACCEPTED = ("model", "trees"), ("plausibility", "chains", 0)
ALL = ("plausibility", "chains", 1)
CHAINS = {"model": MODEL, "accepted": ACCEPTED, "all": ALL}
FAR = 2**31 - 1
TREES = {
    f"{name}, {chain}": put(*way, to=of_trees(change))
    for chain, way in CHAINS.items()
    for name, change in {
        "a leaf less": lambda trees: trees["feature"].__setitem__(-1, 0),
        "a leaf more": lambda trees: trees["feature"].__setitem__(inner(trees), -1),
        "a node less": lambda trees: trees.update(feature=trees["feature"][:-1]),
        "two trees": lambda trees: trees.update(
            {name: np.tile(trees[name], 2) for name in ("feature", "cut", "count", "values")}
        ),
        "cut far": lambda trees: trees["cut"].__setitem__(inner(trees), FAR),
        "cut below": lambda trees: trees["cut"].__setitem__(inner(trees), -1),
        "value below": lambda trees: trees["values"].__setitem__(0, -1),
        "value far": lambda trees: trees["values"].__setitem__(-1, FAR),
        "feature far": lambda trees: trees["feature"].__setitem__(inner(trees), 99),
        "count of a split": lambda trees: trees["count"].__setitem__(inner(trees), 1),
        "negative count": lambda trees: trees["count"].__setitem__(-1, -1),
        "count far": lambda trees: trees["count"].__setitem__(-1, FAR),
        "counts": lambda trees: trees["count"].fill(0),
        "links": lambda trees: trees.update(left=trees["cut"]),
        "a set less": lambda trees: trees.update(sets=trees["sets"][:-1]),
        "a value less": lambda trees: trees.update(values=trees["values"][:-1]),
        "dtype": lambda trees: trees.update(cut=trees["cut"].astype(np.int64)),
        "dimensions": lambda trees: trees.update(cut=trees["cut"][:, None]),
        "array missing": lambda trees: trees.pop("cut"),
    }.items()
}
SUPPORT = {
    f"{name}, {chain}": put(*way, to=of_trees(change))
    for chain, way in {"accepted": ACCEPTED, "all": ALL}.items()
    for name, change in {
        "empty leaf": empty_a_leaf,
        "small leaf": shrink_a_leaf,
        "decision": lambda trees: trees["feature"].__setitem__(inner(trees), 6),
    }.items()
}
MEAN, TAIL = ("plausibility", "conditionals", 0), ("plausibility", "calibration")
LEARNED = {
    "own column": put(
        *MODEL, to=of_trees(lambda trees: trees["feature"].__setitem__(inner(trees), 1))
    ),
    "negative tail": put(*TAIL, "usual", "values", to=lambda tail: -tail[::-1]),
    "descending tail": put(
        *TAIL, "usual", "values", to=lambda tail: np.arange(tail.size)[::-1] + 1.0
    ),
    "infinite tail": put(*TAIL, "usual", "values", to=lambda tail: tail + np.inf),
    "undefined tail": put(*TAIL, "usual", "values", to=lambda tail: tail * np.nan),
    "long tail": put(*TAIL, "usual", "values", to=np.zeros(10**4)),
    "whole tail": put(*TAIL, "usual", "values", to=lambda tail: tail.astype(np.int64)),
    "wide tail": put(*TAIL, "usual", "values", to=lambda tail: tail[:, None]),
    "short part": put(*TAIL, "parts", 0, "values", to=lambda part: part[1:]),
    "part less": put(*TAIL, "parts", to=lambda parts: parts[1:]),
    "part more": put(*TAIL, "parts", to=lambda parts: [*parts, parts[0]]),
    "no parts": put(*TAIL, "parts", to={}),
    "rare": put(*TAIL, "rare", to={"values": np.zeros(1)}),
    "rare list": put(*TAIL, "rare", to={"values": [1.0]}),
    "model less": put("plausibility", "conditionals", to=lambda models: models[1:]),
    "model more": put("plausibility", "conditionals", to=lambda models: [*models, models[-1]]),
    "no models": put("plausibility", "conditionals", to={}),
    "model of a level": put(*MEAN, "position", to=0),
    "model beyond": put(*MEAN, "position", to=9),
    "no error": put(*MEAN, "error", to=None),
    "no least": put(*MEAN, "least", to=0.0),
    "negative least": put(*MEAN, "least", to=-1.0),
    "text as centre": put(*MEAN, "centre", to="0"),
    "boosted cut": put(*MEAN, "mean", "cut", to=lambda cut: cut * 0 + FAR),
    "boosted child": put(*MEAN, "mean", "left", to=lambda left: left * 0),
    "boosted input": put(*MEAN, "mean", "inputs", to=lambda inputs: inputs * 0 + 99),
    "boosted own": put(*MEAN, "mean", "inputs", to=lambda inputs: inputs * 0 + 1),
    "boosted feature": put(*MEAN, "mean", "feature", to=lambda feature: feature * 0 + 99),
    "boosted root": cell(*MEAN, "mean", "roots", at=-1, to=FAR),
    "bin less": put(*MEAN, "mean", "bins", to=lambda bins: bins[1:]),
    "chain less": put("plausibility", "chains", to=lambda chains: chains[1:]),
    "chain more": put("plausibility", "chains", to=lambda chains: [*chains, chains[0]]),
    "chains swapped": put("plausibility", "chains", to=lambda chains: chains[::-1]),
    "chain order": put("plausibility", "chains", 0, "responses", to=np.array([2, 1, 3])),
    "accepted codes": cell("plausibility", "codes", at=0, to=FAR),
    "accepted more": put("plausibility", to=lambda accepted: accepted | {"more": 1}),
    "no accepted": put("plausibility", to=None),
    "no surrogate trees": put("surrogate", "trees", to=[]),
    "surrogate tree": put("surrogate", "trees", to=[{}, {}]),
    "surrogate cut": put("surrogate", "trees", 0, "cut", to=lambda cut: cut * 0 + FAR),
    "surrogate input": put("surrogate", "trees", 0, "inputs", to=lambda inputs: inputs + 5),
    "link": put("surrogate", "link", to="probit"),
    "list as link": put("surrogate", "link", to=["logit"]),
    "label link": put("surrogate", "link", to="label"),
    "threshold": put("surrogate", "threshold", to=0.5),
    "text threshold": put("surrogate", "threshold", to="0.5"),
    "r2": put("surrogate", "r2", to=1.5),
    "whole r2": put("surrogate", "r2", to=1),
    "agreement": put("surrogate", "rank_agreement", to=-1.5),
    "no agreement": put("surrogate", "rank_agreement", to=None),
    "surrogate error": put("surrogate", "error", to=-0.1),
    "surrogate rows": put("surrogate", "n_rows", to=-1),
    "many surrogate rows": put("surrogate", "n_rows", to=10**9),
    "held out": put("surrogate", "n_held_out", to=10_000),
    "surrogate more": put("surrogate", to=lambda surrogate: surrogate | {"more": 1}),
}
SHARES, SPREADS = ("distance", "shares"), ("distance", "spreads")
RELATION, PARTS = ("relations", 0), ("relations", 0, "relation", "Equation")
SUM = (*PARTS, "formula", "Sum")
STEPS = {"Steps": {"of": ["debt", "debt"], "limits": [1.0]}}
STEP = {"Steps": {"of": ["debt"], "limits": [1.0]}}
YEARS = {"Sum": {"of": ["debt"], "weights": [1e25], "constant": 0.0}}


def dependency(result="size", values=((1.0, "s"),)):
    """In place of a relation, that one column determines another."""
    parts = {"determinant": STEP, "result": result, "values": [[*pair] for pair in values]}
    return put(*RELATION, "relation", to={"Dependency": parts})


def ordering(lower):
    """In place of a relation, that something is at most a column."""
    parts = {"lower": lower, "upper": "debt", "strict": False, "offset": 0.0, "factor": 1.0}
    return put(*RELATION, "relation", to={"Ordering": parts})


OTHERS = {
    "no distance": put("distance", to=None),
    "no spreads": without("distance", "spreads"),
    "distance more": put("distance", to=lambda learned: learned | {"more": np.ones(3)}),
    "share less": put(*SHARES, to=lambda shares: shares[:-1]),
    "short floats": put(*SHARES, to=lambda shares: shares.astype(np.float32)),
    "negative shares": put(*SHARES, to=lambda shares: shares - 1),
    "large shares": put(*SHARES, to=lambda shares: shares + 1),
    "undefined shares": put(*SHARES, to=lambda shares: shares * np.nan),
    "negative spreads": put(*SPREADS, to=lambda spreads: -spreads),
    "no spread": put(*SPREADS, to=lambda spreads: spreads * 0),
    "infinite spreads": put(*SPREADS, to=lambda spreads: spreads + np.inf),
    "text spreads": put(*SPREADS, to="no array"),
    "another distance": put("parameters", "distance", to="gower"),
    "wrong distance": put(
        "parameters", "distance", to={"distance": ["hvdm", {"dict": [["alpha", -3]]}]}
    ),
    "kind of relation": put(*RELATION, "relation", to=lambda one: {"Magic": one["Equation"]}),
    "list as kind": put(*RELATION, "relation", to=["Equation"]),
    "another kind": put(*RELATION, "relation", to=lambda one: {"Ordering": one["Equation"]}),
    "no relation parts": put(*PARTS, to={}),
    "share of rows": put(*RELATION, "share", to=2.0),
    "no share": put(*RELATION, "share", to=None),
    "related rows": put(*RELATION, "n_rows", to=-1),
    "number as enforced": put(*RELATION, "enforced", to=1),
    "level as result": put(*PARTS, "result", to="size"),
    "unknown result": put(*PARTS, "result", to="unknown"),
    "no terms": put(*SUM, "of", to=3),
    "term less": put(*SUM, "of", to=lambda names: names[1:]),
    "level as term": put(*SUM, "of", to=["size", "debt"]),
    "two columns in steps": put(*SUM, "of", to=lambda of: [STEPS, *of[1:]]),
    "many terms": put(*SUM, to={"of": ["debt"] * 99, "weights": [1.0] * 99, "constant": 0.0}),
    "year of a sum": ordering({"DateView": {"what": "year", "of": [YEARS]}}),
    "days of one": ordering({"DateView": {"what": "days", "of": ["debt"]}}),
    "view as result": dependency(result=STEP),
    "many results": dependency(values=[(float(at), "s") for at in range(1001)]),
    "results of one hash": dependency(values=[(float(at), at * M61) for at in range(1, 900)]),
    "another formula": put(*PARTS, "formula", to=lambda one: {"Steps": one["Sum"]}),
    "text as factor": put(*SUM, "weights", to=["much", 1.0]),
    "zero as factor": put(*SUM, "weights", to=[0.0, 1.0]),
    "tiny factor": put(*SUM, "weights", to=[5e-324, 1.0]),
    "infinite constant": put(*SUM, "constant", to="inf"),
    "limits out of order": put(*PARTS, "low", to=1.0),
    "number as relative": put(*PARTS, "relative", to=0),
    "text as rounding": put(*PARTS, "rounding", to="none"),
    "too many relations": put("relations", to=lambda found: found * 2000),
    "count less": put("value_counts", to=lambda counts: counts[1:]),
    "short counts": put("value_counts", to=lambda counts: counts.astype(np.int32)),
    "another sum": cell("value_counts", at=0, to=999),
    "no count": cell("value_counts", at=0, to=0),
    "counts beyond": put("value_counts", to=lambda counts: counts * 0 + 2**62),
    "list of counts": put("value_counts", to=lambda counts: counts.tolist()),
    "nobody desired": put("n_desired", to=0),
    "more desired": put("n_desired", to=N_TRAIN * 9),
    "boolean desired": put("n_desired", to=True),
    "visit order": cell("model", "visit_order", at=0, to=99),
    "visited twice": put("model", "visit_order", to=lambda order: order * 0 + 1),
    "version of draws": put("draws", "version", to=99),
    "negative seed": put("draws", "seed", to=-1),
    "float seed": put("draws", "seed", to=2.0),
    "training codes": cell("training_rows", "codes", at=0, to=FAR),
    "training shape": put("training_rows", to={"codes": np.zeros((1, 4), np.int32)}),
    "other immutable": put("parameters", "immutable", to={"list": ["size"]}),
    "no immutable": put("parameters", "immutable", to=None),
    "immutable number": put("schema", "features", 0, "immutable", to=1),
    "number as kinds": put("parameters", "kinds", to=3),
    "unknown in kinds": put("parameters", "kinds", to={"dict": [["shoe", "numeric"]]}),
    "other kind": put("parameters", "kinds", to={"dict": [["debt", "categorical"]]}),
    "huge n_jobs": put("parameters", "n_jobs", to=10**400),
    "long float": put("parameters", "max_seconds", to={"numpy": ["<f16", "00" * 16]}),
    "parameter more": put("parameters", to=lambda parameters: parameters | {"more": 1}),
    "part of a search": put("parameters", "search", to={"search": {"dict": [["copies", "often"]]}}),
    "unknown constraint": put(
        "parameters", "constraints", to=[{"constraint": ["run", {"dict": []}]}]
    ),
    "hostile condition": put(
        "parameters",
        "constraints",
        to={
            "list": [
                {
                    "constraint": [
                        "relation",
                        {"dict": [["name", "x"], ["holds", "'a' * 9 ** 9 == 'b'"]]},
                    ]
                }
            ]
        },
    ),
    "code": put("parameters", "generator", to={"generator": ["os.system", {"dict": []}]}),
    "levels reversed": put(
        "schema", "features", 0, "table", "values", to=lambda cells: cells[::-1]
    ),
    "numbers reversed": put(
        "schema", "features", 1, "table", "values", to=lambda cells: cells[::-1]
    ),
    "undefined scores": put("predictor", "scores", to=np.full(8, np.nan)),
    "no probes": put("predictor", "probes", to=np.zeros((6, 0), np.int32)),
    "probe codes": cell("predictor", "probes", at=0, to=FAR),
    "section more": lambda document: document.update(more=1),
    "section less": lambda document: document.pop("label_rule"),
    "no relations": put("relations", to=None),
    "no counts": put("value_counts", to=None),
    "parts of a search": put(
        "parameters", "search", to=lambda part: {"search": {"dict": part["search"]["dict"][:-1]}}
    ),
}


@pytest.fixture(scope="module")
def document(whole):
    return read_document(whole)


@pytest.mark.parametrize("table", ["trees", "support", *slow("learned", "others")])
def test_what_no_explainer_can_have_learned_is_refused(document, load, table):
    changes = {"trees": TREES, "support": SUPPORT, "learned": LEARNED, "others": OTHERS}[table]

    accepted = []
    for name, change in changes.items():
        hostile = copy.deepcopy(document)
        change(hostile)
        if why(load, document_bytes(hostile)) is None:
            accepted.append(name)

    assert accepted == []


@pytest.mark.parametrize("relation", [dependency(), ordering("points"), ordering(STEP)])
def test_sound_relations_of_these_kinds_load(document, load, relation):
    changed = copy.deepcopy(document)
    relation(changed)

    assert why(load, document_bytes(changed)) is None


def test_desired_values_that_python_cannot_handle_are_an_error_of_ours(document, load):
    long = 10**4000
    for desired in (
        long,
        {"list": [long, [long]]},
        {"list": [{"decimal": "sNaN"}]},
        [0, 10**400],
        {"list": [[{"list": []}]]},
    ):
        changed = document | {"parameters": document["parameters"] | {"desired": desired}}
        with pytest.raises(McceError):
            load(document_bytes(changed))


def test_a_path_in_a_file_is_never_opened(document, load, tmp_path):
    rules, path = tmp_path / "rules.toml", tmp_path / "edited.mcce"
    rules.write_text('[[rules]]\nonly_up = "debt"\n')
    for constraints in (str(rules), [str(rules)], {"list": [str(rules)]}):
        changed = document | {"parameters": document["parameters"] | {"constraints": constraints}}
        path.write_bytes(document_bytes(changed))

        assert "where constraints should stand" in why(load, path.read_bytes())
        assert main(["inspect", str(path)]) == 3


def test_a_private_generator_in_a_file_opens_no_domains(small, load, tmp_path):
    declared = tmp_path / "domains.json"
    declared.write_text('{"group": {"levels": ["secret"]}}')
    part = json.dumps({"dict": [["domains", str(declared)]]}).encode()
    generator = b'"generator": {"generator": ["private", ' + part + b"]}"

    reason = why(load, rewritten(small, b'"generator": "trees"', generator))

    assert "a path stands where domains should" in reason
    assert "secret" not in reason


FLOODS = {
    "set": lambda numbers: {"set": numbers},
    "frozenset": lambda numbers: {"frozenset": numbers},
    "mapping": lambda numbers: {"dict": [[number, 1] for number in numbers]},
    "tuples": lambda numbers: {"set": [[number, "x"] for number in numbers]},
}


@pytest.mark.parametrize("name", FLOODS)
def test_values_of_one_hash_are_refused_before_they_cost_hours(small, load, name):
    numbers = [number * M61 for number in range(1, 100_000)]
    flood = json.dumps(FLOODS[name](numbers)).encode()
    started = time.process_time()

    assert "have one hash" in why(load, rewritten(small, b'"roles": null', b'"roles": ' + flood))

    assert time.process_time() - started < 5


def test_levels_of_one_hash_are_refused_before_they_cost_hours(document, load):
    changed = copy.deepcopy(document)
    numbers = [number * M61 for number in range(1, 100_000)]
    changed["schema"]["features"][0]["table"]["values"] = numbers

    assert "have one hash" in why(load, document_bytes(changed))


def test_a_mapping_that_names_a_key_twice_is_refused(small, load):
    twice = b'"kinds": {"dict": [["points", "numeric"], ["points", "numeric"]]}'

    assert "a key twice" in why(load, rewritten(small, b'"kinds": null', twice))


def test_what_the_search_does_not_need_is_refused(document, load):
    changed = document | {"parameters": document["parameters"] | {"search": "paper"}}
    for name in ("training_rows", "relations", "surrogate", "plausibility"):
        assert "does not need" in why(load, document_bytes(changed))
        changed |= {name: None}

    assert why(load, document_bytes(changed)) is None


def test_a_column_under_another_name_is_a_clear_error(small, load):
    with pytest.raises(PredictorError, match="cannot score the probe rows") as caught:
        load(rewritten(small, b'"points"', b'"' + b"points" * 10**5 + b'"'))

    assert len(str(caught.value)) < 1500


def test_a_refusal_quotes_no_cells(document, load):
    changed = copy.deepcopy(document)
    changed["schema"]["features"][2]["table"]["values"] = ["secret word", "a secret"]

    with pytest.raises(McceError) as caught:
        load(document_bytes(changed))

    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


JUNK = st.one_of(
    st.sampled_from([None, True, 0, -1, 1, 2**31, 2**64, -0.5, 1e308, "", "x", [], {}, [[]]]),
    st.sampled_from([{"list": [1]}, {"dict": [[1, 2]]}, {"generator": ["trees", {}]}]),
    st.sampled_from([np.arange(3), np.ones((2, 2)), np.array([True]), np.array([], dtype="i4")]),
)


@st.composite
def changes(draw, document):
    """A document with a part or some cells of an array changed into anything."""
    changed = copy.deepcopy(document)
    ways = list(parts_of(changed))
    for _ in range(draw(st.integers(1, 2))):
        *way, last = draw(st.sampled_from(ways))
        place = changed
        for key in way:
            place = place[key] if not isinstance(place, np.ndarray) else {}
        if not isinstance(place, (dict, list)) or (isinstance(place, dict) and last not in place):
            continue
        array = place[last]
        if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.size:
            ends = np.iinfo(array.dtype)
            near = st.integers(max(-2, ends.min), 60) | st.integers(ends.min, ends.max)
            array.reshape(-1)[draw(st.integers(0, array.size - 1))] = draw(near)
        else:
            place[last] = draw(JUNK)
    return changed


@given(st.data())
def test_any_change_with_good_checksums_is_refused_or_gives_sound_answers(
    document, train, load, data
):
    try:
        loaded = load(document_bytes(data.draw(changes(document))))
        loaded.set_params(n_samples=40, n_counterfactuals=1, n_jobs=1, memory=64.0)
        result = answers(loaded.set_params(max_seconds=20.0), train.head(6))
    except McceError:  # not always a SavedFileError: with other columns, the predictor fails
        return
    low, high = (loaded.desired.low, 99) if hasattr(loaded.desired, "low") else loaded.desired
    assert ((score(result.frame) >= low) & (score(result.frame) <= high)).all()
    own = train["group"].head(6).to_numpy()[result.owner]
    assert (result.frame["group"].to_numpy() == own).all() or loaded.immutable != ["group"]


# Signatures.
KEY = b"a secret that nobody else knows"


@pytest.fixture(scope="module")
def signed(explainer, tmp_path_factory):
    path = tmp_path_factory.mktemp("signed") / "signed.mcce"
    explainer.save(path, key=KEY)
    return path.read_bytes()


def test_a_signed_file_loads_with_its_key_and_without_one(explainer, train, signed, load):
    expected = answers(explainer, train.head(20))

    for loaded in (load(signed, key=KEY), load(signed)):
        assert_same_answers(answers(loaded, train.head(20)), expected)
    assert with_checksums(members_of(signed), KEY) == signed
    assert KEY not in signed
    assert KEY.hex().encode() not in signed


def test_a_file_without_the_signature_of_the_key_is_refused(whole, signed, load):
    forged = edited(signed, b'"pandas"', b'"panda"', MANIFEST)

    assert "not signed" in why(load, whole.read_bytes(), key=KEY)
    assert "not that of the key" in why(load, signed, key=KEY[::-1])
    assert "not that of the key" in why(load, forged, key=KEY)


def test_an_edit_of_a_signed_file_is_noticed_by_the_key_alone(signed, load):
    members = members_of(signed)
    text = members[DOCUMENT].replace(b'"n_samples": 40', b'"n_samples": 41')
    fresh = members_of(with_checksums(members | {DOCUMENT: text}, KEY))
    old = zip_of(fresh | {"signature.txt": members["signature.txt"]})

    assert load(old).n_samples == 41
    assert "not that of the key" in why(load, old, key=KEY)
