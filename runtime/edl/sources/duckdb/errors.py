"""Translation of DuckDB's errors: the first line, the place in the query, and a hint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain, takewhile

import duckdb

from edl.data.names import quote_where_needed, reserved_hint
from edl.data.source import ConflictError, LockedError, MissingRightError
from edl.errors import Advice, SourceError, Span, did_you_mean
from edl.sources.duckdb import queries
from edl.sources.duckdb.hints import hint_at_place, place_of_name, quoted_text_hint

_EXPLAIN = "EXPLAIN "
_LONGEST = 200  # characters of the names that a hint lists
_MOST_COLUMNS = 40  # that a hint lists
_MAIN = "main."  # schema of built-in functions
_MISSING_TABLE = re.compile(r'Table with name "?(.+?)"? does not exist')
_LOCATED = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
_PLANNED = (
    duckdb.StatementType.SELECT,
    duckdb.StatementType.INSERT,
    duckdb.StatementType.UPDATE,
    duckdb.StatementType.DELETE,
    duckdb.StatementType.CREATE,
)
_CONFLICT = re.compile(r"conflict|Failed to commit|violates .* constraint", re.IGNORECASE)
_READ_ONLY = re.compile("attached in read-only mode")
_LOCKED = "Could not set lock"
_CSV_ERROR = "CSV Error on Line"
_HOLDER = re.compile(r"lock is held in (.+? \(PID \d+\))")
_HINTS = (
    (
        _READ_ONLY.pattern,
        "this account may not write the file, or not its folder: copy the file to change it",
    ),
    (
        _LOCKED,
        "only one process may have the database open: wait for the other, or end it; sqlflow jobs lists jobs",
    ),
    (
        r"not a valid DuckDB database",
        "the file is of another format; read it with a data source of that format",
    ),
    (
        r'at or near "#"',
        "write -- before a comment: # begins one before statements and in clauses, not in a query",
    ),
    (
        r"required extension 'excel",
        "DuckDB would download an extension for it; without a source, or as the source, the file is read here",
    ),
    (
        r"not utf-8 encoded",
        "as the data source, the file is read in its own encoding; in a query, state the encoding",
    ),
    (
        r"state machine reached an invalid state|Error when sniffing file",
        (
            "as the data source, the file is read, or the error names the line; if its lines end in different ways, "
            "write read_csv(…, strict_mode = false) in a query"
        ),
    ),
    (
        r"Error when converting column",
        (
            "as the data source, the file is read with types of all its values; "
            "in a query, write read_csv(…, sample_size = -1)"
        ),
    ),
    (r"INT128", "cast the column to DOUBLE or DECIMAL in the SELECT"),
    (r"within a transaction|transaction is aborted", "end the open transaction with COMMIT or ROLLBACK"),
    (r"were not provided for the following parameters", "write values in place of ? and $names"),
)


def translate_error(
    error: duckdb.Error, connection: duckdb.DuckDBPyConnection, query: str, tables: Callable[[], list[str]]
) -> SourceError:
    """Translate the error of running `query`, with a span in the query if DuckDB reports one.

    `tables` lists table names for the hint; it is called on demand.
    """
    detail, start = _locate_error(connection, query) if isinstance(error, _LOCATED) else ({}, 0)
    message = _first_line(error)
    kind = _kind(message)
    span = _span(detail, start, query) or place_of_name(str(error), query)
    hint = hint_at_place(str(error), query, span) or _hint(
        str(error), detail, tables, partial(_columns, connection, query)
    )
    if hint is None or not hint.startswith("did you mean"):
        hint = quoted_text_hint(detail.get("name", ""), query, span) or hint
    if isinstance(error, duckdb.ParserException) and span is not None:
        hint = _find_reserved_word(connection, query, span) or hint
    if isinstance(hint, Advice) and hint.span is not None:  # a larger place than the error's
        span, hint = hint.span, Advice(hint, hint.instead)
    return kind(message, span=span, hint=hint)


def _kind(message: str) -> type[SourceError]:
    if _READ_ONLY.search(message):
        return MissingRightError
    return ConflictError if _CONFLICT.search(message) else SourceError


def opening_error(error: duckdb.Error, place: str) -> SourceError:
    message = _first_line(error)
    hint = _fixed_hint(message)
    if _LOCKED in message:
        holder = _HOLDER.search(message)
        return LockedError(f"{holder[1] if holder else 'another process'} has {place} open", hint=hint)
    return SourceError(f"cannot open {place}: {message}", hint=hint)


def while_reading(error: Exception) -> SourceError:
    """Translate an error during a result, of whatever class Arrow raised it as."""
    message = _first_line(error)
    return SourceError(message, hint=_fixed_hint(message))


def raise_interrupt(error: RuntimeError) -> None:
    """Raise the KeyboardInterrupt that DuckDB swallowed: it polls for signals itself and reports only this message."""
    if str(error) == "Query interrupted":
        raise KeyboardInterrupt from None


def _locate_error(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[dict[str, str], int]:
    """Return DuckDB's details of the error on parsing and planning the text again, and the text's offset in that.

    Nothing runs: EXPLAIN is only put before a text that is one statement of a kind that it merely plans (otherwise
    `ANALYZE INSERT …`, which is no statement, would become one). Details are JSON while a setting is on.
    """
    start = 0
    try:
        connection.execute("SET errors_as_json = true")
        statements = connection.extract_statements(query)
        if len(statements) == 1 and statements[0].type in _PLANNED:
            start = len(_EXPLAIN)
            connection.execute(_EXPLAIN + query).fetchall()
    except duckdb.Error as error:
        return _details(str(error)), start
    finally:
        with suppress(duckdb.Error):
            connection.execute("SET errors_as_json = false")
    return {}, start


def _details(message: str) -> dict[str, str]:
    _, brace, rest = message.partition("{")
    try:
        decoded = json.loads(brace + rest)
    except ValueError:
        return {}
    return {key: value for key, value in decoded.items() if isinstance(value, str)}


def _span(detail: dict[str, str], before: int, query: str) -> Span | None:
    """Convert DuckDB's offset, in bytes of UTF-8, to a span in characters."""
    numbers = re.findall(r"\d+", detail.get("location", "")) or [detail.get("position", ""), "1"]
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return None
    start, length = int(numbers[0]) - before, int(numbers[1])
    encoded = query.encode()
    if not 0 <= start <= len(encoded):
        return None
    first = len(encoded[:start].decode(errors="ignore"))
    return Span(first, first + max(1, len(encoded[start : start + length].decode(errors="ignore"))))


