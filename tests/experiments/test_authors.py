"""The authors' code and ours: a tiny folder of made-up answers, and the real one if it is there."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.errors import ParameterError
from mcce.experiments.authors import ReferenceNetwork, read_reference, remarks
from mcce.experiments.experiment import Options, ProgressLine

NETWORK = {
    "input_names": np.array(["salary", "job_works"]),
    "natural_mean": np.array([50.0, 0.0]),
    "natural_sd": np.array([10.0, 1.0]),
    "coef_0": np.array([[1.0, -1.0], [1.0, 0.0]]),
    "intercept_0": np.array([0.0, 0.0]),
    "coef_1": np.array([[1.0], [-1.0]]),
    "intercept_1": np.array([-0.5]),
}
N_TRAIN, N_PEOPLE = 200, 20


def write_reference(folder, *, stated=0.0):
    """A folder as of the authors' code, where they changed the salary of everybody by 30."""
    chance = np.random.default_rng(0)
    train = pd.DataFrame(
        {
            "age": chance.integers(20, 60, N_TRAIN),
            "salary": chance.integers(20, 90, N_TRAIN),
            "job": chance.choice(["rests", "works"], N_TRAIN),
        }
    ).rename_axis("row")
    score = ReferenceNetwork(NETWORK)(train)
    people = train[score < 0.5].head(N_PEOPLE)
    answers = people.assign(salary=people["salary"] + 30, L0=1.0, L1=30 / np.ptp(train["salary"]))
    meta = {"immutables": ["age"], "target": "good", "K": 50, "auc": 0.9}
    meta["reference"] = {"fit_cpu": 1.0, "gen_cpu": 2.0, "post_cpu": 3.0}
    folder.mkdir()
    train.assign(good=(score >= 0.5).astype(int)).to_csv(folder / "train.csv.gz")
    people.assign(good=0, pred_prob=score[people.index] + stated).to_csv(folder / "factuals.csv.gz")
    answers.sample(frac=1.0, random_state=0).to_csv(folder / "reference_cfs.csv.gz")
    (folder / "meta.json").write_text(json.dumps(meta))
    np.savez(folder / "model.npz", **NETWORK)
    return folder


def test_the_network_is_what_it_is_by_hand():
    rows = pd.DataFrame({"salary": [50, 60, 30], "job": ["rests", "works", "works"]})

    score = ReferenceNetwork(NETWORK)(rows)

    # Scaled 0, 1, -2; hidden (0, 0), (2, 0), (0, 2); outputs -.5, 1.5, -2.5.
    assert score == pytest.approx(1 / (1 + np.exp([0.5, -1.5, 2.5])))


def test_a_folder_becomes_a_case(tmp_path):
    case = read_reference(write_reference(tmp_path / "german")).case

    assert (case.name, case.immutable, case.n_samples) == ("german", ["age"], 50)
    assert len(case.train) == N_TRAIN
    assert len(case.factuals) == N_PEOPLE
    assert list(case.train.columns) == list(case.factuals.columns) == ["age", "salary", "job"]
    assert case.train["job"].dtype == case.factuals["job"].dtype == "category"
    assert not case.decide(case.factuals).any()


@pytest.mark.parametrize(
    "file", ["train.csv.gz", "factuals.csv.gz", "reference_cfs.csv.gz", "meta.json", "model.npz"]
)
def test_a_missing_file_is_an_error_that_names_it(file, tmp_path):
    folder = write_reference(tmp_path / "german")
    (folder / file).unlink()

    with pytest.raises(ParameterError, match=f"need {file} in .*german.*--reference"):
        read_reference(folder)


def test_a_network_that_scores_otherwise_than_stated_is_an_error(tmp_path):
    with pytest.raises(ParameterError, match=r"differs by up to 0\.1"):
        read_reference(write_reference(tmp_path / "german", stated=0.1))


def test_costs_are_compared_person_by_person_whatever_the_order_of_the_answers(tmp_path):
    pytest.importorskip("matplotlib")
    write_reference(tmp_path / "german")
    arguments = ["--dataset", "german", "--seeds", "2", "--out", str(tmp_path / "out")]

    assert main(["experiments", "authors", "--reference", str(tmp_path), *arguments]) == 0

    table = pd.read_csv(tmp_path / "out/authors-results.csv").set_index("code")
    assert table.loc["authors'", ["l0", "n_ce", "total"]].tolist() == [1, N_PEOPLE, 6]
    assert table.loc["ours", ["n_ce", "seeds"]].tolist() == [N_PEOPLE, 2]
    compared = pd.read_csv(tmp_path / "out/authors-published.csv").set_index("what")
    for cost in ("l0", "l1"):
        line = compared.loc[f"german {cost}, authors' code"]
        assert line["published"] == pytest.approx(table.loc["authors'", cost])
        assert line["ours"] == pytest.approx(table.loc["ours", cost])
        difference = line["ours"] - line["published"]
        assert f": {difference:+.2f} [" in line["remark"]
    text = (tmp_path / "out/authors.md").read_text()
    assert "german: 6.0 CPU seconds of the authors' code" in text


def test_people_are_paired_by_their_row_number(tmp_path):
    from mcce.experiments.authors import _ours

    work = read_reference(write_reference(tmp_path / "german"))
    options = Options(("german",), None, 1, tmp_path, True, reference=tmp_path)

    _, costs = _ours(work, options, ProgressLine("authors", silent=True))

    assert costs.index.tolist() == work.case.factuals.index.tolist()
    assert set(costs.index) == set(work.answers.index)
    assert costs.index.tolist() != work.answers.index.tolist(), "the answers are shuffled"


def tables(remark):
    results = pd.DataFrame({"dataset": ["a", "a"], "code": ["authors'", "ours"], "total": [6, 0.5]})
    return {"results": results, "published": pd.DataFrame({"remark": [remark, "two machines"]})}


def test_agreement_is_claimed_only_where_every_cost_is_reproduced():
    agreed, differs = (
        " ".join(remarks(tables(remark)))
        for remark in ("reproduced: +0.01 [-0.05, +0.07]", "not reproduced: +0.10 [+0.03, +0.17]")
    )

    assert "costs of both codes agree" in agreed
    assert "agree" not in differs
    assert "6.0 CPU seconds of the authors' code, 0.50 of ours" in differs


def test_without_a_reference_the_error_names_the_option(tmp_path, capsys):
    pytest.importorskip("matplotlib")

    assert main(["experiments", "authors", "--out", str(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert "Use --reference" in text
    assert "--data" not in text


def test_the_authors_network_scores_as_stated(reference_folder):
    work = read_reference(reference_folder / "german")

    assert len(work.case.factuals) == len(work.answers) == 200
    assert not work.case.decide(work.case.factuals).any()
    assert work.answers.index.sort_values().equals(work.case.factuals.index.sort_values())
