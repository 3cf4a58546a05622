"""RecordIO: what is written is read, and what is damaged is named."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data.recordio import Compressor, RecordWriter, chunks, read_records
from edl.errors import SourceError
from edl.installation import install_extras

GOLDEN = Path(__file__).parents[3] / "samples" / "recordio"
RECORDS = [random.Random(0).randbytes(size % 97) for size in range(500)]  # noqa: S311


def write(path: Path, records: list[bytes], compressor: Compressor = "none", size: int = 4096) -> Path:
    with RecordWriter(path, compressor=compressor, chunk_bytes=size) as writer:
        writer.write_many(records)
    return path


@pytest.mark.parametrize("compressor", ["none", "snappy", "gzip"])
def test_records_are_read_as_they_were_written(tmp_path: Path, compressor: Compressor) -> None:
    path = write(tmp_path / "x.recordio", RECORDS, compressor)
    assert list(read_records(path)) == RECORDS
    with path.open("rb") as file:
        assert len(list(chunks(file, path))) > 3


def test_an_arrow_array_is_written_in_chunks_too(tmp_path: Path) -> None:
    path = tmp_path / "x.recordio"
    with RecordWriter(path, chunk_bytes=1000) as writer:
        writer.write(b"first")
        writer.write_many(pa.array([b"-", *RECORDS], pa.binary()).slice(1))
    assert list(read_records(path)) == [b"first", *RECORDS]
    with path.open("rb") as file:
        assert max(chunk.size for chunk in chunks(file, path)) < 2000


@pytest.mark.parametrize("compressor", ["none", "snappy", "gzip"])
def test_the_golden_files_hold_their_five_records(compressor: str) -> None:
    records = [b"", b"one", "zwölf".encode(), bytes(range(256)), b"\n"]
    assert list(read_records(GOLDEN / f"five.{compressor}.recordio")) == records


def test_the_layout_of_a_chunk_is_the_documented_one(tmp_path: Path) -> None:
    data = write(tmp_path / "x.recordio", [b"ab", b"c"]).read_bytes()
    body = b"\x02\0\0\0ab\x01\0\0\0c"
    magic, _, compressor, size, records = struct.unpack("<5I", data[:20])
    assert (magic, compressor, size, records) == (0x01020304, 0, len(body), 2)
    assert data[20:] == body


def test_a_file_without_records_is_empty_and_read(tmp_path: Path) -> None:
    assert list(read_records(write(tmp_path / "x.recordio", []))) == []


def test_a_file_that_failed_to_be_written_does_not_appear(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RecordWriter(tmp_path / "x.recordio") as writer:
        writer.write(b"x")
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []


def spoilt(path: Path, at: int, value: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] = value
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, 9, "begins with 0x01020309"),
        (5, 1, "checksum"),
        (8, 7, "names an unknown compressor, 7"),
        (15, 1, "after the file's end"),
        (16, 200, "lengths of its 200 records do not fit"),
        (25, 0xEE, "checksum"),
    ],
)
def test_damage_is_named_with_chunk_and_place(tmp_path: Path, at: int, value: int, words: str) -> None:
    path = write(tmp_path / "x.recordio", RECORDS)
    with path.open("rb") as file:
        second = list(chunks(file, path))[1].offset
    spoilt(path, second + at, value)
    with pytest.raises(SourceError, match=f"in chunk 1, at byte {second:,}: .*{words}"):
        list(read_records(path))


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.recordio", RECORDS)
    path.write_bytes(path.read_bytes() + b"\x04\x03\x02")
    with pytest.raises(SourceError, match="header is truncated after 3 bytes"):
        list(read_records(path))


def test_a_gzip_body_that_ends_early_is_named(tmp_path: Path) -> None:
    import zlib

    path = write(tmp_path / "x.recordio", RECORDS[:50], "gzip")
    header, body = path.read_bytes()[:20], path.read_bytes()[20:-9]
    fields = list(struct.unpack("<5I", header))
    fields[1], fields[3] = zlib.crc32(body), len(body)
    path.write_bytes(struct.pack("<5I", *fields) + body)
    with pytest.raises(SourceError, match="cannot be decompressed: it is not one"):
        list(read_records(path))


def test_snappy_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.recordio", RECORDS, "snappy")
    monkeypatch.setitem(sys.modules, "cramjam", None)
    for use in (lambda: list(read_records(path)), lambda: RecordWriter(path, compressor="snappy")):
        with pytest.raises(SourceError, match="snappy is not installed") as caught:
            use()
        assert caught.value.hint == install_extras("recordio")
