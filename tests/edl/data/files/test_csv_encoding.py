"""Compression and encoding of CSV files: found in the bytes, or asked for."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from edl.data.files.csv_encoding import (
    decode_blocks,
    find_compression,
    find_encoding,
    is_single_byte,
    named_encoding,
)
from edl.errors import SourceError

TEXT = "name,price\nMüller,5 €\n"


def written(folder: Path, data: bytes) -> str:
    (folder / "t.csv").write_bytes(data)
    return str(folder / "t.csv")


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a,b\n", "utf-8"),
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8"),
        (TEXT.encode("utf-16"), "utf-16"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "utf-16"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-32"), "utf-32"),
        (TEXT.encode("cp1252"), "cp1252"),
        (b"a" * (5 << 20) + "é".encode(), "utf-8"),
        (b"a" * (5 << 20) + "é".encode("cp1252"), "cp1252"),
    ],
)
def test_an_encoding_is_found(tmp_path: Path, data: bytes, encoding: str) -> None:
    path = written(tmp_path, data)
    assert find_encoding(path) == encoding
    assert (
        "".join(decode_blocks(path, encoding)).encode()
        == data.decode(encoding).removeprefix("\ufeff").encode()
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("имя\nИван\n".encode("cp1251"), "cannot be found"),
        ("名前\n東京\n".encode("shift_jis"), "cannot be found"),
        ("a\nMüller\n".encode() + b"Gro\xdf\n", "line 3 of .* is not UTF-8, as the lines before are"),
        (b"Gro\xdf\n" + "Müller\n".encode(), "cannot be found"),
    ],
)
def test_bytes_that_do_not_tell_their_encoding_are_an_error(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        find_encoding(written(tmp_path, data))


@pytest.mark.parametrize(
    ("head", "words"),
    [(b"BZh9", "bzip2"), (b"PK\x03\x04", "spreadsheet"), (b"PAR1", "Parquet"), (b"\xfd7zXZ", "xz")],
)
def test_files_of_another_kind_are_named(tmp_path: Path, head: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        find_compression(written(tmp_path, head + b"\0" * 10))


def test_a_truncated_file_is_an_error_and_not_another_encoding(tmp_path: Path) -> None:
    import gzip

    with pytest.raises(SourceError, match="cannot be read: Truncated"):
        find_encoding(written(tmp_path, gzip.compress(b"a,b\n1,2\n" * 1000)[:-20]))


def test_latin_1_is_read_as_windows_1252_as_browsers_do(tmp_path: Path) -> None:
    assert named_encoding("ISO-8859-1") == named_encoding("windows-1252") == "cp1252"
    assert list(decode_blocks(written(tmp_path, b"\x80\x81\xe9"), "cp1252")) == ["€\x81é", ""]


def test_only_encodings_of_one_byte_a_character_can_be_cut_anywhere() -> None:
    assert all(map(is_single_byte, ("cp1252", "cp1251", "koi8-r", "iso8859-15")))
    assert not any(map(is_single_byte, ("utf-8", "utf-16", "shift_jis", "gb18030", "cp037")))
