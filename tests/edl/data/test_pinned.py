"""Pinned rows: written whole or not at all, read in any range from any thread or process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl.data import pinned as pinned_module
from edl.data.arrow_types import BATCH_ROWS
from edl.data.pinned import open_reader, pin_rows, remove_rows, write_rows
from edl.data.source import Pinned
from edl.errors import SourceError

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def numbered(rows: int, batch: int = 10_000) -> pa.RecordBatchReader:
    """n counts from 0; text is n's decimal digits, NULL for every multiple of 7."""

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, batch):
            n = np.arange(start, min(rows, start + batch))
            text = pa.array(n.astype(str), mask=n % 7 == 0)
            yield pa.record_batch([pa.array(n), text], schema=SCHEMA)

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def pin(folder: Path, rows: int, batch: int = 10_000) -> Pinned:
    reader = numbered(rows, batch)
    return pin_rows(folder, reader, source="duckdb:", select="SELECT", seed=0, shuffled=False)


@pytest.mark.variants(3)
@pytest.mark.parametrize("rows", [0, 1, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 2 * BATCH_ROWS, 150_001])
def test_all_rows_come_back_in_order_around_the_borders_of_batches(tmp_path: Path, rows: int) -> None:
    pinned = pin(tmp_path, rows)
    reader = open_reader(pinned, tmp_path)
    assert pinned.rows == reader.rows == rows
    table = pa.Table.from_batches(reader.read(0, rows), reader.schema)
    assert table.equals(numbered(rows).read_all())


@pytest.mark.soak
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (0, 0),
        (0, 1),
        (65_535, 65_537),
        (65_536, 65_536),
        (65_536, 131_072),
        (10, 149_999),
        (150_000, 150_000),
    ],
)
def test_a_range_is_cut_at_the_borders_of_batches_and_nowhere_else(
    tmp_path: Path, start: int, end: int
) -> None:
    reader = open_reader(pin(tmp_path, 150_000), tmp_path)
    batches = list(reader.read(start, end, ["n"]))
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == list(range(start, end))
    assert len(batches) == len({row // BATCH_ROWS for row in range(start, end)})


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    reader = open_reader(pin(tmp_path, 3), tmp_path)
    (batch,) = reader.read(1, 3, ["text", "n"])
    assert batch.to_pydict() == {"text": ["1", "2"], "n": [1, 2]}
    (nothing,) = reader.read(1, 3, [])
    assert (nothing.num_columns, nothing.num_rows) == (0, 2)


def test_an_unknown_column_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    reader = open_reader(pin(tmp_path, 3), tmp_path)
    with pytest.raises(SourceError, match="no column txt") as caught:
        reader.read(0, 3, ["txt"])
    assert caught.value.hint == "did you mean text?"


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 1), (0, 4), (4, 4)])
def test_a_range_outside_the_rows_is_an_error_before_the_first_batch(
    tmp_path: Path, start: int, end: int
) -> None:
    reader = open_reader(pin(tmp_path, 3), tmp_path)
    with pytest.raises(ValueError, match="rows"):
        reader.read(start, end)


def test_reading_copies_nothing(tmp_path: Path) -> None:
    reader = open_reader(pin(tmp_path, 100_000), tmp_path)
    before = pa.total_allocated_bytes()
    batches = list(reader.read(0, 100_000))
    assert pa.total_allocated_bytes() - before < 10_000
    assert sum(batch.num_rows for batch in batches) == 100_000


@pytest.mark.soak
def test_several_threads_read_at_once(tmp_path: Path) -> None:
    reader = open_reader(pin(tmp_path, 200_000), tmp_path)

    def total(start: int) -> int:
        return sum(int(np.sum(batch["n"].to_numpy())) for batch in reader.read(start, start + 1000, ["n"]))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(total, range(0, 200_000, 1000))) == sum(range(200_000))


@pytest.mark.soak
def test_another_process_reads_what_the_json_names(tmp_path: Path) -> None:
    pinned = pin(tmp_path, 70_000)
    (tmp_path / "pinned.json").write_bytes(msgspec.json.encode(pinned))
    program = (
        "import sys, pathlib, msgspec\n"
        "from edl.data.source import Pinned\n"
        "from edl.data.pinned import open_reader\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "pinned = msgspec.json.decode((folder / 'pinned.json').read_bytes(), type=Pinned)\n"
        "print(sum(sum(b['n'].to_pylist()) for b in open_reader(pinned, folder).read(69_990, 70_000)))\n"
        "assert 'duckdb' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) == sum(range(69_990, 70_000))


@pytest.mark.soak
def test_equal_rows_have_equal_digests_however_they_arrived(tmp_path: Path) -> None:
    digests = {pin(tmp_path / str(size), 70_000, size).digest for size in (1000, 10_000, 65_536, 70_000)}
    assert len(digests) == 1
    assert pin(tmp_path / "more", 70_001).digest not in digests


def test_another_type_is_another_digest(tmp_path: Path) -> None:
    digests = set()
    for kind in (pa.int32(), pa.uint32(), pa.float32()):
        schema = pa.schema([("a", kind)])
        batch = pa.record_batch([pa.array([0, 0], kind)], schema=schema)
        digests.add(write_rows(tmp_path, schema, [batch])[1])
    assert len(digests) == 3


def test_nothing_half_written_stays_after_an_error(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from numbered(70_000)
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError, match="went away"):
        write_rows(tmp_path, SCHEMA, failing())
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_half_written_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "rows.arrow.partial").write_bytes(b"ARROW1\0\0 half" * 1_000_000)
    reader = open_reader(pin(tmp_path, 5), tmp_path)
    assert reader.rows == 5
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrow"]


def test_an_earlier_file_stays_when_writing_a_new_one_fails(tmp_path: Path) -> None:
    pinned = pin(tmp_path, 5)

    def failing() -> Iterator[pa.RecordBatch]:
        raise RuntimeError("no")
        yield

    with pytest.raises(RuntimeError):
        write_rows(tmp_path, SCHEMA, failing())
    assert open_reader(pinned, tmp_path).rows == 5


def test_a_disk_without_room_is_a_named_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_module, "RESERVE", 1 << 60)
    with pytest.raises(SourceError, match="is full") as caught:
        pin(tmp_path, 5)
    assert "XDG_STATE_HOME" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_disk_that_fills_while_writing_is_the_same_error(tmp_path: Path) -> None:
    (tmp_path / "rows.arrow.partial").symlink_to("/dev/full")
    with pytest.raises(SourceError, match="is full"):
        pin(tmp_path, 200_000)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_gone_are_a_named_error_and_removing_them_again_is_none(tmp_path: Path) -> None:
    pinned = pin(tmp_path, 5)
    remove_rows(pinned, tmp_path)
    remove_rows(pinned, tmp_path)
    with pytest.raises(SourceError, match="no longer exist"):
        open_reader(pinned, tmp_path)


@pytest.mark.parametrize("kept", [0, 3, 100, -4])
def test_a_truncated_file_is_a_named_error(tmp_path: Path, kept: int) -> None:
    pinned = pin(tmp_path, 5)
    path = tmp_path / pinned.file
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(SourceError, match="damaged"):
        open_reader(pinned, tmp_path)


def test_rows_of_another_pin_are_refused(tmp_path: Path) -> None:
    pinned = pin(tmp_path, 5)
    pin(tmp_path, 6)
    with pytest.raises(SourceError, match="other rows"):
        open_reader(pinned, tmp_path)
