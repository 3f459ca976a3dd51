"""Explaining people in files: formats, blocks, what the output says, and what goes wrong."""

from __future__ import annotations

import io
import json
import sys

import pandas as pd
import pytest

import mcce
from mcce.cli import main
from mcce.cli.failures import INPUT, OUTPUT, PREDICTOR, USAGE


def give_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def in_python(here, search=None):
    """The same answers by way of Python."""
    sys.path.insert(0, str(here))
    from scoring import score

    people = pd.read_csv(here / "people.csv")
    explainer = mcce.load(here / "bank.mcce", score)
    return explainer.explain(people)


def test_the_output_says_what_became_of_everybody(explain, here):
    assert explain("-o", "answers.csv") == 0

    table = pd.read_csv("answers.csv", keep_default_na=False, na_values=[""])
    result = in_python(here)
    assert sorted(set(table["factual"])) == list(range(60))
    status = table.drop_duplicates("factual")["status"]
    assert status.tolist() == result.people["status"].tolist()
    answered = table[table["rank"].notna()].reset_index(drop=True)
    assert answered[list(result.frame)].to_dict("list") == result.frame.to_dict("list")
    assert answered["score"].tolist() == result.measures["score"].tolist()
    changes = result.changes()
    first = answered["factual"].iloc[0]
    assert (
        json.loads(answered["changed"].iloc[0])
        == changes.loc[changes["factual"] == first, "feature"].tolist()
    )


def test_whoever_has_no_answer_has_a_reason(explain, here):
    (here / "none.toml").write_text('[[rules]]\nfrozen = ["Duration", "CreditAmount", "Savings"]\n')

    assert explain("-o", "answers.jsonl", "--rules", "none.toml") == 0

    rows = [json.loads(line) for line in (here / "answers.jsonl").read_text().splitlines()]
    without = [row for row in rows if row["status"] == "no answer"]
    assert without
    assert all(row["reason"] and row["rank"] is None and row["Duration"] is None for row in without)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_the_bytes_do_not_depend_on_blocks(explain, here, suffix):
    assert explain("-o", f"whole{suffix}") == 0
    assert explain("-o", f"blocks{suffix}", "--block-rows", "7") == 0

    assert (here / f"whole{suffix}").read_bytes() == (here / f"blocks{suffix}").read_bytes()
    assert not list(here.glob("*.parts"))


@pytest.mark.parametrize("people", ["people.jsonl", "people.parquet", "people.feather"])
def test_every_format_of_people_gives_the_same_answers(explain, here, people):
    assert explain("-o", "text.csv") == 0
    assert explain("-o", "other.csv", "--block-rows", "11", people=people) == 0

    assert (here / "text.csv").read_bytes() == (here / "other.csv").read_bytes()


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl"])
def test_people_from_standard_input_and_answers_to_standard_output(
    explain, here, monkeypatch, suffix, capfdbinary
):
    source = "feather" if suffix == "arrow" else suffix
    if suffix == "arrow":  # a stream, which needs no end to be read
        import pyarrow as pa

        table = pa.table(pd.read_parquet("people.parquet"))
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        content = stream.getvalue()
    else:
        content = (here / f"people.{source}").read_bytes()
    give_input(monkeypatch, content)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))

    options = ["--format", suffix, "--output-format", suffix, "--block-rows", "25"]
    assert explain("-o", "-", *options, people="-") == 0
    printed = sys.stdout.buffer.getvalue()

    assert explain("-o", f"answers.{suffix}") == 0
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": pd.read_feather}
    read["jsonl"] = lambda file: pd.read_json(file, lines=True)
    pd.testing.assert_frame_equal(
        read[suffix](io.BytesIO(printed)), read[suffix](f"answers.{suffix}")
    )


def test_a_folder_keeps_the_parts_and_is_one_table(explain, here):
    assert explain("-o", "answers/", "--block-rows", "25") == 0

    parts = sorted(path.name for path in (here / "answers").glob("part-*"))
    assert parts == [f"part-00000{number}.parquet" for number in range(3)]
    assert explain("-o", "answers.parquet") == 0
    pd.testing.assert_frame_equal(pd.read_parquet("answers"), pd.read_parquet("answers.parquet"))
    assert json.loads((here / "answers/_manifest.json").read_text())["n_parts"] == 3


