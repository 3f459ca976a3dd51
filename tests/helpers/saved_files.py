"""Saved explainers taken apart and put together again, by the standard library alone.

This is the file format in a few lines: a zip whose members are stored plainly, JSON texts, arrays
as ``.npy``, and a manifest with a checksum. So tests can write any file, whoever would refuse it.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

MANIFEST, DOCUMENT, SIGNATURE = "manifest.json", "explainer.json", "signature.txt"


def members_of(data: bytes) -> dict[str, bytes]:
    """The members of a file, by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zip_of(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of members, as saved files are laid out."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            file.writestr(info, data, compression)
    return stream.getvalue()


def with_checksums(members: dict[str, bytes], key: bytes | None = None) -> bytes:
    """A file of these members with good checksums, signed if there is a key."""
    about = json.loads(members[MANIFEST])
    listed = {name: data for name, data in members.items() if name not in (MANIFEST, SIGNATURE)}
    checksum = hashlib.sha256()
    for name, data in listed.items():
        checksum.update(f"{name}\n{len(data)}\n".encode() + data)
    about["sha256"] = checksum.hexdigest()
    manifest = json_of(about)
    signature = {}
    if key is not None:
        signature[SIGNATURE] = hmac.new(key, manifest, "sha256").hexdigest().encode() + b"\n"
    return zip_of({MANIFEST: manifest} | signature | listed)


def json_of(value: Any) -> bytes:
    """A JSON text as saved files have it."""
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def npy_of(array: np.ndarray) -> bytes:
    """An array as a file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def read_document(path: Path) -> dict[str, Any]:
    """What a file holds: JSON values with its arrays in their places."""
    members = members_of(path.read_bytes())

    def put_in(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"array"}:
                return np.load(io.BytesIO(members[value["array"]]))
            return {key: put_in(inner) for key, inner in value.items()}
        return [put_in(inner) for inner in value] if isinstance(value, list) else value

    return put_in(json.loads(members[DOCUMENT])) | {MANIFEST: members[MANIFEST]}


def document_bytes(document: dict[str, Any]) -> bytes:
    """The file of such a document, with good checksums."""
    members = {MANIFEST: document[MANIFEST], DOCUMENT: b""}

    def take_out(value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            members[f"{name}.npy"] = npy_of(value)
            return {"array": f"{name}.npy"}
        if isinstance(value, dict):
            return {key: take_out(inner, f"{name}/{key}") for key, inner in value.items()}
        if isinstance(value, list):
            return [take_out(inner, f"{name}/{at}") for at, inner in enumerate(value)]
        return value

    plain = {key: take_out(value, key) for key, value in document.items() if key != MANIFEST}
    return with_checksums(members | {DOCUMENT: json_of(plain)})


def parts_of(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if key != MANIFEST:
            yield (*way, key)
            if isinstance(inner, (dict, list)):
                yield from parts_of(inner, (*way, key))
