"""The file: a zip of a manifest, one JSON text and NumPy arrays.

A document goes in and comes out: dicts and lists of JSON values, in which arrays may stand. Open a
file with any zip program; the arrays are ``.npy`` files. A file may be signed with a key.

The zip has stored members, and their contents determine its every byte. Reading lays the members
out anew and compares, so a file holds nothing but its members: no byte before, between or after
them, no comment, no extra field, nothing compressed or encrypted. No member can claim more than the
file has.

Always true: the same document gives the same bytes, and no other bytes are read; a file is written
whole or not at all; what is read has the SHA-256 that the manifest lists, and the manifest the
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
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from ..errors import McceError, MissingExtraError, ParameterError, SavedFileError, shorten
from ..runtime.files import check_regular, replacing
from ..version import __version__

FORMAT = "mcce explainer"
FORMAT_VERSION = 10
MANIFEST, DOCUMENT, SIGNATURE = "manifest.json", "explainer.json", "signature.txt"
MAX_MANIFEST_BYTES = 2**26
# Bounds that no document of ours comes near.
MAX_LIST_DEPTH, MAX_DIGITS, MAX_ARRAY_NAME = 100, 20, 2**15
MIN_KEY_BYTES = 16
ARRAY = "array"
# Object arrays, which only pickle could read, are not among them.
ARRAY_KINDS = "biufmM"
HEADER = re.compile(
    rb"\{'descr': '([<|][biufmM]\d{1,2}(?:\[\w{1,8}\])?)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
# More arrays than any table has use for; each takes memory beyond its bytes.
MAX_MEMBERS = 2**18
LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
END_64, LOCATOR_64 = b"PK\6\6", b"PK\6\7"
# What other zip programs expect of sizes and offsets beyond 31 bits, and of more than 16 bits of
# members: the fields hold the greatest number, and the numbers follow in an extra field.
MAX_INT32, MAX_UINT16, MAX_UINT32 = 2**31 - 1, 2**16 - 1, 2**32 - 1
VERSION, VERSION_64 = 20, 45
DAY = 33  # 1980-01-01, the first day that a zip can name
UTF_8, UNIX, PLAIN_FILE = 0x800, 3, 0o644 << 16


def write_archive(
    path: str | os.PathLike[str], document: Mapping[str, Any], key: bytes | None = None
) -> None:
    """Put a document into a file, in place of what was there; sign it if there is a key."""
    target = _checked(path)
    check_key(key)
    arrays: dict[str, np.ndarray] = {}
    plain = {name: _extract(value, name, arrays) for name, value in document.items()}
    _check_writable(plain, arrays)
    members = {DOCUMENT: _json(plain)} | {name: _npy(array) for name, array in arrays.items()}
    manifest = _json(_manifest(members))
    signature = {} if key is None else {SIGNATURE: _signature(manifest, key)}
    with _os_errors_as(f"Cannot save to {str(target)!r}"):
        pieces = _lay_out({MANIFEST: manifest} | signature | members)
        with replacing(target) as stream:
            stream.writelines(pieces)


def read(path: str | os.PathLike[str], key: bytes | None = None) -> dict[str, Any]:
    """The document in a file, after every byte of it was checked."""
    return read_whole(path, key)[0]


def read_whole(
    path: str | os.PathLike[str], key: bytes | None = None
) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The same, with the manifest of the file, and whether it is signed."""
    source = _checked(path)
    check_key(key)
    with _os_errors_as(f"Cannot load {str(source)!r}"):
        check_regular(source.stat())
        stream = source.open("rb")
    with stream, refused(source):
        members = _members(memoryview(stream.read()), key)
        manifest = _load_json(members.pop(MANIFEST), MANIFEST)
        is_signed = members.pop(SIGNATURE, None) is not None
        plain = _parse(members.pop(DOCUMENT), DOCUMENT)
        arrays = {name: _array(data) for name, data in members.items()}
        document: dict[str, Any] = _insert(plain, "", arrays)
        if arrays:
            raise SavedFileError(f"nothing refers to {shorten(sorted(arrays))}")
        return document, manifest, is_signed


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
            f'({shorten(error)}). Try pip install ".[parquet]" in mcce\'s folder.'
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


