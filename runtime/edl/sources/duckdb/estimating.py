"""Estimates of the rows of a query by DuckDB: counted while that is quick, else by its optimizer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import duckdb

from edl.data.source import RowEstimate
from edl.sources.pinning_cost import PROBE_SECS, SAMPLED_ROWS

_VALUE_BYTES = 8  # of a value, where no row can be read in time


def estimate_rows(connection: duckdb.DuckDBPyConnection, query: str) -> RowEstimate:
    """Estimate the rows of the query. Raises duckdb.Error as it does."""
    width = _row_size(connection, query)
    began = time.monotonic()
    with suppress(duckdb.InterruptException), _interrupting(connection):
        [(rows,)] = connection.execute(f"SELECT count(*) FROM (\n{query}\n)").fetchall()
        return RowEstimate(rows, rows * width, time.monotonic() - began, is_counted=True)
    rows = _expected_rows(connection, query)
    return RowEstimate(rows, rows * width)


def _row_size(connection: duckdb.DuckDBPyConnection, query: str) -> float:
    sample = f"SELECT * FROM (\n{query}\n) LIMIT {SAMPLED_ROWS}"
    with suppress(duckdb.InterruptException), _interrupting(connection):
        rows = connection.sql(sample).to_arrow_table()
        return float(rows.nbytes / rows.num_rows) if rows.num_rows else 0.0
    return float(_VALUE_BYTES * len(connection.sql(f"SELECT * FROM (\n{query}\n) LIMIT 0").columns))


def _expected_rows(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    [(_, plan)] = connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()
    return next(_cardinalities(json.loads(plan)), 0)


def _cardinalities(nodes: list[dict[str, Any]]) -> Iterator[int]:
    """Yield the expected rows of the nodes of a plan and of those below, the uppermost first."""
    for node in nodes:
        if (rows := node["extra_info"].get("Estimated Cardinality")) is not None:
            yield int(rows)
        yield from _cardinalities(node["children"])


@contextmanager
def _interrupting(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt the statement inside the context when it has taken too long."""
    timer = threading.Timer(PROBE_SECS, connection.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
