"""Jobs as tables: the list of them, and one with its instances, its parameter servers, and the lines of their logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from sqlflow_edl.backends.base import LogLines
from sqlflow_edl.backends.report import INSTANCES, JOBS, SERVERS, JobReport, facts, instance_rows, server_rows
from sqlflow_edl.display.listing import Layout
from sqlflow_edl.display.output import write_rows
from sqlflow_edl.display.terminal import console, room
from sqlflow_edl.display.views import OTHERS, listed
from sqlflow_edl.reports.text import counted


def write_logs(lines: LogLines, out: IO[str], *, named: bool, flush: bool = False) -> None:
    """Lines of logs, after the names of their instances where there are several. flush: each, as it comes."""
    for name, line in lines:
        before = f"{name:{max(map(len, lines.names))}} | " if named and len(lines.names) > 1 else ""
        out.write(before + line)
        if flush:
            out.flush()


LAYOUT = Layout(
    "statement", ("place", "started", "took"), least=20
)  # an id begins with the time of its start


def write_jobs(rows: Sequence[Sequence[str | None]], out: IO[str], others: str = OTHERS) -> str:
    """A line for each job, with its whole id; returns the footer. others: how to see what is left out."""
    shown = listed(JOBS, rows, LAYOUT, room(out), others, counted(len(rows), "job"))
    console(out).print(shown.table)
    return shown.footer


def write_job(found: JobReport, out: IO[str]) -> None:
    write_rows((("fact", False), ("value", False)), facts(found), out)
    out.write("\n")
    columns = ((name, kind is int) for name, kind in INSTANCES.items())
    write_rows(columns, instance_rows(found), out)
    if servers := server_rows(found):
        out.write("\n")
        write_rows(((name, number > 0) for number, name in enumerate(SERVERS)), servers, out)
