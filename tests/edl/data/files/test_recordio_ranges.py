"""RecordIO by row range."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import open_reader
from edl.data.files.file_ranges import pin_files
from edl.data.recordio import RecordWriter
from edl.errors import SourceError


def test_rows_are_records_in_one_binary_column(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "t.recordio", compressor="gzip", chunk_bytes=50) as writer:
        writer.write_many(bytes([n]) * n for n in range(100))
    reader = open_reader(pin_files(f"{tmp_path}/t.recordio", tmp_path), tmp_path)
    assert reader.schema == pa.schema([("record", pa.binary())])
    assert pa.Table.from_batches(reader.read(97, 99))["record"].to_pylist() == [b"\x61" * 97, b"\x62" * 98]


def test_a_file_without_records_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t.recordio").write_bytes(b"")
    assert pin_files(f"{tmp_path}/t.recordio", tmp_path).rows == 0


def test_a_body_that_is_damaged_is_named_when_its_rows_are_read(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "t.recordio", chunk_bytes=50) as writer:
        writer.write_many([b"x" * 46] * 3)
    data = bytearray((tmp_path / "t.recordio").read_bytes())
    data[-1] = 0
    (tmp_path / "t.recordio").write_bytes(data)
    reader = open_reader(pin_files(f"{tmp_path}/t.recordio", tmp_path), tmp_path)
    with pytest.raises(SourceError, match=r"damaged in chunk 2, at byte 140: .*checksum"):
        list(reader.read(0, 3))


def test_an_option_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"")
    with pytest.raises(SourceError, match="have no option header"):
        pin_files(f"recordio:{tmp_path}/t?header=false", tmp_path)
