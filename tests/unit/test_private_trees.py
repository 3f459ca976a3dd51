"""Private trees: public domains, the ledger of what a fit spends, and explainers that tell nothing.

The noise itself is measured in ``tests/oracles/test_private_noise.py``.
"""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import re
import struct
import sys
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import (
    MCCE,
    Domain,
    ExactSearch,
    Gower,
    McceWarning,
    MissingExtraError,
    NotFittedError,
    ParameterError,
    PrivateTrees,
    SavedFileError,
    Schema,
    SchemaError,
    Search,
)
from mcce.privacy import anonymize
from mcce.protocols import DrawRequest
from mcce.testing import check_generator
from private_bank import DESIRED, IMMUTABLE, bank, declined, domains, explainer, private, score


# Domains.
def test_many_numbers_share_bins_atoms_stand_alone_and_missing_is_the_last():
    domain = Domain(low=0, high=100, bins=4, atoms=[0, 50], step=5)
    edges = Domain(low=0, high=1000, edges=[0, 1, 10, 1000], missing=True)

    assert domain.values.tolist() == list(range(0, 101, 5))
    numbers = np.array([0, 0.1, 24.9, 25, 49, 50, 50.1, 75, 100])
    assert domain.bin_numbers(numbers).tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 5]
    assert edges.bin_numbers(np.array([0.5, 1, 9.9, 10, np.nan])).tolist() == [0, 1, 1, 2, 3]


@given(
    low=st.integers(-50, 50),
    width=st.integers(1, 500),
    bins=st.integers(1, 25),
    step=st.sampled_from([None, 0.1, 0.5, 1, 3, 7]),
    atoms=st.lists(st.floats(0, 1), max_size=3),
)
def test_every_value_lies_in_its_bin_and_every_bin_has_a_value(low, width, bins, step, atoms):
    places = [low + share * width for share in atoms]
    domain = Domain(low=low, high=low + width, bins=bins, step=step, atoms=places)

    assert (np.diff(domain.values) > 0).all()
    assert domain.values[[0, -1]].tolist() == [low, low + width]
    assert np.array_equal(domain.bin_numbers(domain.values), domain.bin_of_value)
    assert set(domain.bin_of_value) == set(range(domain.n_bins))
    numbers = np.linspace(low - 5, low + width + 5, 300)
    assert (np.diff(domain.bin_numbers(numbers)) >= 0).all()
    assert set(places) <= set(domain.values)


NO_DOMAINS = {
    "nothing": ({}, "levels, or a range"),
    "endless": ({"low": 0, "high": np.inf}, "finite"),
    "reversed": ({"low": 3, "high": 1}, "low < high"),
    "two kinds": ({"levels": ["a"], "low": 0}, "levels or low"),
    "word": ({"levels": "abc"}, "list of values"),
    "twice": ({"levels": ["a", "a"]}, "each level once"),
    "list as level": ({"levels": [["a"]]}, "levels must be plain values"),
    "two types": ({"levels": ["1", 1]}, "of one type: texts, numbers or booleans"),
    "missing level": ({"levels": ["a", None]}, "missing=True"),
    "another level": ({"levels": ["a"], "other": "b"}, "one of the levels"),
    "other number": ({"low": 0, "high": 1, "other": 3}, "domain of levels"),
    "no bins": ({"low": 0, "high": 1, "bins": 0}, "bins must be"),
    "step back": ({"low": 0, "high": 1, "step": -1}, "step must be"),
    "edges": ({"low": 0, "high": 1, "edges": [0, 2]}, "edges must ascend"),
    "atom": ({"low": 0, "high": 1, "atoms": [7]}, "atoms must be"),
    "missing": ({"low": 0, "high": 1, "missing": "yes"}, "missing must be"),
    "far": ({"low": 1e18, "high": 1e18 + 1000}, "too wide or too narrow"),
    "wide": ({"low": -1e308, "high": 1e308}, "too wide or too narrow"),
    "fine": ({"low": 0, "high": 1e15, "step": 1e-9}, "too wide or too narrow"),
}


def test_domains_that_cannot_be_are_refused():
    for arguments, words in NO_DOMAINS.values():
        with pytest.raises(ParameterError, match=words):
            Domain(**arguments)


