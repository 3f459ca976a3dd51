"""An explainer with a private model: what it refuses, and that it keeps nothing of the rows."""

import io
import json
import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import (
    IVDM,
    MCCE,
    Domain,
    ExactSearch,
    Gower,
    McceWarning,
    NotFittedError,
    ParameterError,
    PrivateTrees,
    SchemaError,
    Search,
)
from private_bank import DESIRED, IMMUTABLE, bank, declined, domains, explainer, private, score

WORKING = {
    "paper": {},
    "fast": {"search": "fast", "ignore_relations": True},
    "fast without relations": {"search": Search.preset("fast", consequences="none")},
    "exact": {"search": "exact", "ignore_relations": True},
}
REFUSED = {
    "balanced": {"search": "balanced"},
    "sparse": {"search": "sparse", "ignore_relations": True},
    "plausible": {"search": "plausible"},
    "near": {"search": "near", "ignore_relations": True},
    "fast": {"search": "fast"},
    "exact": {"search": "exact"},
    "exact, ignoring some": {"search": "exact", "ignore_relations": ["a = b"]},
    "no copies": {"search": Search.preset("paper", copies="never")},
    "plausible draws": {"search": Search.preset("paper", min_plausibility=0.1)},
    "exact without copies": {"search": ExactSearch(copies="never"), "ignore_relations": True},
}


@pytest.mark.parametrize("name", WORKING)
def test_searches_that_read_no_rows_work(name):
    frame = bank()
    people = declined(frame)

    result = explainer(private(depth=1), **WORKING[name]).fit(frame).explain(people)

    assert len(result.frame) > 10
    assert (score(result.frame) >= DESIRED[0]).all()
    assert not result.changes()["feature"].isin(IMMUTABLE).any()


@pytest.mark.parametrize("name", REFUSED)
def test_searches_that_read_rows_are_refused_at_fit_and_later(name):
    with pytest.raises(ParameterError, match=r"private, but the search .* Use search='paper'"):
        explainer(**REFUSED[name]).fit(bank())

    fitted = explainer(private(depth=1)).fit(bank()).set_params(**REFUSED[name])
    with pytest.raises((ParameterError, NotFittedError)):
        fitted.explain(declined(bank()))


class MeanDistance(Gower):
    name = "mean"
    reads_rows = True


@pytest.mark.parametrize(
    ("distance", "name"), [(MeanDistance(), "mean"), ("hvdm", "hvdm"), (IVDM(), "ivdm")]
)
def test_distances_that_read_rows_are_refused(distance, name):
    with pytest.raises(ParameterError, match=f"distance {name!r} learns from training rows"):
        explainer(distance=distance).fit(bank())


@pytest.mark.parametrize("distance", ["l1", "heom"])
def test_distances_that_need_ranges_alone_are_not(distance):
    fitted = explainer(distance=distance).fit(bank())

    assert fitted.distance_.name == distance


def test_counting_people_without_noise_is_refused():
    fitted = explainer(private(depth=1)).fit(bank())
    wanted = {"anonymity": 5, "quasi_identifiers": ["housing"], "training": bank()}

    with pytest.raises(ParameterError, match="private, but anonymity counts training people"):
        fitted.explain(declined(bank()), **wanted)


def test_a_warning_of_rows_left_out_points_to_the_call_and_tells_no_cell():
    with pytest.warns(McceWarning, match=r"\['housing'\] do not declare") as caught:
        explainer(private(depth=0)).fit(planted())

    assert [warning.filename for warning in caught] == [__file__]
    assert "Qvortrup" not in str(caught[0].message)


def test_a_model_by_name_says_what_it_needs():
    with pytest.raises(ParameterError, match="needs the public domain of every column"):
        MCCE(score, DESIRED, generator="private").fit(bank())


def test_to_fit_again_with_other_columns_is_refused():
    frame = bank()
    fitted = explainer(private(depth=1)).fit(frame)

    with pytest.raises(ParameterError, match="spend its budget once for each"):
        fitted.relax(declined(frame), frame)
    assert fitted.relax(declined(frame)) is not None


def test_one_answer_whatever_the_batch_and_the_threads():
    frame = bank()
    people = declined(frame, 12)
    fitted = explainer(private(depth=1)).fit(frame)

    whole = fitted.explain(people).frame
    parts = [fitted.explain(people.iloc[[at]]).frame for at in range(12)]
    backwards = fitted.set_params(n_jobs=2).explain(people.iloc[::-1]).frame

    assert whole.equals(pd.concat(parts))
    assert whole.equals(backwards.loc[whole.index])


