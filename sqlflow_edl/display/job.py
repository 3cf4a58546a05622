"""Jobs as tables: the list of jobs, and one job with its instances, parameter servers and log lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from sqlflow_edl.backends.base import LogLines
from sqlflow_edl.backends.report import INSTANCES, JOBS, SERVERS, JobReport, facts, instance_rows, server_rows
from sqlflow_edl.display.listing import Layout, shortened
from sqlflow_edl.display.output import as_table, write_rows
from sqlflow_edl.display.progress import bar
from sqlflow_edl.display.terminal import Capabilities, capabilities, console, in_ascii
from sqlflow_edl.display.views import OTHERS, listed
from sqlflow_edl.reports.text import counted

if TYPE_CHECKING:
    from rich.console import Group, RenderableType


def write_logs(lines: LogLines, out: IO[str], *, named: bool, flush: bool = False) -> None:
    """Write log lines, prefixed with the instance where there are several. flush: flush each line."""
    for name, line in lines:
        before = f"{name:{max(map(len, lines.names))}} | " if named and len(lines.names) > 1 else ""
        out.write(before + line)
        if flush:
            out.flush()


# "started" may go, because an id begins with the time of its start.
LAYOUT = Layout("statement", ("place", "started", "took", "kind"), least=20)


def write_jobs(rows: Sequence[Sequence[str | None]], out: IO[str], others: str = OTHERS) -> str:
    """Write a line for each job, with its whole id, and return the footer.

    others: how to see omitted columns.
    """
    shown = listed(JOBS, rows, LAYOUT, capabilities(out), others, counted(len(rows), "job"))
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


# Columns of instances that give way where a line is too long; the note takes the rest of it.
_LIVE = Layout("note", ("role", "incarnation", "address", "place", "relaunches", "rows/s"), least=10)


def live_job(found: JobReport, terminal: Capabilities) -> Group:
    """Return a job in lines that fit: its facts, with a bar, its instances and parameter servers."""
    from rich.console import Group

    rows = [(name, _with_bar(name, " ".join(value.split()), found, terminal)) for name, value in facts(found)]
    left = terminal.width - max(len(name) for name, _ in rows) - 2
    about = as_table(
        (("fact", False), ("value", False)), [(name, shortened(text, left)) for name, text in rows]
    )
    lines = [
        (*(str(each) if each else "" for each in row), f"{instance.rate:,.0f}" if instance.rate else "")
        for row, instance in zip(instance_rows(found), found.instances, strict=True)
    ]
    shown = listed(
        (*INSTANCES, "rows/s"),
        lines,
        _LIVE,
        terminal,
        "sqlflow job ID has all",
        counted(len(lines), "instance"),
    )
    parts: list[RenderableType] = [about, "", shown.table, shown.footer]
    if servers := server_rows(found):
        parts += ["", as_table(((name, number > 0) for number, name in enumerate(SERVERS)), servers)]
    return Group(*parts)


def _with_bar(name: str, value: str, found: JobReport, terminal: Capabilities) -> str:
    """Put a bar before the epoch, or before tasks of a job without epochs: those of a training come epoch by epoch."""
    share = None
    if name == "epoch":
        share = (found.epoch - 1) / max(1, found.epochs)
    elif not found.epochs and name.endswith(" tasks"):
        counts = found.tasks[name.removesuffix(" tasks")]
        share = counts.done / max(1, counts.todo + counts.doing + counts.done)
    if share is None:
        return value
    text = f"{bar(share)} {share:.0%}  "
    return (text if terminal.blocks else in_ascii(text)) + value
