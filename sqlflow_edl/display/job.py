"""One job as tables: what it is, its instances, and its parameter servers; and what these have printed."""

from __future__ import annotations

from typing import IO

from sqlflow_edl.display.output import write_rows
from sqlflow_edl.handles import LogLines
from sqlflow_edl.reports.jobs import INSTANCES, SERVERS, JobReport, facts, instance_rows, server_rows


def write_logs(lines: LogLines, out: IO[str], *, named: bool, flush: bool = False) -> None:
    """Lines of logs, after the names of their instances where there are several. flush: each, as it comes."""
    for name, line in lines:
        before = f"{name:{max(map(len, lines.names))}} | " if named and len(lines.names) > 1 else ""
        out.write(before + line)
        if flush:
            out.flush()


def write_job(found: JobReport, out: IO[str]) -> None:
    write_rows((("fact", False), ("value", False)), facts(found), out)
    out.write("\n")
    columns = ((name, kind is int) for name, kind in INSTANCES.items())
    write_rows(columns, instance_rows(found), out)
    if servers := server_rows(found):
        out.write("\n")
        write_rows(((name, number > 0) for number, name in enumerate(SERVERS)), servers, out)
