"""Which files are meant by names, patterns and folders."""

from __future__ import annotations

import os

import pandas as pd
import pytest

from mcce.errors import ParameterError, ReadError
from mcce.files.sources import open_source
from mcce.files.units import find_files, is_single


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A folder of files, some of which are not data."""
    monkeypatch.chdir(tmp_path)
    for name in ["a", "2025/b", "_temporary/0/c", ".hidden/d", "_old/e", "2025/_draft"]:
        path = tmp_path / "lake" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "lake"


def found(*names):
    return [os.path.relpath(path, "lake") for path in find_files(names)]


DATA = ["2025/b.parquet", "a.parquet"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lake", DATA),
        ("lake/", DATA),
        ("./lake/**", DATA),
        ("lake/*", DATA),
        ("lake/**/*.parquet", DATA),
        ("lake/*.parquet", ["a.parquet"]),
        ("lake/*/*.parquet", ["2025/b.parquet"]),
        ("lake/_old/*.parquet", ["_old/e.parquet"]),
        ("lake/_*/*.parquet", ["_old/e.parquet"]),
        ("lake/**/_temporary/**/*.parquet", ["_temporary/0/c.parquet"]),
        ("lake/2025/_*", ["2025/_draft.parquet"]),
    ],
)
def test_names_stand_for_files_that_are_data(lake, name, expected):
    assert found(name) == expected


def test_a_pattern_that_is_the_name_of_a_file_is_that_file(lake):
    (lake / "odd[1].parquet").touch()

    assert found("lake/odd[1].parquet") == ["odd[1].parquet"]
    assert is_single("lake/odd[1].parquet")
    assert not is_single("lake/odd[2].parquet")


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
@pytest.mark.parametrize("name", ["lake", "lake/*", "lake/**"])
def test_folders_that_are_links_count(lake, name):
    (lake.parent / "elsewhere").mkdir()
    (lake.parent / "elsewhere/f.parquet").touch()
    (lake / "linked").symlink_to(lake.parent / "elsewhere")

    assert found(name) == [*DATA, "linked/f.parquet"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_to_a_folder_above_ends(lake):
    (lake / "2025/all").symlink_to(lake)

    assert found("lake") == DATA


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_file_that_is_meant_twice_is_refused(lake):
    (lake / "twice").symlink_to(lake / "2025")

    with pytest.raises(ParameterError, match="named twice"):
        find_files(["lake"])


@pytest.mark.parametrize("name", ["lake", "lake/**/*.parquet"])
def test_a_folder_that_cannot_be_read_is_an_error(lake, monkeypatch, name):
    scandir = os.scandir

    def closed(path="."):
        if str(path).endswith("2025"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)

    with pytest.raises(ReadError, match="Permission denied"):
        find_files([name])


@pytest.mark.parametrize("name", ["none.parquet", "none/*.parquet", "-"])
def test_what_is_not_there_is_an_error(lake, name):
    with pytest.raises((ReadError, ParameterError)) as error:
        find_files([name])

    assert "--engine" not in str(error.value)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_process_without_standard_input_reads_files(tmp_path, monkeypatch, kind):
    frame = pd.DataFrame({"age": [30, 40]})
    path = str(tmp_path / f"people.{kind}")
    frame.to_parquet(path) if kind == "parquet" else frame.to_feather(path)
    monkeypatch.setattr("sys.stdin", None)

    with open_source(path, kind) as source:
        assert source.schema.names == ["age"]
    with pytest.raises(ReadError, match="this process has none"), open_source("-", kind):
        pass