def _extract(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The value with its arrays replaced by the names they have in ``arrays``."""
    if isinstance(value, np.ndarray):
        arrays[f"{name}.npy"] = value
        return {ARRAY: f"{name}.npy"}
    if isinstance(value, dict):
        return {key: _extract(inner, f"{name}/{key}", arrays) for key, inner in value.items()}
    if isinstance(value, list):
        return [_extract(inner, f"{name}/{place}", arrays) for place, inner in enumerate(value)]
    return value


def _insert(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The value with its arrays, each of which is taken once, from the name of its place."""
    if isinstance(value, dict):
        if value.keys() == {ARRAY}:
            if value[ARRAY] != f"{name}.npy" or value[ARRAY] not in arrays:
                raise SavedFileError(f"the array {shorten(name)} is missing, or at another place")
            return arrays.pop(value[ARRAY])
        within = f"{name}/" if name else ""
        return {key: _insert(inner, f"{within}{key}", arrays) for key, inner in value.items()}
    if isinstance(value, list):
        return [_insert(inner, f"{name}/{place}", arrays) for place, inner in enumerate(value)]
    return value


def _check_writable(plain: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise for a document that could not be read again."""
    if len(arrays) > MAX_MEMBERS - 3:
        raise SavedFileError(
            f"Cannot save {len(arrays)} arrays: a file holds at most {MAX_MEMBERS - 3}. "
            "Nothing was written."
        )
    if _depth(plain) > MAX_LIST_DEPTH or any(len(name) > MAX_ARRAY_NAME for name in arrays):
        raise SavedFileError(
            f"Cannot save values nested deeper than {MAX_LIST_DEPTH} lists, or names longer than "
            f"{MAX_ARRAY_NAME} letters. Nothing was written."
        )


def _depth(value: Any) -> int:
    """How deep lists and dicts are nested, without recursion."""
    depth, level = 0, [value]
    while level and depth <= MAX_LIST_DEPTH:
        depth += 1
        inner: list[Any] = []
        for part in level:
            inner += part.values() if isinstance(part, dict) else part
        level = [part for part in inner if isinstance(part, (dict, list))]
    return depth


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n"
    except UnicodeEncodeError:
        raise SavedFileError(
            "Cannot save a name with half a surrogate pair, which UTF-8 cannot encode. Rename "
            "what a generator of your own returns by to_arrays. Nothing was written."
        ) from None


def _load_json(data: memoryview, name: str) -> Any:
    """The value of a JSON text, of bounded depth and without long integers."""
    try:
        value = json.loads(bytes(data).decode(), parse_int=_read_int, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or _depth(value) > MAX_LIST_DEPTH:
        raise SavedFileError(f"{name} holds no JSON object, or one nested too deeply")
    return value


def _read_int(digits: str) -> int:
    return int(digits) if len(digits) <= MAX_DIGITS else _refuse(digits)


def _refuse(text: str) -> NoReturn:
    raise ValueError


def _parse(data: memoryview, name: str) -> Any:
    """The value of a JSON text, which must be written as ours are: no key twice, no escapes."""
    value = _load_json(data, name)
    try:
        same = _json(value) == data
    except ValueError:
        same = False
    if not same:
        raise SavedFileError(f"{name} is not written as mcce writes it")
    return value


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
    if math.prod(shape) * dtype.itemsize != len(body):
        raise SavedFileError(
            f"an array claims dtype {dtype} and shape {shape}, but its data have another size"
        )
    # Another byte than 0 and 1 in a boolean array may do anything.
    if dtype.kind == "b" and (np.frombuffer(body, np.uint8) > 1).any():
        raise SavedFileError("an array of booleans holds something else")
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _manifest(members: Mapping[str, bytes]) -> dict[str, Any]:
    """What a file says about itself, and the checksums of its members."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "written_by": {"mcce": __version__, "numpy": np.__version__, "pandas": pd.__version__},
        "members": {name: _checksum(data) for name, data in members.items()},
    }


def _checksum(data: bytes | memoryview) -> dict[str, Any]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _signature(manifest: bytes | memoryview, key: bytes) -> bytes:
    """The signature of a manifest, and so of all that it lists."""
    return hmac.new(key, manifest, "sha256").hexdigest().encode() + b"\n"


def _members(data: memoryview, key: bytes | None) -> dict[str, memoryview]:
    """Every member, checked against the manifest and the signature."""
    if bytes(data[:4]) != b"PK\3\4":
        raise SavedFileError("it is no saved explainer" if len(data) else "the file is empty")
    members = _split_members(data)
    if MANIFEST not in members or len(members[MANIFEST]) > MAX_MANIFEST_BYTES:
        raise SavedFileError(
            f"it is a zip file, but no saved explainer: {MANIFEST} is missing or too large"
        )
    whole, manifest = dict(members), members.pop(MANIFEST)
    signature = members.pop(SIGNATURE, None)
    if key is not None:
        _check_signature(manifest, signature, key)
    listed = _listed(_load_json(manifest, MANIFEST))
    _check_layout(data, whole)
    if members.keys() != listed.keys():
        raise SavedFileError(
            f"it lacks or adds members: {shorten(sorted(members.keys() ^ listed.keys()))}"
        )
    for name, entry in listed.items():
        if entry != _checksum(members[name]):
            raise SavedFileError(f"{shorten(name)} is damaged or was edited: its checksum differs")
    _parse(manifest, MANIFEST)
    if signature is not None and not re.fullmatch(rb"[0-9a-f]{64}\n", signature):
        raise SavedFileError(f"{SIGNATURE} holds no signature")
    return whole


def _check_signature(manifest: memoryview, signature: memoryview | None, key: bytes) -> None:
    if signature is None:
        raise SavedFileError("it is not signed, but key was given")
    if not hmac.compare_digest(bytes(signature), _signature(manifest, key)):
        raise SavedFileError(
            "its signature is not that of the key: it was edited, or another key signed it"
        )


def _listed(manifest: Any) -> dict[str, Any]:
    """Members listed in the manifest, which must be ours and of our version."""
    if manifest.get("format") != FORMAT:
        raise SavedFileError(f"it is no saved explainer: {MANIFEST} does not say {FORMAT!r}")
    version, written_by = manifest["version"], manifest["written_by"]
    if type(version) is not int or version != FORMAT_VERSION:
        raise SavedFileError(
            f"it has format version {shorten(version)}, written by {shorten(written_by)}, and this "
            f"mcce {__version__} reads version {FORMAT_VERSION} alone; load it with the mcce that "
            "wrote it"
        )
    listed: dict[str, Any] = manifest["members"]
    if DOCUMENT not in listed:
        raise SavedFileError(f"{DOCUMENT} is missing")
    return listed


def _lay_out(members: Mapping[str, bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The file that holds these members, in pieces."""
    offset, directory = 0, []
    for name, data in members.items():
        header, entry = _entries(name, data, offset)
        directory.append(entry)
        yield header
        yield data
        offset += len(header) + len(data)
    entries = b"".join(directory)
    yield entries
    yield _end(len(directory), len(entries), offset)


def _split_members(data: memoryview) -> dict[str, memoryview]:
    """The members of a file, in order; raises unless each can be found."""
    members: dict[str, memoryview] = {}
    at = 0
    while bytes(data[at : at + 4]) == LOCAL:
        if len(members) == MAX_MEMBERS:
            raise SavedFileError(f"it has more than {MAX_MEMBERS} members")
        name, start, size = _read_header(data, at)
        if start + size > len(data):
            raise SavedFileError("a member claims more bytes than the file has: it was cut short")
        if name in members:
            raise SavedFileError("two of its members have one name")
        members[name] = data[start : start + size]
        at = start + size
    return members


def _check_layout(data: memoryview, members: Mapping[str, memoryview]) -> None:
    """Raise unless a file is exactly what its members give, byte for byte."""
    at = 0
    for piece in _lay_out(members):
        # Headers decide where contents are; contents need no comparison.
        if isinstance(piece, bytes) and bytes(data[at : at + len(piece)]) != piece:
            raise SavedFileError(
                "it is not laid out as mcce writes it: it was damaged, or another program wrote it"
            )
        at += len(piece)
    if at != len(data):
        raise SavedFileError(f"{len(data) - at} bytes follow its last member")


def _read_header(data: memoryview, at: int) -> tuple[str, int, int]:
    """Name, first byte and size of the member whose header begins at a place."""
    if at + 30 > len(data):
        raise SavedFileError("it was cut short")
    flags, method, _, _, _, size, full_size, n_name, n_extra = struct.unpack(
        "<HHHHIIIHH", data[at + 6 : at + 30]
    )
    if method or flags & 0x1:
        raise SavedFileError("its members are compressed or encrypted")
    start = at + 30 + n_name + n_extra
    extra = data[start - n_extra : start]
    if full_size == MAX_UINT32 and len(extra) == 20:
        size = struct.unpack("<HHQQ", extra)[2]
    return bytes(data[at + 30 : at + 30 + n_name]).decode("utf-8", "replace"), start, size


def _entries(name: str, data: bytes | memoryview, offset: int) -> tuple[bytes, bytes]:
    """The header before a member, and its entry in the directory."""
    encoded, size = name.encode(), len(data)
    flags = 0 if name.isascii() else UTF_8
    large, far = size > MAX_INT32, offset > MAX_INT32
    version = VERSION_64 if large else VERSION
    shown, crc = MAX_UINT32 if large else size, zlib.crc32(data)
    extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
    common = struct.pack("<HHHHIII", flags, 0, 0, DAY, crc, shown, shown)
    header = LOCAL + struct.pack("<H", version) + common
    header += struct.pack("<HH", len(encoded), len(extra)) + encoded + extra
    wide = ([size, size] if large else []) + ([offset] if far else [])
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    version = VERSION_64 if wide else VERSION
    entry = CENTRAL + struct.pack("<BBH", version, UNIX, version) + common
    entry += struct.pack("<HHHHH", len(encoded), len(extra), 0, 0, 0)
    entry += struct.pack("<II", PLAIN_FILE, MAX_UINT32 if far else offset) + encoded + extra
    return header, entry


def _end(n_members: int, size: int, offset: int) -> bytes:
    """What follows the directory, which has a size and begins at an offset."""
    wide = b""
    if n_members > MAX_UINT16 or offset > MAX_INT32 or size > MAX_INT32:
        wide = END_64 + struct.pack("<QHHII", 44, VERSION_64, VERSION_64, 0, 0)
        wide += struct.pack("<QQQQ", n_members, n_members, size, offset)
        wide += LOCATOR_64 + struct.pack("<IQI", 0, offset + size, 1)
    n_members = min(n_members, MAX_UINT16)
    size, offset = min(size, MAX_UINT32), min(offset, MAX_UINT32)
    return wide + END + struct.pack("<HHHHIIH", 0, 0, n_members, n_members, size, offset, 0)
