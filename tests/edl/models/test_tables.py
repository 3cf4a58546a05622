"""The registry in the tables of a database: what is in them, damage, and those that are in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from edl.data import ConflictError, Source, connect
from edl.data.source import MissingRightError
from edl.errors import SemanticError, SourceError, SpecError
from edl.models.registry import own_tables
from edl.models.registry import tables as tables_module
from edl.models.registry.own_tables import CHUNK_BYTES
from edl.models.registry.records import ModelRecord
from edl.models.registry.tables import CHUNKS, MODELS, TableRegistry
from tests.mariadb import Server

RECORD = ModelRecord(
    model="DNNClassifier",
    framework="keras",
    rows=150,
    metrics={"accuracy": 0.5, "auc": None},
    statement="SELECT * FROM iris TO TRAIN DNNClassifier LABEL class INTO it's.mine",
)
PATIENCE = {  # with the writers before
    "sqlite": "PRAGMA busy_timeout = 20",
    "mysql": "SET innodb_lock_wait_timeout = 1",
    "postgres": "SET lock_timeout = '20ms'",
}
SERVERS = {"mysql": "mariadb", "postgres": "postgresql"}
HOSTILE = ("a.b", "it's", 'x"); drop table t; --', "größe.表", "n" * 300, "%", "m@x-y")


@pytest.fixture(params=["duckdb", "sqlite", "csv", "mysql", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A source of each kind, in a file or a database of its own."""
    if request.param in SERVERS:
        server: Server = request.getfixturevalue(SERVERS[request.param])
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
    elif source.dialect == "postgres":
        query = "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()"
    found: list[str] = source.stream(query).read_all().column("name").to_pylist()
    return found


@pytest.fixture
def registry(source: Source) -> TableRegistry:
    return TableRegistry(source)


FileOf = Callable[[bytes], Path]


def count(source: Source, table: str) -> int:
    found = source.stream(f"SELECT count(*) AS n FROM {table}").read_all().column("n")[0].as_py()
    assert isinstance(found, int)
    return found


# Saving and loading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [
        (0, CHUNK_BYTES - 1, CHUNK_BYTES + 1, 16 * CHUNK_BYTES + 1),
        (1, CHUNK_BYTES, 16 * CHUNK_BYTES),
        pytest.param((32 * 16 * CHUNK_BYTES + 5,), marks=pytest.mark.soak),
    ],
    ids=["beside chunks", "chunks", "many chunks"],
)
def test_an_archive_of_any_size_comes_back_byte_for_byte(
    registry: TableRegistry,
    source: Source,
    file_of: FileOf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sizes: tuple[int, ...],
) -> None:
    monkeypatch.setattr(own_tables, "CHUNKS_PER_READ", 8)
    chunks = 0
    for version, size in enumerate(sizes, 1):
        pattern = bytes(range(251)) * (size // 251 + 1)
        archive = file_of(pattern[:size])
        assert registry.save("m", archive, RECORD) == version
        found = registry.load("m", tmp_path / "deep" / "loaded")
        assert (tmp_path / "deep" / "loaded").read_bytes() == archive.read_bytes()
        assert found.archive_bytes == size
        chunks += -(-size // CHUNK_BYTES)
        assert count(source, CHUNKS) == chunks


@pytest.mark.soak
@pytest.mark.parametrize("url", SERVERS, indirect=True)
def test_versions_on_a_server_are_read_with_their_tags(registry: TableRegistry, file_of: FileOf) -> None:
    registry.save("m", file_of(b"x"), RECORD)
    registry.tag("m", "production")
    assert [found.tags for found in registry.list()] == [("production",)]


@pytest.mark.soak
@pytest.mark.parametrize("names", [HOSTILE[::2], HOSTILE[1::2]], ids=["1", "2"])
def test_any_name_names_a_model_and_never_a_table(
    registry: TableRegistry, source: Source, file_of: FileOf, tmp_path: Path, names: tuple[str, ...]
) -> None:
    source.execute("CREATE TABLE t AS SELECT 1 AS a")
    for name in names:
        registry.save(name, file_of(b"x"), RECORD)
        registry.record_failure(name, RECORD, "it's broken; --")
        assert registry.load(f"{name}@1", tmp_path / "loaded").name == name
        assert set(source.tables()) - {"given", "rows"} == {"t"}
    for name in names:
        assert registry.drop(name) == 2
    assert registry.list() == []
    assert count(source, "t") == 1


# What is not there -------------------------------------------------------------------------------------------


def test_reading_makes_no_table(registry: TableRegistry, source: Source) -> None:
    assert registry.list() == []
    for ask in (registry.find, registry.drop):
        with pytest.raises(SemanticError, match="there is no model m"):
            ask("m")
    assert tables(source) == []


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


# Damage and strangers ----------------------------------------------------------------------------------------


@pytest.mark.variants(2)
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
    elif source.dialect == "postgres":
        damage = damage.replace("AS BLOB", "AS BYTEA")
    source.execute(damage.format(chunks=CHUNKS, models=MODELS))
    with pytest.raises(SpecError, match="archive of model m@1 is damaged"):
        registry.load("m", tmp_path / "loaded" / "m.zip")
    assert list((tmp_path / "loaded").iterdir()) == []


@pytest.mark.parametrize("table", [MODELS, CHUNKS])
def test_a_users_table_of_our_name_is_an_error_and_stays(
    registry: TableRegistry, source: Source, file_of: FileOf, table: str
) -> None:
    source.execute(f"CREATE TABLE {table} AS SELECT 7 AS mine")
    with pytest.raises(SourceError, match=f"the table {table} was not created by"):
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

    monkeypatch.setattr(tables_module, "read_pieces", dropping)
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


def test_a_database_that_keeps_no_models_is_a_named_error(source: Source) -> None:
    class Other:
        dialect = "hive"

    with pytest.raises(SourceError, match="dialect hive cannot store models"):
        TableRegistry(Other())  # type: ignore[arg-type]


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
    waits = mine.dialect in PATIENCE  # a writer waits for the others, and they cannot meet
    takes_a_number = mine.dialect not in ("sqlite", "mysql")  # where a row can be added beside a changed one
    if waits:
        mine.execute(PATIENCE[mine.dialect])
    with pytest.raises(SourceError if waits else ConflictError):
        registry.save("m", file_of(b"y"), RECORD)
    other.execute("ROLLBACK")
    assert [found.reference for found in registry.list()] == ["m@1"]
    assert count(mine, CHUNKS) == (1 if earlier == "saved" else 0)
    assert registry.save("m", file_of(b"z"), RECORD) == (3 if takes_a_number else 2)
    mine.close()
    other.close()


def test_an_account_that_may_not_write_is_told_before_there_is_a_model(postgresql: Server) -> None:
    with connect(postgresql.url()) as source:
        registry = TableRegistry(source)
        registry.check_save("m")
        source.execute("SET default_transaction_read_only = on")
        with pytest.raises(SourceError, match="read-only"):
            registry.check_save("m")


def test_a_sqlite_database_that_is_only_read_lacks_a_right(sqlite: Source) -> None:
    registry = TableRegistry(sqlite)
    registry.check_save("m")
    sqlite.execute("PRAGMA query_only = on")
    with pytest.raises(MissingRightError, match="readonly"):
        registry.check_save("m")
