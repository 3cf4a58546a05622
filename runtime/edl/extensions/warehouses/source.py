"""Base of all warehouses, see `edl.extensions.warehouses`.

The next statement ends a result that was not read to its end. A source is used by one thread at a time, but for
`interrupt`.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from edl.data.arrow_types import BATCH_ROWS, cast_batch, normal_schema, rechunk_rows
from edl.data.displayed_rows import DisplayedRows
from edl.data.names import check_unique, format_name, split_name
from edl.data.server_url import ServerURL
from edl.data.source import Pinned
from edl.errors import SourceError, did_you_mean
from edl.extensions.warehouses import errors
from edl.extensions.warehouses.results import WarehouseResults
from edl.extensions.warehouses.sql import STANDARD, DialectTexts
from edl.installation import install_extras
from edl.jobs.job_folder import state_folder
from edl.sources.common import EmbeddedSource, pin_file
from edl.sources.staging import ExistingTable
from edl.sources.staging_tables import few_rows
from edl.sources.words import Lexicon, ended_result_error
from edl.spec import Split

OURS = "sqlflow_edl_"

Parts = tuple[str, ...]  # of a table's name


class WarehouseSource(EmbeddedSource):
    """`edl.data.source.Source` for one warehouse: what is abstract here, and the class variables, are its own."""

    label: ClassVar[str]  # its name in messages
    extra: ClassVar[str]  # of sqlflow-edl, with the driver
    dialect: str  # as sqlglot names it
    quote: ClassVar[str] = '"'
    lexicon: ClassVar[Lexicon] = STANDARD
    declared: ClassVar[Mapping[str, str]] = {}  # type as DuckDB names it -> type here
    patterns: ClassVar[Sequence[re.Pattern[str]]] = ()
    driver_errors: tuple[type[Exception], ...]
    options: ClassVar[Sequence[str]] = ()  # of the URL

    home = ""
    temporary_tables = True
    temporary_tables_are_private = False

    def __init__(self, url: str) -> None:
        self.url = url
        self.model_store = str(state_folder() / "models" / _folder(url))
        self.texts = DialectTexts(self.dialect, self.quote, self.lexicon, self.declared)
        self._results = WarehouseResults(self, state_folder() / "results" / _folder(url))
        self._reading: Any = None  # result that is being read
        self._schemas: dict[str, pa.Schema] = {}  # of queries, until another statement runs

    # Steps specific to a warehouse -----------------------------------------------------------------------

    tables_query: ClassVar[str]  # yields schema, if it is not the current one, and name
    databases_query: ClassVar[str]

    @abstractmethod
    def rows(self, sql: str) -> pa.RecordBatchReader | None:
        """Run one statement. Return its rows as they come, or None if it has none. Raises one of `driver_errors`."""

    def displayed_rows(self, sql: str) -> pa.RecordBatchReader | None:
        """Run one statement as `rows` does. Columns of a batch may be text in place of their types."""
        return self.rows(sql)

    @abstractmethod
    def append(self, parts: Parts, batches: pa.RecordBatchReader) -> None:
        """Append rows to a table with these columns. Raises one of `driver_errors`."""

    @abstractmethod
    def interrupt(self) -> None: ...

    def existing_query(self, parts: Parts) -> str:
        """Return the query of a table's kind (it has VIEW in it for a view) and comment, of no row without a table."""
        raise NotImplementedError

    def create(self, parts: Parts, columns: str, mark: str) -> Sequence[str]:
        """Return the statements that make a table with `mark` as its comment."""
        return (f"CREATE TABLE {self.texts.name(*parts)} ({columns}) COMMENT {self.texts.text(mark)}",)

    def rename(self, table: Parts, name: Parts) -> str:
        """Return the statement that gives a table another name in its schema."""
        return f"ALTER TABLE {self.texts.name(*table)} RENAME TO {self.texts.name(*name)}"

    def swap(self, new: Parts, target: Parts, old: Parts, *, exists: bool) -> Sequence[str]:
        """Return the statements that rename `new` to `target`, and a table that `exists` there to `old` or `new`.

        Other readers find no table between the two renames; a warehouse that can exchange tables has its own `swap`.
        """
        return [self.rename(target, old)] * exists + [self.rename(new, target)]

    def probe(self, query: str) -> pa.Schema:
        """Return the columns of a text that begins like one query, without its rows. In parentheses it cannot write."""
        reader = self._run(f"SELECT * FROM (\n{self.plain(query)}\n) AS edl_query LIMIT 0", query)
        self._end_result()
        return reader.schema

    def plain(self, query: str) -> str:
        """Return the query with columns of types that its rows can have in Arrow."""
        return query

    def stored_name(self, name: str) -> str:
        """Return the name under which the warehouse stores what a query calls `name` without quotation marks."""
        return name

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        query = self.lexicon.one_query(query)
        if query not in self._schemas:
            probed = self.probe(query)
            check_unique(probed.names)
            self._schemas[query] = normal_schema(probed)
        return self._schemas[query]

    def column_types(self, table: str) -> list[tuple[str, str]]:
        return [(field.name, self.texts.column(field)) for field in self.schema(f"SELECT * FROM {table}")]

    def stream(self, query: str, *, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        query = self.lexicon.one_query(query)
        schema = self.schema(query)
        reader = self._run(self.plain(query), query)
        plain = (cast_batch(batch, schema) for batch in self._batches(reader, query))
        return pa.RecordBatchReader.from_batches(schema, rechunk_rows(plain, schema, batch_rows))

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        return pin_file(self.url, query, self.stream(query), folder, seed=seed, shuffle=shuffle, split=split)

    def how_rows_are_kept(self) -> str:
        return f"all rows are fetched once from {self.label} to this machine"

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> DisplayedRows | None:
        self.lexicon.one_statement(sql)
        self._schemas.clear()
        text = self.texts.bound(sql, parameters).rstrip().rstrip(";")
        reader = self._run(text, sql, self.displayed_rows)
        if reader is None:
            return None
        return DisplayedRows(reader.schema, self._batches(reader, sql))

    def run(self, statements: Sequence[str]) -> None:
        """Run internal statements that have no rows."""
        self._schemas.clear()
        for sql in statements:
            self._run(sql, "")

    def transaction(self) -> AbstractContextManager[None]:
        raise SourceError(f"{self.label} has no transactions here")

    def tables(self) -> list[str]:
        names = [
            format_name(tuple(filter(None, parts)), (), self.quote)
            for parts in few_rows(self, self.tables_query)
        ]
        return [name for name in names if not name.rpartition(".")[2].lower().startswith(OURS)]

    def databases(self) -> list[str]:
        return [name for (name, *_) in few_rows(self, self.databases_query)]

    # Tables ----------------------------------------------------------------------------------------------

    def place(self, target: str) -> Parts:
        """Return the parts of a target's name as the warehouse stores them."""
        return tuple(self.stored_name(part) for part in split_name(target))

    def existing(self, parts: Parts) -> ExistingTable | None:
        """Return the table or view of this name."""
        for kind, mark in few_rows(self, self.existing_query(parts)):
            return ExistingTable("VIEW" in str(kind).upper(), str(mark or ""))
        return None

    def make(self, parts: Parts, mark: str, batches: pa.RecordBatchReader) -> None:
        """Make a table of these rows, in place of one of that name."""
        schema = normal_schema(batches.schema)
        named = pa.schema([field.with_name(self.stored_name(field.name)) for field in schema])
        columns = ", ".join(f"{self.texts.name(field.name)} {self.texts.column(field)}" for field in named)
        self.drop(parts)
        self.run(self.create(parts, columns, mark))
        plain = (pa.RecordBatch.from_arrays(batch.columns, schema=named) for batch in batches)
        with self._errors("", ""):
            self.append(parts, pa.RecordBatchReader.from_batches(named, plain))

    def drop(self, parts: Parts) -> None:
        self.run([f"DROP TABLE IF EXISTS {self.texts.name(*parts)}"])

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        """See `Source.stage_temporary`: a table that all users of the schema see."""
        self.make(self.place(name), "rows for one statement of sqlflow-edl", batches)

    def drop_temporary(self, name: str) -> None:
        self.drop(self.place(name))

    # Inside ----------------------------------------------------------------------------------------------

    @classmethod
    def _check_options(cls, url: ServerURL) -> dict[str, str]:
        """Return the options of the URL. Raises SourceError for an unknown one."""
        for option, _ in url.options:
            if option not in cls.options:
                raise SourceError(
                    f"URLs of {cls.label} have no option {option}", hint=did_you_mean(option, cls.options)
                )
        return dict(url.options)

    @classmethod
    def _needs(cls, package: str) -> SourceError:
        """Return the error of a driver that is not installed."""
        return SourceError(f"{cls.label} needs {package}", hint=install_extras(cls.extra))

    def _run(self, sql: str, query: str, run: Callable[[str], Any] | None = None) -> Any:
        """Run a statement. `query` is the user's text in it, to which places of errors refer."""
        self._end_result()
        with self._errors(sql, query):
            self._reading = reader = (run or self.rows)(sql)
        return reader

    def _batches(self, reader: pa.RecordBatchReader, query: str) -> Iterator[pa.RecordBatch]:
        while True:
            if self._reading is not reader:
                raise ended_result_error()
            with self._errors("", query):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def _end_result(self) -> None:
        if isinstance(self._reading, pa.RecordBatchReader):
            self._reading.close()
        self._reading = None

    @contextmanager
    def _errors(self, sent: str, query: str) -> Iterator[None]:
        """Translate the driver's errors."""
        try:
            yield
        except self.driver_errors as error:
            raise self.translate(error, sent, query) from None

    def translate(self, error: Exception, sent: str, query: str) -> SourceError:
        """Translate an error of running a text."""
        asked = errors.Asked(sent, query, lambda: self._asked(self.tables), lambda: self._columns(query))
        return errors.translate_message(self.message(error), self.patterns, self.lexicon, asked)

    def message(self, error: Exception) -> str:
        """Return the warehouse's own message."""
        return str(error)

    def _columns(self, query: str) -> list[str]:
        """Return the columns of the query's tables, for a hint."""
        names = {name.casefold() for name in self.lexicon.names(query)}
        tables = [name for name in self._asked(self.tables) if name.rpartition(".")[2].casefold() in names]
        return [
            column
            for name in tables
            for column in self._asked(self.schema(f"SELECT * FROM {name}").names.copy)
        ]

    @staticmethod
    def _asked(ask: Any) -> list[str]:
        try:
            return list(ask())
        except SourceError:  # the same error may occur here
            return []


def _folder(url: str) -> str:
    """Return the name of a warehouse's folder: readable, and of this URL alone."""
    plain = re.sub(r"\W+", "-", url.partition("?")[0].rpartition("@")[2])[:60]
    return f"{plain}-{hashlib.blake2b(url.encode(), digest_size=6).hexdigest()}"
