"""The registry of a source whose rows are never changed, in a double of MaxCompute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from edl.data import Source, connect
from edl.errors import SourceError, SpecError
from edl.models.registry.append_only import ARCHIVES, EVENTS, PIECE_BYTES, AppendedRegistry
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord
from edl.sources.maxcompute.source import MaxComputeSource
from tests.maxcompute.process import Running

RECORD = ModelRecord("DNNClassifier", "keras", 150, {"accuracy": 0.9, "auc": None}, "SELECT 'x'\nTO TRAIN …")

FileOf = Callable[[bytes], Path]


@pytest.fixture
def url(maxcompute: Running) -> str:
    return maxcompute.url()


@pytest.fixture
def source(url: str) -> Iterator[MaxComputeSource]:
    with connect(url) as opened:
        assert isinstance(opened, MaxComputeSource)
        yield opened


@pytest.fixture
def registry(source: Source) -> AppendedRegistry:
    return cast(AppendedRegistry, open_registry(source))


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 1])
def test_an_archive_comes_back_byte_for_byte(
    registry: AppendedRegistry, file_of: FileOf, tmp_path: Path, size: int
) -> None:
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    assert registry.save("m", file_of(content), RECORD) == 1
    found = registry.load("m", tmp_path / "loaded")
    assert (tmp_path / "loaded").read_bytes() == content
    assert (found.record, found.archive_bytes, found.current) == (RECORD, size, True)


def test_a_dropped_version_is_gone_with_its_archive_and_its_number_is_not_given_again(
    registry: AppendedRegistry, source: MaxComputeSource, file_of: FileOf
) -> None:
    for content in (b"1", b"2", b"3"):
        registry.save("m", file_of(content), RECORD)
    assert registry.drop("m@3") == 1
    assert registry.find("m").version == 2
    assert len(source.partitions(ARCHIVES)) == 2
    assert registry.drop("m") == 2
    assert source.partitions(ARCHIVES) == []
    assert not registry.has("m")
    assert registry.save("m", file_of(b"4"), RECORD) == 4


def test_an_upload_that_fails_leaves_the_model_as_it_was(
    registry: AppendedRegistry, source: MaxComputeSource, file_of: FileOf, tmp_path: Path
) -> None:
    registry.save("m", file_of(b"1"), RECORD)
    with pytest.raises(FileNotFoundError):
        registry.save("m", tmp_path / "nowhere", RECORD)
    assert registry.find("m").version == 1
    assert [version.version for version in registry.list()] == [1]
    assert len(source.partitions(ARCHIVES)) == 1


def test_a_damaged_archive_is_noticed_and_not_written(
    registry: AppendedRegistry, source: MaxComputeSource, file_of: FileOf, tmp_path: Path
) -> None:
    registry.save("m", file_of(b"1"), RECORD)
    (partition,) = source.partitions(ARCHIVES)
    where = f"{ARCHIVES} PARTITION (archive='{partition['archive']}')"
    source.execute(f"INSERT INTO TABLE {where} SELECT CAST(1 AS BIGINT), UNHEX('00')")
    with pytest.raises(SpecError, match="the archive of model m@1 is damaged"):
        registry.load("m", tmp_path / "loaded")
    assert not (tmp_path / "loaded").exists()


def test_a_users_table_of_our_name_is_an_error_and_stays(
    registry: AppendedRegistry, source: MaxComputeSource, file_of: FileOf
) -> None:
    source.execute(f"CREATE TABLE {EVENTS} (a BIGINT)")
    with pytest.raises(SourceError, match="was not created by sqlflow-edl"):
        registry.save("m", file_of(b"1"), RECORD)
    assert source.columns_of(EVENTS) == ["a"]


def test_reading_makes_no_table(registry: AppendedRegistry, source: MaxComputeSource) -> None:
    assert registry.list() == []
    assert not registry.has("m")
    assert source.listed("") == []
