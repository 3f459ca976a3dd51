"""A saved explainer, loaded again, is the one that was saved."""

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
from dateutil import tz
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import mcce
from bank import default_risk
from mcce import (
    MCCE,
    Gower,
    Interval,
    NotFittedError,
    ParameterError,
    PredictorError,
    SavedFileError,
    TreeChain,
)
from mcce.saving.values import pack, unpack
from saved import CELLS, answers, any_score, assert_same_answers, kinds_of, table
from searches import bounded


@pytest.fixture
def explainer(bank):
    settings = {"immutable": ["age", "sex"], "n_samples": 100, "random_state": 3}
    return MCCE(default_risk, Interval(0, 0.1, "left"), **settings).fit(bank)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bank.mcce"


def reload(explainer, path):
    explainer.save(path)
    return mcce.load(path, explainer.predictor)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(0, 99),
    st.booleans(),
)
def test_a_loaded_explainer_gives_the_answers_of_the_saved_one(
    tmp_path_factory, names, n_rows, seed, exclude
):
    path = tmp_path_factory.getbasetemp() / "property.mcce"
    frame = table(names, n_rows, seed)
    explainer = MCCE(
        any_score,
        (0.5, 1.0),
        immutable=list(frame)[1 : 1 + seed % 3],
        kinds=kinds_of(frame),
        search=bounded(copies="never" if exclude else "allow"),
        generator=TreeChain(
            min_samples_leaf=1 + seed % 2, visit_order=("data", "correlation")[exclude]
        ),
        n_samples=20,
        n_counterfactuals=2,
        random_state=seed,
    ).fit(frame)

    loaded = reload(explainer, path)

    people = table(names, 6, seed + 1)
    assert_same_answers(answers(loaded, people), answers(explainer, people))
    once = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == once


@pytest.mark.parametrize("name", CELLS)
def test_a_table_of_values_comes_back_in_its_dtype(name, path):
    frame = table([name, "int8"], 30, 0)
    explainer = MCCE(any_score, (0.5, 1), kinds=kinds_of(frame), random_state=0).fit(frame)

    loaded = reload(explainer, path)

    for ours, theirs in zip(explainer.schema_.features, loaded.schema_.features, strict=True):
        pd.testing.assert_series_equal(theirs.table, ours.table, check_exact=True)
        cells = [(type(a), repr(a)) for a in ours.table]
        assert [(type(a), repr(a)) for a in theirs.table] == cells
        for attribute in ("name", "kind", "immutable", "ordered", "has_missing", "spread"):
            assert getattr(theirs, attribute) == getattr(ours, attribute)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=[]))
    | st.binary()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.timezones()),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
ODD = [
    *(np.float16(0.1), np.float32(0.1), np.float64("nan"), np.int8(-3), np.uint64(2**64 - 1)),
    *(np.bool_(True), np.str_("å"), np.datetime64("NaT", "s"), np.timedelta64(5, "ms")),
    *(np.datetime64("2024-01-01T00:00", "ns"), pd.NA, pd.NaT, pd.Interval(0, 1.5, "left")),
    pd.Timestamp("1066-10-14").as_unit("s") if pd.__version__ >= "3" else pd.Timestamp(0),
    *(pd.Timestamp(h, unit="h", tz="UTC").tz_convert("Europe/Oslo") for h in (480_312, 480_313)),
    *(pd.Timedelta(3, "us"), {"b": [1], "a": (None,)}, {"x", "y"}, frozenset({1, 2.5})),
    *(Decimal("1.10"), Interval(-np.inf, 0, "right"), 10**5000, -(2**53), "\ud83d\ude00"),
]


@given(PLAIN)
def test_plain_values_come_back_with_their_types_and_bits(value):
    back = unpack(json.loads(json.dumps(pack(value, "it"), ensure_ascii=False, allow_nan=False)))

    assert (type(back), repr(back)) == (type(value), repr(value))


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_values_of_numpy_and_pandas_come_back_too(value):
    back = unpack(json.loads(json.dumps(pack(value, "it"))))

    assert type(back) is type(value)
    if isinstance(value, (set, frozenset, int)):
        assert back == value
    else:
        assert repr(back) == repr(value)


