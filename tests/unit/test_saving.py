"""A saved explainer, loaded again, is the one that was saved; what cannot be saved is named."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import subprocess
import sys
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from dateutil.tz import gettz
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import bank as applicants
import mcce
from bank import default_risk, score
from mcce import (
    HVDM,
    MCCE,
    ExactSearch,
    ForestChain,
    Gower,
    Interval,
    NotFittedError,
    ParameterError,
    PredictorError,
    SavedFileError,
    Search,
    TreeChain,
)
from mcce import constraints as c
from mcce.protocols import Capabilities
from saved import CELLS, answers, any_score, assert_same_answers, kinds_of, table

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bank.mcce"


@pytest.fixture
def explainer(bank):
    settings = {"immutable": ["age", "sex"], "n_samples": 50, "random_state": 3}
    return MCCE(default_risk, Interval(0, 0.1, "left"), **settings).fit(bank)


def check_round_trip(explainer, path, people):
    """Answers, and bytes that are saved again, are the same; gives what was loaded."""
    explainer.save(path)
    once = path.read_bytes()
    loaded = mcce.load(path, explainer.predictor)
    assert_same_answers(answers(loaded, people), answers(explainer, people))
    loaded.save(path)
    assert path.read_bytes() == once
    return loaded


RULES = [
    c.only_up("age"),
    c.not_down("education"),
    c.only_up("housing", order=["boat", "rent", "free", "own"]),
    c.between("salary", 10, None),
    c.change("salary", at_most="80 %"),
    c.levels("housing", ["rent", "own", None]),
    c.transitions("housing", {"rent": ["own"], None: ["rent"]}),
    c.never_advise("housing", ["boat", None]),
    c.never_advise("education", direction="down"),
    c.discouraged("housing", ["rent"]),
    c.discouraged("salary", direction="up"),
    c.frozen("age", "years", where="age > 60"),
    c.frozen("housing", where=[True, False] * 10),
    c.max_changes(5),
    c.max_changes(2, ["age", "years"]),
    c.together("salary", "years"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.derived("years", "age - 16", tolerance=60),
    c.weight("age", 2),
    c.step("salary", 0.5),
]
SETTINGS = {
    "paper": {
        "search": Search("paper", copies="never"),
        "distance": Gower(missing="ignore"),
    },
    "rules": {"constraints": RULES},
    "balanced": {"search": "balanced", "constraints": RULES[:4], "distance": "hvdm"},
    "near": {
        "search": Search("near", max_evaluations=300),
        "generator": TreeChain(min_samples_leaf=3, visit_order="correlation"),
        "distance": HVDM(variant="N3", alpha=np.float64(0.5)),
        "n_counterfactuals": 2,
        "diversity": 0.5,
    },
    "exact": {"search": ExactSearch(max_rows=30, max_nodes=2000)},
    "both": {
        "search": "plausible",
        "generator": TreeChain(decisions=(False, True)),
        "distance": "l1",
    },
    "forest": {"search": "sparse", "generator": ForestChain(n_trees=3), "distance": "heom"},
    "ctree": {"generator": "ctree", "distance": "ivdm"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_search_generator_distance_and_rule_comes_back(name, path):
    given = {"n_samples": 40, "random_state": 0} | SETTINGS[name]
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], **given).fit(applicants.bank(200))

    loaded = check_round_trip(explainer, path, applicants.bank(20, seed=1))

    ours, theirs = explainer.get_params(deep=False), loaded.get_params(deep=False)
    assert {key: repr(value) for key, value in theirs.items()} == {
        key: repr(value) for key, value in ours.items()
    }
    assert loaded.constraints == explainer.constraints


def test_columns_of_every_storage_come_back_with_their_bits(path):
    frame = table(sorted(CELLS), 60, 4)
    explainer = MCCE(any_score, (0.5, 1.0), kinds=kinds_of(frame), n_samples=20, random_state=1)

    loaded = check_round_trip(explainer.fit(frame), path, table(sorted(CELLS), 6, 5))

    for ours, theirs in zip(explainer.schema_.features, loaded.schema_.features, strict=True):
        pd.testing.assert_series_equal(theirs.table, ours.table, check_exact=True)
        cells = [(type(cell), repr(cell)) for cell in ours.table]
        assert [(type(cell), repr(cell)) for cell in theirs.table] == cells


PLAIN = [
    *(Decimal("1.10"), datetime.date(2024, 1, 1), datetime.time(12, 30), b"\0\xff", ("a", 1)),
    *(datetime.timedelta(days=1, microseconds=3), datetime.datetime(2024, 1, 1, 12)),
    *(10**30, -(2**53), 0.1 + 0.2, -5e-324, "\U0001f600", True, frozenset({1, 2.5})),
    *(np.float32(0.1), np.uint64(2**64 - 1), np.str_("å"), np.datetime64("2024-01-01T00:00", "ns")),
    *(pd.Timestamp(480_313, unit="h", tz="UTC").tz_convert("Europe/Oslo"), pd.Timedelta(3, "us")),
    *(pd.Interval(0, 1.5, "left"), np.bool_(False), np.timedelta64(5, "ms")),
]


def test_plain_values_of_every_type_come_back_as_names_of_columns(path):
    frame = pd.DataFrame(np.arange(20 * len(PLAIN)).reshape(20, -1) % 7)
    frame.columns = pd.Index(PLAIN, dtype=object, tupleize_cols=False)
    explainer = MCCE(any_score, (0.5, 1), immutable=PLAIN[3:5], n_samples=9, random_state=0)

    loaded = check_round_trip(explainer.fit(frame), path, frame.head(3))

    names = loaded.schema_.names
    assert [(type(name), repr(name)) for name in names] == [(type(v), repr(v)) for v in PLAIN]


@pytest.mark.parametrize("desired", ["bad", ["good", "bad"], {"fine", "good"}, None, (0.3, 1)],
                         ids=["label", "list", "set", "none", "range"])  # fmt: skip
def test_labels_classes_and_estimators_come_back(bank, path, desired):
    data = bank[["age", "salary"]]
    labels = np.array(["bad", "fine", "good"])[(data["salary"].rank(pct=True) * 2.9).astype(int)]
    if desired is None or isinstance(desired, tuple):
        labels = labels == "good"
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(data, labels)
    explainer = MCCE(tree, desired, n_samples=50, random_state=0).fit(data)

    loaded = check_round_trip(explainer, path, data.head(30))

    assert repr(loaded.decision_) == repr(explainer.decision_)


def test_an_array_is_explained_as_an_array(path):
    train = np.random.default_rng(0).normal(size=(60, 3))
    explainer = MCCE(lambda rows: rows[:, 0], (0.5, 9.0), n_samples=50, random_state=0).fit(train)

    loaded = check_round_trip(explainer, path, train[:9])

    assert not hasattr(loaded, "feature_names_in_")


def test_scores_may_be_infinite_and_a_desire_may_be_nobodys(bank, path):
    def odds(rows):
        return np.where(rows["salary"] > 60_000, np.inf, rows["salary"] / 60_000)

    data = bank[["age", "salary"]]
    for desired in ((1, np.inf), (-6, -5)):
        explainer = MCCE(odds, desired, immutable=["age"], n_samples=30, random_state=0).fit(data)
        loaded = check_round_trip(explainer, path, data.head(20))
    assert loaded.n_desired_ == 0


def test_clones_copies_and_likelihoods_are_those_of_the_saved_explainer(bank, explainer, path):
    people = bank.tail(20)
    expected = answers(explainer, people)

    loaded = check_round_trip(explainer, path, people)

    assert loaded.feature_names_in_.tolist() == list(bank)
    assert_same_answers(answers(clone(loaded).fit(bank), people), expected)
    assert_same_answers(answers(pickle.loads(pickle.dumps(loaded)), people), expected)
    np.testing.assert_array_equal(loaded.log_likelihood(bank), explainer.log_likelihood(bank))
    with pytest.raises(NotFittedError, match="immutable was changed after fit"):
        loaded.set_params(immutable=["sex"]).explain(bank)


def test_an_explainer_that_was_not_fitted_or_was_changed_since_is_not_saved(explainer, path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(explainer).save(path)
    with pytest.raises(NotFittedError, match="random_state was changed after fit"):
        explainer.set_params(random_state=4).save(path)
    assert not path.exists()


def test_the_file_is_a_zip_of_readable_json_and_arrays(explainer, path):
    explainer.save(path)

    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        document = json.loads(archive.read("explainer.json"))
        values = np.load(archive.open("model/trees/values.npy"), allow_pickle=False)
    assert manifest["format"] == "mcce explainer"
    assert manifest["written_by"]["pandas"] == pd.__version__
    assert document["schema"]["features"][1]["name"] == "sex"
    assert document["draws"] == {"version": 1, "seed": 3}
    np.testing.assert_array_equal(values, explainer.generator_.trees_.values)


def test_training_rows_are_in_the_file_only_if_they_must_be(bank, explainer, path):
    def members():
        explainer.save(path)
        return zipfile.ZipFile(path).namelist()

    assert "training_rows/codes.npy" not in members()
    explainer.set_params(search=Search("paper", copies="never")).fit(bank)
    assert "training_rows/codes.npy" in members()
    explainer.set_params(search="paper")
    assert "training_rows/codes.npy" not in members()


@pytest.mark.slow
def test_the_same_explainer_gives_the_same_bytes_in_every_process(tmp_path):
    code = """if True:
        import sys, mcce, pandas as pd
        frame = pd.DataFrame({"a": [1, 2, 3] * 4, "b": list("xyzx") * 3})
        grade = lambda f: f["b"].map({"x": "low", "y": "mid", "z": "high"}).to_numpy()
        explainer = mcce.MCCE(grade, {"mid", "high"}, immutable={"b"}, random_state=0)
        explainer.fit(frame).save(sys.argv[1])
    """
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / seed], env=environment, check=True)

    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


# Generators and distances that are not part of mcce.
class Mine(TreeChain):
    """A generator that can be saved."""


class Unsavable(TreeChain):
    capabilities = Capabilities()


class Careless(TreeChain):
    def to_arrays(self):
        return {"when": [1, object()]}


class Far(Gower):
    name = "far"


NOT_SAVED = {
    "distance": ({"distance": Far()}, "the parameter distance: it holds a .*Far"),
    "fitted distance": ({"distance": Gower(np.ones(4))}, "the parameter distance: it holds a"),
    "generator": ({"generator": Unsavable()}, "the generator Unsavable: .* capability 'saving'"),
    "arrays": ({"generator": Careless()}, "'model/when/1': .* of type object"),
    "relation": ({"constraints": [c.relation("mine", lambda f: f["age"] > 0)]}, ".*constraints"),
    "frozen": ({"constraints": [c.frozen("salary", where=np.array([True] * 9))]}, ".*constraints"),
}


@pytest.mark.parametrize("name", NOT_SAVED)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(bank, path, name):
    given, named = NOT_SAVED[name]
    explainer = MCCE(default_risk, (0, 0.1), random_state=0, **given).fit(bank)

    with pytest.raises(SavedFileError, match="Cannot save " + named):
        explainer.save(path)

    assert list(path.parent.iterdir()) == []


def test_a_level_that_is_no_plain_value_is_named(path):
    halves = pd.Series([Fraction(1, 2), Fraction(1, 3)] * 9, dtype=object)
    frame = pd.DataFrame({"share": halves, "n": range(18)})
    explainer = MCCE(lambda f: f["n"], (9, 99), kinds={"share": "categorical"}, random_state=0)

    with pytest.raises(SavedFileError, match=r"column 'share': it holds a fractions.Fraction"):
        explainer.fit(frame).save(path)


@pytest.mark.skipif(pd.__version__ < "2.3", reason="this pandas cannot read zones of dateutil")
def test_a_time_zone_without_a_name_is_named(path):
    zone = gettz("Europe/Oslo")
    frame = pd.DataFrame({"when": pd.date_range("2024", periods=18, tz=zone), "n": range(18)})
    explainer = MCCE(lambda f: f["n"], (9, 99), search="paper", random_state=0).fit(frame)

    with pytest.raises(SavedFileError, match=r"column 'when': it holds a dateutil\..*tzfile"):
        explainer.save(path)


def test_a_generator_of_your_own_is_loaded_into_a_new_instance(bank, path):
    explainer = MCCE(default_risk, (0, 0.1), generator=Mine(max_depth=3), random_state=0).fit(bank)
    explainer.save(path)

    loaded = mcce.load(path, default_risk, generator=Mine(max_depth=3))

    assert type(loaded.generator_) is Mine
    assert_same_answers(answers(loaded, bank.head(20)), answers(explainer, bank.head(20)))
    for given in (None, TreeChain()):
        with pytest.raises(ParameterError, match=r"saved with the generator Mine.*=Mine\(\)"):
            mcce.load(path, default_risk, generator=given)


def test_a_generator_is_refused_for_a_file_that_needs_none(explainer, path):
    explainer.save(path)

    with pytest.raises(ParameterError, match=r"Leave generator out"):
        mcce.load(path, default_risk, generator=Mine())


# The predictor is known by the scores of probe rows.
def test_another_predictor_is_refused_with_what_it_says(explainer, path):
    explainer.save(path)

    with pytest.raises(PredictorError, match=r"scores of \d of 8 probe rows differ"):
        mcce.load(path, lambda frame: default_risk(frame) * (1 + 1e-8))
    with pytest.raises(PredictorError, match="The predictor failed"):
        mcce.load(path, lambda frame: frame["income"])
    mcce.load(path, lambda frame: default_risk(frame) * (1 + 1e-10))
    mcce.load(path, lambda frame: default_risk(frame) * (1 + 1e-8), tolerance=1e-6)
    with pytest.raises(ParameterError, match="tolerance must be a finite number"):
        mcce.load(path, default_risk, tolerance=-1)


class YesOrNo(DecisionTreeClassifier):
    """A classifier that says only yes or no."""

    predict_proba = None
    classes_ = np.array([False, True])


def test_a_predictor_that_would_be_called_differently_is_refused(bank, path):
    data = bank[["age", "salary"]]
    poor = data["salary"] < 60_000
    MCCE(LogisticRegression().fit(data, poor), random_state=0).fit(data).save(path)

    with pytest.raises(PredictorError, match=r"called as .*'predict_proba'.*what it returns"):
        mcce.load(path, YesOrNo())


def test_probe_rows_that_the_predictor_cannot_score_are_left_out(path):
    prices = {("f", "x"): 1.0, ("m", "y"): 2.0}
    frame = pd.DataFrame({"sex": ["f", "m"] * 9, "plan": ["x", "y"] * 9, "n": range(18)})

    def price(rows):
        pairs = zip(rows["sex"], rows["plan"], strict=True)
        return rows["n"] + np.array([prices[pair] for pair in pairs])

    explainer = MCCE(price, (9, 99), immutable=["sex", "plan"], random_state=0).fit(frame)

    check_round_trip(explainer, path, frame)


# Files and paths.
def test_a_file_is_replaced_whole_or_not_at_all(explainer, path, monkeypatch):
    explainer.save(path)
    before = path.read_bytes()

    def stop(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        explainer.set_params(n_samples=40).save(path)

    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_replaced_stays_a_link_and_keeps_its_permissions(explainer, path):
    explainer.save(path)
    path.chmod(0o600)
    link = path.with_name("link")
    link.symlink_to(path)

    explainer.save(str(link))

    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    mcce.load(path, default_risk)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_path_that_cannot_be_written_or_read_is_a_clear_error(explainer, tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for name, why in {
        ".": "it is a folder",
        "nowhere/bank.mcce": "No such file or directory",
        "n" * 300: "File name too long",
        "file/bank.mcce": "Not a directory",
        "pipe": "it is no plain file",
    }.items():
        with pytest.raises(SavedFileError, match=f"Cannot save to .*: {why}"):
            explainer.save(tmp_path / name)
        with pytest.raises(OSError, match=f"Cannot load .*: {why}"):
            mcce.load(tmp_path / name, default_risk)


def test_a_path_or_key_that_is_none_is_a_clear_error(explainer, path):
    for wrong in (None, 3, b"bank.mcce", "", "a\0b"):
        with pytest.raises(ParameterError, match="path must be the name of a file"):
            explainer.save(wrong)
        with pytest.raises(ParameterError, match="path must be the name of a file"):
            mcce.load(wrong, default_risk)
    for key in ("a secret that is long enough", b"short", 7, bytearray(32), b""):
        with pytest.raises(ParameterError, match="key must be None or a secret of at least 16"):
            explainer.save(path, key=key)
        with pytest.raises(ParameterError, match="key must be None or a secret of at least 16"):
            mcce.load(path, default_risk, key=key)
    assert not path.exists()