def test_a_wrong_format_of_a_folder_is_blamed_on_its_own_option(explain, capsys):
    assert explain("-o", "answers/", "--output-format", "xml") == USAGE
    assert "--output-format must be one of" in capsys.readouterr().err


def test_nobody_gives_an_empty_table_with_all_columns(explain, here):
    header = (here / "people.csv").read_text().splitlines()[0]
    (here / "nobody.csv").write_text(f"{header}\n")

    assert explain("-o", "answers.csv", people="nobody.csv") == 0
    assert explain("-o", "some.csv") == 0

    assert len(pd.read_csv("answers.csv")) == 0
    assert list(pd.read_csv("answers.csv")) == list(pd.read_csv("some.csv"))


def test_columns_can_be_kept_and_others_are_left_out(explain, here, capsys):
    people = pd.read_csv("people.csv")
    people.insert(0, "customer, no", [f"NA-{at:04d}" for at in range(len(people))])
    people["outcome"] = 1
    people.to_csv("more.csv", index=False)

    assert explain("-o", "answers.csv", "--keep", "customer, no", people="more.csv") == 0

    table = pd.read_csv("answers.csv")
    assert table["customer, no"].tolist() == [f"NA-{at:04d}" for at in table["factual"]]
    assert "outcome" not in table
    assert "not used: ['outcome']" in capsys.readouterr().err


def test_columns_of_the_users_names_are_an_error_that_names_the_prefix(explain, here, capsys):
    people = pd.read_csv("people.csv").assign(score=1)
    people.to_csv("more.csv", index=False)

    assert explain("-o", "answers.csv", "--keep", "score", people="more.csv") == USAGE
    assert explain("-o", "answers.csv", "--keep", "Age", people="more.csv") == USAGE
    assert "--prefix" in capsys.readouterr().err
    arguments = ["-o", "answers.csv", "--keep", "score", "--prefix", "mcce_"]
    assert explain(*arguments, people="more.csv") == 0
    assert {"score", "mcce_score"} <= set(pd.read_csv("answers.csv"))


def test_json_says_how_many_have_which_status(explain, here, capsys):
    assert explain("-o", "answers.csv", "--json") == 0

    said = json.loads(capsys.readouterr().out)
    assert said["n_people"] == 60 == sum(said["status"].values())
    assert said["output"] == "answers.csv"


def test_an_output_is_not_replaced_unless_asked_for(explain, here, capsys):
    (here / "answers.csv").write_text("precious")

    assert explain("-o", "answers.csv") == USAGE
    assert "--overwrite" in capsys.readouterr().err
    assert (here / "answers.csv").read_text() == "precious"
    assert explain("-o", "answers.csv", "--overwrite") == 0
    assert (here / "answers.csv").read_text() != "precious"


def wrong_cell(here, row, column, text):
    people = pd.read_csv("people.csv", dtype=str)
    people.loc[row, column] = text
    people.to_csv("people.csv", index=False)


def test_a_wrong_cell_half_way_names_row_and_column_and_the_run_goes_on(explain, here, capsys):
    assert explain("-o", "whole.csv") == 0
    good = (here / "people.csv").read_text()
    wrong_cell(here, 36, "Age", "Smith")

    assert explain("-o", "answers.csv", "--block-rows", "10") == INPUT

    said = capsys.readouterr().err
    assert "'Age'" in said
    assert "row 37 (in the block of rows 31 to 40)" in said
    assert "whole number" in said
    assert "Smith" not in said
    assert "first 30 people are complete" in said
    assert not (here / "answers.csv").exists()
    assert len(list((here / "answers.csv.parts").glob("part-*.csv"))) == 3
    (here / "people.csv").write_text(good)
    assert explain("-o", "answers.csv", "--resume") == 0
    assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()


