"""Experiments: options, reports, progress and the command line."""

import re
import sys

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.cli import main
from mcce.errors import MissingExtraError, ParameterError
from mcce.experiments import (
    EXPERIMENTS,
    Experiment,
    ProgressLine,
    PublishedTable,
    Report,
    ensure_folder,
    write_report,
)
from mcce.experiments.experiment import first_row
from mcce.experiments.report.files import machine, to_markdown

pytest.importorskip("matplotlib")
from mcce.experiments.report.figures import panels


def tiny():
    made = Report("tiny", "A tiny one", "Nothing much.")
    made.published["costs"] = PublishedTable(
        pd.DataFrame({"dataset": ["german"], "l0": [3.62]}), "page 1"
    )
    made.add_comparison("german l0", 3.62, 3.19, "fewer")
    made.tables["costs"] = pd.DataFrame({"method": ["a|b", "c"], "l0": [3.5, 4], "l0_sd": [1, 2.0]})
    made.remarks = lambda tables: [f"The largest l0 is {tables['costs']['l0'].max()}."]
    figure, axes = panels(1, 1, size=(2, 2))
    axes[0, 0].plot([1, 2], [3, 4])
    made.figures["line"] = figure
    return made


@pytest.fixture
def report():
    return tiny()


def test_a_report_becomes_a_page_with_tables_and_figures_beside_it(report, tmp_path):
    page = write_report(report, tmp_path / "deep" / "er")
    names = {path.name for path in page.parent.iterdir()}
    assert names == {
        *("tiny.md", "tiny.json", "tiny-costs.csv", "tiny-published.csv"),
        *("tiny-line.png", "tiny-line.svg"),
    }
    text = page.read_text()
    assert text.startswith("# A tiny one\n\nNothing much.\n\nMachine: ")
    assert "| german l0 | 3.62 | 3.19 | fewer |" in text
    assert "Published: page 1." in text
    assert "- The largest l0 is 4.0." in text
    for file in re.findall(r"\]\(([^)]+)\)", text):
        assert (page.parent / file).is_file(), "every link of the page leads somewhere"


def test_tables_keep_all_digits_in_their_files(report, tmp_path):
    report.tables["costs"]["l0"] = [1 / 3, np.pi]
    write_report(report, tmp_path)
    read = pd.read_csv(tmp_path / "tiny-costs.csv")
    pd.testing.assert_frame_equal(read, report.tables["costs"])


def test_a_page_shows_standard_deviations_in_brackets_and_leaves_missing_cells_empty():
    table = pd.DataFrame(
        {"l0": [2.7, 1], "l0_sd": [0.73, np.nan], "n": [1000, 2], "m": ["a", None]}
    )
    assert to_markdown(table).splitlines() == [
        *("| l0 | n | m |", "| --: | --: | :-- |"),
        *("| 2.70 (0.73) | 1,000 | a |", "| 1.00 | 2 |  |"),
    ]


def test_counts_that_are_whole_have_no_decimals():
    table = pd.DataFrame({"n_ce": [42.0, 687.6666], "x": [42.0, 1.0]})
    assert to_markdown(table).splitlines()[2:] == ["| 42 | 42.00 |", "| 687.67 | 1.00 |"]


def test_large_whole_numbers_have_no_decimals():
    assert to_markdown(pd.DataFrame({"x": [1000.0]})).endswith("| 1,000 |")
    assert to_markdown(pd.DataFrame({"x": [10017.76]})).endswith("| 10,017.76 |")


def test_small_numbers_are_not_rounded_to_nothing():
    assert to_markdown(pd.DataFrame({"x": [0.00123]})).endswith("| 0.0012 |")


def test_figures_are_the_same_bytes_each_time(tmp_path):
    write_report(tiny(), tmp_path / "a")
    write_report(tiny(), tmp_path / "b")
    for ending in ("png", "svg"):
        one, other = (tmp_path / folder / f"tiny-line.{ending}" for folder in "ab")
        assert one.read_bytes() == other.read_bytes()


def test_the_machine_line_names_cores_and_libraries():
    assert re.search(r"\d+ cores, .*Python 3\.\d+\.\d+.*, numpy .*, mcce ", machine())


def test_published_rows_are_selected_by_their_cells_and_labelled():
    printed = PublishedTable(pd.DataFrame({"dataset": ["a", "b"], "l0": [1.0, 2.0]}), "page 1")
    assert printed.rows(dataset="b") == [{"dataset": "b", "l0": 2.0, "source": "published"}]
    assert first_row(printed.table, dataset="a")["l0"] == 1.0


