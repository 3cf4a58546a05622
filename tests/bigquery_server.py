"""Double of BigQuery: the REST requests that Google's unmodified client sends for queries, loads and tables.

DuckDB runs the statements as sqlglot writes them for it; descriptions of tables are its comments. It knows one dataset.
"""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import duckdb
import pyarrow.parquet as pq
import sqlglot

_OPTIONS = re.compile(r" OPTIONS \(description = ('(?:[^'\\]|\\.)*')\)")
_COPY = re.compile(r"CREATE OR REPLACE TABLE (\S+) COPY (\S+)")
_CREATED = re.compile(r"CREATE TABLE (\S+)")
_TYPES = {
    "BIGINT": "INTEGER",
    "INTEGER": "INTEGER",
    "DOUBLE": "FLOAT",
    "VARCHAR": "STRING",
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "TIMESTAMP": "DATETIME",
}


@contextmanager
def running() -> Iterator[str]:
    """Run the double, and yield its URL."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA shop; USE shop")
    bound = type("Bound", (Handler,), {"database": connection, "jobs": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        connection.close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    database: duckdb.DuckDBPyConnection
    jobs: dict[str, dict[str, Any]]
    numbers = itertools.count()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/upload/"):
            self._load(json.loads(body))
            return
        resource = json.loads(body)
        try:
            self._send(200, self._query(resource))
        except (duckdb.Error, sqlglot.errors.ParseError) as error:
            self._fail(400, _message(str(error), resource["configuration"]["query"]["query"]))

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        job = self.jobs[parse_qs(urlsplit(self.path).query)["job"][0]]
        place = job["configuration"]["load"]["destinationTable"]
        given = pq.read_table(io.BytesIO(body))
        self.database.register("given", given)
        self.database.execute(f'INSERT INTO {place["datasetId"]}."{place["tableId"]}" SELECT * FROM given')
        self.database.unregister("given")
        self._send(200, job)

    def do_GET(self) -> None:
        parts = urlsplit(self.path).path.split("/")[5:]  # behind /bigquery/v2/projects/NAME
        if parts[0] in ("jobs", "queries"):
            job = self.jobs[parts[1]]
            self._send(
                200,
                job
                if parts[0] == "jobs"
                else {"jobComplete": True, "jobReference": job["jobReference"], **job["found"]},
            )
        elif parts == ["datasets"]:
            self._send(200, {"datasets": [{"datasetReference": {"projectId": "acme", "datasetId": "shop"}}]})
        elif len(parts) == 3:
            self._send(200, {"tables": [self._table(name) for name, *_ in self._tables()]})
        elif (found := [self._table(*row) for row in self._tables() if row[0] == parts[3]]) != []:
            self._send(200, found[0])
        else:
            self._fail(404, f"Not found: Table acme:shop.{parts[3]}")

    def log_message(self, *arguments: object) -> None:
        pass

    def _tables(self) -> list[Any]:
        return self.database.execute("SELECT table_name, comment, 'TABLE' FROM duckdb_tables()").fetchall()

    def _table(self, name: str, comment: str | None = None, kind: str = "TABLE") -> dict[str, Any]:
        place = {"projectId": "acme", "datasetId": "shop", "tableId": name}
        return {"tableReference": place, "type": kind, "description": comment or ""}

    def _query(self, resource: dict[str, Any]) -> dict[str, Any]:
        asked = resource["configuration"]
        statement = asked["query"]["query"]
        is_select = re.match(r"\s*(SELECT|WITH)\b", statement) is not None
        described = _OPTIONS.search(statement)
        copied = _COPY.fullmatch(statement)
        plain = f"CREATE OR REPLACE TABLE {copied[1]} AS SELECT * FROM {copied[2]}" if copied else statement
        [text] = sqlglot.transpile(_OPTIONS.sub("", plain), read="bigquery", write="duckdb")
        columns = self.database.execute(f"DESCRIBE {text}").fetchall() if is_select else []
        rows = [] if asked.get("dryRun") else self.database.execute(text).fetchall()
        if described:
            self._comment(_CREATED.search(statement)[1], described[1])  # type: ignore[index]
        elif copied:
            [mark] = [mark for name, mark, _ in self._tables() if name == _last(copied[2])]
            self._comment(copied[1], f"'{mark}'")
        schema = {"fields": [_field(name, str(kind)) for name, kind, *_ in columns]}
        data = [{"f": [{"v": _value(value)} for value in row]} for row in rows] if is_select else []
        found = {"schema": schema, "totalRows": str(len(data)), "rows": data}
        kind = "SELECT" if is_select else "SCRIPT"
        return self._made(resource, {"query": {"statementType": kind, "schema": schema}}, found)

    def _comment(self, table: str, text: str) -> None:
        self.database.execute(f'COMMENT ON TABLE "{_last(table)}" IS {text}')

    def _load(self, resource: dict[str, Any]) -> None:
        job = self._made(resource, {"load": {}}, {})
        self.send_response(200)
        self.send_header(
            "Location", f"http://{self.headers['Host']}/upload?job={job['jobReference']['jobId']}"
        )
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _made(
        self, resource: dict[str, Any], statistics: dict[str, Any], found: dict[str, Any]
    ) -> dict[str, Any]:
        name = resource.get("jobReference", {}).get("jobId", f"j{next(self.numbers)}")
        reference = {"projectId": "acme", "jobId": name, "location": "EU"}
        self.jobs[name] = {
            "jobReference": reference,
            "configuration": resource["configuration"],
            "status": {"state": "DONE"},
            "statistics": statistics,
            "found": found,
        }
        return self.jobs[name]

    def _fail(self, status: int, message: str) -> None:
        reason = "notFound" if status == 404 else "invalidQuery"
        errors = [{"reason": reason, "message": message}]
        self._send(status, {"error": {"code": status, "message": message, "errors": errors}})

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer, default=str).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _last(name: str) -> str:
    return name.replace("`", "").rpartition(".")[2]


def _field(name: str, kind: str) -> dict[str, str]:
    repeated = kind.endswith("[]")
    return {
        "name": name,
        "type": _TYPES[kind.removesuffix("[]")],
        "mode": "REPEATED" if repeated else "NULLABLE",
    }


def _value(value: Any) -> Any:
    """Return a value as BigQuery writes it into JSON."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return [{"v": _value(each)} for each in value]
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value)


def _message(message: str, statement: str) -> str:
    if match := re.search(r"Table with name (\S+) does not exist", message):
        return f"Not found: Table acme:shop.{match[1]} was not found in location EU"
    if match := re.search(r'Referenced column "(\S+)" not found', message):
        at = statement.rindex(match[1])
        line, column = statement.count("\n", 0, at) + 1, at - statement.rfind("\n", 0, at)
        return f"Unrecognized name: {match[1]} at [{line}:{column}]"
    return f"Syntax error: Unexpected keyword {statement.split()[0]} at [1:1]"
