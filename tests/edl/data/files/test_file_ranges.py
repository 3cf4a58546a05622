"""Rows of files by range, whatever their format."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from edl.data import Pinned, open_reader
from edl.data.files import file_ranges
from edl.data.files.file_ranges import FileSet, RangeReader, pin_files
from edl.data.recordio import RecordWriter
from edl.errors import SourceError, SpecError

TABLE = pa.table({"n": range(100), "t": [f"text {n}" for n in range(100)]})
Write = Callable[[Path, pa.Table], None]


def write_csv(path: Path, table: pa.Table) -> None:
    rows = (f"{row['n']},{row['t']}\n" for row in table.to_pylist())
    path.write_text("n,t\n" + "".join(rows))


def write_parquet(path: Path, table: pa.Table) -> None:
    parquet.write_table(table, path, row_group_size=17)


def write_recordio(path: Path, table: pa.Table) -> None:
    with RecordWriter(path, chunk_bytes=100) as writer:
        writer.write_many(value.encode() for value in table["t"].to_pylist())


FORMATS: dict[str, tuple[Write, str]] = {
    "csv": (write_csv, "t"),
    "parquet": (write_parquet, "t"),
    "recordio": (write_recordio, "record"),
}


@pytest.fixture(params=FORMATS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A format, its pieces made small."""
    for module in ("csv_ranges", "recordio_ranges"):
        monkeypatch.setattr(f"edl.data.files.{module}.PIECE_ROWS", 13)
    found: str = request.param
    return found


def write_both(name: str, folder: Path) -> str:
    """100 rows in two files; the pattern that names them."""
    folder.mkdir()
    FORMATS[name][0](folder / f"a.{name}", TABLE.slice(0, 60))
    FORMATS[name][0](folder / f"b.{name}", TABLE.slice(60))
    return f"{folder}/*.{name}"


def opened(pattern: str, folder: Path) -> tuple[Pinned, RangeReader]:
    pinned = pin_files(pattern, folder)
    reader = open_reader(pinned, folder)
    assert isinstance(reader, RangeReader)
    return pinned, reader


def values(reader: RangeReader, start: int, end: int, column: str) -> list[str]:
    found = [value for batch in reader.read(start, end, [column]) for value in batch.column(0).to_pylist()]
    return [value.decode() if isinstance(value, bytes) else value for value in found]


def test_every_range_holds_its_rows(name: str, tmp_path: Path) -> None:
    pinned, reader = opened(write_both(name, tmp_path / "data"), tmp_path / "job")
    assert pinned.rows == reader.rows == 100
    column = FORMATS[name][1]
    for start in range(0, 100, 7):
        for end in range(start, 101, 9):
            assert values(reader, start, end, column) == [f"text {n}" for n in range(start, end)]


def test_all_columns_come_when_none_are_named(name: str, tmp_path: Path) -> None:
    _, reader = opened(write_both(name, tmp_path / "data"), tmp_path / "job")
    table = pa.Table.from_batches(reader.read(55, 65))
    assert table.schema == reader.schema
    assert table.num_rows == 10


def test_a_copy_of_the_files_has_the_same_digest_and_other_rows_another(name: str, tmp_path: Path) -> None:
    digests = []
    for folder in ("one", "two"):
        pattern = write_both(name, tmp_path / folder)
        for path in (tmp_path / folder).iterdir():
            os.utime(path, (1e9, 1e9))
        digests.append(pin_files(pattern, tmp_path / "job").digest)
    assert digests[0] == digests[1]
    path = tmp_path / "two" / f"b.{name}"
    FORMATS[name][0](path, TABLE.slice(59, 40))
    os.utime(path, (1e9, 1e9))
    assert pin_files(f"{tmp_path}/two/*", tmp_path / "job").digest != digests[0]


