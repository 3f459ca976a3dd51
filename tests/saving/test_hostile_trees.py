"""Trees in a file that no chain could have grown: each chain refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, McceError, SavedFileError
from mcce.saving import archive
from saved import answers


def score(frame: pd.DataFrame) -> np.ndarray:
    return frame["points"].to_numpy() + 3 * (frame["size"] == "l").to_numpy()


@pytest.fixture(scope="module")
def train() -> pd.DataFrame:
    chance = np.random.default_rng(0)
    n = 400
    group = chance.integers(0, 3, n)
    return pd.DataFrame(
        {
            "group": np.array(["x", "y", "z"])[group],
            "points": group * 4 + chance.integers(0, 6, n),
            "size": np.array(["s", "m", "l"])[(group + chance.integers(0, 2, n)) % 3],
            "debt": group + chance.integers(0, 4, n),
        }
    ).astype({"group": object, "size": object})


@pytest.fixture(scope="module")
def path(train, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "whole.mcce"
    settings: dict[str, Any] = {"immutable": ["group"], "search": "balanced", "random_state": 1}
    MCCE(score, (8, 99), n_samples=50, **settings).fit(train).save(path)
    return path


@pytest.fixture
def document(path) -> dict[str, Any]:
    return archive.read(path)


CHAINS = ("model", "accepted rows", "all rows")


def trees_of(document: dict[str, Any], chain: str) -> dict[str, Any]:
    if chain == "model":
        return document["model"]["trees"]
    return document["accepted"]["chains"][CHAINS.index(chain) - 1]["trees"]


def refusal(document: dict[str, Any], folder: Path) -> str:
    archive.write(folder / "hostile.mcce", document)
    with pytest.raises(SavedFileError) as caught:
        mcce.load(folder / "hostile.mcce", score)
    return str(caught.value)


def test_the_file_itself_loads(path, train):
    assert len(answers(mcce.load(path, score), train.head(5)).people) == 5


@pytest.mark.parametrize("chain", CHAINS)
def test_branches_that_cross_are_refused(document, tmp_path, chain):
    # The children of two nodes exchanged: every node still has one parent before it.
    trees = trees_of(document, chain)
    inner = np.flatnonzero(trees["feature"] >= 0)
    nested = [
        (node, node + 1)
        for node in inner
        if node + 1 in inner and trees["right"][node + 1] < trees["right"][node]
    ]
    outer, below = nested[0]
    right = trees["right"]
    right[outer], right[below] = right[below], right[outer]

    assert "do not follow each other" in refusal(document, tmp_path)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_split_on_what_the_tree_predicts_is_refused(document, tmp_path, chain):
    trees = trees_of(document, chain)
    responses = document["model"]["visit_order"]
    if chain != "model":
        number = CHAINS.index(chain) - 1
        responses = document["accepted"]["chains"][number]["responses"]
    for tree, root in enumerate(trees["roots"]):
        if trees["feature"][root] >= 0:
            trees["feature"][root] = responses[tree]

    assert "column that it cannot know" in refusal(document, tmp_path)


@pytest.mark.parametrize("chain", CHAINS[1:])
def test_only_a_chain_that_is_given_the_decision_splits_on_it(document, tmp_path, chain):
    trees = trees_of(document, chain)
    trees["feature"][np.flatnonzero(trees["feature"] >= 0)[0]] = 4

    assert "column that it cannot know" in refusal(document, tmp_path)


def test_the_chain_of_all_rows_splits_on_no_later_number(document, tmp_path):
    # Its responses are categorical, but numbers have a place in the visit order too.
    trees = trees_of(document, "all rows")
    trees["feature"][np.flatnonzero(trees["feature"] >= 0)[0]] = 3

    assert "column that it cannot know" in refusal(document, tmp_path)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("value", [-1, 2**31 - 1, -(2**31), 10**6])
def test_a_cut_beyond_the_codes_of_its_column_is_refused(document, tmp_path, chain, value):
    trees = trees_of(document, chain)
    trees["cut"][np.flatnonzero(trees["feature"] >= 0)[0]] = value

    assert "is cut at a value" in refusal(document, tmp_path)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("value", [-1, 2**31 - 1])
def test_a_leaf_value_that_is_no_code_is_refused(document, tmp_path, chain, value):
    trees = trees_of(document, chain)
    trees["values"][0 if value < 0 else -1] = value

    assert "leaves hold values" in refusal(document, tmp_path)


@pytest.mark.parametrize("chain", CHAINS[1:])
def test_a_leaf_of_the_support_is_never_empty(document, tmp_path, chain):
    trees = trees_of(document, chain)
    leaf = np.flatnonzero(trees["feature"] == -1)
    trees["count"][leaf[1]] += trees["count"][leaf[0]]
    trees["count"][leaf[0]] = trees["start"][leaf[1]] = 0
    # One leaf of one value, so that values still ascend.
    trees["values"][: trees["count"][leaf[1]]] = 0

    assert "the trees are not whole" in refusal(document, tmp_path)


def change_accepted(document: dict[str, Any], name: str) -> None:
    accepted = document["accepted"]
    chains, calibration = accepted["chains"], accepted["calibration"]
    tail, models = calibration["usual"], accepted["conditionals"]
    {
        "negative": lambda: calibration.update(usual=-tail[::-1]),
        "descending": lambda: calibration.update(usual=np.arange(tail.size)[::-1] + 1.0),
        "infinite": lambda: calibration.update(usual=np.full(tail.size, np.inf)),
        "undefined": lambda: calibration.update(usual=np.full(tail.size, np.nan)),
        "many": lambda: calibration.update(usual=np.zeros(10**4)),
        "whole numbers": lambda: calibration.update(usual=tail.astype(np.int64)),
        "wide": lambda: calibration.update(usual=tail[:, None]),
        "few": lambda: calibration["parts"].append(calibration["parts"].pop()[1:]),
        "a part less": lambda: calibration["parts"].pop(),
        "a part more": lambda: calibration["parts"].append(calibration["parts"][0]),
        "no parts": lambda: calibration.update(parts={}),
        "more rare": lambda: calibration.update(rare=np.zeros(1)),
        "a list of rare": lambda: calibration.update(rare=[1.0]),
        "a model less": lambda: models.pop(),
        "a model twice": lambda: models.append(models[-1]),
        "no models": lambda: accepted.update(conditionals={}),
        "a model of a level": lambda: models[0].update(position=0),
        "a model beyond": lambda: models[0].update(position=4),
        "no error": lambda: models[0].update(error=None),
        "no smallest error": lambda: models[0].update(least=0.0),
        "negative error": lambda: models[0].update(least=-1.0),
        "no centre": lambda: models[0].update(centre="0"),
        "its own input": lambda: models[0].update(models[1] | {"position": 1}),
        "a cut": lambda: models[0]["mean"]["cut"].fill(2**31 - 1),
        "a child": lambda: models[0]["mean"]["left"].fill(0),
        "an input": lambda: models[0]["mean"]["inputs"].fill(99),
        "a bin less": lambda: models[0]["mean"].update(bins=models[0]["mean"]["bins"][1:]),
        "a chain less": lambda: chains.pop(),
        "a chain more": lambda: chains.append(chains[0]),
        "chains swapped": lambda: chains.reverse(),
        "order": lambda: chains[0].update(responses=np.array([2, 1, 3])),
        "one more": lambda: accepted.update(more=1),
    }[name]()


@pytest.mark.parametrize(
    "name",
    ["negative", "descending", "infinite", "undefined", "many", "whole numbers", "wide", "few",
     "a part less", "a part more", "no parts", "more rare", "a list of rare", "a model less",
     "a model twice", "no models", "a model of a level", "a model beyond", "no error",
     "no smallest error", "negative error", "no centre", "its own input", "a cut", "a child",
     "an input", "a bin less", "a chain less", "a chain more", "chains swapped", "order",
     "one more"],
)  # fmt: skip
def test_what_could_not_have_been_learned_of_accepted_rows_is_refused(document, tmp_path, name):
    change_accepted(document, name)

    assert refusal(document, tmp_path)


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("model", "n_desired"), 0),
        (("model", "n_desired"), 7),
        (("model", "n_desired"), -1),
        (("model", "n_desired"), True),
        (("draws", "seed"), -1),
        (("draws", "seed"), 2.0),
        (("accepted",), None),
        (("training_rows",), {"codes": np.zeros((1, 4), np.int32)}),
        (("parameters", "immutable"), ["size"]),
        (("parameters", "immutable"), None),
        (("parameters", "kinds"), 3),
        (("parameters", "kinds"), {"dict": [["shoe", "numeric"]]}),
        (("parameters", "kinds"), {"dict": [["debt", "categorical"]]}),
        (("parameters", "n_jobs"), {"int": hex(10**400)}),
        (("parameters", "verbose"), {"int": hex(10**400)}),
        (("parameters", "max_seconds"), {"numpy": ["<f16", 5]}),
        (("parameters", "more"), 1),
        (("parameters", "search"), {"search": {"dict": [["copies", "never"]]}}),
        (("schema", "features", 0, "immutable"), 1),
        (("predictor", "scores"), np.full(8, np.nan)),
        (("predictor", "probes"), np.zeros((4, 0), np.int32)),
        (("more",), 1),
    ],
)
def test_parts_that_do_not_go_together_are_refused(document, tmp_path, way, value):
    *before, last = way
    place = document
    for key in before:
        place = place[key]
    place[last] = value

    refusal(document, tmp_path)


@pytest.mark.parametrize(
    "desired",
    [
        {"int": hex(10**6000)},
        [{"int": hex(10**6000)}, {"tuple": [{"int": hex(10**6000)}]}],
        [{"decimal": "sNaN"}],
        {"tuple": [0, {"int": hex(10**400)}]},
        [{"tuple": [[]]}],
    ],
)
def test_desired_values_that_python_cannot_handle_are_an_error_of_ours(document, tmp_path, desired):
    document["parameters"]["desired"] = desired
    archive.write(tmp_path / "hostile.mcce", document)

    with pytest.raises(McceError):
        mcce.load(tmp_path / "hostile.mcce", score)


@pytest.mark.parametrize("chain", CHAINS[1:])
def test_small_leaves_of_the_support_are_refused(document, tmp_path, chain):
    trees = trees_of(document, chain)
    first, second = np.flatnonzero(trees["count"])[:2]
    trees["count"][second] += trees["count"][first] - 1
    trees["count"][first] = 1
    trees["start"][second] = trees["start"][first] + 1
    both = slice(trees["start"][second], trees["start"][second] + trees["count"][second])
    trees["values"][both].sort()

    assert "leaves that are too small" in refusal(document, tmp_path)
