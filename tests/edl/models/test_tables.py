"""The registry: every run a version, one current, numbers given once, archives checked."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edl.data import ConflictError, Source, connect
from edl.errors import SemanticError, SourceError, SpecError
from edl.models import tables as tables_module
from edl.models.archive import read_archive
from edl.models.records import ModelRecord
from edl.models.tables import CHUNK_BYTES, CHUNKS, MODELS, TableRegistry
from tests.mariadb import Server

RECORD = ModelRecord(
    model="DNNClassifier",
    framework="keras",
    rows=150,
    metrics={"accuracy": 0.5, "auc": None},
    statement="SELECT * FROM iris TO TRAIN DNNClassifier LABEL class INTO it's.mine",
)
HOSTILE = ("a.b", "it's", 'x"); drop table t; --', "größe.表", "n" * 300, "%", "m@x")


@pytest.fixture(params=["duckdb", "sqlite", "csv", "mysql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A source of each kind, in a file or a database of its own."""
    if request.param == "mysql":
        server: Server = request.getfixturevalue("mariadb")
        return server.url()
    path = tmp_path / f"given.{request.param}"
    if request.param == "csv":
        path.write_text("a\n1\n", encoding="utf-8")
    else:
        connect(f"{request.param}:{path}", create=True).close()
    return f"{request.param}:{path}"


@pytest.fixture
def source(url: str) -> Iterator[Source]:
    with connect(url) as opened:
        yield opened


def tables(source: Source) -> list[str]:
    """All tables, ours too."""
    query = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    if source.dialect == "duckdb":
        query = "SELECT table_name AS name FROM duckdb_tables()"
    elif source.dialect == "mysql":
        query = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()"
    found: list[str] = source.stream(query).read_all().column("name").to_pylist()
    return found


@pytest.fixture
def registry(source: Source) -> TableRegistry:
    return TableRegistry(source)


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[[bytes], Path]:
    """Writes an archive of these bytes; the registry does not look inside."""
    numbers = itertools.count()

    def make(contents: bytes) -> Path:
        path = tmp_path / f"archive{next(numbers)}"
        path.write_bytes(contents)
        return path

    return make


FileOf = Callable[[bytes], Path]


def count(source: Source, table: str) -> int:
    found = source.stream(f"SELECT count(*) AS n FROM {table}").read_all().column("n")[0].as_py()
    assert isinstance(found, int)
    return found


