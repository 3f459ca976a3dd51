"""The paper's black boxes: trained once, kept, applied with NumPy."""

import sys
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.datasets import load, simulate
from mcce.errors import MissingExtraError, ParameterError
from mcce.experiments.design import Design
from mcce.experiments.predictors import NETWORK_SETTINGS, Network, black_box


@pytest.fixture(scope="module")
def german():
    return load("german", form="paper")


def test_a_network_is_what_it_is_by_hand():
    rows = pd.DataFrame({"x": [0.0, 10.0, 5.0]})
    hidden = np.array([[2.0, -1.0]]), np.array([0.0, 0.5])
    last = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.0, -1.0])
    # x scaled: 0, 1, .5; hidden (0, .5), (2, 0), (1, 0); outputs (.5, -1), (0, 1), (0, 0).
    score = Network(Design.learn(rows), [hidden, last])(rows)
    assert score == pytest.approx([1 / (1 + np.exp(1.5)), 1 / (1 + np.exp(-1)), 0.5])


def test_a_network_answers_for_no_rows():
    rows = pd.DataFrame({"x": [0.0, 10.0]})
    network = Network(Design.learn(rows), [(np.ones((1, 2)), np.zeros(2))])
    assert network(rows.iloc[:0]).shape == (0,)


def test_a_network_that_is_sure_does_not_overflow():
    rows = pd.DataFrame({"x": [0.0, 1.0]})
    network = Network(Design.learn(rows), [(np.array([[-1e6, 1e6]]), np.zeros(2))])
    assert network(rows).tolist() == [0.5, 1.0]


def test_a_design_scales_numbers_to_the_range_and_marks_all_levels_but_the_first():
    job = pd.Categorical(["b", "a", "c"], categories=["a", "b", "c"])
    rows = pd.DataFrame({"age": [20, 30, 40], "same": [1, 1, 1], "job": job})
    design = Design.learn(rows)
    assert design(rows).tolist() == [[0, 0, 1, 0], [0.5, 0, 0, 0], [1, 0, 0, 1]]
    renamed = rows.assign(job=rows["job"].cat.reorder_categories(["c", "b", "a"]))
    assert design(renamed).tolist() == design(rows).tolist(), "levels go by name, not by position"


def test_a_kept_network_is_read_without_torch(german, bench_cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    box = black_box(german)
    assert box.published_auc == 0.80
    assert 0.6 <= box.auc <= 1
    scores = box.predict(german.features)
    assert ((scores > 0) & (scores < 1)).all()
    assert len(box.heldout) == 250
    assert not box.heldout.duplicated().any()


def test_its_auc_is_that_of_the_rows_it_was_not_trained_on(german, bench_cache):
    from sklearn.metrics import roc_auc_score

    box = black_box(german)
    heldout, good = german.features.loc[box.heldout], german.target.loc[box.heldout] == "good"
    assert roc_auc_score(good, box.predict(heldout)) == pytest.approx(box.auc, abs=1e-4)


def test_without_torch_a_network_that_is_not_kept_names_the_extra(german, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"mcce\[deep\]"):
        black_box(german, cache=tmp_path)


def test_the_command_names_the_extra_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("MCCE_CACHE", str(tmp_path / "cache"))
    assert main(["experiments", "costs", "--quick", "--out", str(tmp_path)]) == 2
    assert 'pip install "mcce[deep]"' in capsys.readouterr().err


def test_torch_trains_a_network_that_is_kept_and_found_again(german, tmp_path):
    pytest.importorskip("torch")
    rows = german.features.head(200)
    small = replace(german, features=rows, target=german.target.head(200))
    one = black_box(small, seed=3, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    other = black_box(small, seed=3, cache=tmp_path)
    assert file.stat().st_mtime_ns == written
    assert one.predict(rows).tolist() == other.predict(rows).tolist()
    black_box(small, seed=4, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2, "another seed is another black box"
    file.write_bytes(file.read_bytes()[:100])
    again = black_box(small, seed=3, cache=tmp_path)
    assert again.predict(rows).tolist() == one.predict(rows).tolist(), "a damaged file is made anew"


def test_a_forest_is_kept_and_found_again(german, tmp_path):
    one = black_box(german, "forest", cache=tmp_path)
    assert one.auc > 0.7
    assert np.isnan(one.published_auc)
    other = black_box(german, "forest", cache=tmp_path)
    few = german.features.head(20)
    assert one.predict(few).tolist() == other.predict(few).tolist()
    assert len(list(tmp_path.iterdir())) == 1


def test_other_rows_levels_or_outcomes_are_another_black_box(german, tmp_path):
    from mcce.experiments.predictors import _digest

    rows, good = german.features, german.target == german.desired
    changed = rows.assign(Duration=rows["Duration"] + 1)
    others = [
        (changed, good),
        (rows, good.iloc[::-1]),
        (load("german", form="levels").features, good),
    ]
    settings = asdict(NETWORK_SETTINGS["German Credit"])
    digests = {_digest(*data, settings, 0) for data in ((rows, good), *others)}
    digests |= {_digest(rows, good, settings, 0, is_forest=True), _digest(rows, good, settings, 1)}
    assert len(digests) == 6


def test_data_without_settings_and_unknown_kinds_are_errors(german):
    with pytest.raises(ParameterError, match="predictors for Adult"):
        black_box(simulate(20, 3))
    with pytest.raises(ParameterError, match="kind must be"):
        black_box(german, "svm")


def test_a_cache_that_cannot_be_made_is_an_error_that_names_the_variable(german, tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(ParameterError, match="MCCE_CACHE"):
        black_box(german, "forest", cache=file / "cache")