def test_a_file_that_changes_under_a_job_is_an_error_and_never_other_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned, reader = opened(write_both(name, tmp_path / "data"), tmp_path / "job")
    list(reader.read(0, 5))
    FORMATS[name][0](tmp_path / "data" / f"b.{name}", TABLE.slice(30, 40))
    with pytest.raises(SourceError, match="has changed since the job began"):
        list(reader.read(60, 99))
    with pytest.raises(SourceError, match="has changed since the job began"):
        open_reader(pinned, tmp_path / "job")


def test_a_file_that_is_gone_is_named(name: str, tmp_path: Path) -> None:
    pinned, _ = opened(write_both(name, tmp_path / "data"), tmp_path / "job")
    (tmp_path / "data" / f"a.{name}").unlink()
    with pytest.raises(SourceError, match=rf"cannot read .*a\.{name}"):
        open_reader(pinned, tmp_path / "job")


def note(
    loaded: list[int], load: Callable[..., pa.RecordBatch], piece: int, columns: object
) -> pa.RecordBatch:
    loaded.append(piece)
    return load(piece, columns)


def test_pieces_are_read_once_as_long_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, reader = opened(write_both("parquet", tmp_path / "data"), tmp_path / "job")
    loaded: list[int] = []
    for pieces in reader._pieces:
        noted = functools.partial(note, loaded, pieces.load)
        monkeypatch.setattr(pieces, "load", noted)
    for _ in range(3):
        list(reader.read(0, 60))
    assert loaded == [0, 1, 2, 3]
    monkeypatch.setattr(file_ranges, "KEPT_BYTES", 0)
    list(reader.read(60, 100))
    list(reader.read(60, 100))
    assert loaded[4:] == [0, 1, 2, 0, 1, 2]


def test_a_column_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    _, reader = opened(write_both(name, tmp_path / "data"), tmp_path / "job")
    with pytest.raises(SourceError, match="has no column none"):
        reader.read(0, 1, ["none"])


def test_a_range_outside_of_the_rows_is_refused(tmp_path: Path) -> None:
    _, reader = opened(write_both("csv", tmp_path / "data"), tmp_path / "job")
    with pytest.raises(ValueError, match="of 100"):
        reader.read(99, 101)


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", TABLE)
    write_parquet(tmp_path / "b.parquet", TABLE.rename_columns(["n", "u"]))
    with pytest.raises(SourceError, match="differ in the columns t, u"):
        pin_files(f"{tmp_path}/*.parquet", tmp_path / "job")


def test_an_index_that_is_damaged_is_named(tmp_path: Path) -> None:
    pinned, _ = opened(write_both("csv", tmp_path / "data"), tmp_path / "job")
    (tmp_path / "job" / "files.json").write_text("{}")
    with pytest.raises(SpecError, match="is damaged"):
        open_reader(pinned, tmp_path / "job")
    (tmp_path / "job" / "files.json").unlink()
    with pytest.raises(SourceError, match="is missing"):
        open_reader(pinned, tmp_path / "job")


def test_copies_beside_the_index_are_read_wherever_the_folder_lies(name: str, tmp_path: Path) -> None:
    pinned = pin_files(write_both(name, tmp_path / "data"), tmp_path / "job")
    index = tmp_path / "job" / file_ranges.FILE
    files = msgspec.json.decode(index.read_bytes(), type=FileSet)
    copies = []
    for each in files.files:
        shutil.copyfile(each.path, tmp_path / "job" / Path(each.path).name)
        copies.append(msgspec.structs.replace(each, path=Path(each.path).name))
    index.write_bytes(msgspec.json.encode(msgspec.structs.replace(files, files=tuple(copies))))
    shutil.move(tmp_path / "job", tmp_path / "elsewhere")
    reader = open_reader(pinned, tmp_path / "elsewhere")
    assert isinstance(reader, RangeReader)
    assert values(reader, 50, 70, FORMATS[name][1]) == [f"text {n}" for n in range(50, 70)]
    (tmp_path / "elsewhere" / Path(files.files[0].path).name).unlink()
    with pytest.raises(SourceError, match=r"cannot read .*elsewhere"):
        open_reader(pinned, tmp_path / "elsewhere")
