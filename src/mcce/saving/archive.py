"""The file: a zip of a manifest, one JSON text and NumPy arrays.

A document goes in and comes out: dicts and lists of JSON values, in which arrays may stand. Open a
file with any zip program; the arrays are ``.npy`` files. A file may be signed with a key.

The zip has stored members, and their contents determine its every byte. Reading writes the members
anew and compares, so a file holds nothing but its members: no byte before, between or after them,
no comment, no extra field, nothing doubled, compressed or encrypted.

Always true: the same document gives the same bytes, and no other bytes are read; a file is written
whole or not at all; what is read has the SHA-256 that the manifest says, and the manifest the
signature that the key gives; nothing in a file is ever executed.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from ..errors import McceError, MissingExtraError, ParameterError, SavedFileError, shorten
from ..runtime.files import check_regular, replacing
from ..version import __version__

FORMAT = "mcce explainer"
FORMAT_VERSION = 12
MANIFEST, DOCUMENT, SIGNATURE = "manifest.json", "explainer.json", "signature.txt"
# Bounds that no document of ours comes near.
MAX_MANIFEST_BYTES, MAX_DEPTH, MAX_ARRAY_NAME = 2**20, 100, 2**15
# More arrays than any table has use for; each takes memory beyond its bytes.
MAX_MEMBERS = 2**18
MIN_KEY_BYTES = 16
ARRAY = "array"
# What each member of a zip begins with.
HEAD = b"PK\3\4"
# Object arrays, which only pickle could read, are not among them.
ARRAY_KINDS = "biufmM"
HEADER = re.compile(
    rb"\{'descr': '([<|][biufmM]\d{1,2}(?:\[\w{1,8}\])?)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)


def ensure(sound: Any, why: str) -> None:
    """Raise unless what a file says is sound."""
    if not sound:
        raise SavedFileError(why)


def write(
    path: str | os.PathLike[str], document: Mapping[str, Any], key: bytes | None = None
) -> None:
    """Put a document into a file, in place of what was there; sign it if there is a key."""
    target = _checked(path)
    check_key(key)
    arrays: dict[str, bytes] = {}
    text = _json(_extract(document, "", arrays))
    ensure(
        len(arrays) < MAX_MEMBERS - 3,
        f"Cannot save more than {MAX_MEMBERS - 3:,} arrays. Nothing was written.",
    )
    members = {DOCUMENT: text} | arrays
    manifest = _json(
        {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "written_by": {"mcce": __version__, "numpy": np.__version__, "pandas": pd.__version__},
            "sha256": _checksum(members),
        }
    )
    signature = {} if key is None else {SIGNATURE: _signature(manifest, key)}
    with _os_errors_as(f"Cannot save to {str(target)!r}"), replacing(target) as stream:
        _write_zip({MANIFEST: manifest} | signature | members, stream)


def read(
    path: str | os.PathLike[str], key: bytes | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document and the manifest, after every byte was checked, and whether it is signed."""
    source = _checked(path)
    check_key(key)
    with _os_errors_as(f"Cannot load {str(source)!r}"):
        check_regular(source.stat())
        data = source.read_bytes()
    with refused(source):
        members = _split(data)
        manifest = _read_manifest(members, key)
        text = bytes(members.pop(DOCUMENT))
        plain = _parse(text, DOCUMENT)
        _check_written(plain, text, DOCUMENT)
        arrays = {name: _array(member) for name, member in members.items()}
        document: dict[str, Any] = _insert(plain, "", arrays)
        ensure(not arrays, f"nothing refers to {shorten(sorted(arrays))}")
        return document, manifest


def check_key(key: Any) -> None:
    """Raise unless a key can sign files; says nothing about its contents."""
    if key is None or (type(key) is bytes and len(key) >= MIN_KEY_BYTES):
        return
    came = f"{len(key)} bytes" if type(key) is bytes else f"a {type(key).__name__}"
    raise ParameterError(
        f"key must be None or a secret of at least {MIN_KEY_BYTES} bytes, got {came}. Make one "
        "with secrets.token_bytes(32), and keep it where the file is not."
    )


