"""PREDICT(model, query) inside a query: the predictions are a temporary table, and the rest is the database's.

A job predicts the rows, as in a PREDICT statement. The table belongs to the connection, and is dropped
when the rows of the statement have been read, or when the next statement begins.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from edl.data import Source
from edl.errors import SemanticError, SourceError, Span, SQLFlowError
from edl.extension_loader import ExtensionError, load
from edl.models.registry.base import Registry
from edl.spec import JobSpec
from sqlflow_edl.analysis.programs.ddl import tables_read
from sqlflow_edl.analysis.programs.outline import verb
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax.ast import Name, Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.predict_calls import (
    PredictCall,
    is_of_bigquery,
    predict_calls,
    replace_parts,
    shared_queries,
)

_NAME = "edl_"  # names of MaxCompute begin with a letter
_LENGTH = len("PREDICT(m,t)")  # of a name: no call is shorter, so that places in errors stay
_ALL = "SELECT * FROM "
_WITHOUT_LISTS = ("sqlite", "mysql")
# what answers functions of BigQuery ML in the columns of its reference
ANSWERS = ("sqlflow_edl.extensions.bigquery_ml.answers", "answer_call")


class Predictions:
    """Temporary tables of predictions in one source.

    predict: runs a PREDICT statement without a target. trained: returns the JobSpec of a model. registry:
    returns what has the models.
    """

    def __init__(
        self,
        source: Source,
        dialect: str,
        predict: Callable[[Statement], Result],
        trained: Callable[[Name], JobSpec],
        registry: Callable[[], Registry],
    ) -> None:
        self._source = source
        self._dialect = dialect
        self._predict = predict
        self._trained = trained
        self._registry = registry
        self._tables: dict[str, str] = {}  # name -> how errors call it
        self._columns: list[list[str]] = []  # of each table

    def drop(self) -> None:
        """Drop the tables of the last statement. A table that the database does not let go now is dropped later."""
        for name in list(self._tables):
            with suppress(SQLFlowError):
                self._source.drop_temporary(name)
                del self._tables[name]
        self._columns.clear()

    def stage(self, statement: Statement) -> str | None:
        """Return ordinary SQL with a table in place of each call of PREDICT, or None if there is none.

        Raises SQLFlowError, with the place, if a model or a query is wrong.
        """
        calls = predict_calls(statement.text, self._dialect, statement.span.start)
        if not calls:
            return None
        check_statement(statement)
        if not self._source.temporary_tables:
            raise SemanticError(
                "predictions inside a query need temporary tables, which this data source does not have",
                span=calls[0].span.shift(statement.span.start),
                hint="write them into a table first: SELECT … TO PREDICT my_table USING my_model",
            )
        try:
            return self._replace_calls(statement.text, statement.span.start, statement, calls)
        except BaseException:
            self.drop()
            raise

    def restore_names(self, error: SourceError, statement: Statement) -> SQLFlowError:
        """Return the error of a statement with calls in place of the tables' names, or the one for a column that they
        had before.
        """
        from sqlflow_edl.analysis.inference import confidence

        if (renamed := confidence.find_renamed(error.message, self._columns)) is not None:
            place = re.search(re.escape(renamed.name), statement.text, re.IGNORECASE)
            span = Span(*place.span()).shift(statement.span.start) if place else statement.span
            message = f"PREDICT adds no column {renamed.name}"
            return SemanticError(message, span=span, hint=renamed.hint)
        for name, call in self._tables.items():
            error.message = error.message.replace(name, call)
            error.hint = error.hint and error.hint.replace(name, call)
        return error

    def dropped_at_end(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the reader; the tables are dropped when all its rows are read."""

        def batches() -> Iterator[pa.RecordBatch]:
            yield from reader
            self.drop()

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def _replace_calls(self, text: str, start: int, statement: Statement, calls: list[PredictCall]) -> str:
        """Return the text with tables in place of the calls, from left to right."""
        parts: list[tuple[Span, str]] = []
        for call in calls:
            before = replace_parts(text[: call.span.start], parts)
            around = before + text[call.span.start :]
            used = self._statement(statement, call, start, around, len(before))
            if call.compared:
                call = replace(call, compared=self._prepend_ctes(call.compared, around, len(before)))
            parts.append((call.span, self._table(used, call, start)))
        return replace_parts(text, parts)

    def _statement(
        self, statement: Statement, call: PredictCall, start: int, around: str, place: int
    ) -> Statement:
        """Return the PREDICT statement of a call. around: the statement, in which the call begins at `place`."""
        if not call.query:
            return used(call, statement, "", None)
        begin = start + call.query_span.start
        select = _ALL + call.query if call.is_table else call.query
        span = Span(begin - len(select) + len(call.query), begin + len(call.query))
        inner = predict_calls(call.query, self._dialect, begin)
        if inner:
            select = self._replace_calls(call.query, begin, statement, inner)
        return used(call, statement, self._prepend_ctes(select, around, place), span)

    def _prepend_ctes(self, select: str, around: str, place: int) -> str:
        """Return the query with the common table expressions in front of the call that it reads."""
        word, shared = shared_queries(around, self._dialect)
        before = [common for common in shared if common.span.end <= place]
        read = tables_read(select, self._dialect) or ()
        names = {thing.parts[0].casefold() for thing in read if len(thing.parts) == 1}
        if names.isdisjoint(common.name.casefold() for common in before):
            return select
        texts = ", ".join(around[common.span.start : common.span.end] for common in before)
        return f"{word} {texts}\n{_ALL}(\n{select}\n) AS q"

    def _table(self, used: Statement, call: PredictCall, start: int) -> str:
        """Predict the rows into a new temporary table, and return its name."""
        rows = self._rows(used, call)
        if self._source.dialect != "duckdb":
            rows = with_texts(rows, lists=self._source.dialect in _WITHOUT_LISTS)
        name = _NAME + secrets.token_hex((_LENGTH - len(_NAME)) // 2)
        self._tables[name] = f"ML.{call.function}(…)" if call.is_of_rows else f"PREDICT({call.model}, …)"
        self._columns.append(rows.schema.names)
        with set_missing_spans(call.span.shift(start)):
            self._source.stage_temporary(name, rows)
        return name.ljust(call.span.end - call.span.start)

    def _rows(self, used: Statement, call: PredictCall) -> pa.RecordBatchReader:
        """Return the rows of a call; of BigQuery ML's functions in the columns of its reference."""
        if call.function:
            answer: pa.Table | None = load(*ANSWERS)(
                call, used, self._source, self._predicted, self._trained, self._registry
            )
            if answer is not None:
                return answer.to_reader()
        result = self._predict(used)
        return result.reader or result.to_arrow().to_reader()

    def _predicted(self, statement: Statement) -> tuple[pa.Table, tuple[str, ...]]:
        result = self._predict(statement)
        return result.to_arrow(), result.computed


def used(call: PredictCall, statement: Statement, select: str, select_span: Span | None) -> Statement:
    """Return the statement of a call in another statement."""
    is_prediction = call.kind == "predict"
    return Statement(
        call.kind,
        text=statement.text,
        span=statement.span,
        select=select,
        select_span=select_span,
        model=None if is_prediction else call.model,
        using=call.model if is_prediction else None,
        prefix=call.prefix,
        attributes=call.attributes,
    )


def with_texts(rows: pa.RecordBatchReader, *, lists: bool = False) -> pa.RecordBatchReader:
    """Return the rows with JSON in place of lists of records, which few databases have.

    lists: also in place of lists of numbers or texts.
    """
    nested = {
        place: pa.types.is_struct(field.type.value_type)
        for place, field in enumerate(rows.schema)
        if pa.types.is_list(field.type) and (lists or pa.types.is_struct(field.type.value_type))
    }
    if not nested:
        return rows
    from edl.features import json_values

    schema = rows.schema
    for place in nested:
        schema = schema.set(place, pa.field(schema.field(place).name, pa.string()))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            columns = batch.columns
            for place, has_records in nested.items():
                write = json_values.write_records if has_records else _write_lists
                columns[place] = write(columns[place])
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _write_lists(column: pa.Array) -> pa.Array:
    return pa.array(
        [None if values is None else json.dumps(values) for values in column.to_pylist()], pa.string()
    )


def check_statement(statement: Statement) -> None:
    """Raise SemanticError for a view: it would be over a table that is dropped at once."""
    words = statement.text.upper().split(None, 6)
    if words[0] == "CREATE" and {"VIEW", "MACRO", "FUNCTION", "TRIGGER"} & set(words[:5]):
        raise SemanticError(
            "PREDICT in a query is computed once, so a view cannot have it",
            span=statement.span,
            hint="write the predictions into a table: SELECT … TO PREDICT my_table USING my_model",
        )


def refuse_in_job(statement: Statement, dialect: str) -> None:
    """Raise SemanticError if the query of a job has predictions, which another process could not read again."""
    span = statement.select_span
    if span is None or "predict" not in statement.select.lower():
        return
    for call in predict_calls(statement.select, dialect, span.start):
        raise SemanticError(
            f"the query of {verb(statement)} cannot have predictions",
            span=call.span.shift(span.start),
            hint="write them into a table first: SELECT … TO PREDICT my_table USING my_model",
        )


def used_statements(statement: Statement, dialect: str) -> list[Statement]:
    """Return PREDICT statements for the calls that query only what is there, for plans and checks."""
    start = statement.span.start
    result: list[Statement] = []
    for call in predict_calls(statement.text, dialect, start):
        if call.is_of_rows:
            continue
        if not call.query:
            result += () if call.is_derived else (used(call, statement, "", None),)
            continue
        select = _ALL + call.query if call.is_table else call.query
        begin = start + call.query_span.start
        span = Span(begin - len(select) + len(call.query), begin + len(call.query))
        if predict_calls(call.query, dialect) or shared_queries(statement.text, dialect)[1]:
            continue
        result.append(used(call, statement, select, span))
    return result


def rewrite_refused(statement: Statement, text: str, dialect: str, registry: Registry) -> str:
    """Return the text of a refused statement with ordinary SQL in place of functions and tables of BigQuery ML; the
    same text if there are none.

    Raises StatementSyntaxError for functions that nothing here has.
    """
    if not is_of_bigquery(text):
        return text
    try:
        rewrite = load("sqlflow_edl.extensions.bigquery_ml.value_functions", "rewrite")
    except ExtensionError:  # the text may be of a schema ml of the database
        return text
    return str(rewrite(text, dialect_named(dialect), registry, statement.span.start))
