"""Output in parts stays valid and goes on."""

from __future__ import annotations

import json

import pytest

from mcce.errors import ParameterError, ReadError, WriteError
from mcce.files.manifest import Manifest, Receipt
from mcce.files.parts import MANIFEST, PartsFolder, read_manifest
from mcce.runtime.replacing import replacing

JOB = {"explainer": "ab", "block_rows": 10}


@pytest.fixture
def parts(tmp_path):
    return PartsFolder.open(tmp_path / "answers", JOB, ".txt")


def write(parts, number, content=b"content", fingerprint="input"):
    receipt = Receipt(number * 10, 10, fingerprint, "", {"answered": 10})
    return parts.write(number, lambda stream: stream.write(content) and receipt)


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

    receipt = Receipt(10, 10, "input", "", {})
    fill = full if moment == "part" else lambda stream: stream.write(b"whole") and receipt
    if moment == "receipt":
        monkeypatch.setattr(PartsFolder, "_put", full)
    with pytest.raises(WriteError, match="No space left on device"):
        parts.write(1, fill)

    assert parts.complete(0, "input") is not None
    assert parts.complete(1, "input") is None


def test_a_folder_of_another_job_is_refused(parts):
    write(parts, 0)

    assert PartsFolder.open(parts.path, JOB, ".txt").complete(0, "input") is not None
    with pytest.raises(ParameterError, match="block_rows was 10 and is 20 now"):
        PartsFolder.open(parts.path, {**JOB, "block_rows": 20}, ".txt")


def test_only_what_differs_in_another_job_is_named():
    columns = {f"feature {number}": "Int64" for number in range(50)}
    manifest = Manifest({"columns": {**columns, "customer": "object"}, "rules": None}, "ef56")

    with pytest.raises(ParameterError) as caught:
        manifest.check_job({"columns": {"customer": "Int64", **columns}, "rules": None})
    assert "settings: customer of columns was 'object' and is 'Int64' now. Use" in str(caught.value)

    with pytest.raises(ParameterError, match="is None now, and others"):
        manifest.check_job({"columns": {}, "rules": None})


@pytest.mark.parametrize("taken", ["removed", "another job", "resumed"])
def test_a_worker_that_outlived_its_run_does_not_write(parts, taken):
    if taken == "removed":
        (parts.path / MANIFEST).unlink()
    elif taken == "resumed":
        PartsFolder.open(parts.path, JOB, ".txt")
    else:
        parts.clear()
        PartsFolder.open(parts.path, {**JOB, "explainer": "cd"}, ".txt")

    with pytest.raises(WriteError, match="no longer that of this run"):
        write(parts, 0)

    assert not list(parts.path.glob("part-*"))


def test_a_part_that_is_replaced_after_all_is_noticed_at_the_end(parts):
    receipts = {0: write(parts, 0, b"new", "changed input")}
    write(parts, 0, b"old", "input")

    with pytest.raises(WriteError, match="was replaced by a worker of an earlier run"):
        parts.finish(receipts)

    assert read_manifest(parts.path).n_parts is None
    assert parts.complete(0, "changed input") is None


def test_a_receipt_is_of_the_bytes_that_were_written_for_it(parts, monkeypatch):
    """Not of those that a worker of another run has put in their place meanwhile."""
    put = PartsFolder._put

    def late(self, name, content):
        self.part(0).write_bytes(b"of another run")
        put(self, name, content)

    monkeypatch.setattr(PartsFolder, "_put", late)
    write(parts, 0)

    assert parts.complete(0, "input") is None


def test_parts_of_many_files_are_numbered_by_file(parts):
    receipt = Receipt(0, 1, "input", "", {})
    for number in [(0, 0), (0, 1), (2, 0)]:
        parts.write(number, lambda stream: stream.write(b"x") and receipt)
    parts.list_failures([{"reason": "none"}])

    names = [path.name for path in parts.finish({(0, 0): receipt, (2, 0): receipt})]

    assert names == ["part-000000-000000.txt", "part-000002-000000.txt"]
    assert read_manifest(parts.path).n_parts == 2
    assert sorted(path.name for path in parts.path.glob("[!_]*")) == names
    assert not (parts.path / "_failures.json").exists()


def test_a_folder_with_files_of_others_is_refused(tmp_path):
    (tmp_path / "thesis.doc").write_text("precious")

    with pytest.raises(ParameterError, match=r"thesis\.doc"):
        PartsFolder.open(tmp_path, JOB, ".txt")


def test_finishing_drops_what_is_left_over(parts):
    receipts = {number: write(parts, number) for number in range(3)}
    del receipts[2]
    (parts.path / ".mcce-0123456789abcdef").write_bytes(b"a draft of a killed run")

    assert parts.finish(receipts) == [parts.part(0), parts.part(1)]

    assert sorted(file.name for file in parts.path.iterdir()) == [
        MANIFEST,
        "_part-000000.json",
        "_part-000001.json",
        "part-000000.txt",
        "part-000001.txt",
    ]
    assert read_manifest(parts.path) == Manifest(JOB, parts.run, 2)


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

    about = {"format": "mcce parts", "version": 1, "job": JOB, "run": parts.run}
    assert content == {**about, "n_parts": None}


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
