"""Tables that this program keeps in a database, beside its user's, by `Source.execute` and `Source.transaction`.

`DIALECTS` holds the differences of databases. A user's table with the same name is never modified. Files are stored in
chunks, in transactions of bounded size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from edl.data.source import ConflictError, Source
from edl.errors import SourceError
from edl.models.registry.base import foreign_error

T = TypeVar("T")
Rows = list[dict[str, Any]]
Chunk = tuple[int, bytes]  # position and content
Layout = tuple[Mapping[str, str], str]  # types of the columns, and the primary key


@dataclass(frozen=True, slots=True)
class TableDialect:
    """Properties of a database that these tables depend on."""

    text: str  # type of unlimited text
    blob: str  # type of at least CHUNK_BYTES bytes
    columns: str  # query for the columns of two tables; its parameters are `Source.home` and the tables
    options: str = ""  # options of a new table


DIALECTS = {
    "duckdb": TableDialect(
        text="VARCHAR",
        blob="BLOB",
        columns="SELECT table_name, column_name FROM duckdb_columns() WHERE table_name IN (?2, ?3) AND "
        """'"' || replace(database_name, '"', '""') || '"."' || schema_name || '".' = ?1""",
    ),
    "sqlite": TableDialect(
        text="TEXT",
        blob="BLOB",
        columns="SELECT ?2 AS table_name, name AS column_name FROM pragma_table_info(?2, 'main') WHERE ?1 = '\"main\".'"
        " UNION ALL SELECT ?3, name FROM pragma_table_info(?3, 'main') WHERE ?1 = '\"main\".'",
    ),
    "mysql": TableDialect(
        text="LONGTEXT",
        blob="LONGBLOB",
        columns="SELECT table_name AS table_name, column_name AS column_name FROM information_schema.columns WHERE"
        " table_schema = REPLACE(TRIM(BOTH '`' FROM TRIM(TRAILING '.' FROM ?)), '``', '`') AND table_name IN (?, ?)",
        options=" ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
    ),
    "postgres": TableDialect(
        text="TEXT",
        blob="BYTEA",
        columns="SELECT relname::text AS table_name, attname::text AS column_name FROM pg_attribute"
        " JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE attnum > 0 AND NOT attisdropped"
        """ AND '"' || replace(nspname, '"', '""') || '".' = ? AND relname IN (?, ?)""",
    ),
}

# Databases read a column in vectors of up to some thousand values at once, so that small chunks bound their memory.
CHUNK_BYTES = 64 << 10
CHUNKS_PER_INSERT = 16
CHUNKS_PER_READ = 256
INSERTS_PER_TRANSACTION = 32

_ATTEMPTS = 50  # of a transaction with conflicts


class OwnTables:
    """Tables with these layouts, by their names, in one data source. Raises SourceError if it cannot have them."""

    def __init__(self, source: Source, layouts: Mapping[str, Layout], what: str) -> None:
        if source.dialect not in DIALECTS:
            raise SourceError(f"data sources of the dialect {source.dialect} cannot store {what} yet")
        self._source = source
        self._layouts = layouts
        self._dialect = DIALECTS[source.dialect]

    def create(self, table: str) -> None:
        """Create the table if it does not exist."""
        if self.exists(table):
            return
        columns, key = self._layouts[table]
        facts = {"text": self._dialect.text, "blob": self._dialect.blob}
        parts = ", ".join(f"{column} {kind.format(**facts)}" for column, kind in columns.items())
        name, options = self._source.home + table, self._dialect.options
        self.run(f"CREATE TABLE {name} ({parts}, PRIMARY KEY ({key})){options}")

    def retry(self, work: Callable[[], T]) -> T:
        """Do the work in a transaction, with retries after conflicts with other connections."""
        for _ in range(_ATTEMPTS - 1):
            try:
                with self._source.transaction():
                    return work()
            except ConflictError:
                continue
        with self._source.transaction():
            return work()

    def exists(self, table: str) -> bool:
        """Return True if the table exists. Raises SourceError if a foreign table has its name."""
        return self.is_there(table, self.columns(table, table))

    def columns(self, table: str, other: str) -> dict[str, set[str]]:
        """Return the columns of the existing tables among the two."""
        columns_of_tables: dict[str, set[str]] = {}
        for row in self.rows(self._dialect.columns, self._source.home, table, other):
            columns_of_tables.setdefault(row["table_name"], set()).add(row["column_name"])
        return columns_of_tables

    def run(self, sql: str, *values: object) -> None:
        self._source.execute(sql, values)

    def rows(self, query: str, *values: object) -> Rows:
        reader = self._source.execute(query, values)
        return reader.read_all().to_pylist() if reader is not None else []

    def is_there(self, table: str, columns: Mapping[str, set[str]]) -> bool:
        """Return True if the table is among those with columns. Raises SourceError if it is a foreign one."""
        names = columns.get(table)
        if names and names != set(self._layouts[table][0]):
            raise foreign_error(table)
        return bool(names)

    # Files in chunks -------------------------------------------------------------------------------------

    def insert_chunks(self, table: str, key: Sequence[str], chunks: Iterable[bytes]) -> None:
        """Insert the chunks of a file, which `key` names in the first columns, in transactions of bounded size."""
        numbered = enumerate(chunks)
        groups = iter(lambda: list(itertools.islice(numbered, CHUNKS_PER_INSERT)), [])
        for first in groups:
            with self._source.transaction():
                for group in itertools.chain([first], itertools.islice(groups, INSERTS_PER_TRANSACTION - 1)):
                    self._insert(table, key, group)

    def _insert(self, table: str, key: Sequence[str], chunks: Sequence[Chunk]) -> None:
        marks = f"({make_marks(len(key) + 2)})"
        values = [value for position, chunk in chunks for value in (*key, position, chunk)]
        rows = ", ".join([marks] * len(chunks))
        self.run(f"INSERT INTO {self._source.home}{table} VALUES {rows}", *values)

    def read_chunks(self, table: str, key: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the chunks of the file that these values of columns name, in their order."""
        where = " AND ".join(f"{column} = ?" for column in key)
        query = (
            f"SELECT position, data FROM {self._source.home}{table} WHERE {where} AND position >= ? AND position < ?"
            " ORDER BY position"
        )
        for start in itertools.count(0, CHUNKS_PER_READ):
            rows = self.rows(query, *key.values(), start, start + CHUNKS_PER_READ)
            yield from (row["data"] for row in rows)
            if len(rows) < CHUNKS_PER_READ:
                return


def read_pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in chunks."""
    while piece := file.read(CHUNK_BYTES):
        yield piece


def make_marks(count: int) -> str:
    """Return the placeholders of so many parameters."""
    return ", ".join("?" * count)