@pytest.mark.parametrize("desired", ["bad", ["good", "bad"], {"fine", "good"}, None, (0.3, 1)])
def test_labels_classes_and_estimators_are_saved_too(bank, path, desired):
    data = bank[["age", "salary"]]
    third = (data["salary"].rank(pct=True) * 2.9).astype(int)
    labels = np.array(["bad", "fine", "good"])[third]
    if desired is None or isinstance(desired, tuple):
        labels = labels == "good"
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(data, labels)
    explainer = MCCE(tree, desired, n_samples=50, random_state=0).fit(data)

    loaded = reload(explainer, path)

    assert repr(loaded.decision_) == repr(explainer.decision_)
    assert_same_answers(answers(loaded, data.head(30)), answers(explainer, data.head(30)))


def test_an_array_is_explained_as_an_array(path):
    train = np.random.default_rng(0).normal(size=(60, 3))
    explainer = MCCE(lambda rows: rows[:, 0], (0.5, 9.0), n_samples=50, random_state=0).fit(train)

    loaded = reload(explainer, path)

    assert not hasattr(loaded, "feature_names_in_")
    assert_same_answers(answers(loaded, train[:9]), answers(explainer, train[:9]))


def test_column_names_may_be_anything_plain(path):
    names = [3, ("a", 1), datetime.date(2024, 1, 1), "å", 1.5]
    frame = pd.DataFrame(np.arange(50).reshape(10, 5) % 7)
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    explainer = MCCE(any_score, (0.5, 1), immutable=[("a", 1), 3], n_samples=9).fit(frame)

    loaded = reload(explainer, path)

    assert loaded.schema_.names == names
    assert_same_answers(answers(loaded, frame), answers(explainer, frame))


def test_a_desire_nobody_ever_had_can_be_saved(bank, path):
    explainer = MCCE(default_risk, (5, 6), random_state=0).fit(bank)

    loaded = reload(explainer, path)

    assert loaded.n_desired_ == 0
    assert_same_answers(answers(loaded, bank.head(3)), answers(explainer, bank.head(3)))


def test_parameters_clones_and_fits_are_those_of_the_saved_explainer(bank, explainer, path):
    chain = TreeChain(max_depth=3, visit_order=["salary", "defaulted_last_year"])
    search = bounded(rank_by=["distance"])
    explainer.set_params(generator=chain, distance=Gower(), search=search).fit(bank)

    loaded = reload(explainer, path)

    ours, theirs = explainer.get_params(), loaded.get_params()
    objects = {"generator", "distance"}
    assert {k: v for k, v in theirs.items() if k not in objects} == {
        k: v for k, v in ours.items() if k not in objects
    }
    assert repr(loaded.generator) == repr(chain)
    assert isinstance(loaded.distance, Gower)
    assert loaded.n_features_in_ == 4
    assert loaded.feature_names_in_.tolist() == list(bank)
    people = bank.tail(20)
    again = clone(loaded).fit(bank)
    assert_same_answers(answers(again, people), answers(explainer, people))
    copy = pickle.loads(pickle.dumps(loaded))
    assert_same_answers(answers(copy, people), answers(explainer, people))
    np.testing.assert_array_equal(loaded.log_likelihood(bank), explainer.log_likelihood(bank))
    with pytest.raises(NotFittedError, match="immutable was changed after fit"):
        loaded.set_params(immutable=["sex"]).explain(bank)


def test_names_in_an_index_are_saved_as_a_list(bank, path):
    explainer = MCCE(default_risk, (0, 0.1), immutable=bank.columns[:2], random_state=0).fit(bank)

    loaded = reload(explainer, path)

    assert loaded.immutable == ["age", "sex"]
    assert_same_answers(answers(loaded, bank.head(9)), answers(explainer, bank.head(9)))


def test_an_explainer_that_was_not_fitted_or_was_changed_since_is_not_saved(explainer, path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(explainer).save(path)
    with pytest.raises(NotFittedError, match="random_state was changed after fit"):
        explainer.set_params(random_state=4).save(path)
    assert not path.exists()


def test_training_rows_are_in_the_file_only_if_they_must_be(bank, explainer, path):
    def members():
        explainer.save(path)
        return zipfile.ZipFile(path).namelist()

    assert "training_rows/codes.npy" not in members()
    explainer.set_params(search=bounded(copies="never")).fit(bank)
    assert "training_rows/codes.npy" in members()
    explainer.set_params(search="paper")
    assert "training_rows/codes.npy" not in members()


@pytest.mark.slow
def test_the_same_explainer_gives_the_same_bytes_in_every_run(tmp_path):
    code = """if True:
        import sys, mcce, pandas as pd
        frame = pd.DataFrame({"a": [1, 2, 3] * 4, "b": list("xyzx") * 3})
        grade = lambda f: f["b"].map({"x": "low", "y": "mid", "z": "high"}).to_numpy()
        explainer = mcce.MCCE(grade, {"mid", "high"}, immutable={"b"}, random_state=0)
        explainer.fit(frame).save(sys.argv[1])
        mcce.load(sys.argv[1], grade)
    """
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / seed], env=environment, check=True)

    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_the_file_is_a_zip_of_readable_json_and_arrays(explainer, path):
    explainer.save(path)

    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        document = json.loads(archive.read("explainer.json"))
        values = np.load(archive.open("model/trees/values.npy"), allow_pickle=False)
    assert manifest["format"] == "mcce explainer"
    assert manifest["written_by"]["pandas"] == pd.__version__
    assert document["schema"]["features"][1]["name"] == "sex"
    assert document["draws"] == {"version": 1, "seed": 3}
    np.testing.assert_array_equal(values, explainer.generator_.trees_.values)


