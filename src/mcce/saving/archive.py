"""The file: a zip of a manifest, one JSON text and NumPy arrays.

A document goes in and comes out: dicts and lists of JSON values, in which arrays may stand. Members
are stored as they are: the same document gives the same bytes on every machine, and no file can
claim more than it has. Open it with any zip program; the arrays are ``.npy`` files.

Always true: a file is written whole or not at all; what is read has the SHA-256 that the manifest
lists; nothing in a file is ever executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from ..errors import McceError, MissingExtraError, ParameterError, SavedFileError
from ..version import __version__

FORMAT = "mcce explainer"
FORMAT_VERSION = 3
MANIFEST, DOCUMENT = "manifest.json", "explainer.json"
MOST_MANIFEST_BYTES = 2**26
ARRAY = "array"
# Object arrays, which only pickle could read, are not among them.
ARRAY_KINDS = "biufmM"


def write(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Put a document into a file, in place of what was there."""
    target = _checked(path)
    arrays: dict[str, np.ndarray] = {}
    plain = {key: _take_out(value, key, arrays) for key, value in document.items()}
    members = {DOCUMENT: _json(plain)} | {name: _npy(array) for name, array in arrays.items()}
    written_by = {"mcce": __version__, "numpy": np.__version__, "pandas": pd.__version__}
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "written_by": written_by,
        "members": {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
        },
    }
    with _os_errors_as(f"Cannot save to {str(target)!r}"):
        _replace(Path(os.path.realpath(target)), {MANIFEST: _json(manifest)} | members)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The document in a file, after every byte of it was checked."""
    source = _checked(path)
    with _os_errors_as(f"Cannot load {str(source)!r}"):
        _check_regular(source.stat())
        stream = source.open("rb")
    with stream, refused(source):
        members = _members(stream)
        arrays = {name: _array(data) for name, data in members.items() if name.endswith(".npy")}
        document: dict[str, Any] = _put_in(_parse(members[DOCUMENT]), arrays)
        return document


@contextmanager
def refused(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error inside into a SavedFileError about this file."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{os.fspath(path)!r} has columns that are stored by a library which is not installed "
            f'({error}). Try pip install "mcce[parquet]".'
        ) from error
    # An unknown file can be wrong in more ways than anybody could list.
    except Exception as error:
        why = str(error) if isinstance(error, (McceError, ValueError)) else repr(error)
        raise SavedFileError(
            f"Cannot load {os.fspath(path)!r}: {why.rstrip('.')}. "
            "Take another copy of the file, or fit and save the explainer again."
        ) from error


def _checked(path: Any) -> Path:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str) or not name or "\0" in name:
        raise ParameterError(f"path must be the name of a file, got {path!r}.")
    return Path(name)


@contextmanager
def _os_errors_as(what: str) -> Iterator[None]:
    """Turn OSError into a SavedFileError."""
    try:
        yield
    except OSError as error:
        raise SavedFileError(f"{what}: {error.strerror or error}. Name another file.") from error


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is no plain file")


def _take_out(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The value with its arrays replaced by the names they have in ``arrays``."""
    if isinstance(value, np.ndarray):
        arrays[f"{name}.npy"] = value
        return {ARRAY: f"{name}.npy"}
    if isinstance(value, dict):
        return {key: _take_out(inner, f"{name}/{key}", arrays) for key, inner in value.items()}
    if isinstance(value, list):
        return [_take_out(inner, f"{name}/{place}", arrays) for place, inner in enumerate(value)]
    return value


def _put_in(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {ARRAY}:
            return arrays[value[ARRAY]]
        return {key: _put_in(inner, arrays) for key, inner in value.items()}
    return [_put_in(inner, arrays) for inner in value] if isinstance(value, list) else value


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n"


def _parse(data: bytes) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(data.decode(), parse_constant=refuse)


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _array(data: bytes) -> np.ndarray:
    """The array of a ``.npy`` file, whose header must claim exactly the bytes that follow."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array has a header of another version")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
    body = data[stream.tell() :]
    plain = dtype.kind in ARRAY_KINDS and not dtype.hasobject and not by_column
    if not plain or math.prod(shape) * dtype.itemsize != len(body):
        raise ValueError(
            f"an array claims dtype {dtype} and shape {shape}, but its data have another size"
        )
    if dtype.kind == "b":
        # Another byte than 0 and 1 in a boolean array may do anything.
        return (np.frombuffer(body, np.uint8) != 0).reshape(shape)
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _replace(target: Path, members: Mapping[str, bytes]) -> None:
    """Write beside the file and then take its place, so that there is always a whole one."""
    if target.exists():
        _check_regular(target.stat())
    draft = target.with_name(f".mcce-{secrets.token_hex(8)}")
    try:
        with draft.open("xb") as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
                for name, data in members.items():
                    # Fixed metadata, so that equal documents give equal bytes.
                    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                    info.create_system, info.external_attr = 3, 0o644 << 16
                    archive.writestr(info, data)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _members(stream: io.BufferedReader) -> dict[str, bytes]:
    """Every member but the manifest, checked against it."""
    size = os.fstat(stream.fileno()).st_size
    if stream.read(4) != b"PK\x03\x04":
        raise ValueError("the file is empty" if not size else "it is no saved explainer")
    with zipfile.ZipFile(stream) as archive:
        sizes = _sizes(archive, size)
        listed = _listed(_parse(archive.read(MANIFEST)))
        if sizes.keys() != listed.keys():
            raise ValueError(f"it lacks or adds members: {sorted(sizes.keys() ^ listed.keys())!r}")
        members = {name: archive.read(name) for name in listed}
    for name, entry in listed.items():
        digest = hashlib.sha256(members[name]).hexdigest()
        if entry != {"size": len(members[name]), "sha256": digest}:
            raise ValueError(f"{name} is damaged or was edited: its checksum is not {entry!r}")
    return members


def _sizes(archive: zipfile.ZipFile, file_size: int) -> dict[str, int]:
    """Bytes of each member but the manifest; together no more than the file has."""
    infos = archive.infolist()
    sizes = {info.filename: info.file_size for info in infos}
    if MANIFEST not in sizes:
        raise ValueError(f"it is a zip file, but no saved explainer: {MANIFEST} is missing")
    stored = all(
        info.compress_type == zipfile.ZIP_STORED
        and info.file_size == info.compress_size
        and not info.flag_bits & 0x1
        for info in infos
    )
    if not stored or len(sizes) < len(infos) or sum(sizes.values()) > file_size:
        raise ValueError("its members are compressed, encrypted, doubled or larger than the file")
    if sizes.pop(MANIFEST) > MOST_MANIFEST_BYTES:
        raise ValueError(f"{MANIFEST} is larger than {MOST_MANIFEST_BYTES} bytes")
    return sizes


def _listed(manifest: Any) -> dict[str, Any]:
    """Members listed in the manifest, which must be ours and of a version we can read."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"it is no saved explainer: {MANIFEST} does not say {FORMAT!r}")
    version, written_by = manifest["version"], manifest["written_by"]
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise ValueError(
            f"it has format version {version!r}, written by {written_by!r}, and this mcce "
            f"{__version__} reads versions up to {FORMAT_VERSION}; update mcce"
        )
    listed: dict[str, Any] = manifest["members"]
    if DOCUMENT not in listed:
        raise ValueError(f"{DOCUMENT} is missing")
    return listed
