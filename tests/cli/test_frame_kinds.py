"""Explainers that were fitted in Python on any kind of frame explain people in any file."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

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
def test_people_in_files_get_the_answers_of_python(kind, here):
    Path("own_scoring.py").write_text(f"def score(frame):\n    return {SCORES[kind]}\n")
    score = runpy.run_path("own_scoring.py")["score"]
    given, frame = training(kind)
    explainer = mcce.MCCE(score, (0.6, 9.0), random_state=0).fit(given)
    explainer.save("own.mcce")
    frame.head(40).to_csv("people.csv", index=False)
    frame.head(40).to_parquet("people.parquet", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mcce.McceWarning)
        expected = explainer.finalize(explainer.explain(given[:40])).to_pandas().frame

    command = ["explain", "own.mcce", "--predictor", "own_scoring:score", "--block-rows", "17"]
    for source in ("csv", "parquet"):
        assert main([*command, f"people.{source}", "-o", f"{source}.parquet", "-q"]) == 0

    assert Path("csv.parquet").read_bytes() == Path("parquet.parquet").read_bytes()
    table = pd.read_parquet("csv.parquet")
    answers = table[table["rank"].notna()]
    for column in expected:
        pairs = zip(answers[column], expected[column], strict=True)
        assert all(ours == theirs for ours, theirs in pairs), column
