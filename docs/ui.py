"""Record pictures of pages and of a notebook's charts in a headless Chromium (`make ui-pictures`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlflow_edl
from sqlflow_edl.extensions.notebook.result_set import ResultSet
from tests.browser import MISSING, Chromium, chromium

DOCS = Path(__file__).parent.absolute()
SQLFLOW = [sys.executable, "-m", "sqlflow_edl.cli.main"]
JOB = """SELECT month, day, carrier, origin, dest, distance, sched_dep_time, dep_delay > 15 AS late
FROM flights WHERE dep_delay IS NOT NULL AND month = 3
TO TRAIN DNNClassifier WITH model.framework = torch, train.epoch = 40, validation.metrics = auc
LABEL late INTO late"""
SHARE = 0.3  # of the job when its picture is taken


def main() -> None:
    """Train, serve the pages, and take the pictures."""
    program = chromium()
    if program is None:
        sys.exit(MISSING)
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_STATE_HOME": folder, "SQLFLOW_SOURCE": "duckdb:///demo.duckdb"}
        how = {"cwd": folder, "env": environment}
        for arguments in (["samples"], ["run", str(DOCS / "ui.sql")]):
            subprocess.run([*SQLFLOW, *arguments], check=True, **how)  # noqa: S603
        (Path(folder) / "jobs.duckdb").write_bytes((Path(folder) / "demo.duckdb").read_bytes())
        served = subprocess.Popen([*SQLFLOW, "ui", "--port", "0"], stderr=subprocess.PIPE, text=True, **how)  # noqa: S603
        training = subprocess.Popen(  # noqa: S603
            [*SQLFLOW, "run", "--source", "duckdb:///jobs.duckdb", "--workers", "2", "-e", JOB], **how
        )
        try:
            address = served.stderr.readline().split()[1]
            with Chromium(program, Path(folder) / "profile") as page:
                take(page, address)
                take_charts(page, Path(folder))
        finally:
            for process in (training, served):
                process.terminate()
                process.wait()


def take(page: Chromium, address: str) -> None:
    """Take the pictures."""
    page.window(1200, 800)
    page.open(f"{address}/models/tumours")
    page.run("document.querySelector('#scores').closest('section').scrollIntoView()")
    (DOCS / "ui-model.png").write_bytes(page.picture())
    page.window(1200, 900)
    page.open(f"{address}/jobs")
    page.until("document.querySelector('.badge.running')")
    job = page.run("document.querySelector('.badge.running').closest('tr').querySelector('a').pathname")
    page.open(address + job)
    page.until(f"Number(document.querySelector('progress')?.value) >= {SHARE}", seconds=180)
    page.open(address + job)  # with the button of a job that has workers by now
    (DOCS / "ui-job.png").write_bytes(page.picture())


def take_charts(page: Chromium, folder: Path) -> None:
    """Take the picture of docs/notebook.md."""
    shutil.copy(folder / "demo.duckdb", folder / "charts.duckdb")
    with sqlflow_edl.connect(f"duckdb:///{folder}/charts.duckdb") as session:
        [found] = session.run("SELECT * FROM breast_cancer TO EXPLAIN tumours WITH explain.level = rows")
        rows = ResultSet.read(found)
    charts = [rows.beeswarm(), rows.dependence("mean_radius", by="mean_texture")]
    (folder / "charts.html").write_text("<br>".join(chart.svg for chart in charts), encoding="utf-8")
    page.window(560, 520)
    page.open(f"file://{folder}/charts.html")
    (DOCS / "notebook-explain.png").write_bytes(page.picture())


if __name__ == "__main__":
    main()
