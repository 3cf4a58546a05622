"""Rows by range over the shards of a module's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edl.data.source import Pinned
from edl.errors import JobError
from edl.extensions.elasticdl.names.readers import AbstractDataReader, Metadata, RecordIODataReader
from edl.extensions.elasticdl.shard_reader import ShardReader, open_shards
from tests.edl.extensions.elasticdl.data import write_clicks


class Letters(AbstractDataReader):
    """Shards `a` with 3 and `b` with 4 records, the first of `b` has the number 10."""

    def __init__(self, *, columns: list[str] | None = None, mapping: bool = False) -> None:
        super().__init__()
        self.columns, self.mapping = columns, mapping

    def create_shards(self) -> Any:
        shards = [("a", 0, 3), ("b", 10, 4)]
        return {name: (start, rows) for name, start, rows in shards} if self.mapping else shards

    def read_records(self, task: Any) -> Any:
        for number in range(task.start, task.end):
            yield [task.shard.name, number] if self.columns else f"{task.shard_name}{number}".encode()

    @property
    def metadata(self) -> Metadata:
        return Metadata(self.columns)


@pytest.mark.parametrize("mapping", [False, True])
def test_a_range_of_rows_crosses_shards(mapping: bool) -> None:
    reader = ShardReader(Letters(mapping=mapping))
    assert reader.rows == 7
    [batch] = reader.read(1, 6)
    assert batch.column("record").to_pylist() == [b"a1", b"a2", b"b10", b"b11", b"b12"]
    assert list(reader.read(4, 4)) == []


def test_columns_of_a_reader_are_texts() -> None:
    reader = ShardReader(Letters(columns=["letter", "number"]))
    [batch] = reader.read(2, 4, ["number", "letter"])
    assert batch.to_pydict() == {"number": ["2", "10"], "letter": ["a", "b"]}


def test_elasticdl_s_reader_of_records_is_the_job_s_own(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("1.recordio", "2.recordio"):
        write_clicks(tmp_path / "data" / name, 5)
    pinned = Pinned(str(tmp_path / "data"), "", "", 0, (), "", 0, shuffled=False)
    for _ in range(2):  # in the client, then in a worker
        reader = open_shards(
            lambda origin: RecordIODataReader(data_dir=origin), pinned, tmp_path / "rows", "net.py"
        )
        assert reader.rows == 10
        assert [batch.num_rows for batch in reader.read(2, 9)] == [3, 4]


def test_another_object_is_no_reader(tmp_path: Path) -> None:
    pinned = Pinned("x", "", "", 0, (), "", 0, shuffled=False)
    with pytest.raises(JobError, match=r"custom_data_reader in net\.py gives a list"):
        open_shards(lambda origin: [origin], pinned, tmp_path, "net.py")
