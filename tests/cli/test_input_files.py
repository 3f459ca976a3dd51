"""What the commands read of files: cells as training has them, files as they are meant."""

from __future__ import annotations

import gzip
import json
import os
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mcce
from mcce.cli import main

READ, WRITE = 3, 5
SCORING = """
def score(frame):
    return frame["points"].to_numpy() / 10
"""
TRAIN = pd.DataFrame(
    {
        "points": [1, 4, 7, 9],
        "age": [25, 36, 47, 52],
        "zip": ["0150", "0151", "7010", "NA"],
        "limit": [0.1, 2.5, 1e300, -3.0],
        "member": [True, False, True, True],
        "job": pd.Categorical(["clerk", "1", "smith", "1"]),
        "degree": pd.Categorical(["low", "high", "low", "high"], ["low", "high"], ordered=True),
        "grade": pd.Categorical([1, 2, 3, 1]),
        "since": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"]),
        "delay": pd.to_timedelta([1, 2, 3, 4], unit="D"),
        "bonus": pd.array([1, 2, None, 4], dtype="Int64"),
    }
)
GOOD = {
    **{"points": "1", "age": "40", "zip": "0999", "limit": "0.1", "member": "True", "job": "1"},
    **{"degree": "low", "grade": "2", "since": "2024-05-01", "delay": "3 days", "bonus": "7"},
}


def score(frame):
    return frame["points"].to_numpy() / 10


@pytest.fixture(scope="module")
def explainer():
    """Only points may change, so that all other cells come back as they were read."""
    made = mcce.MCCE(
        score, (0.5, 1), mutable=["points"], search="paper", n_samples=20, random_state=0
    )
    return made.fit(TRAIN)


@pytest.fixture
def here(explainer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scoring_of_files.py").write_text(SCORING)
    explainer.save("own.mcce")
    yield tmp_path
    sys.modules.pop("scoring_of_files", None)


def explain(people, *more):
    command = ["explain", "own.mcce", people, "--predictor", "scoring_of_files:score", "--quiet"]
    return main([*command, "-o", "answers.parquet", "--overwrite", *more])


def answers() -> dict[str, list]:
    """The cells of the output by column, None for missing ones."""
    return pq.read_table("answers.parquet").to_pydict()


def write_rows(rows, path="people.csv"):
    pd.DataFrame(rows).to_csv(path, index=False)


def assert_read_as(explainer, people):
    """The answers in the file are those that Python gives these people."""
    final = explainer.finalize(explainer.explain(people))
    expected = pa.Table.from_pandas(final.frame, preserve_index=False)
    found = answers()
    for name, cells in expected.to_pydict().items():
        assert list(map(str, found[name])) == list(map(str, cells)), name


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "feather"])
def test_rows_of_every_format_are_read_as_training_has_them(here, explainer, suffix):
    people = TRAIN.head(2)
    if suffix == "csv":
        people.to_csv("people.csv", index=False)
    elif suffix == "jsonl":
        moments = people.assign(since=people["since"].astype(str), delay=["1 days", "2 days"])
        moments.to_json("people.jsonl", orient="records", lines=True)
    else:
        getattr(people, f"to_{suffix}")(f"people.{suffix}")

    assert explain(f"people.{suffix}") == 0

    assert_read_as(explainer, people)


def test_texts_have_the_dtypes_of_training_whatever_they_look_like(here, explainer):
    written = [
        GOOD,
        {**GOOD, "zip": "NA", "job": "clerk", "age": " 12 ", "since": " 2024-02-29 12:30 "},
        {**GOOD, "zip": "null", "age": "1.2e1", "member": "false", "bonus": "NA"},
        {**GOOD, "zip": 'a "quoted",\n text ø', "age": str(2**63 - 1), "limit": "-0.0"},
        {**GOOD, "age": "", "job": "diver", "grade": "9", "limit": repr(5e-324)},
    ]
    write_rows(written)

    assert explain("people.csv", "--block-rows", "2") == 0

    found = answers()
    # A text that could be missing is a level where training had it.
    assert found["zip"] == ["0999", "NA", None, 'a "quoted",\n text ø', "0999"]
    assert found["age"] == [40, 12, 12, 2**63 - 1, None]
    assert list(map(str, found["limit"])) == ["0.1", "0.1", "0.1", "-0.0", "5e-324"]
    assert found["job"] == ["1", "clerk", "1", "1", "diver"]
    assert list(map(str, found["grade"])) == ["2", "2", "2", "2", "9"]
    assert found["since"][1] == pd.Timestamp("2024-02-29 12:30")
    assert found["bonus"] == [7, 7, None, 7, 7]


def test_numbers_are_read_bit_by_bit(here):
    chance = np.random.default_rng(0)
    numbers = np.append(chance.normal(size=300) * 10.0 ** chance.integers(-300, 200, 300), 0.1)
    people = pd.DataFrame([GOOD] * len(numbers)).assign(limit=[repr(float(x)) for x in numbers])
    people.to_csv("people.csv", index=False)

    assert explain("people.csv") == 0

    assert np.array(answers()["limit"]).tobytes() == numbers.tobytes()


