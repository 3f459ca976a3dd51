"""The bytes of a file: a zip of stored members in which every byte is determined by their contents.

Names and contents go in and come out. Reading lays the members out anew and compares, so a file
holds nothing but its members: no byte before, between or after them, no comment, no extra field,
nothing compressed or encrypted. No member can claim more than the file has.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

from ..errors import SavedFileError

# More arrays than any table has use for; each takes memory beyond its bytes.
MOST_MEMBERS = 2**18
LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
END_64, LOCATOR_64 = b"PK\6\6", b"PK\6\7"
# What other zip programs expect of sizes and offsets beyond 31 bits, and of more than 16 bits of
# members: the fields hold the greatest number, and the numbers follow in an extra field.
LARGE, MANY, FULL = 2**31 - 1, 2**16 - 1, 2**32 - 1
VERSION, VERSION_64 = 20, 45
DAY = 33  # 1980-01-01, the first day that a zip can name
UTF_8, UNIX, PLAIN_FILE = 0x800, 3, 0o644 << 16


def lay_out(members: Mapping[str, bytes | memoryview]) -> Iterator[bytes | memoryview]:
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


def take_apart(data: memoryview) -> dict[str, memoryview]:
    """The members of a file, in order; raises unless they can be told apart."""
    members: dict[str, memoryview] = {}
    at = 0
    while bytes(data[at : at + 4]) == LOCAL:
        if len(members) == MOST_MEMBERS:
            raise SavedFileError(f"it has more than {MOST_MEMBERS} members")
        name, start, size = _read_header(data, at)
        if start + size > len(data):
            raise SavedFileError("a member claims more bytes than the file has: it was cut short")
        if name in members:
            raise SavedFileError("two of its members have one name")
        members[name] = data[start : start + size]
        at = start + size
    return members


def check_layout(data: memoryview, members: Mapping[str, memoryview]) -> None:
    """Raise unless a file is exactly what its members give, byte for byte."""
    at = 0
    for piece in lay_out(members):
        # What stands before and after contents decides where they lie; they need no comparison.
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
    if full_size == FULL and len(extra) == 20:
        size = struct.unpack("<HHQQ", extra)[2]
    return bytes(data[at + 30 : at + 30 + n_name]).decode("utf-8", "replace"), start, size


def _entries(name: str, data: bytes | memoryview, offset: int) -> tuple[bytes, bytes]:
    """The header before a member, and its entry in the directory."""
    encoded, size = name.encode(), len(data)
    flags = 0 if name.isascii() else UTF_8
    large, far = size > LARGE, offset > LARGE
    version = VERSION_64 if large else VERSION
    shown, crc = FULL if large else size, zlib.crc32(data)
    extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
    common = struct.pack("<HHHHIII", flags, 0, 0, DAY, crc, shown, shown)
    header = LOCAL + struct.pack("<H", version) + common
    header += struct.pack("<HH", len(encoded), len(extra)) + encoded + extra
    wide = ([size, size] if large else []) + ([offset] if far else [])
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    version = VERSION_64 if wide else VERSION
    entry = CENTRAL + struct.pack("<BBH", version, UNIX, version) + common
    entry += struct.pack("<HHHHH", len(encoded), len(extra), 0, 0, 0)
    entry += struct.pack("<II", PLAIN_FILE, FULL if far else offset) + encoded + extra
    return header, entry


def _end(n_members: int, size: int, offset: int) -> bytes:
    """What follows the directory, which has a size and begins at an offset."""
    wide = b""
    if n_members > MANY or offset > LARGE or size > LARGE:
        wide = END_64 + struct.pack("<QHHII", 44, VERSION_64, VERSION_64, 0, 0)
        wide += struct.pack("<QQQQ", n_members, n_members, size, offset)
        wide += LOCATOR_64 + struct.pack("<IQI", 0, offset + size, 1)
    n_members, size, offset = min(n_members, MANY), min(size, FULL), min(offset, FULL)
    return wide + END + struct.pack("<HHHHIIH", 0, 0, n_members, n_members, size, offset, 0)
