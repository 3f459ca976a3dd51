"""Every experiment of the paper in its quick form: files, columns, and what can be checked."""

import re

import pandas as pd
import pytest

from mcce.cli import main
from mcce.experiments import published
from mcce.experiments.costs import METHODS

pytest.importorskip("matplotlib")


def quick(name, folder, *more):
    assert main(["experiments", name, "--quick", "--out", str(folder), *more]) == 0
    text = (folder / f"{name}.md").read_text()
    for file in re.findall(r"\]\(([^)]+)\)", text):
        assert (folder / file).stat().st_size > 0
    return text


@pytest.mark.slow
def test_costs_have_all_published_rows_and_ours(bench_cache, tmp_path, capsys):
    text = quick("costs", tmp_path)
    assert capsys.readouterr().out == f"{tmp_path / 'costs.md'}\n"
    table = pd.read_csv(tmp_path / "costs-results.csv")
    printed = table[table["source"] == "published"].set_index("method")
    assert len(printed) == 7
    assert printed.loc["REViSE", ["l0", "l1", "n_ce", "coverage"]].tolist() == [
        7.56,
        2.28,
        172,
        0.86,
    ]
    ours = table[table["source"] == "ours"].set_index("method")
    assert ours.index.tolist() == list(METHODS)
    assert (ours["coverage"] == 1).all()
    assert (ours["success"] == 1).all()
    assert (ours["violation"] == 0).all()
    assert ours.loc["MCCE", "l0"] <= 3.62
    assert ours.loc["MCCE", "l1"] <= 1.90
    assert ours.loc["MCCE balanced", "l0"] < ours.loc["MCCE", "l0"]
    assert re.search(r"\| german l0 \| 3.62 \| .* standard errors \|", text)


def test_costs_accept_another_method(bench_cache, tmp_path, monkeypatch):
    from mcce.experiments.case import MethodResult

    def nobody(case, seed):
        empty = pd.DataFrame(index=case.factuals.index, columns=case.factuals.columns, dtype=object)
        return MethodResult(empty, 0.0)

    monkeypatch.setitem(METHODS, "nobody", nobody)
    quick("costs", tmp_path, "--seeds", "1")
    table = pd.read_csv(tmp_path / "costs-results.csv").set_index("method")
    assert table.loc["nobody", "n_ce"] == 0


def test_costs_can_be_those_of_heldout_people(bench_cache, tmp_path):
    text = quick("costs", tmp_path, "--factuals", "heldout", "--seeds", "1")
    assert "held-out" in text


@pytest.mark.slow
def test_samples_get_cheaper_with_more_draws_and_cover_no_fewer_people(bench_cache, tmp_path):
    quick("samples", tmp_path)
    table = pd.read_csv(tmp_path / "samples-samples.csv")
    assert table["k"].tolist() == [10, 50, 100]
    assert table["l0"].is_monotonic_decreasing
    assert table["n_ce"].is_monotonic_increasing
    assert (table[["model", "generate", "postprocess", "total"]] > 0).all(axis=None)


@pytest.mark.slow
def test_without_the_decision_fewer_people_have_a_counterfactual(bench_cache, tmp_path):
    quick("samples", tmp_path)
    quick("unconditioned", tmp_path)
    known, unknown = (
        pd.read_csv(tmp_path / f"{name}-samples.csv").set_index("k")
        for name in ("samples", "unconditioned")
    )
    assert unknown.loc[10, "n_ce"] <= known.loc[10, "n_ce"]
    assert (unknown["l0"] != known["l0"]).all(), "the trees differ"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variants"),
    [
        ("forest", ["network", "forest", "forest, without copies"]),
        ("levels", ["two levels", "four levels", "all levels"]),
    ],
)
def test_another_predictor_or_form_is_run_next_to_the_usual_one(
    name, variants, bench_cache, tmp_path
):
    quick(name, tmp_path, "--seeds", "1")
    table = pd.read_csv(tmp_path / f"{name}-results.csv")
    assert table["variant"].tolist() == variants
    assert (table["coverage"] == 1).all()
    assert (table["success"] == 1).all()
    assert (table["violation"] == 0).all()


def test_excluded_copies_are_gone(bench_cache, tmp_path):
    text = quick("privacy", tmp_path)
    table = pd.read_csv(tmp_path / "privacy-copies.csv")
    printed, drawn, without = (row for _, row in table.iterrows())
    assert (printed["n_ce"], printed["copies"], printed["copies_%"]) == (200, 2, 1.0)
    assert without["copies"] == 0
    assert without["l0"] >= drawn["l0"]
    assert "german: excluding copies" in text
    (line,) = pd.read_csv(tmp_path / "privacy-published.csv").to_dict("records")
    assert (line["published"], line["ours"]) == (1.0, drawn["copies_%"])
    assert line["remark"].startswith("reproduced"), "2 of 200, and none of 40"


def test_published_tables_are_whole():
    assert len(published.RESULTS.table) == 4 * 7
    assert published.RESULTS.table.notna().all(axis=None)
    for table in (published.SAMPLES.table, published.UNCONDITIONED.table):
        assert table["k"].tolist() == [10, 50, 100, 1000, 5000, 10_000, 25_000]
        steps = table["model"] + table["generate"] + table["postprocess"]
        assert (steps - table["total"]).abs().max() < 0.025, "steps add up as printed"


def test_published_mcce_at_a_thousand_samples_is_the_same_in_both_tables():
    compared = published.RESULTS.rows(dataset="adult", method="MCCE")[0]
    by_samples = published.SAMPLES.rows(k=1000)[0]
    assert [compared[name] for name in ("l0", "l1")] == [by_samples[name] for name in ("l0", "l1")]