def _hint(
    message: str, detail: dict[str, str], tables: Callable[[], list[str]], columns: Callable[[], list[str]]
) -> str | None:
    if match := _MISSING_TABLE.search(message):
        return did_you_mean(match[1], tables())
    if detail.get("candidates") and "name" in detail:
        candidates = [name.removeprefix(_MAIN) for name in detail["candidates"].split(",")]
        if sum(map(len, candidates)) > _LONGEST or " -> " in detail["candidates"]:  # signatures of a function
            return None
        is_function = detail.get("type", "").endswith("Function")  # of thousands, DuckDB names a similar one
        if not is_function and (known := columns()):  # DuckDB names the most similar ones alone
            candidates = known
        most = 0 if is_function else _MOST_COLUMNS
        return did_you_mean(detail["name"], candidates, list_up_to=most, write=quote_where_needed)
    return _fixed_hint(message)


def _columns(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """Return the columns of the tables that the query names."""
    with suppress(duckdb.Error):
        return [*dict.fromkeys(column for _, column in _names(connection, query))]
    return []


def _names(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    """Return the tables that the query names, each with each of its columns."""
    words = re.findall(r"\w+", query.lower())
    rows: list[tuple[str, str]] = connection.execute(queries.NAMES_OF, [words]).fetchall()
    return rows


def _find_reserved_word(connection: duckdb.DuckDBPyConnection, query: str, span: Span) -> str | None:
    with suppress(duckdb.Error):
        rows = _names(connection, query)
        reserved = connection.execute(queries.RESERVED).fetchall()
        return reserved_hint(query, span, {word for (word,) in reserved}, chain.from_iterable(rows))
    return None


def _first_line(error: Exception) -> str:
    """Return the first line of an error; of one in a CSV file, the reason as well, which stands below it."""
    first, *others = str(error).splitlines() or [type(error).__name__]
    if _CSV_ERROR in first:
        reasons = takewhile(str.strip, (line for line in others if not line.startswith("Original Line")))
        first = ": ".join([first.rstrip(".!"), *(line.strip() for line in reasons)])
    return first.rstrip(".!")


def _fixed_hint(message: str) -> str | None:
    return next((hint for pattern, hint in _HINTS if re.search(pattern, message)), None)
