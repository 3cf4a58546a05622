"""PREDICT end to end: from a table of a million rows to a table of predictions, without imports."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from benchmarks.jobs import MODEL, dense_session
from benchmarks.table import Row

AIM = 100_000  # rows/s


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table = []
    with dense_session(folder, rows) as session:
        for framework in ("keras", "torch"):
            settings = f"{MODEL}, model.framework = {framework}, max_steps = 20, epochs = 1"
            for _ in session.run(
                f"SELECT * FROM dense TO TRAIN DNNRegressor WITH {settings} LABEL y INTO bench"
            ):
                pass
            rates = []
            for _ in range(rounds):
                began = time.perf_counter()
                for _ in session.run("SELECT * FROM dense TO PREDICT predicted.guess USING bench"):
                    pass
                rates.append(rows / (time.perf_counter() - began))
            rate = statistics.median(rates)
            table.append(
                Row(f"PREDICT into a table, {framework}", f"{rate:,.0f} rows/s", value=rate, least=AIM)
            )
    return table