def test_people_who_were_changed_meanwhile_are_answered_again(explain, here):
    good = (here / "people.csv").read_text()
    wrong_cell(here, 3, "CreditAmount", "18000")
    wrong_cell(here, 36, "Age", "?")
    assert explain("-o", "answers.csv", "--block-rows", "10") == INPUT

    (here / "people.csv").write_text(good)

    assert explain("-o", "answers.csv", "--resume") == 0
    assert explain("-o", "whole.csv") == 0
    assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: [*lines[:31], lines[31] + ",1", *lines[32:]], "Row 31"),
        (lambda lines: [*lines[:31], "36,5"], "has 2 cells, but there are 6 columns"),
        (lambda lines: [lines[0].replace("Age", "age"), *lines[1:]], "lacks the columns ['Age']"),
        (lambda lines: [*lines[:31], '"never closed'], "after row 30"),
        (lambda lines: [], "is empty"),
        (lambda lines: [lines[0].replace("Age", "Sex"), *lines[1:]], "several columns of one name"),
    ],
)
def test_a_broken_file_is_an_error_that_says_where(explain, here, capsys, change, expected):
    lines = (here / "people.csv").read_text().splitlines()
    (here / "people.csv").write_text("\n".join(change(lines)))

    assert explain("-o", "answers.csv", "--block-rows", "10") == INPUT
    assert expected in capsys.readouterr().err


def test_bytes_that_are_no_text_are_an_error(explain, here, capsys):
    content = (here / "people.csv").read_bytes()
    (here / "people.csv").write_bytes(content[:200] + b"\xff\xfe" + content[200:])

    assert explain("-o", "answers.csv") == INPUT
    assert "no UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "said"), [("absent.csv", "No such file"), (".", "not clear")])
def test_a_file_that_is_not_there_is_an_error(explain, here, capsys, name, said):
    assert explain("-o", "answers.csv", people=name) in (INPUT, USAGE)
    assert said in capsys.readouterr().err


