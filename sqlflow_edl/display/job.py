"""Jobs as tables: the list of jobs, and one job with its instances, parameter servers and log lines."""

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
    """Write log lines, prefixed with the instance where there are several. flush: flush each line."""
    for name, line in lines:
        before = f"{name:{max(map(len, lines.names))}} | " if named and len(lines.names) > 1 else ""
        out.write(before + line)
        if flush:
            out.flush()


# "started" may go, because an id begins with the time of its start.
LAYOUT = Layout("statement", ("place", "started", "took"), least=20)


def write_jobs(rows: Sequence[Sequence[str | None]], out: IO[str], others: str = OTHERS) -> str:
    """Write a line for each job, with its whole id, and return the footer.

    others: how to see omitted columns.
    """
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