def test_progress_writes_a_line_per_step_where_there_is_no_terminal(capsys):
    progress = ProgressLine("costs")
    progress.plan(2)
    progress.step("adult, seed 0")
    progress.step("adult, seed 1")
    progress.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("] ")[2] for line in lines] == [
        *("costs: adult, seed 0", "costs: adult, seed 1")
    ]


def test_progress_draws_a_bar_on_a_terminal(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = ProgressLine("costs")
    progress.plan(2)
    progress.step("one")
    progress.step("two")
    progress.close()
    text = capsys.readouterr().err
    assert "costs" in text
    assert "] costs: one" not in text


def test_every_experiment_has_a_title_and_a_description():
    for name, experiment in EXPERIMENTS.items():
        assert name == experiment.name == experiment.name.lower()
        assert experiment.title
        assert experiment.about.endswith(".")


def test_the_command_lists_the_experiments(capsys):
    assert main(["experiments", "--list"]) == 0
    text = capsys.readouterr().out
    assert all(re.search(rf"^{name} ", text, re.MULTILINE) for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["comapre"], "no experiment 'comapre'. Did you mean 'compare'?"),
        (["zzz"], "no experiment 'zzz'. Choose from costs"),
        (["compare", "--dataset", "germn"], "no data set 'germn'. Did you mean 'german'?"),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_a_similar_one(arguments, message, capsys):
    assert main(["experiments", *arguments]) == 2
    assert message in capsys.readouterr().err


def stub(name, **settings):
    """An experiment without work, which reports the options it was given."""

    def run(options, progress):
        made = Report(name, f"The title of {name}", "About it.")
        made.tables["options"] = pd.DataFrame({"reference": [str(options.reference)]})
        return made

    return Experiment(name, f"The title of {name}", "About it.", run, (), **settings)


@pytest.fixture
def stubs(monkeypatch):
    """Three experiments in place of all: one of the paper, one with a reference, one more."""
    stand_ins = [stub("costs"), stub("authors", needs_reference=True)]
    stand_ins.append(stub("more", in_paper=False))
    named = {one.name: one for one in stand_ins}
    monkeypatch.setattr("mcce.experiments.EXPERIMENTS", named)


def test_all_are_those_of_the_paper_without_those_that_lack_a_reference(stubs, tmp_path, capsys):
    assert main(["experiments", "all", "--out", str(tmp_path)]) == 0

    said = capsys.readouterr()
    assert "mcce: authors is skipped, it needs --reference." in said.err
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["costs.json"]
    assert said.out.splitlines()[-1] == str(tmp_path / "reproduction.md")


def test_the_reference_reaches_the_experiments(stubs, tmp_path, capsys):
    arguments = ["all", "--reference", str(tmp_path), "--out", str(tmp_path / "out")]

    assert main(["experiments", *arguments]) == 0

    assert "skipped" not in capsys.readouterr().err
    options = pd.read_csv(tmp_path / "out/authors-options.csv")
    assert options["reference"].tolist() == [str(tmp_path)]


def test_an_experiment_is_run_once_however_often_it_is_named(stubs, tmp_path, capsys):
    assert main(["experiments", "costs", "costs", "--out", str(tmp_path)]) == 0

    assert capsys.readouterr().out == f"{tmp_path / 'costs.md'}\n"


@pytest.mark.parametrize("seeds", ["0", "-1", "two", "1.5"])
def test_seeds_must_be_a_whole_number_of_at_least_one(seeds, capsys):
    assert main(["experiments", "costs", f"--seeds={seeds}"]) == 2
    assert "must be a whole number >= 1" in capsys.readouterr().err


def test_an_absent_data_folder_is_an_error_that_names_the_option(tmp_path, capsys):
    absent = tmp_path / "nowhere"
    assert main(["experiments", "costs", "--data", str(absent), "--out", str(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert "nowhere" in text
    assert "--data" in text


def test_an_empty_data_folder_is_an_error_that_says_which_file_is_wanted(tmp_path, capsys):
    arguments = ["experiments", "costs", "--dataset", "adult", "--data", str(tmp_path)]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert "There is no adult.csv.gz or adult.csv in" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_an_error_before_any_work(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("in the way")
    assert main(["experiments", "costs", "--quick", "--out", str(file / "reports")]) == 2
    text = capsys.readouterr().err
    assert "--out" in text
    assert "rows and predictor" not in text


def test_a_folder_that_is_a_file_is_an_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises(ParameterError, match="folder that can be written to"):
        ensure_folder(file)


def test_without_matplotlib_the_extra_is_named_before_any_work(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"mcce\[experiments\]"):
        panels(1, 1, size=(1, 1))
    assert main(["experiments", "costs", "--quick", "--out", str(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert 'pip install "mcce[experiments]"' in text
    assert "rows and predictor" not in text


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mcce {mcce.__version__}\n"