def test_a_cut_off_parquet_file_is_an_error(explain, here, capsys):
    content = (here / "people.parquet").read_bytes()
    (here / "people.parquet").write_bytes(content[: len(content) // 2])

    assert explain("-o", "answers.csv", people="people.parquet") == INPUT
    assert "Cannot read 'people.parquet'" in capsys.readouterr().err


def test_a_json_line_without_a_column_is_an_error_that_names_it(explain, here, capsys):
    lines = (here / "people.jsonl").read_text().splitlines()
    row = json.loads(lines[20])
    del row["Job"]
    (here / "people.jsonl").write_text("\n".join([*lines[:20], json.dumps(row), *lines[21:]]))

    assert explain("-o", "answers.csv", people="people.jsonl") == INPUT
    said = capsys.readouterr().err
    assert "Row 21" in said
    assert "['Job']" in said


def test_a_full_disk_leaves_complete_parts_and_the_run_goes_on(explain, here, capsys, monkeypatch):
    assert explain("-o", "whole.csv") == 0
    from mcce.files import run as module

    def full(tables, format_, stream, write=module.stream_tables):
        tables = list(tables)
        if tables[0]["factual"].iloc[0] >= 30:
            stream.write(b"half a part")
            raise OSError(28, "No space left on device")
        write(tables, format_, stream)

    monkeypatch.setattr(module, "stream_tables", full)
    assert explain("-o", "answers.csv", "--block-rows", "10") == OUTPUT
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "--resume" in said
    left = sorted(path.name for path in (here / "answers.csv.parts").iterdir())
    assert left == sorted(
        ["_manifest.json"]
        + [f"part-00000{at}.csv" for at in range(3)]
        + [f"_part-00000{at}.json" for at in range(3)]
    )

    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert explain("-o", "answers.csv", "--resume") == 0
    assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()


def test_a_predictor_that_fails_is_an_error_without_cells(here, capsys):
    command = ["explain", "bank.mcce", "people.csv", "-o", "answers.csv", "--predictor"]

    assert main([*command, "scoring:fails"]) == PREDICTOR
    said = " ".join(capsys.readouterr().err.split())
    assert "a secret cell" not in said
    assert "--debug shows it" in said
    assert "--dtype" in said
    assert main([*command, "scoring:fails", "--debug"]) == PREDICTOR
    assert "a secret cell" in capsys.readouterr().err


def test_another_predictor_is_an_error(here, capsys):
    (here / "other_scoring.py").write_text("def score(frame):\n    return frame['Age'] / 100\n")
    command = ["explain", "bank.mcce", "people.csv", "-o", "answers.csv", "--predictor"]

    assert main([*command, "other_scoring:score"]) == PREDICTOR
    assert "is not the one" in capsys.readouterr().err


def test_errors_can_be_json(explain, here, capsys):
    assert explain("-o", "answers.csv", "--json", people="absent.csv") == INPUT

    error = json.loads(capsys.readouterr().err)["error"]
    assert error["type"] == "ReadError"
    assert error["exit_code"] == INPUT


def test_the_run_of_another_job_is_not_continued(explain, here, capsys):
    wrong_cell(here, 36, "Age", "?")
    assert explain("-o", "answers.csv", "--block-rows", "10") == INPUT
    assert explain("-o", "answers.csv") == USAGE
    assert "unfinished run" in capsys.readouterr().err

    assert explain("-o", "answers.csv", "--resume", "--block-rows", "20") == USAGE
    assert "block_rows was 10 and is 20 now" in capsys.readouterr().err
    assert explain("-o", "answers.csv", "--resume", "--n-counterfactuals", "2") == USAGE


def test_a_run_that_has_ended_has_nothing_to_resume(explain, here, capsys):
    assert explain("-o", "answers.csv", "--resume") == 0
    content = (here / "answers.csv").read_bytes()

    assert explain("-o", "answers.csv", "--resume") == 0

    assert "no run is left to resume" in capsys.readouterr().err
    assert (here / "answers.csv").read_bytes() == content


def test_ctrl_c_leaves_complete_parts(explain, here, capsys, monkeypatch):
    from mcce.files.run import BlockRun

    def interrupted(self, block, answer=BlockRun.answer):
        if block.first == 20:
            raise KeyboardInterrupt
        return answer(self, block)

    monkeypatch.setattr(BlockRun, "answer", interrupted)

    assert explain("-o", "answers.csv", "--block-rows", "10") == 130
    assert "interrupted. The answers to the first 20 people" in capsys.readouterr().err


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_missing_and_new_values_of_others_change_nobodys_answer(explain, here, search):
    fitted = ["fit", "train.csv", "--predictor", "scoring:score", "--desired", "0.6:"]
    assert main([*fitted, "--immutable", "Age", "--search", search, "-o", "bank.mcce"]) == 0
    people = pd.read_csv("people.csv", dtype=str)
    people.loc[[3, 20, 21], "Sex"] = ""
    people.loc[[5, 20, 44], "Job"] = ["diver", "NA", "0123"]
    people.loc[[7, 30], "Duration"] = ["42.0", " 48"]
    people.to_csv("people.csv", index=False)

    assert explain("-o", "whole.csv") == 0
    for block_rows in (7, 13):
        assert explain("-o", "blocks.csv", "--block-rows", block_rows, "--overwrite") == 0
        assert (here / "blocks.csv").read_bytes() == (here / "whole.csv").read_bytes()


def test_a_missing_whole_number_leaves_the_dtypes_of_others(here, explain):
    (here / "strict_scoring.py").write_text(
        "def score(frame):\n"
        "    whole = frame['Duration'].dtype == 'int64'\n"
        "    return (0.9 if whole else 0.1) - frame['Duration'].fillna(0).to_numpy() / 100\n"
    )
    predictor = ["--predictor", "strict_scoring:score"]
    assert main(["fit", "train.csv", *predictor, "--desired", "0.6:", "-o", "strict.mcce"]) == 0
    command = ["explain", "strict.mcce", "people.csv", *predictor, "-o"]
    assert main([*command, "whole.csv"]) == 0
    people = pd.read_csv("people.csv", dtype=str)
    people.loc[10, "Duration"] = ""
    people.to_csv("people.csv", index=False)

    assert main([*command, "other.csv"]) == 0

    whole, other = (
        [line for line in (here / name).read_text().splitlines() if not line.startswith("10,")]
        for name in ("whole.csv", "other.csv")
    )
    assert whole == other


def test_compressed_files_and_other_delimiters_are_read(explain, here):
    people = pd.read_csv("people.csv")
    people.to_csv("people.csv.gz", index=False, sep=";")

    assert explain("-o", "whole.csv") == 0
    assert explain("-o", "other.csv", "--delimiter", ";", people="people.csv.gz") == 0

    assert (here / "other.csv").read_bytes() == (here / "whole.csv").read_bytes()


def test_a_file_that_may_not_be_read_is_an_error(explain, here, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mcce.files.sources._open", refuse)

    assert explain("-o", "answers.csv") == INPUT
    assert "Cannot read 'people.csv': Permission denied." in capsys.readouterr().err


def test_a_file_that_cannot_be_read_further_leaves_complete_parts(
    explain, here, capsys, monkeypatch
):
    class Failing(io.BytesIO):
        def read1(self, size=-1):
            if self.tell() > 2000:
                raise OSError(5, "Input/output error")
            return super().read1(500)

    content = (here / "people.csv").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("mcce.files.sources._open", lambda path: Failing(content))
        assert explain("-o", "answers.csv", "--block-rows", "10") == INPUT

    said = capsys.readouterr().err
    assert "Cannot read 'people.csv': Input/output error." in said
    assert "--resume" in said
    assert list((here / "answers.csv.parts").glob("part-*.csv"))
    assert explain("-o", "answers.csv", "--resume") == 0
    assert explain("-o", "whole.csv") == 0
    assert (here / "answers.csv").read_bytes() == (here / "whole.csv").read_bytes()


ANONYMOUS = ["--anonymity", "5", "--quasi-identifiers", "Duration,CreditAmount"]


def test_anonymous_answers_have_ranges_in_place_of_values(explain, here):
    assert explain("-o", "answers.csv", *ANONYMOUS, "--training", "train.csv") == 0

    table = pd.read_csv("answers.csv", keep_default_na=False, na_values=[""])
    answered = table[table["rank"].notna()]
    train = pd.read_csv("train.csv")
    assert {"crowd", "loss", "pureness", "pure", "sparsity"} <= set(table.columns)
    # From these, exact values could be computed.
    assert not {"score", "gower", "l1"} & set(table.columns)
    assert (answered["crowd"] >= 5).all()
    assert answered["CreditAmount"].astype(str).str.contains("to|at most|at least|any").any()
    for shown in answered["CreditAmount"].astype(str):
        if shown.isdigit():
            assert (train["CreditAmount"] == int(shown)).sum() >= 5


def test_anonymous_answers_do_not_depend_on_blocks(explain, here):
    more = (*ANONYMOUS, "--training", "train.csv")
    assert explain("-o", "whole.csv", *more) == 0
    assert explain("-o", "blocks.csv", *more, "--block-rows", "7") == 0

    assert (here / "whole.csv").read_text() == (here / "blocks.csv").read_text()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--anonymity", "5"], "--anonymity needs --quasi-identifiers"),
        (["--training", "train.csv"], "--training is for anonymous answers"),
        ([*ANONYMOUS, "--training", "train.csv", "--workers", "2"], "in one process"),
        (["--anonymity", "5", "--quasi-identifiers", "Nope", "--training", "train.csv"], "Nope"),
        (["--anonymity", "1", *ANONYMOUS[2:], "--training", "train.csv"], "from 2 to"),
    ],
)
def test_what_is_wrong_with_anonymous_answers_is_said(explain, here, capsys, more, said):
    assert explain("-o", "answers.csv", *more) in (USAGE, INPUT)

    assert said in " ".join(capsys.readouterr().err.split())
