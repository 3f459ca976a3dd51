"""The black boxes of the experiments: networks that are trained once and kept."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from mcce_lab.cli import main
from mcce_lab.datasets import load
from mcce_lab.experiments.predictors import black_box

pytest.importorskip("torch", reason="torch is not installed")


def test_a_trained_network_is_kept_found_again_and_made_anew_if_damaged(tmp_path):
    german = load("german", form="paper")
    rows = german.features.head(200)
    few = replace(german, features=rows, target=german.target.head(200))

    one, other = (black_box(few, seed=3, cache=tmp_path) for _ in range(2))

    (file,) = tmp_path.iterdir()
    assert one.predict(rows).tolist() == other.predict(rows).tolist()
    file.write_bytes(file.read_bytes()[:100])
    again = black_box(few, seed=3, cache=tmp_path)
    assert again.predict(rows).tolist() == one.predict(rows).tolist()
    black_box(few, seed=4, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_networks_on_several_splits_are_put_beside_the_published_auc(tmp_path, capsys):
    arguments = ["--quick", "--dataset", "german", "--seeds", "2", "--out", str(tmp_path)]
    assert main(["experiments", "splits", *arguments]) == 0

    (split,) = pd.read_csv(tmp_path / "splits-splits.csv").to_dict("records")
    (compared,) = pd.read_csv(tmp_path / "splits-published.csv").to_dict("records")
    assert 0.6 <= split["least"] < split["auc"] < split["most"] < 0.85
    assert (compared["published"], compared["ours"]) == (0.8, split["auc"])
