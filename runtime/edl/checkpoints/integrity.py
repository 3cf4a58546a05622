"""Checksums of the files of a checkpoint: computed from memory, compared with what the disk returns, and stored in the
last file of the checkpoint, which has a checksum of its own.

Every kind of checkpoint is written and read by these functions. A checksum is the CRC-32 of a whole file: it finds
every error of a few bits, and all but one in four billion of others. It is computed by the thread that writes.
"""

from __future__ import annotations

import os
import re
import secrets
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import msgspec

from edl.errors import DamagedError
from edl.files import sync

PIECE = 16 << 20  # bytes per write, read or call
_SEAL = b',"crc":"00000000"}'
_CRC = re.compile(rb',"crc":"([0-9a-f]{8})"}$')


class Part(msgspec.Struct, frozen=True, array_like=True):
    """File of a checkpoint: its name in the folder, its size, and the CRC-32 of its bytes."""

    file: str
    bytes: int
    crc: int


class _Written(NamedTuple):
    """Written bytes: the position of the first one in the file, their number and their CRC-32 in memory."""

    at: int
    size: int
    crc: int


def write_file(path: Path, pieces: Iterable[tuple[int, memoryview]]) -> Part:
    """Write a file and flush it to disk, read it back from there, and give it its name.

    `pieces` are positions with the bytes that begin there; together they fill the file, in any order. Raises OSError if
    the file cannot be written, DamagedError if it is read back differently.
    """
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("w+b") as file:
            checksums = _write_pieces(file, pieces)
            file.flush()
            os.fsync(file.fileno())
            _forget_pages(file)
            part = _read_back(file, path, sorted(checksums))
        partial.replace(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)
    return part


def _write_pieces(file: BinaryIO, pieces: Iterable[tuple[int, memoryview]]) -> list[_Written]:
    """Write the pieces and return them; those that follow each other are one, with one checksum."""
    checksums: list[_Written] = []
    for at, piece in pieces:
        file.seek(at)
        file.write(piece)
        last = checksums[-1] if checksums else None
        if last is not None and at == last.at + last.size:
            checksums[-1] = _Written(last.at, last.size + piece.nbytes, zlib.crc32(piece, last.crc))
        else:
            checksums.append(_Written(at, piece.nbytes, zlib.crc32(piece)))
    return checksums


def _forget_pages(file: BinaryIO) -> None:
    """Let the next read come from the disk, where the system can."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read_back(file: BinaryIO, path: Path, checksums: Sequence[_Written]) -> Part:
    crc = size = 0
    file.seek(0)
    for piece in checksums:
        one = 0
        left = piece.size
        while left and (data := file.read(min(left, PIECE))):
            one = zlib.crc32(data, one)
            crc = zlib.crc32(data, crc) if size else one  # the first piece is all that is read so far
            left -= len(data)
        if left or one != piece.crc or piece.at != size:
            raise DamagedError(f"{path.name} is read back differently from how it was written")
        size += piece.size
    return Part(path.name, size, crc)


def check_data(data: bytes | memoryview, part: Part) -> None:
    """Raise DamagedError if the bytes of a file are not as they were written."""
    if len(data) != part.bytes:
        raise _size_error(part, len(data))
    if zlib.crc32(data) != part.crc:
        raise _checksum_error(part.file)


def check_size(path: Path, part: Part) -> None:
    """Raise DamagedError if the file is missing, or of another size than it was written with."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise read_error(part.file, error) from None
    if size != part.bytes:
        raise _size_error(part, size)


def check_file(path: Path, part: Part) -> None:
    """Raise DamagedError if the file is missing, unreadable, or not as it was written. It is read in pieces."""
    check_size(path, part)
    try:
        crc = checksum(path)
    except OSError as error:
        raise read_error(part.file, error) from None
    if crc != part.crc:
        raise _checksum_error(part.file)


def read_error(file: str, error: OSError) -> DamagedError:
    """Describe a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return DamagedError(f"{file} is missing")
    return DamagedError(f"{file} cannot be read: {error.strerror}")


def checkpoint_error(folder: Path, why: DamagedError | str) -> DamagedError:
    """Describe a damaged checkpoint by its folder."""
    text = why if isinstance(why, str) else why.message
    return DamagedError(f"the checkpoint {folder.name} is damaged: {text}", checkpoint=folder.name)


def read_back(path: Path) -> int:
    """Flush a file to disk, and return the CRC-32 of what is read from there."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        _forget_pages(file)
    return checksum(path)


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    with path.open("rb") as file:
        return checksum_of(file)


def checksum_of(file: IO[bytes]) -> int:
    """Return the CRC-32 of the rest of an open file."""
    crc = 0
    while data := file.read(PIECE):
        crc = zlib.crc32(data, crc)
    return crc


def _size_error(part: Part, size: int) -> DamagedError:
    return DamagedError(f"{part.file} has {size:,} of {part.bytes:,} bytes")


def _checksum_error(file: str) -> DamagedError:
    return DamagedError(f"bytes of {file} have changed: its checksum is wrong")


# Last files, which have the checksums of the others ------------------------------------------------------------


def seal_json(data: bytes) -> bytes:
    """Add the checksum of an object to it, as its last field `crc`."""
    return data[:-1] + b',"crc":"%08x"}' % zlib.crc32(data)


def check_json(data: bytes, file: str) -> None:
    """Raise DamagedError if an object with a checksum has changed. Earlier versions wrote none."""
    match = _CRC.search(data)
    if match is not None:
        is_damaged = int(match[1], 16) != zlib.crc32(data[: match.start()] + b"}")
    else:  # the field itself may have changed
        alike = zip(data[-len(_SEAL) :], _SEAL, strict=False)
        is_damaged = sum(one == other for one, other in alike if other != ord("0")) > len(_SEAL) // 3
    if is_damaged:
        raise _checksum_error(file)


def seal_msgpack(data: bytes) -> bytes:
    """Set the checksum of a map with a last field of four bytes."""
    return data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "big")


def check_msgpack(data: bytes, file: str) -> None:
    """Raise DamagedError if a map that ends with its checksum has changed."""
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
        raise _checksum_error(file)
