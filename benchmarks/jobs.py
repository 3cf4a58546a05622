"""Tables and pinned jobs that several benchmarks share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec

import sqlflow_edl
from edl.data.pinned import write_pinned
from edl.jobs import job_folder
from edl.program import SPEC_FILE, read_spec
from edl.spec import to_json
from sqlflow_edl.session.session import Session

COLUMNS = 20
# One dense network over numbers as they are, as the peers train it; the default is an ensemble over numbers in bins.
MODEL = "hidden_units = [100, 150, 50], members = 1, dropout = 0, optimizer = adam"


def dense_table(session: Session, rows: int) -> None:
    """Make the table `dense`: 20 doubles and a label that depends on them."""
    columns = ", ".join(f"random() AS x{i}" for i in range(COLUMNS))
    label = " + ".join(f"{(-1) ** i * (i + 1)} * x{i}" for i in range(COLUMNS))
    for _ in session.run(
        "SELECT setseed(0.5);"
        f"CREATE TABLE raw AS SELECT {columns} FROM range({rows});"
        f"CREATE TABLE dense AS SELECT *, {label} + sin(9 * x0) * x1 AS y FROM raw; DROP TABLE raw;"
    ):
        pass


def dense_session(folder: Path, rows: int) -> Session:
    """Open a session over a database file with `dense`, and a state folder of its own."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    session = sqlflow_edl.connect(f"duckdb:///{folder / 'dense.duckdb'}", create=True)
    if "dense" not in session.source.tables():
        dense_table(session, rows)
    return session


def training_job(session: Session, folder: Path, framework: str) -> Path:
    """Make the job of a dense network over `dense`."""
    settings = f"{MODEL}, model.framework = {framework}"
    columns = ", ".join(f"x{i}" for i in range(COLUMNS))
    statement = f"SELECT * FROM dense TO TRAIN DNNRegressor WITH {settings} COLUMN {columns} VALIDATE 0 LABEL y INTO m"
    return job_of(session, folder / f"job-{framework}", statement)


def job_of(session: Session, job: Path, statement: str) -> Path:
    """Make a job folder of a TRAIN statement, with pinned rows and the program, without running it."""
    [compiled] = session.compile(statement)
    for name in ("rows", "results", "logs"):
        (job / name).mkdir(parents=True, exist_ok=True)
    pinned = session.source.pin(compiled.spec.query.select, job / "rows", seed=0, shuffle=True)
    write_pinned(job / "rows", pinned)
    compiled.program.write(job / "program")
    return job


def job_with(made: Path, **changes: Any) -> job_folder.JobFolder:
    """Make a job in the state folder with the rows and the program of `made`, to run once.

    changes: JobSpec fields.
    """
    job = job_folder.create("train")
    for part in ("program", "rows"):
        shutil.copytree(made / part, job.path / part, dirs_exist_ok=True)
    spec = msgspec.structs.replace(read_spec(job.program), **changes)
    (job.program / SPEC_FILE).write_bytes(to_json(spec))
    return job