FRAME = pd.DataFrame({"age": [20, 35, 99], "job": ["clerk", "judge", "pilot"]})
KNOWN = {"age": Domain(low=18, high=80, step=1), "job": Domain(levels=["clerk", "judge"])}


def encode(known, frame, **names):
    return PrivateTrees(domains=known).encode_training(frame, **names)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_domains_are_read_from_regular_files_of_bounded_size_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "large").write_bytes(b" " * (2**24 + 1))
    (tmp_path / "deep").write_text("[" * 100_000)
    (tmp_path / "twice").write_text('{"age": {"low": 1, "low": 2, "high": 3}}')
    reasons = {"pipe": "not a regular file", "endless": "not a regular file", "large": "has more"}
    reasons |= {"deep": "nested too deeply", "twice": "a key twice", "absent": "No such file"}
    for name, reason in reasons.items():
        with pytest.raises(ParameterError, match=f"cannot be read as a JSON file .*{reason}"):
            encode(tmp_path / name, FRAME)


def test_domains_can_be_read_from_a_file(tmp_path):
    path = tmp_path / "domains.json"
    plain = {"age": {"low": 18, "high": 80, "step": 1}, "job": {"levels": ["clerk", "judge"]}}
    path.write_text(json.dumps(plain), encoding="utf-8")

    assert encode(path, FRAME[:2]).schema.features[1].table.tolist() == ["clerk", "judge"]
    with pytest.raises(ParameterError, match="cannot be read"):
        encode(tmp_path / "none.json", FRAME)
    with pytest.raises(ParameterError, match="domain of column 'age'"):
        encode({"age": {"lowest": 3}}, FRAME)


def test_rows_outside_are_moved_inside_declared_or_left_out():
    other = {**KNOWN, "job": Domain(levels=["clerk", "judge"], other="clerk")}

    with pytest.warns(McceWarning, match=r"\['job'\] do not declare are left out"):
        rows = encode(KNOWN, FRAME)
    kept = encode(other, FRAME).frame

    assert rows.frame["age"].tolist() == [20, 35]
    assert kept["age"].tolist() == [20, 35, 80]
    assert kept["job"].tolist() == ["clerk", "judge", "clerk"]