@contextmanager
def refused(path: str | os.PathLike[str], part: str = "it") -> Iterator[None]:
    """Turn any error inside, while reading a part, into a SavedFileError about this file.

    Errors of other libraries are named, not quoted: they may hold cells.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"{os.fspath(path)!r} has columns that are stored by a library which is not installed "
            f'({shorten(error)}). Try pip install ".[frames]" in mcce\'s folder.'
        ) from error
    # An unknown file can be wrong in more ways than a list could name.
    except Exception as error:
        why = f"{part} cannot be read ({type(error).__name__})"
        if isinstance(error, McceError):
            why = shorten(error, 400)
        raise SavedFileError(
            f"Cannot load {shorten(os.fspath(path), 500)}: {why.rstrip('.')}. "
            "Take another copy of the file, or fit and save the explainer again."
        ) from None


def _checked(path: Any) -> Path:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str) or not name or "\0" in name:
        raise ParameterError(f"path must be the name of a file, got {shorten(path)}.")
    return Path(name)


@contextmanager
def _os_errors_as(what: str) -> Iterator[None]:
    """Turn OSError into a SavedFileError."""
    try:
        yield
    except OSError as error:
        raise SavedFileError(f"{what}: {error.strerror or error}. Name another file.") from error


def _extract(value: Any, name: str, arrays: dict[str, bytes], depth: int = 0) -> Any:
    """The value with its arrays replaced by the names they have in ``arrays``."""
    kind, within, next_depth = type(value), f"{name}/" if name else "", depth + 1
    if kind is np.ndarray and value.dtype.kind in ARRAY_KINDS and _is_name(name):
        arrays[f"{name}.npy"] = _npy(value)
        return {ARRAY: f"{name}.npy"}
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list and depth < MAX_DEPTH:
        parts = enumerate(value)
        return [_extract(inner, f"{within}{place}", arrays, next_depth) for place, inner in parts]
    named = kind is dict and value.keys() != {ARRAY} and all(type(key) is str for key in value)
    if named and depth < MAX_DEPTH:
        parts = value.items()
        return {key: _extract(inner, f"{within}{key}", arrays, next_depth) for key, inner in parts}
    raise SavedFileError(
        f"Cannot save {shorten(name, 200)}: a value of type {kind.__name__} is neither an array of "
        "numbers under a printable name nor plain (None, bool, int, finite float, str, list, or "
        f"dict with strings as keys other than {ARRAY!r} alone), or it is nested deeper than "
        f"{MAX_DEPTH} lists. Change what to_arrays of your generator returns. Nothing was written."
    )


def _is_name(name: str) -> bool:
    """Whether a zip may have a member of this name: it encodes it, and cuts it at a zero byte."""
    return name.isprintable() and len(name) < MAX_ARRAY_NAME


def _insert(value: Any, name: str, arrays: dict[str, np.ndarray], depth: int = 0) -> Any:
    """The value with its arrays, each of which is taken once, from the name of its place."""
    ensure(depth <= MAX_DEPTH, f"{DOCUMENT} is nested too deeply")
    within, depth = f"{name}/" if name else "", depth + 1
    if isinstance(value, list):
        return [_insert(one, f"{within}{place}", arrays, depth) for place, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if value.keys() != {ARRAY}:
        return {key: _insert(one, f"{within}{key}", arrays, depth) for key, one in value.items()}
    in_place = value[ARRAY] == f"{name}.npy" and value[ARRAY] in arrays
    ensure(in_place, f"the array {shorten(name)} is missing, or at another place")
    return arrays.pop(value[ARRAY])


def _json(value: Any) -> bytes:
    # Half a surrogate pair, which a cell may hold, stays as it is.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _parse(data: bytes, name: str) -> dict[str, Any]:
    """The object of a JSON text."""
    try:
        value = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        value = None
    ensure(isinstance(value, dict), f"{name} holds no JSON object, or one nested too deeply")
    return dict(value)


def _check_written(value: Any, data: bytes, name: str) -> None:
    """Raise unless a JSON text is written as ours are: no key twice, no escapes."""
    ensure(_json(value) == data, f"{name} is not written as mcce writes it")


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _array(data: memoryview) -> np.ndarray:
    """The array of a ``.npy`` file, whose header must claim exactly the bytes that follow."""
    start = 10 + int.from_bytes(data[8:10], "little")
    header = HEADER.fullmatch(data[10:start]) if start <= 512 else None
    if bytes(data[:8]) != b"\x93NUMPY\1\0" or header is None:
        raise SavedFileError("an array has no header of ours")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(size) for size in header[2].decode().split(",") if size.strip())
    body = data[start:]
    ensure(
        math.prod(shape) * dtype.itemsize == len(body),
        f"an array claims dtype {dtype} and shape {shape}, but its data have another size",
    )
    # Another byte than 0 and 1 in a boolean array may do anything.
    is_odd = dtype.kind == "b" and (np.frombuffer(body, np.uint8) > 1).any()
    ensure(not is_odd, "an array of booleans holds something else")
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _checksum(members: Mapping[str, Any]) -> str:
    """The SHA-256 of the names, sizes and contents of members."""
    checksum = hashlib.sha256()
    for name, data in members.items():
        checksum.update(f"{name}\n{len(data)}\n".encode())
        checksum.update(data)
    return checksum.hexdigest()


def _signature(manifest: bytes, key: bytes) -> bytes:
    """The signature of a manifest, and so of all that follows it."""
    return hmac.new(key, manifest, "sha256").hexdigest().encode() + b"\n"


def _read_manifest(members: dict[str, memoryview], key: bytes | None) -> dict[str, Any]:
    """What a file says about itself, and whether it is signed; leaves the other members."""
    data = bytes(members.pop(MANIFEST, memoryview(b"")))
    ensure(
        0 < len(data) <= MAX_MANIFEST_BYTES,
        f"it is a zip file, but no saved explainer: {MANIFEST} is missing or too large",
    )
    signature = members.pop(SIGNATURE, None)
    if key is not None:
        ensure(signature is not None, "it is not signed, but key was given")
        ensure(
            hmac.compare_digest(signature or b"", _signature(data, key)),
            "its signature is not that of the key: it was edited, or another key signed it",
        )
    ensure(
        signature is None or re.fullmatch(rb"[0-9a-f]{64}\n", signature),
        f"{SIGNATURE} holds no signature",
    )
    manifest = _parse(data, MANIFEST)
    ensure(
        manifest.get("format") == FORMAT,
        f"it is no saved explainer: {MANIFEST} does not say {FORMAT!r}",
    )
    version, written_by = manifest["version"], manifest["written_by"]
    ensure(
        type(version) is int and version == FORMAT_VERSION,
        f"it has format version {shorten(version)}, written by {shorten(written_by)}, and this "
        f"mcce {__version__} reads version {FORMAT_VERSION} alone; load it with the mcce that "
        "wrote it",
    )
    ensure(
        manifest["sha256"] == _checksum(members),
        "it is damaged or was edited: its checksum differs",
    )
    _check_written(manifest, data, MANIFEST)
    return manifest | {"signed": signature is not None}


def _write_zip(members: Mapping[str, Any], stream: IO[bytes]) -> None:
    """Write a zip of members, which depends on nothing else."""
    with zipfile.ZipFile(stream, "w") as file:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            file.writestr(info, data)


def _split(data: bytes) -> dict[str, memoryview]:
    """The members of a file that is, byte for byte, what :func:`_write_zip` makes of them."""
    ensure(data, "the file is empty")
    ensure(data.startswith(HEAD), "it is no saved explainer")
    members, view, at = dict[str, memoryview](), memoryview(data), 0
    while data[at : at + 4] == HEAD and len(members) <= MAX_MEMBERS:
        size, n_name, n_extra = (
            int.from_bytes(data[at + begin : at + end], "little")
            for begin, end in ((22, 26), (26, 28), (28, 30))
        )
        name, start = str(view[at + 30 : at + 30 + n_name], "utf-8"), at + 30 + n_name + n_extra
        # Only the sizes of members that are too large for a header are in an extra field.
        size = int.from_bytes(data[start - 16 : start - 8], "little") if n_extra else size
        members[name], at = view[start : start + size], start + size
    again = io.BytesIO()
    _write_zip(members, again)
    ensure(
        again.getvalue() == data,
        "it is not laid out as mcce writes it: it was damaged, was cut short or is compressed, or "
        "another program wrote it",
    )
    return members
