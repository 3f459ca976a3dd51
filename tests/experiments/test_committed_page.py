"""The page of the reproduction is what its files give, and the files are small."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcce.experiments import EXPERIMENTS
from mcce.experiments.report.files import read_manifest
from mcce.experiments.report.page import page_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduction.md"
FOLDER = PAGE.with_suffix("")
OF_PAPER = [experiment for experiment in EXPERIMENTS.values() if experiment.in_paper]
AT_MOST_BYTES = 3_000_000

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not here")


def test_the_page_is_what_its_files_give():
    written, recomputed = PAGE.read_text(encoding="utf-8"), page_text(FOLDER, OF_PAPER)

    assert written == recomputed, (
        "docs/reproduction.md and docs/reproduction/ differ. Write the page again: "
        "mcce experiments page --out docs/reproduction --page docs/reproduction.md"
    )


def test_every_experiment_of_the_paper_was_run():
    assert [one.name for one in OF_PAPER if not (FOLDER / f"{one.name}.json").is_file()] == []


def test_the_folder_holds_what_the_page_shows_and_nothing_else():
    wanted = set()
    for experiment in OF_PAPER:
        manifest = read_manifest(experiment.name, FOLDER)
        wanted |= {f"{experiment.name}.json"}
        wanted |= {f"{experiment.name}-{table}.csv" for table in manifest["tables"]}
        wanted |= {f"{experiment.name}-{figure}.png" for figure in manifest["figures"]}

    files = list(FOLDER.iterdir())

    assert {file.name for file in files} == wanted
    assert sum(file.stat().st_size for file in files) < AT_MOST_BYTES