class Far(Gower):
    name = "far"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"distance": Far()}, "the parameter distance: it holds a .*Far"),
        ({"distance": Gower(np.ones(4))}, "the parameter distance: it holds a .*Gower"),
    ],
)
def test_a_part_of_your_own_is_named_and_nothing_is_written(bank, path, settings, named):
    explainer = MCCE(default_risk, (0, 0.1), random_state=0, **settings).fit(bank)

    with pytest.raises(SavedFileError, match="Cannot save " + named):
        explainer.save(path)

    assert list(path.parent.iterdir()) == []


def test_a_level_that_is_no_plain_value_is_named(path):
    halves = pd.Series([Fraction(1, 2), Fraction(1, 3)] * 9, dtype=object)
    frame = pd.DataFrame({"share": halves, "n": range(18)})
    kinds = {"share": "categorical"}
    explainer = MCCE(lambda f: f["n"], (9, 99), kinds=kinds, random_state=0).fit(frame)

    with pytest.raises(SavedFileError, match=r"column 'share': it holds a fractions.Fraction"):
        explainer.save(path)


def test_a_time_zone_without_a_name_is_named(path):
    try:
        dates = pd.date_range("2024", periods=18, tz=tz.gettz("Europe/Oslo"))
    except AttributeError:
        pytest.skip("this pandas does not know the zones of this dateutil")
    frame = pd.DataFrame({"t": dates, "n": range(18)})
    explainer = MCCE(lambda f: f["n"], (9, 99), random_state=0).fit(frame)

    with pytest.raises(SavedFileError, match="column 't': its time zone tz"):
        explainer.save(path)


def test_a_file_is_replaced_whole_or_not_at_all(explainer, path, monkeypatch):
    explainer.save(path)
    before = path.read_bytes()

    def stop(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        explainer.set_params(n_samples=50).save(path)

    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_a_link(explainer, path):
    link = path.with_name("link")
    path.touch()
    link.symlink_to(path)

    explainer.save(str(link))

    assert link.is_symlink()
    mcce.load(path, default_risk)


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


def test_a_predictor_that_would_be_called_differently_is_refused(bank, path):
    data = bank[["age", "salary"]]
    poor = data["salary"] < 60_000
    MCCE(LogisticRegression().fit(data, poor), random_state=0).fit(data).save(path)

    with pytest.raises(PredictorError, match=r"called as .*'predict_proba'.*what it returns"):
        mcce.load(path, YesOrNo())


class YesOrNo(DecisionTreeClassifier):
    """A classifier that says only yes or no."""

    predict_proba = None
    classes_ = np.array([False, True])


def test_scores_of_probe_rows_may_be_infinite(bank, path):
    def odds(rows):
        return np.where(rows["salary"] > 60_000, np.inf, rows["salary"] / 60_000)

    data = bank[["age", "salary"]]
    explainer = MCCE(odds, (1, np.inf), immutable=["age"], random_state=0).fit(data)

    loaded = reload(explainer, path)

    assert np.isinf(odds(data)).any()
    assert_same_answers(answers(loaded, data), answers(explainer, data))


def test_probe_rows_that_the_predictor_cannot_score_are_left_out(path):
    prices = {("f", "x"): 1.0, ("m", "y"): 2.0}
    frame = pd.DataFrame({"sex": ["f", "m"] * 9, "plan": ["x", "y"] * 9, "n": range(18)})

    def price(rows):
        pairs = zip(rows["sex"], rows["plan"], strict=True)
        return rows["n"] + np.array([prices[pair] for pair in pairs])

    explainer = MCCE(price, (9, 99), immutable=["sex", "plan"], random_state=0).fit(frame)

    loaded = reload(explainer, path)

    assert_same_answers(answers(loaded, frame), answers(explainer, frame))