def test_the_schema_holds_the_domains_and_nothing_of_the_rows():
    other = {**KNOWN, "job": Domain(levels=["clerk", "judge"], other="clerk")}
    first, second = (
        encode(other, rows, immutable=["age"]).schema.features for rows in (FRAME, FRAME[1:])
    )

    assert first[0].table.tolist() == list(range(18, 81))
    assert first[0].spread == 62
    assert first[1].table.tolist() == ["clerk", "judge"]
    assert all(a.table.equals(b.table) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("dtype", ["float64", "Int64", "float32"])
def test_missing_numbers_are_a_bin_or_their_rows_are_left_out(dtype):
    frame = pd.DataFrame({"x": pd.Series([1, None, 3], dtype=dtype)})

    with_missing = encode({"x": Domain(low=0, high=9, step=1, missing=True)}, frame)
    with pytest.warns(McceWarning, match="left out"):
        without = encode({"x": Domain(low=0, high=9, step=1)}, frame)

    assert (len(with_missing), len(without)) == (3, 2)


def test_columns_that_do_not_fit_their_domains_are_refused():
    numbers = FRAME[["age"]]
    for known, frame, error, words in (
        ({"since": Domain(low=0, high=1)}, pd.DataFrame({"since": pd.to_datetime(["2020"])}),
         SchemaError, "Convert it to numbers"),
        ({"age": KNOWN["age"]}, FRAME, ParameterError, r"without a domain are \['job'\]"),
        ({**KNOWN, "x": Domain(levels=["a"])}, FRAME, ParameterError, r"without a column \['x'\]"),
        ({"age": Domain(levels=["old"], other="old")}, numbers, ParameterError, "fit its dtype"),
        ({"age": Domain(low=0, high=9)}, numbers.astype(bool), SchemaError, "dtype is bool"),
        ({"age": KNOWN["age"]}, numbers[:0], SchemaError, r"0 sample\(s\)"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            encode(known, frame)
    with pytest.raises(ParameterError, match="Leave it out of kinds"):
        encode(KNOWN, FRAME, kinds={"age": "categorical"})


# Neighbours: what is public is the same with one more row, whatever stands in it.
PUBLIC = {
    "code": Domain(levels=[1, 2, 3]),
    "member": Domain(levels=[False, True]),
    "job": Domain(levels=["clerk", "judge"]),
    "city": Domain(levels=["Bergen", "Oslo"], other="Oslo", missing=True),
    "salary": Domain(low=0, high=99, step=1),
    "rate": Domain(low=0, high=1, missing=True),
}
ODD = {
    "text": "some 1",
    "number": 2.5,
    "large": 10**18,
    "missing": None,
    "boolean": True,
    "digits": "2",
}


def clerks():
    """Rows that lie in their domains."""
    chance = np.random.default_rng(0)
    return [
        {
            "code": int(chance.integers(1, 4)),
            "member": bool(chance.random() < 0.5),
            "job": str(chance.choice(["clerk", "judge"])),
            "city": str(chance.choice(["Bergen", "Oslo"])),
            "salary": int(chance.integers(0, 100)),
            "rate": int(chance.integers(0, 101)) / 100,
        }
        for _ in range(60)
    ]


def as_csv(rows):
    return io.StringIO(pd.DataFrame(rows, dtype=object).to_csv(index=False))


READERS = {
    "pandas": lambda rows: pd.DataFrame(rows),
    "csv": lambda rows: pd.read_csv(as_csv(rows)),
    "nullable": lambda rows: pd.read_csv(as_csv(rows), dtype_backend="numpy_nullable"),
    "polars": lambda rows: pytest.importorskip("polars").read_csv(
        as_csv(rows), infer_schema_length=None
    ),
}


def shown(fitted):
    """What a fitted explainer shows, but for what has noise."""
    features = [
        (f.name, f.kind, f.immutable, f.ordered, f.has_missing, f.table.dtype, f.table.tolist())
        for f in fitted.schema_.features
    ]
    adapter = fitted.schema_.adapter
    kept = {"decision": repr(fitted.fitted_.decision), "seed": fitted.fitted_.seed}
    return [*map(repr, features), repr(adapter), str(getattr(adapter, "schema", "")), kept]


def kept_in_file(fitted, path):
    """What its file holds, but for what has noise: leaves, what is drawn from them, a count."""
    fitted.save(path)
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    del members["manifest.json"]
    document = json.loads(members.pop("explainer.json"))
    del document["n_desired"]
    noisy = {f"model/trees/{name}.npy" for name in ("start", "count", "values")}
    noisy |= {"predictor/probes.npy", "predictor/scores.npy"}
    return document, {name: data for name, data in members.items() if name not in noisy}


@pytest.mark.filterwarnings("ignore:Rows with cells that the domains")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", PUBLIC)
def test_one_more_row_changes_nothing_that_is_public(name, reader, tmp_path):
    def fit(rows, epsilon=1.0):
        generator = PrivateTrees(domains=PUBLIC, depth=2, epsilon=epsilon)
        model = MCCE(lambda frame: np.ones(len(frame)), (1, 2), immutable=["member"],
                     generator=generator, random_state=0)  # fmt: skip
        return model.fit(READERS[reader](rows))

    rows = clerks()
    exact, noisy = fit(rows, math.inf), fit(rows)
    for number, odd in enumerate(ODD.values()):
        neighbours = [*rows, {**rows[0], name: odd}]

        other, counted = fit(neighbours), fit(neighbours, math.inf)

        assert shown(other) == shown(noisy), odd
        assert kept_in_file(other, tmp_path / f"{number}") == kept_in_file(noisy, tmp_path / "0")
        # A row that is left out leaves no trace at all.
        if counted.n_desired_ == len(rows):
            for one, two in zip(trees_of(counted), trees_of(exact), strict=True):
                assert np.array_equal(one, two)


def trees_of(fitted):
    return [array for _, array in sorted(fitted.generator_.to_arrays()["trees"].items())]


# The ledger.
def fit(frame=None, decision=None, **settings):
    generator = private(**settings)
    rows = generator.encode_training(bank() if frame is None else frame, immutable=IMMUTABLE)
    chosen = score(rows.frame) > 0.5 if decision is None else decision
    return generator.fit(rows, chosen), rows


@pytest.mark.parametrize("more", [{"depth": 2}, {"depth": None}], ids=str)
def test_a_fit_spends_its_budget_and_no_more(more):
    ledger = fit(**more, epsilon=1.7)[0].ledger_

    assert 1.7 * (1 - 1e-12) <= math.fsum(ledger["epsilon"]) <= 1.7
    assert (ledger["sensitivity"] == 1).all()
    assert (ledger["mechanism"] == "geometric").all()


def test_the_ledger_lists_trees_and_the_unknown_number_of_rows():
    known = fit(depth=2, epsilon=2.0)[0].ledger_.set_index("scope")
    counted = fit(epsilon=1.0)[0].ledger_.set_index("scope")

    columns = [f"{name}, leaves" for name in ("salary", "debt", "housing")]
    assert list(known.index) == columns
    assert np.allclose(known["epsilon"], 2.0 / 3)
    assert list(counted.index) == ["number of rows", *columns]
    assert counted.loc["number of rows", "epsilon"] == pytest.approx(0.01)
    assert np.allclose(counted["epsilon"].iloc[1:], 0.33)


def test_more_rows_and_more_budget_give_deeper_trees():
    few, many = (fit(bank(n))[0].trees_.feature.size for n in (100, 20_000))
    cheap = fit(bank(20_000), epsilon=0.3)[0].trees_.feature.size

    assert few < cheap < many


# The trees.
def test_private_trees_pass_the_conformance_suite():
    known = {
        "age": Domain(low=20, high=50, step=10),
        "salary": Domain(low=0, high=100, step=1, missing=True),
        "years": Domain(low=0, high=11, step=1),
        "education": Domain(levels=["school", "bachelor", "master"]),
        "housing": Domain(levels=["boat", "own", "rent"], missing=True),
        "sex": Domain(levels=["f", "m"]),
        "member": Domain(levels=[False, True]),
    }

    check_generator(PrivateTrees(domains=known, depth=2, epsilon=5.0))
    check_generator(PrivateTrees(domains=known, depth=2, epsilon=math.inf, decisions=(False, True)))


def test_without_noise_likelihoods_are_the_frequencies_of_the_rows():
    frame = pd.DataFrame({"group": ["a"] * 100 + ["b"] * 50, "x": [5.0] * 75 + [15.0] * 75})
    known = {"group": Domain(levels=["a", "b"]), "x": Domain(low=0, high=20, bins=2, step=1)}
    generator = PrivateTrees(domains=known, epsilon=math.inf, depth=1)
    rows = generator.encode_training(frame, immutable=["group"])
    asked = pd.DataFrame({"group": ["a", "a", "a", "b"], "x": [3, 3.3, 20, 12]})

    found = generator.fit(rows, np.ones(150, dtype=bool)).log_likelihood(rows.schema.encode(asked))

    # Ten values are in the lower bin, eleven in the upper.
    expected = [0.75 / 10, 0.75 / 10, 0.25 / 11, 1 / 11]
    assert np.allclose(np.exp(found), expected)


def test_rows_with_undeclared_cells_are_left_out_of_a_fit():
    known = {"sex": Domain(levels=["f", "m"]), "job": Domain(levels=["none", "some"])}
    inside = pd.DataFrame({"sex": ["f", "m", "m"], "job": ["none", "some", "some"]})
    undeclared = pd.DataFrame({"sex": ["x", "f"], "job": ["some", "boss"]})
    generator = PrivateTrees(domains=known, epsilon=math.inf, depth=1)
    rows = generator.encode_training(inside, immutable=["sex"])
    both = rows.schema.encode(pd.concat([inside, undeclared], ignore_index=True))

    fitted = generator.fit(both, np.ones(5, dtype=bool))

    assert fitted.n_desired_ == 3
    assert np.isneginf(fitted.log_likelihood(both)[[0, 4]]).tolist() == [False, True]


def test_nothing_depends_on_values_inside_a_bin():
    frame, known = bank(), domains()
    inside = frame.copy()
    for name in ("salary", "debt"):
        # Its bin's first value of the grid, wherever in the bin a number lies.
        numbers, domain = frame[name].to_numpy(), known[name]
        found = ~np.isnan(numbers)
        first = np.searchsorted(domain.bin_of_value, domain.bin_numbers(numbers[found]))
        inside.loc[found, name] = domain.values[first]
    decision = score(frame) > 0.5

    first, second = (
        fit(rows, decision, depth=2, epsilon=math.inf)[0].to_arrays()["trees"]
        for rows in (frame, inside)
    )

    assert not np.allclose(frame["debt"], inside["debt"])
    for name in ("feature", "cut", "sets", "count", "values"):
        assert np.array_equal(first[name], second[name])


def test_trees_learn_what_depends_on_what():
    group = np.random.default_rng(0).integers(0, 2, 4000)
    frame = pd.DataFrame({"group": group, "x": 80 * group + np.arange(4000) % 20})
    known = {"group": Domain(levels=[0, 1]), "x": Domain(low=0, high=100, bins=10)}
    generator = PrivateTrees(domains=known, epsilon=2.0, depth=1)
    rows = generator.encode_training(frame, immutable=["group"])
    generator.fit(rows, np.ones(4000, dtype=bool))

    keys = np.arange(20, dtype=np.uint64)
    drawn = generator.sample(DrawRequest(rows.tree_codes[:, :20], keys, np.arange(50)))

    values = rows.schema.features[1].table.to_numpy()[drawn.codes[0]]
    assert (values > 50)[group[:20] == 1].mean() > 0.95
    assert (values < 50)[group[:20] == 0].mean() > 0.95


def test_both_decisions_can_be_drawn_for_the_same_budget():
    frame = bank(3000)
    decision = frame["debt"].to_numpy() == 0
    fitted, rows = fit(frame, decision, decisions=(False, True), depth=0, epsilon=20.0)
    one, _ = fit(frame, decision, depth=0, epsilon=20.0)
    accepted = DrawRequest(rows.tree_codes[:, :1], np.zeros(1, np.uint64), np.arange(500))
    declined = replace(accepted, is_desired=np.zeros(1, dtype=bool))
    row = list(rows.schema.mutable).index(rows.schema.names.index("debt"))

    yes = fitted.sample(accepted).codes[row]
    no = fitted.sample(declined).codes[row]

    assert fitted.ledger_["epsilon"].tolist() == one.ledger_["epsilon"].tolist()
    assert (yes == 0).mean() > 0.9
    assert (no == 0).mean() < 0.1
    with pytest.raises(ParameterError, match="decisions="):
        one.sample(declined)


def test_the_seed_of_the_explainer_is_that_of_the_splits_and_not_of_the_noise():
    generator = private(depth=1)
    rows = generator.encode_training(bank(), immutable=IMMUTABLE)
    decision = score(rows.frame) > 0.5

    first, second, other = (
        generator.fit(rows, decision, seed=seed).to_arrays()["trees"] for seed in (7, 7, 8)
    )

    def same(one, another):
        return [np.array_equal(one[name], another[name]) for name in ("sets", "cut", "values")]

    assert same(first, second) == [True, True, False]
    assert not all(same(first, other)[:2])


SETTINGS = {
    "no domains": ({"domains": None}, "needs the public domain of every column"),
    "no budget": ({"epsilon": 0}, "epsilon must be"),
    "tiny budget": ({"epsilon": 1e-9}, "Pass another epsilon"),
    "depth": ({"depth": 50}, "depth must be"),
    "decisions": ({"decisions": (False,)}, "decisions must be"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_cannot_be_are_refused(name):
    settings, words = SETTINGS[name]

    with pytest.raises(ParameterError, match=words):
        fit(**settings)


def test_rows_with_a_schema_of_their_own_are_refused():
    frame = bank()
    rows = Schema.learn_rows(frame, immutable=IMMUTABLE)

    with pytest.raises(ParameterError, match="encoded by training values"):
        private().fit(rows, score(frame) > 0.5)


# Explainers.
@pytest.fixture(scope="module")
def fitted():
    return explainer(private(depth=1)).fit(bank())


@pytest.mark.parametrize(
    "settings",
    [
        {"search": "paper", "distance": "heom"},
        {"search": "paper", "distance": "l1"},
        {"search": "exact", "ignore_relations": True},
    ],
    ids=["heom", "l1", "exact"],
)
def test_searches_and_distances_that_read_no_rows_work(settings):
    frame = bank()
    known = domains()

    result = explainer(private(depth=1), **settings).fit(frame).explain(declined(frame))

    assert len(result.frame) > 10
    assert (score(result.frame) >= DESIRED[0]).all()
    changes = result.changes()
    assert not changes["feature"].isin(IMMUTABLE).any()
    for name in ("salary", "debt"):
        values = set(changes.loc[changes["feature"] == name, "after"].dropna())
        assert values <= set(known[name].values)


READING = {
    "balanced": {"search": "balanced"},
    "sparse": {"search": "sparse", "ignore_relations": True},
    "near": {"search": "near", "ignore_relations": True},
    "relations": {"search": Search("paper", consequences="recompute")},
    "exact": {"search": "exact", "ignore_relations": ["a = b"]},
    "copies": {"search": Search("paper", copies="never")},
    "plausible": {"search": Search("paper", min_plausibility=0.1)},
    "exact copies": {"search": ExactSearch(copies="never"), "ignore_relations": True},
}


@pytest.mark.parametrize("name", READING)
def test_searches_that_read_rows_are_refused_at_fit_and_later(fitted, name):
    with pytest.raises(ParameterError, match=r"private, but the search .* Use search='paper'"):
        explainer(**READING[name]).fit(bank())

    changed = pickle.loads(pickle.dumps(fitted)).set_params(**READING[name])
    with pytest.raises((ParameterError, NotFittedError)):
        changed.explain(declined(bank()))


class MeanDistance(Gower):
    name = "mean"
    reads_rows = True


def test_distances_counts_and_refits_that_read_rows_are_refused(fitted):
    for distance, name in ((MeanDistance(), "mean"), ("hvdm", "hvdm")):
        with pytest.raises(ParameterError, match=f"distance {name!r} learns from training rows"):
            explainer(distance=distance).fit(bank())
    with pytest.raises(ParameterError, match="private, but anonymity counts training people"):
        anonymize(
            fitted,
            fitted.explain(declined(bank())),
            bank(),
            anonymity=5,
            quasi_identifiers=["housing"],
        )
    with pytest.raises(ParameterError, match="spend its budget once for each"):
        fitted.relax(declined(bank()), bank())
    assert fitted.relax(declined(bank())) is not None
    with pytest.raises(ParameterError, match="needs the public domain of every column"):
        MCCE(score, DESIRED, generator="private").fit(bank())


def test_one_answer_whatever_the_batch_and_the_threads(fitted):
    people = declined(bank(), 6)

    whole = fitted.explain(people).frame
    parts = [fitted.explain(people.iloc[[at]]).frame for at in range(6)]
    threaded = pickle.loads(pickle.dumps(fitted)).set_params(n_jobs=2)
    backwards = threaded.explain(people.iloc[::-1]).frame

    assert whole.equals(pd.concat(parts))
    assert whole.equals(backwards.loc[whole.index])


def test_ranges_are_those_of_the_domains_and_not_of_the_rows(fitted):
    frame = bank()
    result = fitted.explain(declined(frame))

    own, answer = frame.loc[result.frame.index[0][0]], result.frame.iloc[0]
    gaps = [abs(own["salary"] - answer["salary"]) / 120, abs(own["debt"] - answer["debt"]) / 200]
    gaps.append(float(own["housing"] != answer["housing"]))
    assert result.measures["gower"].iloc[0] == pytest.approx(sum(gaps) / 5)
    assert fitted.ranges(result)["n_training"].isna().all()


def test_the_number_of_accepted_rows_has_noise():
    frame = bank()
    n = int((score(frame) >= DESIRED[0]).sum())
    found = {explainer(private(depth=0)).fit(frame).n_desired_ for _ in range(20)}

    assert len(found) > 1
    assert all(abs(one - n) < 60 for one in found)


def test_other_frames_work():
    polars = pytest.importorskip("polars")
    frame = bank().drop(columns="housing")
    known = {name: domain for name, domain in domains().items() if name != "housing"}
    model = MCCE(
        lambda rows: np.asarray(rows.to_pandas()["salary"].fillna(30) / 100),
        (0.6, 2.0),
        immutable=IMMUTABLE,
        generator=private(domains=known, depth=1),
        random_state=0,
        n_samples=200,
    )
    people = polars.from_pandas(frame[frame["salary"].fillna(30) < 60].head(5))

    result = model.fit(polars.from_pandas(frame)).explain(people)

    assert isinstance(result.frame, polars.DataFrame)
    assert len(result.frame) == 5


# Nothing of the rows is left.
PLANTED = {"salary": 77.31415926, "debt": 12.34567891}


def planted():
    """Rows with cells that cannot be mistaken, and one with a level that nobody declared."""
    frame = bank()
    for name, number in PLANTED.items():
        frame.loc[:5, name] = number
    frame.loc[6, "housing"] = "Qvortrup"
    frame.index = [f"Qvortrup {row}" for row in range(len(frame))]
    return frame


def fitted_to_planted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer(private(depth=1)).fit(planted())


def contents(path):
    """All bytes of a saved file, and all its floats."""
    texts, numbers = [], []
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            texts.append(file.read(name))
            if name.endswith(".npy"):
                numbers += np.load(io.BytesIO(texts[-1])).ravel().tolist()
            elif name.endswith(".json"):
                numbers += map(float, re.findall(rb"-?\d+\.\d+(?:e-?\d+)?", texts[-1]))
    return b"\n".join(texts), set(numbers)


def test_a_warning_of_rows_left_out_points_to_the_call_and_tells_no_cell():
    with pytest.warns(McceWarning, match=r"\['housing'\] do not declare") as caught:
        explainer(private(depth=0)).fit(planted())

    assert [warning.filename for warning in caught] == [__file__]
    assert "Qvortrup" not in str(caught[0].message)


def test_a_saved_explainer_holds_no_training_value(tmp_path):
    frame = planted()
    fitted_to_planted().save(tmp_path / "bank.mcce")

    data, numbers = contents(tmp_path / "bank.mcce")

    assert not any(trace in data for trace in (b"Qvortrup", b"77.314", b"12.3456"))
    # Of all cells with decimals none is there, and neither is a score of a training row.
    cells = set(frame["salary"].dropna()) | set(frame["debt"]) - {0.0}
    assert not (cells | set(score(frame))) & numbers
    # A file of the usual model would be found out.
    MCCE(score, DESIRED, immutable=IMMUTABLE).fit(frame).save(tmp_path / "open.mcce")
    data, numbers = contents(tmp_path / "open.mcce")
    assert b"Qvortrup" in data
    assert PLANTED["salary"] in numbers


def test_a_pickled_explainer_holds_no_training_value():
    data = pickle.dumps(fitted_to_planted())

    assert b"Qvortrup" not in data
    for number in PLANTED.values():
        assert struct.pack("<d", number) not in data
        assert struct.pack(">d", number) not in data


def test_a_loaded_explainer_gives_the_same_answers_and_ledger(tmp_path):
    frame = bank()
    kept = explainer(private(depth=2)).fit(frame)
    kept.save(tmp_path / "bank.mcce")

    again = mcce.load(tmp_path / "bank.mcce", score)

    people = declined(frame)
    assert again.explain(people).frame.equals(kept.explain(people).frame)
    assert again.n_desired_ == kept.n_desired_
    assert again.generator_.domains_ == domains()
    assert again.generator_.ledger_.equals(kept.generator_.ledger_)


def test_what_has_no_noise_is_not_saved(tmp_path):
    open_model = explainer(private(epsilon=math.inf, depth=1)).fit(bank())

    with pytest.raises(SavedFileError, match=r"without noise.* Fit with a finite epsilon"):
        open_model.save(tmp_path / "bank.mcce")
    assert not list(tmp_path.iterdir())


def test_without_opendp_a_fit_says_how_to_install_it_and_a_saved_explainer_works(
    fitted, tmp_path, monkeypatch
):
    people = declined(bank())
    fitted.save(tmp_path / "bank.mcce")
    expected = fitted.explain(people).frame
    for name in [name for name in sys.modules if name.split(".")[0] == "opendp"]:
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(MissingExtraError, match=r'needs OpenDP.*pip install "\.\[privacy\]"'):
        explainer().fit(bank())
    assert mcce.load(tmp_path / "bank.mcce", score).explain(people).frame.equals(expected)


def test_arrays_that_no_fit_gave_and_other_domains_are_refused(fitted):
    arrays, schema = fitted.generator_.to_arrays(), fitted.schema_
    for change in (
        {"visit_order": np.array([2, 3])},
        {"trees": {**arrays["trees"], "feature": arrays["trees"]["feature"] + 1}},
    ):
        with pytest.raises(SavedFileError):
            private(depth=1).from_arrays({**arrays, **change}, schema)
    wider = {**domains(), "debt": Domain(low=0, high=300, atoms=[0], bins=10)}
    with pytest.raises((SavedFileError, ParameterError)):
        private(depth=1, domains=wider).from_arrays(arrays, schema)
