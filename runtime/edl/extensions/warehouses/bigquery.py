"""BigQuery by Google's client, with a dry run, which costs nothing, in place of a query for the columns.

The credentials are found by Google's libraries: `gcloud auth application-default login`, or a file that
GOOGLE_APPLICATION_CREDENTIALS names.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from edl.data.arrow_types import cast_batch, rechunk_rows
from edl.data.names import format_name
from edl.data.server_url import ServerURL
from edl.errors import SourceError
from edl.extensions.warehouses.source import OURS, Parts, WarehouseSource
from edl.extensions.warehouses.sql import BIGQUERY
from edl.sources.staging import ExistingTable
from edl.sources.words import not_a_query

LOADED = 1 << 18  # rows of one load job

_TYPES = {
    "BOOLEAN": pa.bool_(),
    "BOOL": pa.bool_(),
    "INTEGER": pa.int64(),
    "INT64": pa.int64(),
    "FLOAT": pa.float64(),
    "FLOAT64": pa.float64(),
    "NUMERIC": pa.decimal128(38, 9),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}


class BigQuerySource(WarehouseSource):
    """`edl.data.source.Source` for a dataset of BigQuery."""

    label = "BigQuery"
    extra = "bigquery"
    dialect = "bigquery"
    quote = "`"
    lexicon = BIGQUERY
    options = ("location",)
    declared: ClassVar = {"DECIMAL(20, 0)": "NUMERIC"}
    patterns = (
        *(
            re.compile(pattern + r".* at \[(?P<line>\d+):(?P<at>\d+)\]", re.DOTALL)
            for pattern in (
                r"(?P<message>Unrecognized name: (?P<column>[^\s;]+))(?:; Did you mean (?P<near>[^?]+)\?)?",
                r"(?P<message>Function not found: (?P<name>[^\s;]+))(?:; Did you mean (?P<near>[^?]+)\?)?",
                r"(?P<message>Syntax error: .+)",
            )
        ),
        re.compile(r"(?P<message>Not found: (?:Table|Dataset) [\w-]+:(?P<table>[\w.-]+))"),
    )

    def __init__(
        self, url: str, client: Any, dataset: str, driver_errors: tuple[type[Exception], ...]
    ) -> None:
        super().__init__(url)
        self.driver_errors = driver_errors
        self._client = client
        self._dataset = dataset
        self._job: Any = None

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> BigQuerySource:
        """Open the dataset. `create` has no effect: CREATE SCHEMA makes one."""
        options = cls._check_options(url)
        try:
            from google.api_core.exceptions import GoogleAPIError
            from google.auth.exceptions import GoogleAuthError
            from google.cloud import bigquery
        except ImportError:
            raise cls._needs("google-cloud-bigquery") from None
        if not url.path:
            raise SourceError(f"{url} names no dataset", hint="write it as bigquery://project/dataset")
        try:
            client = bigquery.Client(project=url.host, location=options.get("location"))
        except GoogleAuthError as error:
            raise SourceError(
                f"BigQuery cannot be opened: {str(error).splitlines()[0]}",
                hint="gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS",
            ) from None
        return cls(str(url), client, url.path, (GoogleAPIError, GoogleAuthError))

    # Statements ------------------------------------------------------------------------------------------

    def probe(self, query: str) -> pa.Schema:
        with self._errors(query, query):
            job = self._client.query(query, job_config=self._config(dry_run=True))
        if job.statement_type != "SELECT":
            raise not_a_query()
        return self._schema(job.schema or ())

    def rows(self, sql: str) -> pa.RecordBatchReader | None:
        self._job = job = self._client.query(sql, job_config=self._config())
        result = job.result()
        if job.statement_type != "SELECT":
            return None
        schema = self._schema(result.schema)
        batches = result.to_arrow_iterable(bqstorage_client=_storage())
        return pa.RecordBatchReader.from_batches(schema, (cast_batch(batch, schema) for batch in batches))

    def append(self, parts: Parts, batches: pa.RecordBatchReader) -> None:
        """Load the rows by jobs with files of Parquet. Such jobs cost nothing."""
        from google.cloud import bigquery

        config = bigquery.LoadJobConfig(source_format="PARQUET", write_disposition="WRITE_APPEND")
        for batch in rechunk_rows(batches, batches.schema, LOADED):
            file = io.BytesIO()
            pq.write_table(pa.Table.from_batches([batch]), file)
            file.seek(0)
            self._job = self._client.load_table_from_file(file, self._full(parts), job_config=config)
            self._job.result()

    def interrupt(self) -> None:
        if self._job is not None:
            with suppress(*self.driver_errors):
                self._job.cancel()

    def close(self) -> None:
        self._client.close()

    def _config(self, *, dry_run: bool = False) -> Any:
        from google.cloud import bigquery

        default = f"{self._client.project}.{self._dataset}"
        return bigquery.QueryJobConfig(default_dataset=default, dry_run=dry_run)

    def _schema(self, columns: Iterable[Any]) -> pa.Schema:
        return pa.schema([(column.name, self._type(column)) for column in columns])

    def _type(self, column: Any) -> pa.DataType:
        kind = _TYPES.get(column.field_type)
        if kind is None:
            raise SourceError(
                f"column {column.name} is of the type {column.field_type}, which cannot be used",
                hint=f"cast it in the SELECT, for example TO_JSON_STRING({column.name})",
            )
        if column.field_type == "NUMERIC" and column.precision:
            kind = pa.decimal128(column.precision, column.scale or 0)
        return pa.list_(kind) if column.mode == "REPEATED" else kind

    # Tables ----------------------------------------------------------------------------------------------

    def tables(self) -> list[str]:
        with self._errors("", ""):
            names = [table.table_id for table in self._client.list_tables(self._dataset)]
        return [format_name((name,), (), self.quote) for name in sorted(names) if not name.startswith(OURS)]

    def databases(self) -> list[str]:
        with self._errors("", ""):
            return [dataset.dataset_id for dataset in self._client.list_datasets()]

    def existing(self, parts: Parts) -> ExistingTable | None:
        from google.api_core.exceptions import NotFound

        with self._errors("", ""):
            try:
                table = self._client.get_table(self._full(parts))
            except NotFound:
                return None
        return ExistingTable("VIEW" in table.table_type, table.description or "")

    def create(self, parts: Parts, columns: str, mark: str) -> Sequence[str]:
        return [
            f"CREATE TABLE {self.texts.name(*parts)} ({columns}) OPTIONS (description = {self.texts.text(mark)})"
        ]

    def rename(self, table: Parts, name: Parts) -> str:
        return f"ALTER TABLE {self.texts.name(*table)} RENAME TO {self.texts.name(name[-1])}"

    def swap(self, new: Parts, target: Parts, old: Parts, *, exists: bool) -> Sequence[str]:
        """Return one statement that copies the rows, which other readers see done or not."""
        if not exists:
            return [self.rename(new, target)]
        return [f"CREATE OR REPLACE TABLE {self.texts.name(*target)} COPY {self.texts.name(*new)}"]

    def _full(self, parts: Parts) -> str:
        return ".".join((self._client.project, self._dataset)[: 3 - len(parts)] + parts)


def _storage() -> Any:
    """Return a client of BigQuery's Storage API if it is installed; it is many times faster."""
    try:
        from google.cloud import bigquery_storage
    except ImportError:
        return None
    return bigquery_storage.BigQueryReadClient()
