"""CSV files as text: compression and encoding.

DuckDB and Arrow read UTF-8. Python decodes a file of another encoding: it knows all encodings and needs no download.
Compression and encoding are found in the bytes, never in the name: the compression from the first bytes; UTF-8 and
UTF-16 from the byte order mark; UTF-16 without one from its zero bytes. Every other file is read to its end: it is
UTF-8 if all bytes are, and otherwise Windows-1252, the encoding of Western Europe, if most letters are ASCII. Anything
else is an error that asks for the encoding.
"""

from __future__ import annotations

import codecs
import itertools
import re
import string
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from edl.errors import SourceError


class EncodingError(SourceError):
    """The encoding of a file is not found, or is not the stated one."""


UTF8 = "utf-8"
WESTERN = "cp1252"
BLOCK_BYTES = 4 << 20

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # first bytes -> name in DuckDB and Arrow
# first bytes -> description, and advice
_FOREIGN = {
    b"BZh": ("compressed by bzip2", "decompress it, or compress it by gzip or zstd"),
    b"\xfd7zXZ": ("compressed by xz", "decompress it, or compress it by gzip or zstd"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it; name a spreadsheet as excel:FILE"),
    b"PAR1": ("a Parquet file", "name it as parquet:FILE"),
}
# the longest first: the mark of UTF-32 begins with the mark of UTF-16
_MARKS = {
    codecs.BOM_UTF8: UTF8,
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Bytes 0x80 to 0x9f of Windows-1252. Five are undefined there and remain control characters, as in all browsers.
_WESTERN = {code: bytes([code]).decode(WESTERN, "ignore") or chr(code) for code in range(0x80, 0xA0)}
_LETTERS = string.ascii_letters.encode()
_PAIR = re.compile(rb"[\xc2-\xdf][\x80-\xbf]")  # a character of two bytes in UTF-8


@contextmanager
def open_bytes(path: str) -> Iterator[pa.NativeFile]:
    """Open a file, decompressed. Raises SourceError if it cannot be read, also during the context."""
    try:
        with pa.input_stream(path, compression=find_compression(path)) as file:
            yield file
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None


def find_compression(path: str) -> str | None:
    """Return `gzip`, `zstd` or None. Raises SourceError for a file of another kind, or one that cannot be read."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(6)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    for magic, (what, hint) in _FOREIGN.items():
        if head.startswith(magic):
            raise SourceError(f"{path} is {what}, not CSV", hint=hint)
    return next((name for magic, name in _COMPRESSIONS.items() if head.startswith(magic)), None)


def named_encoding(name: str) -> str:
    """Return Python's name of an encoding; Latin-1 is read as Windows-1252. Raises SourceError if there is none."""
    try:
        codec = codecs.lookup(name).name
        b"a".decode(codec, "ignore")  # not of text: base64
    except (LookupError, ValueError):
        raise SourceError(
            f"the encoding {name} is not known",
            hint="known are utf-8, utf-16, cp1252 (latin-1) and the other encodings of Python",
        ) from None
    return WESTERN if codec == "iso8859-1" else codec


def find_encoding(path: str) -> str:
    """Return the encoding of a file, by the rule above. Raises SourceError if the bytes do not tell it."""
    with open_bytes(path) as file:
        head = file.read(BLOCK_BYTES)
        for mark, name in _MARKS.items():
            if head.startswith(mark):
                return name
        if order := _utf16_without_mark(head[: 64 << 10]):
            return order
        return _find_8bit(path, itertools.chain([head], iter(lambda: file.read(BLOCK_BYTES), b"")))


def is_single_byte(encoding: str) -> bool:
    """Return True if every byte is a character, and those below 0x80 are ASCII, as in UTF-8."""
    if bytes(range(128)).decode(encoding, "ignore") != bytes(range(128)).decode():
        return False
    return sum(len(bytes([code]).decode(encoding, "ignore")) for code in range(128, 256)) > 64


def decode(data: bytes, encoding: str) -> str:
    """Decode text of an encoding of one byte a character. Raises UnicodeDecodeError."""
    return data.decode("latin-1").translate(_WESTERN) if encoding == WESTERN else data.decode(encoding)


def decode_blocks(path: str, encoding: str) -> Iterator[str]:
    """Yield the text of a file in blocks, without byte order mark.

    Raises SourceError at bytes that are no text of the encoding.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == UTF8 else encoding)()
    with open_bytes(path) as file:
        try:
            while block := file.read(BLOCK_BYTES):
                yield decode(block, encoding) if encoding == WESTERN else decoder.decode(block)
            yield decoder.decode(b"", final=True)
        except UnicodeError as error:
            raise EncodingError(f"{path} is not text of the encoding {encoding}: {error}") from None


def _utf16_without_mark(head: bytes) -> str | None:
    """Return the order of the bytes of UTF-16: of ASCII characters every other byte is zero."""
    data = np.frombuffer(head[: len(head) // 2 * 2], np.uint8).reshape(-1, 2)
    if not len(data):
        return None
    even, odd = (data == 0).mean(axis=0)
    if odd > 0.4 and even < 0.05:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.05 else None


def _find_8bit(path: str, blocks: Iterable[bytes]) -> str:
    """Return UTF-8 or Windows-1252. Raises SourceError if it is neither, or a mixture."""
    decoder = codecs.getincrementaldecoder(UTF8)()
    blocks, line, letters, has_pairs = iter(blocks), 1, 0, False
    for block in itertools.chain(blocks, [b""]):
        try:
            is_ascii = decoder.decode(block, final=not block).isascii()
        except UnicodeDecodeError as error:
            before, rest = error.object[: error.start], error.object[error.start :]
            if has_pairs or not before.isascii():
                raise EncodingError(
                    f"line {line + before.count(10)} of {path} is not UTF-8, as the lines before are"
                ) from None
            return _check_western(path, itertools.chain([before, rest], blocks), letters)
        has_pairs = has_pairs or not is_ascii
        line += block.count(b"\n")
        letters += len(block) - len(block.translate(None, _LETTERS))
    return UTF8


def _check_western(path: str, blocks: Iterable[bytes], letters: int) -> str:
    """Return Windows-1252. `letters`: ASCII letters before. Raises SourceError if it looks like another encoding."""
    counts = np.zeros(256, np.int64)
    has_pairs = False
    for block in blocks:
        counts += np.bincount(np.frombuffer(block, np.uint8), minlength=256)
        has_pairs = has_pairs or _PAIR.search(block) is not None
    letters += counts[list(_LETTERS)].sum()
    undefined = [code for code, char in _WESTERN.items() if ord(char) == code]
    if has_pairs or counts[128:].sum() > letters or counts[undefined].sum():
        raise EncodingError(f"the encoding of {path} cannot be found: it is not UTF-8, and hardly {WESTERN}")
    return WESTERN
