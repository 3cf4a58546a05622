"""The registry of a source with rows that are never changed, in a double of MaxCompute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

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


def test_an_archive_comes_back_byte_for_byte(
    registry: AppendedRegistry, file_of: FileOf, tmp_path: Path
) -> None:
    for version, size in enumerate((0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 1), 1):
        content = (bytes(range(251)) * (size // 251 + 1))[:size]
        assert registry.save("m", file_of(content), RECORD) == version
        found = registry.load("m", tmp_path / "loaded")
        assert (tmp_path / "loaded").read_bytes() == content
        assert (found.record, found.archive_bytes, found.current) == (RECORD, size, True)


@pytest.mark.soak
def test_events_say_which_version_is_current_has_a_tag_failed_or_was_saved_once(
    registry: AppendedRegistry, file_of: FileOf
) -> None:
    for content in (b"1", b"2"):
        registry.save("m", file_of(content), RECORD)
    for _ in range(2):
        assert registry.record_failure("m", RECORD, "no memory", once="a trial") == 3
        assert registry.save("m", file_of(b"4"), RECORD, current=False, once="a job") == 4
    for reference, tag in (("m@1", "production"), ("m@2", "staging"), ("m@2", "production")):
        registry.tag(reference, tag)
    registry.untag("m", "staging")
    registry.activate("m@1")
    found = [(each.version, each.state, each.current, each.tags) for each in registry.list("m")]
    assert found == [
        (1, "ready", True, ()),
        (2, "ready", False, ("production",)),
        (3, "failed", False, ()),
        (4, "ready", False, ()),
    ]


@pytest.mark.soak
def test_a_model_that_is_dropped_while_it_is_saved_stays_dropped(
    registry: AppendedRegistry, file_of: FileOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.save("m", file_of(b"1"), RECORD)
    upload = registry._upload

    def drop_after(*arguments: Any) -> tuple[int, str]:
        done = upload(*arguments)
        registry.drop("m")
        return done

    monkeypatch.setattr(registry, "_upload", drop_after)
    with pytest.raises(SourceError, match="model m was dropped while it was being saved"):
        registry.save("m", file_of(b"2"), RECORD)
    assert registry.list() == []


@pytest.mark.soak
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


@pytest.mark.soak
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


@pytest.mark.soak
def test_reading_makes_no_table(registry: AppendedRegistry, source: MaxComputeSource) -> None:
    assert registry.list() == []
    assert not registry.has("m")
    assert source.list_objects("") == []