# Saving and loading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size",
    [
        0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1,
        16 * CHUNK_BYTES, 16 * CHUNK_BYTES + 1, 32 * 16 * CHUNK_BYTES + 5,
    ],
)  # fmt: skip
def test_an_archive_of_any_size_comes_back_byte_for_byte(
    registry: TableRegistry, source: Source, file_of: FileOf, tmp_path: Path, size: int
) -> None:
    pattern = bytes(range(251)) * (size // 251 + 1)
    archive = file_of(pattern[:size])
    assert registry.save("m", archive, RECORD) == 1
    found = registry.load("m", tmp_path / "deep" / "loaded")
    assert (tmp_path / "deep" / "loaded").read_bytes() == archive.read_bytes()
    assert found.archive_bytes == size
    assert count(source, CHUNKS) == -(-size // CHUNK_BYTES)


def test_a_saved_model_is_described_as_it_was_recorded(registry: TableRegistry, file_of: FileOf) -> None:
    before = datetime.now(UTC)
    registry.save("m", file_of(b"x"), RECORD)
    (found,) = registry.list()
    assert found.record == RECORD
    assert (found.name, found.version, found.state, found.current, found.reason) == (
        "m",
        1,
        "ready",
        True,
        "",
    )
    assert found.reference == "m@1"
    assert abs(datetime.fromisoformat(found.created) - before) < timedelta(minutes=1)


def test_a_real_archive_can_be_used_after_loading(
    registry: TableRegistry, archive: Path, tmp_path: Path
) -> None:
    registry.save("m", archive, RECORD)
    registry.load("m", tmp_path / "loaded.zip")
    assert read_archive(tmp_path / "loaded.zip").weights()["step"] == 3


def test_every_run_is_a_version_and_the_last_one_is_current(
    registry: TableRegistry, file_of: FileOf, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        assert registry.save("m", file_of(b"%d" % number), RECORD) == number
    registry.save("other", file_of(b"o"), RECORD)
    assert registry.find("m").version == 3
    for reference, contents in (("m", b"3"), ("m@1", b"1"), ("m@2", b"2"), ("other", b"o")):
        registry.load(reference, tmp_path / "loaded")
        assert (tmp_path / "loaded").read_bytes() == contents


def test_what_is_to_be_saved_once_is_saved_once(
    registry: TableRegistry, file_of: FileOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise SystemError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(registry, "_publish", die)
        patch.setattr(registry, "_discard", lambda *_: None)
        with pytest.raises(SystemError):
            registry.save("m", file_of(b"weights"), RECORD, once="a job")
    version = registry.save("m", file_of(b"weights"), RECORD, once="a job")
    assert registry.save("m", file_of(b"weights"), RECORD, once="a job") == version
    assert [found.version for found in registry.list()] == [version]
    assert registry.save("m", file_of(b"weights"), RECORD, once="another job") == version + 1


def test_an_earlier_version_can_be_made_current(registry: TableRegistry, file_of: FileOf) -> None:
    for _ in range(3):
        registry.save("m", file_of(b"x"), RECORD)
    assert registry.set_current("m@1").current
    assert [found.current for found in registry.list()] == [True, False, False]
    with pytest.raises(SemanticError, match="has no version 9"):
        registry.set_current("m@9")


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_names_a_model_and_never_a_table(
    registry: TableRegistry, source: Source, file_of: FileOf, tmp_path: Path, name: str
) -> None:
    source.execute("CREATE TABLE t AS SELECT 1 AS a")
    registry.save(name, file_of(b"x"), RECORD)
    registry.record_failure(name, RECORD, "it's broken; --")
    assert registry.load(f"{name}@1", tmp_path / "loaded").name == name
    assert set(source.tables()) - {"given", "rows"} == {"t"}
    assert registry.drop(name) == 2
    assert count(source, "t") == 1


# What is not there -------------------------------------------------------------------------------------------


def test_reading_makes_no_table(registry: TableRegistry, source: Source) -> None:
    assert registry.list() == []
    for ask in (registry.find, registry.drop, registry.set_current):
        with pytest.raises(SemanticError, match="there is no model m"):
            ask("m")
    assert tables(source) == []


def test_an_unknown_model_names_the_nearest(registry: TableRegistry, file_of: FileOf) -> None:
    registry.save("sqlflow_models.my_dnn", file_of(b"x"), RECORD)
    with pytest.raises(SemanticError, match=r"there is no model sqlflow_models\.my_dmn") as caught:
        registry.find("sqlflow_models.my_dmn")
    assert caught.value.hint == "did you mean sqlflow_models.my_dnn?"
    with pytest.raises(SemanticError, match="has no version 2") as caught:
        registry.find("sqlflow_models.my_dnn@2")
    assert caught.value.hint == "known: 1"


def test_a_name_that_looks_like_a_version_cannot_be_saved(registry: TableRegistry, file_of: FileOf) -> None:
    with pytest.raises(SemanticError, match="names a version") as caught:
        registry.save("m@2", file_of(b"x"), RECORD)
    assert caught.value.hint == "write m"


def test_models_are_listed_by_name_and_by_a_pattern(registry: TableRegistry, file_of: FileOf) -> None:
    for name in ("b.x", "a.x", "a.y"):
        registry.save(name, file_of(b"x"), RECORD)
    assert [found.name for found in registry.list()] == ["a.x", "a.y", "b.x"]
    assert [found.name for found in registry.list("a.%")] == ["a.x", "a.y"]
    assert [found.name for found in registry.list("_.x")] == ["a.x", "b.x"]
    assert registry.list("'; DROP TABLE x") == []


# Failures ----------------------------------------------------------------------------------------------------


def test_a_failed_run_is_a_version_with_its_reason_and_not_the_current_one(
    registry: TableRegistry, file_of: FileOf
) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    assert registry.record_failure("m", RECORD, "the loss is not a number") == 2
    assert registry.find("m").version == 1
    assert [(found.state, found.reason) for found in registry.list()] == [
        ("ready", ""),
        ("failed", "the loss is not a number"),
    ]
    with pytest.raises(SemanticError, match="m@2 failed: the loss is not a number"):
        registry.find("m@2")
    assert registry.save("m", file_of(b"x"), RECORD) == 3


def test_a_model_that_only_failed_says_why_it_cannot_be_used(registry: TableRegistry, tmp_path: Path) -> None:
    registry.record_failure("m", RECORD, "first")
    registry.record_failure("m", RECORD, "second")
    with pytest.raises(SemanticError, match="m@2 failed: second"):
        registry.load("m", tmp_path / "loaded")
    assert not (tmp_path / "loaded").exists()


# Dropping ----------------------------------------------------------------------------------------------------


def test_a_dropped_model_is_gone_with_its_archives(
    registry: TableRegistry, source: Source, file_of: FileOf
) -> None:
    registry.save("m", file_of(b"x" * 100_000), RECORD)
    registry.save("m", file_of(b"y"), RECORD)
    registry.save("n", file_of(b"z"), RECORD)
    assert registry.drop("m") == 2
    assert [found.name for found in registry.list()] == ["n"]
    assert count(source, CHUNKS) == 1
    with pytest.raises(SemanticError, match="there is no model m"):
        registry.drop("m")
    assert registry.save("m", file_of(b"x"), RECORD) == 1


def test_the_number_of_a_dropped_version_is_not_given_again(registry: TableRegistry, file_of: FileOf) -> None:
    for _ in range(3):
        registry.save("m", file_of(b"x"), RECORD)
    assert registry.drop("m@3") == 1
    assert registry.find("m").version == 2
    assert registry.save("m", file_of(b"x"), RECORD) == 4
    with pytest.raises(SemanticError, match="has no version 3"):
        registry.find("m@3")


def test_dropping_a_version_that_is_not_current_leaves_the_current_one(
    registry: TableRegistry, file_of: FileOf
) -> None:
    for _ in range(3):
        registry.save("m", file_of(b"x"), RECORD)
    registry.set_current("m@1")
    registry.drop("m@3")
    assert registry.find("m").version == 1
    registry.drop("m@1")
    assert registry.find("m").version == 2
    registry.drop("m@2")
    with pytest.raises(SemanticError, match="there is no model m"):
        registry.find("m")


# Damage and strangers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE {chunks} SET data = CAST('y' AS BLOB) WHERE position = 0",
        "DELETE FROM {chunks} WHERE position = 1",
        "DELETE FROM {chunks}",
        "UPDATE {models} SET sha256 = ''",
    ],
)
def test_a_damaged_archive_is_noticed_and_not_written(
    registry: TableRegistry, source: Source, file_of: FileOf, tmp_path: Path, damage: str
) -> None:
    registry.save("m", file_of(b"x" * 200_000), RECORD)
    if source.dialect == "mysql":
        damage = damage.replace("AS BLOB", "AS BINARY")
    source.execute(damage.format(chunks=CHUNKS, models=MODELS))
    with pytest.raises(SpecError, match="archive of model m@1 is damaged"):
        registry.load("m", tmp_path / "loaded" / "m.zip")
    assert list((tmp_path / "loaded").iterdir()) == []


@pytest.mark.parametrize("table", [MODELS, CHUNKS])
def test_a_users_table_of_our_name_is_an_error_and_stays(
    registry: TableRegistry, source: Source, file_of: FileOf, table: str
) -> None:
    source.execute(f"CREATE TABLE {table} AS SELECT 7 AS mine")
    with pytest.raises(SourceError, match=f"the table {table} is not the one"):
        registry.save("m", file_of(b"x"), RECORD)
    assert source.stream(f"SELECT * FROM {table}").read_all().to_pylist() == [{"mine": 7}]


def test_the_registry_is_one_whatever_schema_is_in_use(file_of: FileOf) -> None:
    source = connect("duckdb:")
    registry = TableRegistry(source)
    registry.save("m", file_of(b"x"), RECORD)
    source.execute("CREATE SCHEMA elsewhere")
    source.execute("USE elsewhere")
    assert registry.save("m", file_of(b"y"), RECORD) == 2
    source.execute("ATTACH ':memory:' AS other")
    source.execute("USE other")
    assert registry.find("m").version == 2


def test_an_upload_that_fails_leaves_the_model_as_it_was(
    registry: TableRegistry, source: Source, file_of: FileOf, tmp_path: Path
) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    with pytest.raises(FileNotFoundError):
        registry.save("m", tmp_path / "gone", RECORD)
    assert [found.reference for found in registry.list()] == ["m@1"]
    assert count(source, CHUNKS) == 1
    assert registry.find("m").version == 1


def test_a_model_that_is_dropped_while_it_is_saved_stays_dropped(
    registry: TableRegistry, source: Source, file_of: FileOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.save("m", file_of(b"x"), RECORD)

    def dropping(_: object) -> Iterator[bytes]:
        registry.drop("m")
        yield b"y"

    monkeypatch.setattr(tables_module, "_pieces", dropping)
    with pytest.raises(SourceError, match="model m was dropped while it was being saved"):
        registry.save("m", file_of(b"y"), RECORD)
    assert registry.list() == []
    assert count(source, CHUNKS) == 0


def test_an_upload_that_a_killed_process_left_is_invisible_and_cleaned_up(
    registry: TableRegistry, source: Source, file_of: FileOf
) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    for version, created in ((2, "2001-01-01T00:00:00+00:00"), (3, datetime.now(UTC).isoformat())):
        values = ("m", version, "saving", 0, created, "", "", 0, "{}", "", "", f"key{version}", 0, "")
        source.execute(f"INSERT INTO {MODELS} VALUES ({', '.join('?' * len(values))})", values)
        source.execute(f"INSERT INTO {CHUNKS} VALUES (?, 0, ?)", (f"key{version}", b"half"))
    assert [found.reference for found in registry.list()] == ["m@1"]
    assert registry.save("m", file_of(b"y"), RECORD) == 4
    left = source.stream(f"SELECT archive FROM {CHUNKS} WHERE archive LIKE 'key%'").read_all()
    assert left.column("archive").to_pylist() == ["key3"]


def test_models_outlive_the_connection(url: str, tmp_path: Path, file_of: FileOf) -> None:
    with connect(url) as first:
        TableRegistry(first).save("m", file_of(b"x" * 300_000), RECORD)
    with connect(url) as second:
        assert TableRegistry(second).load("m", tmp_path / "loaded").record == RECORD
    assert (tmp_path / "loaded").read_bytes() == b"x" * 300_000


def test_a_database_that_keeps_no_models_is_a_named_error(source: Source) -> None:
    class Other:
        dialect = "hive"

    with pytest.raises(SourceError, match="dialect hive keep no models"):
        TableRegistry(Other())  # type: ignore[arg-type]


# Several writers ---------------------------------------------------------------------------------------------


def test_writers_at_once_give_every_version_once_and_lose_none(url: str, file_of: FileOf) -> None:
    owner = connect(url)
    sources = [connect(url) for _ in range(4)]
    start = threading.Barrier(len(sources))
    archives = [file_of(b"%d" % number) for number in range(len(sources))]

    def save_some(number: int) -> list[int]:
        start.wait()
        return [TableRegistry(sources[number]).save("m", archives[number], RECORD) for _ in range(5)]

    with ThreadPoolExecutor(len(sources)) as pool:
        given = [version for versions in pool.map(save_some, range(len(sources))) for version in versions]
    assert sorted(given) == list(range(1, 21))
    found = TableRegistry(owner).list()
    assert [(version.version, version.state) for version in found] == [(n, "ready") for n in range(1, 21)]
    assert sum(version.current for version in found) == 1
    for opened in (owner, *sources):
        opened.close()


@pytest.mark.parametrize("earlier", ["saved", "failed"])
def test_a_save_that_others_never_let_through_ends_and_leaves_the_model_as_it_was(
    url: str, file_of: FileOf, earlier: str
) -> None:
    mine, other = connect(url), connect(url)
    registry = TableRegistry(mine)
    if earlier == "saved":
        registry.save("m", file_of(b"x"), RECORD)
    else:
        registry.record_failure("m", RECORD, "no")
    other.execute("BEGIN")
    other.execute(f"UPDATE {MODELS} SET current_version = 7 WHERE name = 'm'")
    waits = mine.dialect in ("sqlite", "mysql")  # where a writer waits for the others, and they cannot meet
    if waits:
        mine.execute(
            "PRAGMA busy_timeout = 20" if mine.dialect == "sqlite" else "SET innodb_lock_wait_timeout = 1"
        )
    with pytest.raises(SourceError if waits else ConflictError):
        registry.save("m", file_of(b"y"), RECORD)
    other.execute("ROLLBACK")
    assert [found.reference for found in registry.list()] == ["m@1"]
    assert count(mine, CHUNKS) == (1 if earlier == "saved" else 0)
    assert registry.save("m", file_of(b"z"), RECORD) == (2 if waits else 3)
    mine.close()
    other.close()