WRONG_CELLS = [
    *[("age", cell) for cell in ("36.5", "1_000", "٣", "99999999999999999999")],
    *[("limit", cell) for cell in ("inf", "1,5", "0x1p3")],
    *[("member", "1"), ("degree", "middle"), ("grade", "two"), ("bonus", "1.5"), ("delay", "3")],
    *[("since", cell) for cell in ("now", "3/4/2024", "12")],
]


def test_a_cell_that_does_not_fit_is_an_error_that_does_not_quote_it(here, capsys):
    for column, cell in WRONG_CELLS:
        write_rows([GOOD] * 3 + [{**GOOD, column: cell}] + [GOOD])

        assert explain("people.csv") == READ, (column, cell)

        said = " ".join(capsys.readouterr().err.split())
        assert f"Column '{column}'" in said
        assert "row 4 (in the block of rows 1 to 5)" in said
        assert f"'{cell}'" not in said


TYPED = [
    ("age", pa.array([7, None], pa.int8()), [7, None]),
    ("age", pa.array([Decimal(2**62), Decimal("7.000")]), [2**62, 7]),
    ("zip", pa.array(["NA", "new"]).dictionary_encode(), ["NA", "new"]),
    ("limit", pa.array([2, -1], pa.int64()), [2.0, -1.0]),
    ("limit", pa.array([0.5, None], pa.float32()), [0.5, None]),
]
# Texts that stand for others only in files without types, and numbers that would lose something.
MISTYPED = [
    ("age", pa.array(["2", "3"])),
    ("age", pa.array([Decimal("1.5"), Decimal(2)])),
    ("member", pa.array(["true", "false"])),
    ("zip", pa.array([150, 151])),
    ("grade", pa.array(["1", "2"])),
]


def write_typed(column, cells):
    table = pa.Table.from_pandas(TRAIN.head(2), preserve_index=False)
    table = table.set_column(table.column_names.index(column), column, cells)
    pq.write_table(table, "people.parquet")


def test_a_file_with_types_may_have_other_types_that_lose_nothing(here):
    for column, cells, expected in TYPED:
        write_typed(column, cells)

        assert explain("people.parquet") == 0

        assert answers()[column] == expected


def test_a_file_with_types_may_not_have_types_that_stand_for_others(here, capsys):
    for column, cells in MISTYPED:
        write_typed(column, cells)

        assert explain("people.parquet") == READ
        assert f"Column '{column}'" in " ".join(capsys.readouterr().err.split())


def test_another_dtype_can_be_asked_for(here):
    write_rows([{**GOOD, "age": "36.5"}])

    assert explain("people.csv", "--dtype", "age=float64") == 0

    assert answers()["age"] == [36.5]


def fit(*train, more=()):
    command = ["fit", *train, "--predictor", "scoring_of_files:score", "--desired", "0.5:"]
    return main([*command, "-o", "new.mcce", "--json", *more])


def test_training_rows_that_do_not_fit_their_columns_are_an_error(here, capsys):
    for content, message in [
        ("points,points\n1,2\n", "several columns of one name: ['points']"),
        ("points,salary\n1,2\n3\n", "has 1 cells, but there are 2 columns"),
        ("points,salary\n1,2,3\n4,5,6\n", "Row 1"),
        ("", "is empty"),
        ('points,salary\n1,"2\n', "train.csv"),
    ]:
        (here / "train.csv").write_text(content, encoding="utf-8")
        for more in ([], ["--sample-rows", "10"]):
            assert fit("train.csv", more=more) == READ
            assert message in " ".join(capsys.readouterr().err.split())
    (here / "train.parquet").write_bytes(b"PAR1 no table")
    assert fit("train.parquet") == READ
    assert fit("nowhere.csv") == READ


def learned() -> mcce.Schema:
    return mcce.load("new.mcce", score).schema_


def test_training_rows_are_read_as_they_are(here, capsys):
    numbers = [repr(x) for x in np.random.default_rng(0).uniform(-1e6, 1e6, 200).tolist()]
    lines = [f'{at % 10};"a;b";{number}' for at, number in enumerate(numbers)]
    text = "\n".join(["\ufeffpoints;job;x", *lines, "", "3;;0.1"])
    (here / "train.csv.gz").write_bytes(gzip.compress(text.encode()))

    assert fit("train.csv.gz", more=["--delimiter", ";"]) == 0

    points, job, x = learned().features
    assert json.loads(capsys.readouterr().out)["n_train"] == 201
    assert points.table.tolist() == list(range(10))
    assert job.table.tolist()[:1] == ["a;b"]
    assert job.has_missing
    assert x.table.tolist() == sorted(map(float, [*numbers, "0.1"]))


