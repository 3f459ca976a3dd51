"""Explainers that were fitted in Python on any kind of frame explain people in any file."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.cli import main

SCORES = {
    "pandas": "frame['salary'].to_numpy() / 135 + 0 * frame['job'].cat.codes.to_numpy()",
    "polars": "frame['salary'].to_numpy() / 135",
    "pyarrow": "frame.column('salary').to_numpy() / 135",
    "array": "frame[:, 1].astype(float) / 135",
}


def training(kind):
    """Training rows in a kind of frame, and the same in pandas."""
    chance = np.random.default_rng(0)
    frame = pd.DataFrame({"age": chance.integers(20, 65, 200)})
    frame["salary"] = chance.integers(20, 90, 200) * 1.5
    if kind == "array":
        return frame.to_numpy(), frame.set_axis(["x0", "x1"], axis=1).astype(float)
    frame["job"] = chance.choice(["clerk", "smith", "diver"], 200)
    if kind == "pandas":
        frame["job"] = frame["job"].astype("category")
        frame["grade"] = pd.Categorical(
            chance.choice(["lo", "hi"], 200), ["lo", "hi"], ordered=True
        )
        frame["since"] = pd.Timestamp("2020-01-31") + pd.to_timedelta(frame["age"], unit="D")
        return frame, frame
    polars = pytest.importorskip("polars").from_pandas(frame)
    return (polars if kind == "polars" else polars.to_arrow()), frame


@pytest.mark.parametrize("kind", SCORES)
def test_people_in_files_get_the_answers_of_python(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"scoring_{kind}"
    (tmp_path / f"{name}.py").write_text(f"def score(frame):\n    return {SCORES[kind]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    given, frame = training(kind)
    score = __import__(name).score
    explainer = mcce.MCCE(score, (0.6, 9.0), random_state=0).fit(given)
    explainer.save("own.mcce")
    people = frame.head(40)
    people.to_csv("people.csv", index=False)
    people.to_parquet("people.parquet", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mcce.McceWarning)
        expected = explainer.explain(given[:40]).to_pandas().frame

    command = ["explain", "own.mcce", "--predictor", f"{name}:score", "--block-rows", "17", "-q"]
    for source in ("csv", "parquet"):
        assert main([*command, f"people.{source}", "-o", f"{source}.parquet"]) == 0

    assert (tmp_path / "csv.parquet").read_bytes() == (tmp_path / "parquet.parquet").read_bytes()
    table = pd.read_parquet("csv.parquet")
    answers = table[table["rank"].notna()]
    for column in expected:
        pairs = zip(answers[column], expected[column], strict=True)
        assert all(ours == theirs for ours, theirs in pairs), column
