"""Output in parts stays valid and goes on."""

from __future__ import annotations

import json

import pytest

from mcce.errors import ParameterError, ReadError, WriteError
from mcce.execution.manifest import Manifest, Receipt
from mcce.execution.parts import MANIFEST, PartsFolder, read_manifest
from mcce.execution.replacing import replacing

JOB = {"explainer": "ab", "block_rows": 10}


@pytest.fixture
def parts(tmp_path):
    return PartsFolder.open(tmp_path / "answers", JOB, ".txt")


def write(parts, number, content=b"content", fingerprint="input"):
    receipt = Receipt(number * 10, 10, fingerprint, "", {"answered": 10})
    return parts.write(number, receipt, lambda stream: stream.write(content))


def test_a_part_counts_with_its_receipt_and_its_input(parts):
    receipt = write(parts, 0)

    assert parts.complete(0, "input") == receipt
    assert parts.complete(0, "other input") is None
    assert parts.complete(1, "input") is None


@pytest.mark.parametrize("damage", ["part", "receipt", "no part"])
def test_a_part_that_was_damaged_does_not_count(parts, damage):
    write(parts, 0)
    if damage == "part":
        parts.part(0).write_bytes(b"half")
    elif damage == "no part":
        parts.part(0).unlink()
    else:
        (parts.path / "_part-000000.json").write_text('{"first": 0}')

    assert parts.complete(0, "input") is None


@pytest.mark.parametrize("moment", ["part", "receipt"])
def test_what_fails_while_a_part_is_written_leaves_the_others(parts, moment, monkeypatch):
    write(parts, 0)

    def full(*_):
        raise OSError(28, "No space left on device")

    fill = full if moment == "part" else lambda stream: stream.write(b"whole")
    if moment == "receipt":
        monkeypatch.setattr(PartsFolder, "_put", full)
    with pytest.raises(WriteError, match="No space left on device"):
        parts.write(1, Receipt(10, 10, "input", "", {}), fill)

    assert parts.complete(0, "input") is not None
    assert parts.complete(1, "input") is None


def test_a_folder_of_another_job_is_refused(parts):
    write(parts, 0)

    assert PartsFolder.open(parts.path, JOB, ".txt").complete(0, "input") is not None
    with pytest.raises(ParameterError, match="block_rows was 10 and is 20 now"):
        PartsFolder.open(parts.path, {**JOB, "block_rows": 20}, ".txt")


def test_a_folder_with_files_of_others_is_refused(tmp_path):
    (tmp_path / "thesis.doc").write_text("precious")

    with pytest.raises(ParameterError, match=r"thesis\.doc"):
        PartsFolder.open(tmp_path, JOB, ".txt")


def test_finishing_drops_what_is_left_over(parts):
    for number in range(3):
        write(parts, number)
    (parts.path / ".mcce-0123456789abcdef").write_bytes(b"a draft of a killed run")

    assert parts.finish(JOB, 2) == [parts.part(0), parts.part(1)]

    assert sorted(file.name for file in parts.path.iterdir()) == [
        MANIFEST,
        "_part-000000.json",
        "_part-000001.json",
        "part-000000.txt",
        "part-000001.txt",
    ]
    assert read_manifest(parts.path) == Manifest(JOB, 2)


def test_removing_leaves_files_of_others(parts):
    write(parts, 0)
    (parts.path / "notes.txt").write_text("mine")

    parts.remove()

    assert [file.name for file in parts.path.iterdir()] == ["notes.txt"]
    assert read_manifest(parts.path) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "mcce parts", "version": 99, "job": {}}']
)
def test_a_manifest_of_something_else_is_an_error(parts, text):
    (parts.path / MANIFEST).write_text(text)

    with pytest.raises(ReadError, match="manifest"):
        PartsFolder.open(parts.path, JOB, ".txt")


def test_a_manifest_is_plain_json(parts):
    content = json.loads((parts.path / MANIFEST).read_text())

    assert content == {"format": "mcce parts", "version": 1, "job": JOB, "n_parts": None}


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(WriteError, match="Cannot write to"):
        PartsFolder.open(tmp_path / "file" / "answers", JOB, ".txt")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    target = tmp_path / "answers.csv"
    target.write_text("old")

    def write_half():
        with replacing(target) as stream:
            stream.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()

    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["answers.csv"]
