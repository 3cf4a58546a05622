"""PREDICT end to end: from a table of a million rows to a table of predictions, without imports."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from benchmarks.jobs import MODEL, dense_session
from benchmarks.table import Row
from sqlflow_edl.session.session import Session

AIM = 100_000  # rows/s
STATEMENTS = {
    "PREDICT into a table": "SELECT * FROM keyed TO PREDICT predicted.guess USING bench",
    "key and prediction of PREDICT(…)": (
        "CREATE OR REPLACE TABLE keys AS SELECT id, y FROM PREDICT(bench, (SELECT * FROM keyed))"
    ),
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table = []
    with dense_session(folder, rows) as session:
        session.run("CREATE TABLE keyed AS SELECT row_number() OVER () AS id, * EXCLUDE (y) FROM dense")
        for framework in ("keras", "torch"):
            settings = f"{MODEL}, model.framework = {framework}, max_steps = 20, epochs = 1"
            session.run(f"SELECT * FROM dense TO TRAIN DNNRegressor WITH {settings} LABEL y INTO bench")
            for name, statement in STATEMENTS.items():
                rate = rows / statistics.median(run_timed(session, statement) for _ in range(rounds))
                table.append(Row(f"{name}, {framework}", f"{rate:,.0f} rows/s", value=rate, least=AIM))
    return table


def run_timed(session: Session, statement: str) -> float:
    """Return the seconds of a statement."""
    began = time.perf_counter()
    session.run(statement)
    return time.perf_counter() - began
