"""Files behind HTTP, on a real server, and in an object store, a file system of fsspec in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from edl.data import connect, open_reader
from edl.errors import SourceError
from edl.installation import install_packages
from tests.file_server import Server, serving

ROWS = pa.table({"x": np.arange(100_000), "y": np.random.default_rng(0).uniform(size=100_000)})


class Lake(MemoryFileSystem):
    """An object store."""

    protocol = "s3"
    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        found: str = super()._strip_protocol(path.removeprefix("s3://"))
        return found


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "files"
    folder.mkdir()
    pa.parquet.write_table(ROWS, folder / "many.parquet", row_group_size=10_000)
    pa.parquet.write_table(ROWS.slice(0, 3), folder / "few.parquet")
    with serving(folder) as found:
        yield found


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setitem(_registry, "s3", Lake)
    found = Lake()
    for day in (1, 2):
        with found.open(f"/lake/flights/day={day}/part.parquet", "wb") as file:
            pa.parquet.write_table(ROWS.slice(0, day), file)
    return found


def rows(url: str, query: str) -> list[dict[str, object]]:
    with connect(url) as source:
        return source.stream(query).read_all().to_pylist()


def test_a_file_behind_http_is_read_in_ranges(server: Server, working_directory: Path) -> None:
    url = f"{server.url}/many.parquet"
    assert rows(url, "SELECT sum(x) AS s, count(*) AS n FROM many") == [{"s": 4999950000, "n": 100_000}]
    server.ranges.clear()
    assert rows(url, "SELECT x FROM rows WHERE x < 3") == [{"x": 0}, {"x": 1}, {"x": 2}]
    assert server.ranges
    assert all(server.ranges), "every request is for a range"
    assert list(working_directory.iterdir()) == [], "nothing was stored"


@pytest.mark.soak
def test_rows_are_pinned_as_from_a_local_file(server: Server, tmp_path: Path) -> None:
    found = []
    for number, url in enumerate((f"{server.url}/few.parquet", str(tmp_path / "files" / "few.parquet"))):
        with connect(url) as source:
            folder = tmp_path / f"pinned{number}"
            folder.mkdir()
            pinned = source.pin("SELECT x, y FROM few", folder, seed=3, shuffle=True)
            found.append(pa.Table.from_batches(open_reader(pinned, folder).read(0, 3)))
    assert found[0].equals(found[1])


@pytest.mark.soak
def test_results_are_in_the_working_directory(server: Server, working_directory: Path) -> None:
    with connect(f"{server.url}/few.parquet") as source:
        source.stage("guesses", "job", 0, 0, [pa.record_batch({"a": [1]})])
        source.commit("guesses", "job", 1)
        assert source.url == f"{server.url}/few.parquet"
    assert [path.name for path in working_directory.iterdir()] == ["few.sqlflow.duckdb"]
    assert rows(f"{server.url}/few.parquet", "SELECT a FROM guesses") == [{"a": 1}]


@pytest.mark.parametrize("url", ["s3://lake/flights", "s3://lake/flights/*/*.parquet", "s3://lake/flights/"])
def test_the_folders_of_an_object_store_are_columns(lake: Lake, url: str) -> None:
    found = rows(url, "SELECT day, count(*) AS n FROM flights GROUP BY day ORDER BY day")
    assert found == [{"day": 1, "n": 1}, {"day": 2, "n": 2}]


def test_one_file_of_an_object_store_is_a_table_of_its_name(lake: Lake) -> None:
    assert rows("s3://lake/flights/day=2/part.parquet", "SELECT x FROM part ORDER BY x") == [
        {"x": 0},
        {"x": 1},
    ]


@pytest.mark.variants(6)
@pytest.mark.parametrize(
    ("url", "message", "hint"),
    [
        ("s3://lake/trains", "there is no file s3://lake/trains", "check the path"),
        ("s3://lake/flights/none.parquet", "there is no file", "check the path"),
        ("s3://lake", "s3://lake names no file", "s3://bucket/folder"),
        ("s3://key:secret@lake/a.parquet", "has a password or options", "environment"),
        ("https://host/a.parquet?token=secret", "has a password or options", "environment"),
        ("{}/none.parquet", "there is no file", "check the path"),
        ("{}/*.parquet", "HTTP lists no files", "name one file"),
        ("{}/folder", "HTTP lists no files", "name one file"),
        ("http://127.0.0.1:1/a.parquet", "cannot be read", "environment"),
        ("s3://lake/a.csv", "is not a Parquet file", "Parquet"),
        ("gs://bucket/a.parquet", "gs:// needs fsspec and gcsfs", install_packages("fsspec", "gcsfs")),
    ],
)
def test_what_cannot_be_read_is_named_without_secrets(
    lake: Lake, server: Server, url: str, message: str, hint: str
) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        connect(url.format(server.url))
    assert hint in (caught.value.hint or "")
    assert "secret" not in str(caught.value)