def test_ranges_are_those_of_the_domains_and_not_of_the_rows():
    frame = bank()
    fitted = explainer(private(depth=1)).fit(frame)
    result = fitted.explain(declined(frame))

    assert fitted.schema_.spreads.tolist() == [120.0, 200.0, 0.0]
    own, answer = frame.loc[result.frame.index[0][0]], result.frame.iloc[0]
    gaps = [abs(own["salary"] - answer["salary"]) / 120, abs(own["debt"] - answer["debt"]) / 200]
    gaps.append(float(own["housing"] != answer["housing"]))
    assert result.measures["gower"].iloc[0] == pytest.approx(sum(gaps) / 5)
    ranges = fitted.ranges(result)
    assert ranges["n_training"].isna().all()


def test_what_is_left_of_a_fit_is_the_same_for_other_rows_but_for_the_noise():
    """Everything but the trees and the noisy count depends on domains alone."""
    first = explainer(private(depth=1)).fit(bank(seed=1)).fitted_
    second = explainer(private(depth=1)).fit(bank(400, seed=2)).fitted_

    assert first.plausibility is first.surrogate is first.relations is None
    assert first.training_rows is first.value_counts is first.label_rule is None
    pairs = zip(first.schema.features, second.schema.features, strict=True)
    assert all(a.table.equals(b.table) and a.name == b.name for a, b in pairs)


PLANTED = {"salary": 77.31415926, "debt": 12.34567891, "age": 61}


def planted():
    """Rows with cells that cannot be mistaken, and one with a level that nobody declared."""
    frame = bank()
    frame.loc[:5, "salary"] = PLANTED["salary"]
    frame.loc[:5, "debt"] = PLANTED["debt"]
    frame.loc[6, "housing"] = "Qvortrup"
    frame.index = [f"Qvortrup {row}" for row in range(len(frame))]
    return frame


def contents(path):
    """All bytes of a saved file, decompressed, and all its floats and integers."""
    texts, numbers = [], set()
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            texts.append(data)
            if name.endswith(".npy"):
                numbers |= set(np.load(io.BytesIO(data)).ravel().tolist())
            elif name.endswith(".json"):
                numbers |= set(_numbers(json.loads(data)))
    return b"\n".join(texts), numbers


