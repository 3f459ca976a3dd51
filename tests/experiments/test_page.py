"""The page of all reports: sections, figures, and experiments not run."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.errors import ParameterError
from mcce.experiments import EXPERIMENTS, write_page, write_report
from mcce.experiments.experiment import Report
from mcce.experiments.report.page import LONG, PARTS

pytest.importorskip("matplotlib")
from mcce.experiments.report.figures import OURS, panels


def report(name, n_rows=3):
    made = Report(name, f"The title of {name}", "About it.")
    made.add_comparison("l0", 2.7, 2.6, "fewer")
    made.tables["numbers"] = pd.DataFrame({"x": range(n_rows)})
    figure, axes = panels(1, 1, size=(12, 4))
    axes[0, 0].plot([1, 2], [3, 4], color=OURS)
    made.figures["line"] = figure
    return made


def test_the_page_has_every_report_with_its_figures(tmp_path):
    for name in ("samples", "manifold"):
        write_report(report(name), tmp_path)

    page = write_page(tmp_path, tmp_path / "docs" / "all.md", ["manifold", "samples", "levels"])

    text = page.read_text()
    assert text.index("## The title of manifold") < text.index("## The title of samples")
    assert "| l0 | 2.70 | 2.60 | fewer |" in text
    assert text.count("Machine: ") == 1, "they ran on one machine"
    for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (page.parent / link).is_file()
    assert "as CSV" not in text
    assert "as SVG" not in text
    anchors = set(re.findall(r'id="([^"]+)"', text))
    assert set(re.findall(r"\(#([^)]+)\)", text)) == anchors == {"samples", "manifold"}
    assert "levels | not run |" in text


def test_figures_on_the_page_are_small_and_keep_their_colours(tmp_path):
    from PIL import Image

    write_report(report("samples"), tmp_path)

    page = write_page(tmp_path, tmp_path / "all.md", ["samples"])

    small = page.parent / "all" / "samples-line.png"
    assert small.stat().st_size < (tmp_path / "samples-line.png").stat().st_size
    pixels = np.asarray(Image.open(small).convert("RGB")).astype(int).reshape(-1, 3)
    line = [int(OURS[place : place + 2], 16) for place in (1, 3, 5)]
    assert np.abs(pixels - line).sum(axis=1).min() < 20


def test_long_tables_are_collapsed(tmp_path):
    write_report(report("samples", n_rows=LONG + 1), tmp_path)

    text = write_page(tmp_path, tmp_path / "all.md", ["samples"]).read_text()

    assert f"<details><summary>{LONG + 1} rows</summary>" in text


def test_every_part_of_the_paper_names_an_experiment_that_exists():
    named = {name for _, name, _ in PARTS if name}

    assert named == set(EXPERIMENTS)


def test_a_folder_without_reports_is_an_error_that_says_what_to_do(tmp_path, capsys):
    with pytest.raises(ParameterError, match="Run experiments"):
        write_page(tmp_path, tmp_path / "all.md", ["samples"])

    assert main(["experiments", "page", "--out", str(tmp_path)]) == 2
    assert "has none of" in capsys.readouterr().err


def test_the_command_writes_the_page_to_the_given_file(tmp_path, capsys):
    write_report(report("samples"), tmp_path)

    assert (
        main(["experiments", "page", "--out", str(tmp_path), "--page", str(tmp_path / "p.md")]) == 0
    )

    assert (tmp_path / "p.md").read_text().startswith("# Reproduction of the paper's experiments")
    assert capsys.readouterr().out.strip().endswith("p.md")
