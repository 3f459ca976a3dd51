"""The page of all reports: sections, figures, experiments not run, and nothing but files."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.errors import ParameterError
from mcce.experiments import EXPERIMENTS, write_page, write_report
from mcce.experiments.experiment import Report
from mcce.experiments.report.files import markdown, read_manifest, read_tables
from mcce.experiments.report.page import LONG, PARTS, page_text

pytest.importorskip("matplotlib")
from mcce.experiments.report.figures import OURS, panels


def report(name, n_rows=3, remark="fewer"):
    made = Report(name, f"The title of {name}", "About it.")
    made.remarks = lambda tables: [f"The largest x is {tables['numbers']['x'].max()}."]
    made.add_comparison("l0", 2.7, 2.6, remark)
    made.tables["numbers"] = pd.DataFrame({"x": range(n_rows)})
    figure, axes = panels(1, 1, size=(12, 4))
    axes[0, 0].plot([1, 2], [3, 4], color=OURS)
    made.figures["line"] = figure
    made.captions["line"] = "Two points."
    return made


def test_the_page_has_every_report_with_its_figures_and_tables(tmp_path):
    made = [report(name) for name in ("manifold", "samples", "levels")]
    for one in made[:2]:
        write_report(one, tmp_path)

    page = write_page(tmp_path, tmp_path / "docs" / "all.md", made)

    text = page.read_text()
    assert text.index("## The title of manifold") < text.index("## The title of samples")
    assert "| l0 | 2.70 | 2.60 | fewer |" in text
    assert "- The largest x is 2." in text
    assert text.count("Machine: ") == 1, "they ran on one machine"
    links = re.findall(r"\]\((all/[^)]+)\)", text)
    assert len(links) == 4, "a figure and a table each"
    assert all((page.parent / link).is_file() for link in links)
    assert "as SVG" not in text
    anchors = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r"\(#([^)]+)\)", text)) == anchors == {"samples", "manifold"}
    assert "levels | not run |" in text


def test_the_page_is_a_function_of_the_files_beside_it(tmp_path):
    made = [report("manifold"), report("samples")]
    for one in made:
        write_report(one, tmp_path / "reports")
    page = write_page(tmp_path / "reports", tmp_path / "all.md", made)
    text = page.read_text()

    shutil.rmtree(tmp_path / "reports")
    described = [Report(one.name, one.title, one.about, one.remarks) for one in made]
    before = {path.name: path.read_bytes() for path in (tmp_path / "all").iterdir()}

    assert page_text(tmp_path / "all", described) == text
    assert write_page(tmp_path / "all", page, described).read_text() == text
    assert {path.name: path.read_bytes() for path in (tmp_path / "all").iterdir()} == before


def test_another_number_in_a_file_is_another_page_and_another_remark(tmp_path):
    made = report("samples")
    write_report(made, tmp_path)
    page = write_page(tmp_path, tmp_path / "all.md", [made])
    before = page.read_text()

    table = tmp_path / "all" / "samples-numbers.csv"
    table.write_text(table.read_text().replace("2", "7"))
    after = page_text(tmp_path / "all", [made])

    assert "- The largest x is 2." in before
    assert "- The largest x is 7." in after
    assert "| 7 |" in after


def test_a_manifest_names_what_the_files_hold(tmp_path):
    made = report("samples")

    written = write_report(made, tmp_path)

    manifest = read_manifest("samples", tmp_path)
    assert manifest["tables"] == ["numbers", "published"]
    assert manifest["figures"] == {"line": "Two points."}
    assert manifest["seeds"] is None
    assert json.loads((tmp_path / "samples.json").read_text()) == manifest
    tables = read_tables("samples", tmp_path)
    pd.testing.assert_frame_equal(tables["numbers"], made.tables["numbers"])
    pd.testing.assert_frame_equal(
        tables["published"], made.comparison, check_dtype=False, check_column_type=False
    )
    assert markdown(made, tmp_path) == written.read_text()


def test_the_number_of_seeds_is_on_the_page(tmp_path):
    made = report("samples")
    made.seeds = 3
    write_report(made, tmp_path)

    assert "Seeds: 3, unless" in write_page(tmp_path, tmp_path / "all.md", [made]).read_text()


def test_whole_numbers_stay_whole_beside_empty_cells(tmp_path):
    made = report("samples")
    made.tables["numbers"] = pd.DataFrame({"x": pd.array([1, None], "Int64"), "y": [0.5, None]})

    write_report(made, tmp_path)

    read = read_tables("samples", tmp_path)["numbers"]
    assert read["x"].dtype == "Int64"
    assert read["y"].dtype == "float64"


def test_verdicts_are_counted_by_experiment_and_failures_named(tmp_path):
    remarks = {"samples": "reproduced: +0.00", "manifold": "not reproduced: -0.10 [-0.17, -0.03]"}
    made = [report(name, remark=remark) for name, remark in remarks.items()]
    made.append(report("levels", remark="wall clock"))
    for one in made:
        write_report(one, tmp_path)

    text = write_page(tmp_path, tmp_path / "all.md", made).read_text()

    assert "| samples | 1 | 0 | 0 |  |" in text
    assert "| manifold | 0 | 1 | 0 | l0 |" in text
    assert "| levels | 0 |" not in text, "seconds are no verdict"


def test_heldout_people_are_counted_apart(tmp_path):
    made = report("costs", remark="not reproduced: -0.10 [-0.17, -0.03]")
    made.add_comparison("held-out people, l0", 2.7, 2.7, "reproduced: +0.00 [-0.07, +0.07]")
    write_report(made, tmp_path)

    text = write_page(tmp_path, tmp_path / "all.md", [made]).read_text()

    assert "| costs | 0 | 1 | 0 | l0 |" in text
    assert "| costs, held-out people | 1 | 0 | 0 |  |" in text


def test_figures_that_are_not_published_are_not_called_so(tmp_path):
    made = report("authors")
    text = write_report(made, tmp_path).read_text()

    assert "## Theirs and ours\n\n| what | theirs | ours | remark |" in text
    assert "ublished" not in text


def test_reports_of_two_machines_name_both(tmp_path):
    made = [report("samples"), report("manifold")]
    for one in made:
        write_report(one, tmp_path)
    manifest = tmp_path / "manifold.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"machine": "an abacus"}))

    text = write_page(tmp_path, tmp_path / "all.md", made).read_text()

    assert "Machine: an abacus. (manifold)" in text
    assert re.search(r"^Machine: .*\. \(samples\)$", text, re.M)


def test_figures_on_the_page_are_small_and_keep_their_colours(tmp_path):
    from PIL import Image

    made = report("samples")
    write_report(made, tmp_path)

    page = write_page(tmp_path, tmp_path / "all.md", [made])

    small = page.parent / "all" / "samples-line.png"
    assert small.stat().st_size < (tmp_path / "samples-line.png").stat().st_size
    pixels = np.asarray(Image.open(small).convert("RGB")).astype(int).reshape(-1, 3)
    line = [int(OURS[place : place + 2], 16) for place in (1, 3, 5)]
    assert np.abs(pixels - line).sum(axis=1).min() < 20


def test_long_tables_are_collapsed(tmp_path):
    made = report("samples", n_rows=LONG + 1)
    write_report(made, tmp_path)

    text = write_page(tmp_path, tmp_path / "all.md", [made]).read_text()

    assert f"<details><summary>{LONG + 1} rows</summary>" in text


def test_every_part_of_the_paper_names_an_experiment_that_exists():
    named = {name for _, name, _ in PARTS if name}

    assert named == {name for name, experiment in EXPERIMENTS.items() if experiment.in_paper}


def test_a_folder_without_reports_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ParameterError, match="Run experiments"):
        write_page(tmp_path, tmp_path / "all.md", [report("samples")])


def test_the_command_writes_the_page_to_the_given_file(tmp_path, capsys):
    write_report(EXPERIMENTS["example"].report(), tmp_path)

    assert (
        main(["experiments", "page", "--out", str(tmp_path), "--page", str(tmp_path / "p.md")]) == 0
    )

    assert (tmp_path / "p.md").read_text().startswith("# Reproduction of the paper's experiments")
    assert capsys.readouterr().out.strip().endswith("p.md")


def test_the_command_says_so_if_there_is_nothing_to_join(tmp_path, capsys):
    assert main(["experiments", "page", "--out", str(tmp_path)]) == 2
    assert "has none of" in capsys.readouterr().err
