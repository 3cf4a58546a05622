"""Double of Trino: its HTTP protocol, as the unmodified client speaks it, in front of DuckDB.

sqlglot writes the statements for DuckDB, so a text that it does not read as Trino's SQL is an error here, as are names
that are not there. It knows one catalog, `memory`, and one schema, `default`.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import itertools
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import duckdb
import sqlglot

PAGE = 500  # rows of one answer

_COMMENTS = (
    "CREATE SCHEMA metadata; CREATE VIEW metadata.table_comments AS SELECT 'memory' AS catalog_name,"
    " 'main' AS schema_name, table_name, comment FROM duckdb_tables()"
)
_COMMENT = re.compile(r"(CREATE TABLE (\S+) .*) COMMENT ('(?:[^']|'')*')", re.DOTALL)
_TYPES = {
    "INTEGER": "integer",
    "VARCHAR": "varchar",
    "BLOB": "varbinary",
    "FLOAT": "real",
    "TIME": "time(6)",
    "TIMESTAMP": "timestamp(6)",
    "TIMESTAMP_S": "timestamp(6)",
    "TIMESTAMP WITH TIME ZONE": "timestamp(6) with time zone",
}
_ERRORS = (
    (r"Table with name (\S+) does not exist", "TABLE_NOT_FOUND", "Table 'memory.default.{}' does not exist"),
    (r'Referenced column "(\S+)" not found', "COLUMN_NOT_FOUND", "Column '{}' cannot be resolved"),
    (r"Scalar Function with name (\S+) does not exist", "FUNCTION_NOT_FOUND", "Function '{}' not registered"),
)


@contextmanager
def running() -> Iterator[str]:
    """Run the double, and yield its host and port."""
    connection = duckdb.connect()
    connection.execute(_COMMENTS)
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Bound", (Handler,), {"database": connection, "pages": {}})
    )
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        connection.close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    database: duckdb.DuckDBPyConnection
    pages: dict[str, list[dict[str, Any]]]
    numbers = itertools.count()

    def do_POST(self) -> None:
        statement = self.rfile.read(int(self.headers["Content-Length"])).decode()
        query = f"q{next(self.numbers)}"
        try:
            self.pages[query] = self._run(statement)
        except (duckdb.Error, sqlglot.errors.ParseError) as error:
            self.pages[query] = [{"error": _error(str(error), statement)}]
        self._answer(query)

    def do_GET(self) -> None:
        self._answer(self.path.split("/")[-2])

    def do_DELETE(self) -> None:
        self.pages.pop(self.path.split("/")[-2], None)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass

    def _run(self, statement: str) -> list[dict[str, Any]]:
        """Return the answers to the client's requests, without the statement's id."""
        after = ""
        if match := _COMMENT.fullmatch(statement):
            statement, after = match[1], f"COMMENT ON TABLE {match[2]} IS {match[3]}"
        statement = re.sub(r"\bsystem\.metadata\b", "metadata", statement)
        statement = statement.replace("current_schema", "'main'").replace("current_catalog", "'memory'")
        [text] = sqlglot.transpile(statement.replace("'default'", "'main'"), read="trino", write="duckdb")
        found = self.database.execute(text)
        if not text.upper().startswith(("SELECT", "WITH")):
            if after:
                self.database.execute(after)
            return [{"updateType": text.split(" ")[0].upper()}]
        columns = [{"name": name, "type": _type(str(kind))} for name, kind, *_ in found.description]
        for column in columns:
            raw = column["type"].partition("(")[0]
            digits = re.findall(r"\d+", column["type"]) if "(" in column["type"] else []
            column["typeSignature"] = _signature(raw, digits, column["type"])
        rows = [[_value(value) for value in row] for row in found.fetchall()]
        pages = [rows[start : start + PAGE] for start in range(0, len(rows), PAGE)]
        return [{"columns": columns}, *({"columns": columns, "data": page} for page in pages)]

    def _answer(self, query: str) -> None:
        pages = self.pages[query]
        answer = {"id": query, "infoUri": "", "stats": {"state": "RUNNING"}, "warnings": [], **pages.pop(0)}
        if pages:
            answer["nextUri"] = f"http://{self.headers['Host']}/v1/statement/executing/{query}/{len(pages)}"
        else:
            answer["stats"] = {"state": "FAILED" if "error" in answer else "FINISHED"}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _type(kind: str) -> str:
    if kind.endswith("[]"):
        return f"array({_type(kind[:-2])})"
    return _TYPES.get(kind, kind.lower())


def _signature(raw: str, digits: list[str], kind: str) -> dict[str, Any]:
    """Return what the client reads instead of the text of the type."""
    if raw == "array":
        inner = kind[len("array(") : -1]
        return {
            "rawType": raw,
            "arguments": [{"kind": "TYPE", "value": _signature(inner.partition("(")[0], [], inner)}],
        }
    if raw == "varchar":
        digits = ["2147483647"]
    if kind.endswith("with time zone"):
        raw += " with time zone"
    return {"rawType": raw, "arguments": [{"kind": "LONG", "value": int(digit)} for digit in digits]}


def _value(value: Any) -> Any:
    """Return a value as Trino writes it into JSON."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ', 'microseconds')} UTC"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "microseconds")
    if isinstance(value, (dt.date, dt.time, decimal.Decimal)):
        return str(value)
    return value


def _error(message: str, statement: str) -> dict[str, Any]:
    for pattern, name, words in _ERRORS:
        if match := re.search(pattern, message):
            at = statement.rindex(match[1])
            line, column = statement.count("\n", 0, at) + 1, at - statement.rfind("\n", 0, at)
            text = f"line {line}:{column}: {words.format(match[1])}"
            return {"message": text, "errorName": name, "errorType": "USER_ERROR", "errorCode": 1}
    text = f"line 1:1: mismatched input '{statement.split()[0]}'. Expecting: <query> ({message})"
    return {"message": text, "errorName": "SYNTAX_ERROR", "errorType": "USER_ERROR", "errorCode": 1}