def test_training_rows_in_several_files_have_the_categories_and_dtypes_of_all(here, capsys):
    rows = pd.DataFrame({"points": np.arange(40) % 10, "since": "2024-02-29"})
    for at, job in enumerate(("baker", "clerk")):
        part = rows.assign(job=pd.Categorical([job] * 40))
        part.to_parquet(f"{at}.parquet")
        part.to_csv(f"{at}.csv", index=False)

    assert fit("0.parquet", "1.parquet", more=["--sample-rows", "60"]) == 0
    (job,) = [feature for feature in learned().features if feature.name == "job"]
    assert job.table.tolist() == ["baker", "clerk"]
    assert isinstance(job.table.dtype, pd.CategoricalDtype)
    dtypes = ["--dtype", "since=datetime64[s]", "--dtype", "points=float64"]
    assert fit("0.csv", "1.csv", more=dtypes) == 0
    assert [str(f.table.dtype) for f in learned().features[:2]] == ["float64", "datetime64[s]"]
    rows.assign(since="3/4/2024").to_csv("2.csv", index=False)
    assert fit("2.csv", more=dtypes) == READ
    assert "Column 'since'" in " ".join(capsys.readouterr().err.split())
    assert fit("0.csv", more=["--dtype", "wage=float64"]) == READ


@pytest.fixture
def lake(here):
    """A folder of files, some of which are no data; each has its own number of rows."""
    names = ["a", "2025/b", "_temporary/0/c", ".hidden/d", "_old/e", "2025/_draft"]
    for power, name in enumerate(names):
        path = here / "lake" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"points": np.arange(2**power) % 10, "x": 1.5}).to_csv(path, index=False)
    return here / "lake"


MEANT = {
    "lake": 3,
    "./lake/**": 3,
    "lake/*": 3,
    "lake/**/*.csv": 3,
    "lake/*.csv": 1,
    "lake/*/*.csv": 2,
    "lake/_old/*.csv": 16,
    "lake/**/_temporary/**/*.csv": 4,
    "lake/2025/_*": 32,
}


def n_rows(*names, capsys):
    assert fit(*names) == 0
    return json.loads(capsys.readouterr().out)["n_train"]


def test_names_stand_for_files_that_are_data(lake, capsys):
    for name, expected in MEANT.items():
        assert n_rows(name, capsys=capsys) == expected, name
    (lake / "a.csv").rename(lake / "odd[1].csv")
    assert n_rows("lake/odd[1].csv", capsys=capsys) == 1
    assert fit("none/*.csv") == READ


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_links_to_folders_count_once_and_end(lake, capsys):
    (lake.parent / "elsewhere").mkdir()
    pd.DataFrame({"points": range(8), "x": 1.5}).to_csv(
        lake.parent / "elsewhere/f.csv", index=False
    )
    (lake / "linked").symlink_to(lake.parent / "elsewhere")
    (lake / "2025/all").symlink_to(lake)

    assert n_rows("lake", capsys=capsys) == 11
    (lake / "twice").symlink_to(lake / "2025")
    assert fit("lake") != 0
    assert "named twice" in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_cannot_be_read_is_an_error(lake, monkeypatch, capsys):
    scandir = os.scandir

    def closed(path="."):
        if str(path).endswith("2025"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)

    assert fit("lake") == READ
    assert "Permission denied" in capsys.readouterr().err


def half_done(here):
    """A run that ended at a wrong cell, with two complete parts; the file is mended."""
    rows = [{**GOOD, "age": str(20 + at)} for at in range(6)]
    write_rows([*rows[:4], {**GOOD, "age": "?"}, *rows[5:]])
    assert explain("people.csv", "--block-rows", "2") == READ
    write_rows(rows)
    return here / "answers.parquet.parts"


def damage_part(parts):
    next(parts.glob("part-*0.*")).write_bytes(b"half")


def damage_receipt(parts):
    min(parts.glob("_part-*.json")).write_text('{"n_rows": 2}')


def test_a_part_that_was_damaged_is_made_again(here):
    command = ["explain", "own.mcce", "people.csv", "--predictor", "scoring_of_files:score"]
    for damage in (damage_part, damage_receipt):
        parts = half_done(here)
        damage(parts)

        assert main([*command, "-o", "answers.parquet", "--resume", "--quiet"]) == 0

        assert answers()["age"] == [20, 21, 22, 23, 24, 25]
        assert not parts.exists()
        (here / "answers.parquet").unlink()


def test_a_run_whose_folder_was_taken_over_does_not_write(here, capsys):
    (here / "scoring_of_files.py").write_text(
        "import pathlib\n"
        "def score(frame):\n"
        "    for manifest in pathlib.Path().glob('*.parts/_manifest.json'):\n"
        "        manifest.unlink()\n"
        "    return frame['points'].to_numpy() / 10\n"
    )
    write_rows([GOOD] * 4)

    assert explain("people.csv", "--block-rows", "2") == WRITE

    assert "no longer that of this run" in " ".join(capsys.readouterr().err.split())
    assert not list(here.glob("answers.parquet.parts/part-*"))


def test_an_output_is_replaced_whole_or_not_at_all(here):
    write_rows([GOOD] * 2)
    assert explain("people.csv") == 0
    before = (here / "answers.parquet").read_bytes()
    write_rows([GOOD, {**GOOD, "age": "?"}])

    assert explain("people.csv") == READ

    assert (here / "answers.parquet").read_bytes() == before
