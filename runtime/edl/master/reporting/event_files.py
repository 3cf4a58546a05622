"""Event files, which TensorBoard reads: named numbers by step, written without its libraries or any framework.

(The writer of the package `tensorboard` imports TensorFlow where that is installed, which takes seconds.)

A file is records: the length of the data (8 bytes), a checksum of the length (4), the data, a checksum of the data
(4), all little-endian. A checksum is a CRC-32C, turned and moved so that a CRC over it is not trivial. The data is an
`Event` of event.proto and summary.proto, in the wire format of protocol buffers; of it, these fields are used:

    Event    1 wall_time (double)   2 step (int64)   3 file_version (string)   5 summary   7 session_log
    Summary  1 value, repeated: 1 tag (string), 2 simple_value (float)         SessionLog  1 status (START = 1)
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path

_VERSION = b"brain.Event:2"
_START = 1
_CASTAGNOLI = 0x82F63B78  # polynomial of CRC-32C, its bits reversed
_MASK = 0xA282EAD8


class EventFile:
    """Writer of a new event file in `folder`; each event is in it when the call returns. Raises OSError if that fails.

    `name` must sort after the names of earlier files in the folder. Events of earlier files from `step` on are void.
    """

    def __init__(self, folder: Path, name: str, step: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"events.out.tfevents.{name}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._append(_bytes(3, _VERSION))
        self.restart(step)

    def restart(self, step: int) -> None:
        """Void all events from this step on."""
        self._append(_integer(2, step) + _bytes(7, _integer(1, _START)))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write numbers by tag: `train/loss` is the curve `loss` in the group `train`."""
        summary = b"".join(
            _bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items()
        )
        self._append(_integer(2, step) + _bytes(5, summary))

    def close(self) -> None:
        os.close(self._file)

    def _append(self, fields: bytes) -> None:
        data = _double(1, time.time()) + fields
        length = struct.pack("<Q", len(data))
        record = length + _checksum(length) + data + _checksum(data)
        if os.write(self._file, record) != len(record):
            raise OSError("only a part of an event could be written")


# Wire format: each field is its number and type, then its value. -----------------------------------------------


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _float(number: int, value: float) -> bytes:
    """Encode a number; one too large for 32 bits becomes infinite."""
    return _varint(number << 3 | 5) + struct.pack("<f", ctypes.c_float(value).value)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# Checksums -----------------------------------------------------------------------------------------------------


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_CASTAGNOLI if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_crc_of, range(256)))


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)