def _numbers(value):
    if isinstance(value, dict):
        return [n for item in value.values() for n in _numbers(item)]
    if isinstance(value, list):
        return [n for item in value for n in _numbers(item)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def without(frame):
    """The rows that are left out for their level, with a warning, are in no file either."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer(private(seed=None, depth=1)).fit(frame)


def test_a_saved_explainer_holds_no_training_value(tmp_path):
    frame = planted()
    fitted = without(frame)
    fitted.save(tmp_path / "bank.mcce")

    data, numbers = contents(tmp_path / "bank.mcce")

    assert b"Qvortrup" not in data
    assert b"77.314" not in data
    assert b"12.3456" not in data
    assert not {PLANTED["salary"], PLANTED["debt"]} & numbers
    # Of all cells with decimals none is there, and neither is a score of a training row.
    cells = set(frame["salary"].dropna()) | set(frame["debt"]) - {0.0}
    assert not cells & numbers
    assert not set(score(frame)) & numbers
    for number in (*PLANTED.values(),):
        if isinstance(number, float):
            assert np.float64(number).tobytes() not in data
    # A file of the usual model would be found out.
    MCCE(score, DESIRED, immutable=IMMUTABLE).fit(frame).save(tmp_path / "open.mcce")
    data, numbers = contents(tmp_path / "open.mcce")
    assert b"Qvortrup" in data
    assert PLANTED["salary"] in numbers or b"77.314" in data


def test_a_pickled_explainer_holds_no_training_value():
    fitted = without(planted())

    data = pickle.dumps(fitted.fitted_.schema) + pickle.dumps(fitted.fitted_.generator)

    assert b"Qvortrup" not in data
    assert np.float64(PLANTED["salary"]).tobytes() not in data
    assert np.float64(PLANTED["debt"]).tobytes() not in data


def test_a_loaded_explainer_gives_the_same_answers(tmp_path):
    frame = bank()
    fitted = explainer(private(seed=None, depth=2)).fit(frame)
    people = declined(frame)
    fitted.save(tmp_path / "bank.mcce")

    again = mcce.load(tmp_path / "bank.mcce", score)

    assert again.explain(people).frame.equals(fitted.explain(people).frame)
    assert again.n_desired_ == fitted.n_desired_
    assert again.generator == fitted.generator or again.generator.domains == domains()


def test_domains_of_a_file_are_saved_themselves(tmp_path):
    from mcce.model import plain_domains

    path = tmp_path / "domains.json"
    path.write_text(json.dumps(plain_domains(domains())), encoding="utf-8")
    fitted = explainer(PrivateTrees(domains=str(path), depth=1)).fit(bank())
    fitted.save(tmp_path / "bank.mcce")
    path.unlink()

    again = mcce.load(tmp_path / "bank.mcce", score)

    assert again.generator.domains == domains()


def test_a_file_with_other_domains_is_refused(tmp_path):
    fitted = explainer(private(seed=None, depth=1)).fit(bank())
    wider = {**domains(), "debt": Domain(low=0, high=300, atoms=[0], bins=10)}
    fitted.generator = fitted.generator.set_params(domains=wider)
    object.__setattr__(fitted.fitted_, "parameters", mcce.parameters.learned_parameters(fitted))
    fitted.save(tmp_path / "bank.mcce")

    with pytest.raises(mcce.SavedFileError):
        mcce.load(tmp_path / "bank.mcce", score)


@pytest.mark.parametrize(
    "change",
    [
        {"depths": np.array([1])},
        {"depths": np.array([1, 1, 99])},
        {"depths": np.array([2, 1, 1])},
        {"depths": np.array([1.0, 1.0, 1.0])},
        {"visit_order": np.array([2, 3])},
    ],
)
def test_arrays_that_no_fit_gave_are_refused(change):
    fitted = explainer(private(depth=1)).fit(bank()).generator_

    with pytest.raises(mcce.SavedFileError):
        private(depth=1).from_arrays({**fitted.to_arrays(), **change}, fitted.schema_)


def test_the_number_of_accepted_rows_has_noise():
    frame = bank()
    n = int((score(frame) >= DESIRED[0]).sum())
    found = {explainer(private(seed=s, depth=0)).fit(frame).n_desired_ for s in range(5)}

    assert len(found) > 1
    assert all(abs(one - n) < 60 for one in found)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_other_frames_work(kind):
    library = pytest.importorskip(kind)
    frame = bank().drop(columns="housing")
    known = {name: domain for name, domain in domains().items() if name != "housing"}

    def make(rows):
        plain = rows.reset_index(drop=True)
        if kind == "polars":
            return library.from_pandas(plain)
        return library.Table.from_pandas(plain, preserve_index=False)

    def f(rows):
        plain = rows.to_pandas()
        return np.asarray(plain["salary"].fillna(30) / 100)

    model = MCCE(f, (0.6, 2.0), immutable=IMMUTABLE, generator=private(domains=known, depth=1))
    people = make(frame[f_pandas(frame) < 0.6].head(5))

    result = model.set_params(random_state=0, n_samples=200).fit(make(frame)).explain(people)

    assert type(result.frame) is type(people)
    assert len(result.frame) == 5


def f_pandas(frame):
    return np.asarray(frame["salary"].fillna(30) / 100)


WHOLE = pd.DataFrame({"age": [30, 40, 50], "kids": [0, 1, 2]})
AGES = Domain(low=18, high=90, step=1)


@pytest.mark.parametrize(
    ("dtype", "domain", "message"),
    [
        ("Int64", Domain(low=0, high=9), "whole numbers by its dtype Int64.* step=1"),
        ("Int8", Domain(low=0, high=300, step=1), "do not fit its dtype Int8"),
        ("int64", Domain(levels=["0", "1", "2"], other="0"), "do not fit its dtype int64"),
    ],
)
def test_domains_of_another_type_than_the_column_are_refused(dtype, domain, message):
    generator = PrivateTrees(domains={"age": AGES, "kids": domain})

    with pytest.raises(ParameterError, match=message):
        generator.encode_training(WHOLE.astype({"kids": dtype}))


def test_no_rows_are_refused():
    levels = Domain(levels=[0, 1, 2])

    with pytest.raises(SchemaError, match=r"0 sample\(s\)"):
        PrivateTrees(domains={"age": AGES, "kids": levels}).encode_training(WHOLE[:0])
