"""The bytes of a file: nothing but its members, and signed if a key was given."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, McceError, ParameterError, PredictorError, SavedFileError
from mcce.saving import archive, container
from mcce.saving.container import lay_out, take_apart
from saved import answers, assert_same_answers

KEY = bytes(range(32))


def score(frame: pd.DataFrame) -> np.ndarray:
    return frame["salary"].to_numpy() / 100


@pytest.fixture(scope="module")
def train() -> pd.DataFrame:
    return pd.DataFrame({"age": [25, 36, 47, 52] * 10, "salary": range(20, 100, 2)})


@pytest.fixture(scope="module")
def explainer(train) -> MCCE:
    return MCCE(score, (0.7, 1.0), immutable=["age"], n_samples=20, random_state=0).fit(train)


@pytest.fixture(scope="module")
def data(explainer, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "loans.mcce"
    explainer.save(path)
    return path.read_bytes()


def members_of(data: bytes) -> dict[str, bytes]:
    return {name: bytes(part) for name, part in take_apart(memoryview(data)).items()}


def with_manifest(members: dict[str, bytes]) -> bytes:
    """A file of these members with good checksums."""
    listed = {name: part for name, part in members.items() if name != "manifest.json"}
    manifest = {"manifest.json": archive._json(archive._manifest(listed))}
    return b"".join(lay_out(manifest | listed))


def refusal(data: bytes, folder: Path, **given) -> str:
    """Why a file of these bytes is refused."""
    path = folder / "changed.mcce"
    path.write_bytes(data)
    with pytest.raises(SavedFileError) as caught:
        mcce.load(path, score, **given)
    assert len(str(caught.value)) < 1500
    return str(caught.value)


def test_any_zip_program_can_read_a_file(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        assert {name: file.read(name) for name in file.namelist()} == members_of(data)


def test_the_layout_is_that_of_the_standard_library():
    members = {"a.txt": b"", "b/ø.npy": b"\0" * 99, "c": b"PK\3\4PK\5\6"}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, part in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            file.writestr(info, part)

    assert b"".join(lay_out(members)) == stream.getvalue()


def test_large_files_are_laid_out_so_that_zip_programs_read_them(monkeypatch):
    members = {"small": b"12", "large": b"x" * 3000, "after": b"y" * 20}
    monkeypatch.setattr(container, "LARGE", 1000)
    monkeypatch.setattr(container, "MANY", 2)

    data = b"".join(lay_out(members))

    assert members_of(data) == members
    container.check_layout(memoryview(data), take_apart(memoryview(data)))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert {name: file.read(name) for name in file.namelist()} == members


def renamed_extra(data: bytes) -> bytes:
    """A file whose first member has an extra field."""
    header = bytearray(data[:30])
    n_name = struct.unpack("<H", header[26:28])[0]
    header[28:30] = struct.pack("<H", 4)
    return bytes(header) + data[30 : 30 + n_name] + b"\x99\x99\0\0" + data[30 + n_name :]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"\0",
        lambda data: data + data,
        lambda data: b"#!/bin/sh\n" + data,
        lambda data: data[:-2] + b"\5\0hello",
        renamed_extra,
        lambda data: data[: data.index(b"PK\1\2")] + b"between" + data[data.index(b"PK\1\2") :],
        lambda data: data.replace(b"PK\5\6", b"PK\6\7" + b"\0" * 16 + b"PK\5\6"),
        lambda data: b"".join(lay_out(members_of(data) | {"stranger.npy": b"1"})),
        lambda data: with_manifest(members_of(data) | {"stranger.npy": b"1"}),
        lambda data: with_manifest(members_of(data) | {"stranger.npy": archive._npy(np.ones(3))}),
        lambda data: with_manifest(members_of(data) | {"signature.txt": b"1"}),
        lambda data: b"".join(lay_out(members_of(data) | {"signature.txt": b"1"})),
        lambda data: b"".join(lay_out(dict(reversed(members_of(data).items()))))[:-1],
    ],
)
def test_whatever_a_file_holds_beside_its_members_is_refused(data, tmp_path, change):
    assert change(data) != data

    refusal(change(data), tmp_path)


def test_two_members_of_one_name_are_refused(data, tmp_path):
    first = data[: data.index(b"PK\3\4", 4)]

    assert "two of its members have one name" in refusal(first + data, tmp_path)


def test_more_members_than_any_explainer_has_are_refused(data, tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MOST_MEMBERS", 5)

    assert "more than 5 members" in refusal(data, tmp_path)


def changed_json(data: bytes, old: bytes, new: bytes) -> bytes:
    members = members_of(data)
    assert old in members["explainer.json"]
    return with_manifest(
        members | {"explainer.json": members["explainer.json"].replace(old, new, 1)}
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seed": 0', b'"seed": 0, "seed": 0'),
        (b'"seed": 0', b'"seed": ' + b"9" * 5000),
        (b'"seed": 0', b'"seed": 1e999'),
        (b'"seed": 0', b'"seed": NaN'),
        (b'"seed": 0', b'"seed":  0'),
        (b'"seed": 0', b'"seed": 00'),
        (b'"seed": 0', b'"seed": ' + b"[" * 5000 + b"]" * 5000),
        (b'"seed": 0', b'"seed": ' + b'{"int": ' * 400 + b"0" + b"}" * 400),
        (b'"salary"', b'"\\ud800"'),
        (b'"salary"', b'"\\u0073alary"'),
        (b'"salary"', b'"\xed\xa0\x80"'),
    ],
)
def test_a_text_that_is_not_written_as_ours_are_is_refused(data, tmp_path, old, new):
    message = refusal(changed_json(data, old, new), tmp_path)

    assert len(message) < 1000


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (0, 999999999999999999), }",
        "{'descr': '<i4', 'fortran_order': True, 'shape': (1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<V4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<M8[' + 'n' * 99, 'fortran_order': False, 'shape': (1,), }",
        "(" * 200 + ")" * 200,
        "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }" + " " * 60000,
    ],
)
def test_an_array_with_another_header_is_refused(data, tmp_path, header):
    text = header.encode() + b"\n"
    array = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + b"\0" * 4
    members = members_of(data) | {"model/visit_order.npy": array}

    refusal(with_manifest(members), tmp_path)


def test_a_column_under_another_name_is_a_clear_error(data, tmp_path):
    long_name = b'"' + b"salary" * 10**5 + b'"'
    (tmp_path / "renamed.mcce").write_bytes(changed_json(data, b'"salary"', long_name))

    with pytest.raises(PredictorError, match=r"cannot score the probe rows") as caught:
        mcce.load(tmp_path / "renamed.mcce", score)

    assert len(str(caught.value)) < 1500


def test_an_array_belongs_to_one_place(data, tmp_path):
    swapped = changed_json(data, b'"model/trees/left.npy"', b'"model/trees/right.npy"')

    assert "at another place" in refusal(swapped, tmp_path)


def test_a_signed_file_loads_with_its_key_and_without_one(explainer, train, tmp_path):
    path = tmp_path / "signed.mcce"
    explainer.save(path, key=KEY)

    for given in ({"key": KEY}, {}):
        loaded = mcce.load(path, score, **given)
        assert_same_answers(answers(loaded, train), answers(explainer, train))
    assert KEY not in path.read_bytes()
    assert KEY.hex().encode() not in path.read_bytes()


def test_a_file_without_the_signature_of_the_key_is_refused(explainer, data, tmp_path):
    explainer.save(tmp_path / "signed.mcce", key=KEY)
    signed = (tmp_path / "signed.mcce").read_bytes()
    members = members_of(signed)
    forged = members | {"manifest.json": members["manifest.json"].replace(b'"pandas"', b'"panda"')}

    assert "not signed" in refusal(data, tmp_path, key=KEY)
    assert "not that of the key" in refusal(signed, tmp_path, key=KEY[::-1])
    assert "not that of the key" in refusal(b"".join(lay_out(forged)), tmp_path, key=KEY)
    assert "not signed" in refusal(with_manifest(members_of(data)), tmp_path, key=KEY)


def test_an_edit_of_a_signed_file_is_noticed_by_the_key_alone(explainer, tmp_path):
    explainer.save(tmp_path / "signed.mcce", key=KEY)
    members = members_of((tmp_path / "signed.mcce").read_bytes())
    signature = members.pop("signature.txt")
    text = members["explainer.json"].replace(b'"n_samples": 20', b'"n_samples": 21')
    edited = members_of(with_manifest(members | {"explainer.json": text}))
    manifest = {"manifest.json": edited.pop("manifest.json")}
    data = b"".join(lay_out(manifest | {"signature.txt": signature} | edited))
    (tmp_path / "edited.mcce").write_bytes(data)

    assert mcce.load(tmp_path / "edited.mcce", score).n_samples == 21
    assert "not that of the key" in refusal(data, tmp_path, key=KEY)


@pytest.mark.parametrize("key", ["a secret that is long enough", b"short", 7, bytearray(32), b""])
def test_a_key_that_cannot_sign_is_an_error_that_does_not_quote_it(explainer, tmp_path, key):
    for use in (
        lambda: explainer.save(tmp_path / "x.mcce", key=key),
        lambda: mcce.load(tmp_path / "x.mcce", score, key=key),
    ):
        with pytest.raises(ParameterError, match="key must be None or a secret of at least 16"):
            use()
    assert not (tmp_path / "x.mcce").exists()


def test_an_old_file_cannot_be_signed(tmp_path):
    path = Path(__file__).parents[1] / "data" / "saved_v3_exact.mcce"

    with pytest.raises(SavedFileError, match="it is not signed"):
        mcce.load(path, score, key=KEY)


def test_a_refusal_quotes_no_cells(train, tmp_path):
    words = pd.Series(["a private cell", "another private cell"] * 20, dtype=object)
    explainer = MCCE(score, (0.7, 1.0), random_state=0).fit(train.assign(note=words))
    explainer.save(tmp_path / "cells.mcce")
    document = archive.read(tmp_path / "cells.mcce")
    document["schema"]["features"][2]["table"]["values"].reverse()
    archive.write(tmp_path / "cells.mcce", document)

    with pytest.raises(McceError) as caught:
        mcce.load(tmp_path / "cells.mcce", score)

    assert "private" not in str(caught.value)
    assert caught.value.__cause__ is None
