"""Units of work: how files are cut and read, and which failures are tried again."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.errors import PredictorError, ReadError, SchemaError, WorkerError
from mcce.execution.files import PATIENCE, RETRIES, Failure, Outcome, explain_units
from mcce.files.manifest import Receipt
from mcce.files.run import Done
from mcce.files.sources import open_source
from mcce.files.units import MOST_PIECES, FileOfPeople, Unit


@given(sizes=st.lists(st.integers(0, 400), max_size=8).map(tuple), block_rows=st.integers(1, 100))
def test_units_are_all_rows_once_and_no_larger_than_needed(sizes, block_rows):
    units = FileOfPeople("people.parquet", "parquet", sizes=sizes).units(3, block_rows)

    rows = [row for unit in units for row in range(unit.first, unit.first + unit.n_rows)]
    assert rows == list(range(sum(sizes)))
    assert [unit.number for unit in units] == [(3, at) for at in range(len(units))]
    most = max([block_rows, *(-(-size // MOST_PIECES) for size in sizes)])
    assert all(unit.n_rows <= most for unit in units)


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
@pytest.mark.parametrize("group_rows", [1, 7, 50])
@pytest.mark.parametrize("block_rows", [1, 6, 30, 100])
def test_a_unit_reads_its_rows_and_no_others(tmp_path, format_, group_rows, block_rows):
    table = pa.table(
        {
            "age": pa.array([None if at % 9 == 0 else at for at in range(50)]),
            "sex": [["f", "m", None, f"level {at}"][at % 4] for at in range(50)],
            "other": [0.5 * at for at in range(50)],
        }
    )
    path = str(tmp_path / f"people.{format_}")
    write(table, path, format_, group_rows)
    columns = ["sex", "age"]

    found = {name: [] for name in columns}
    for unit in FileOfPeople.look(path, format_).units(0, block_rows):
        with open_source(path, format_) as source:
            fingerprint, blocks = unit.read(source, columns, 5)
            rows = list(blocks)
        with open_source(path, format_) as source:
            assert unit.read(source, columns, 100)[0] == fingerprint
        assert rows[0].first == unit.first
        assert max(block.n_rows for block in rows) <= 5
        for name in columns:
            found[name] += [cell for block in rows for cell in block.columns[name].to_pylist()]

    assert found == table.select(columns).to_pydict()


def write(table, path, format_, group_rows):
    """Write a table in groups of a size."""
    if format_ == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path, row_group_size=group_rows)
        return
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=group_rows)


def test_a_file_that_lost_rows_meanwhile_is_an_error(tmp_path):
    path = str(tmp_path / "people.parquet")
    pd.DataFrame({"age": range(10)}).to_parquet(path)
    unit = FileOfPeople.look(path, "parquet").units(0, 20)[0]
    pd.DataFrame({"age": range(4)}).to_parquet(path)

    with open_source(path, "parquet") as source, pytest.raises(ReadError, match="has 4 rows"):
        unit.read(source, ["age"], 20)


@pytest.mark.parametrize("at", range(0, 3))
def test_a_damaged_arrow_file_is_an_error_of_reading(tmp_path, at):
    path = tmp_path / "people.arrow"
    write(pa.table({"age": range(50)}), str(path), "arrow", 10)
    content = bytearray(path.read_bytes())
    # A message begins with this mark, and its own length.
    message = [place for place in range(len(content)) if content[place : place + 4] == b"\xff" * 4]
    content[message[at + 1] : message[at + 1] + 60] = b"\xff" * 60
    path.write_bytes(content)

    file = FileOfPeople.look(str(path), "arrow")

    assert "Cannot read" in str(file.error)
    (unit,) = file.units(0, 20)
    with open_source(str(path), "arrow") as source, pytest.raises(ReadError, match="Cannot read"):
        list(unit.read(source, ["age"], 20)[1])


def test_a_file_without_groups_is_one_unit_known_by_its_bytes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age\n36\n52\n")
    (unit,) = FileOfPeople.look(str(path), "csv").units(0, 1)

    with open_source(str(path), "csv") as source:
        fingerprint, blocks = unit.read(source, ["age"], 1)
        assert [block.columns for block in blocks] == [{"age": ["36"]}, {"age": ["52"]}]

    assert fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()


DONE = Done(Receipt(0, 1, "", "", {}))


class OneByOne:
    """An executor that counts how often it is asked."""

    def __init__(self):
        self.asked = []

    def map(self, task, items):
        self.asked.append(len(items))
        return ((place, task(item)) for place, item in enumerate(items))


def failing(error, times):
    """A task that fails on the first unit some times."""
    tried = []

    def task(unit):
        if unit.number == (0, 0) and len(tried) < times:
            tried.append(unit)
            return Outcome(unit, failure=Failure.of(error))
        return Outcome(unit, done=DONE)

    return task


def caused(error, cause):
    error.__cause__ = cause
    return error


UNITS = [Unit((0, at), str(Path("people.parquet")), "parquet", at, 1) for at in range(3)]
PASSING = caused(ReadError("Cannot read it."), OSError("a network drive"))


@pytest.mark.parametrize("error", [PASSING, MemoryError(), ValueError("?")])
def test_what_may_pass_is_tried_again_after_all_others(error):
    executor = OneByOne()

    outcomes = list(explain_units(executor, failing(error, RETRIES), UNITS))

    assert executor.asked == [3] + [1] * RETRIES
    assert [outcome.unit.number for outcome in outcomes if not outcome.again] == [
        *((0, 1), (0, 2), (0, 0))
    ]
    assert all((outcome.failure is None) != outcome.again for outcome in outcomes)


def test_what_does_not_pass_is_given_up():
    executor = OneByOne()

    outcomes = list(explain_units(executor, failing(PASSING, 99), UNITS))

    assert executor.asked == [3] + [1] * RETRIES
    assert outcomes[-1].failure == Failure(ReadError, "Cannot read it.", lasting=False)


@pytest.mark.parametrize("error", [SchemaError("no column"), ReadError("a wrong cell")])
def test_what_no_second_try_changes_is_not_tried_again(error):
    executor = OneByOne()

    outcomes = list(explain_units(executor, failing(error, 99), UNITS))

    assert executor.asked == [3]
    assert [outcome.failure is None for outcome in outcomes] == [False, True, True]


MANY = [Unit((0, at), "people.parquet", "parquet", at, 1) for at in range(PATIENCE + 5)]


@pytest.mark.parametrize("error", [PredictorError("no server."), WorkerError("died.")])
def test_a_run_stops_if_the_predictor_fails_for_everybody(error):
    executor = OneByOne()
    outcomes = []

    with pytest.raises(type(error), match=rf"first {PATIENCE} partitions failed.*{error}"):
        outcomes.extend(explain_units(executor, lambda unit: fail(unit, error), MANY))

    assert len(outcomes) == PATIENCE
    assert executor.asked == [len(MANY)]


@pytest.mark.parametrize("good", [(0, 0), (0, PATIENCE - 1)])
def test_a_run_goes_on_if_anybody_is_answered_in_time(good):
    def task(unit):
        if unit.number == good:
            return Outcome(unit, done=DONE)
        return fail(unit, PredictorError("no server"))

    outcomes = [one for one in explain_units(OneByOne(), task, MANY) if not one.again]

    assert len(outcomes) == len(MANY)
    assert sum(outcome.failure is None for outcome in outcomes) == 1


def test_files_that_cannot_be_read_never_stop_a_run():
    def task(unit):
        return fail(unit, ReadError("a wrong cell"))

    assert len(list(explain_units(OneByOne(), task, MANY))) == len(MANY)


def fail(unit, error):
    return Outcome(unit, failure=Failure.of(error))
