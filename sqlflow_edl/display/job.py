"""Jobs as tables: the list of jobs, and one job with its instances, parameter servers and log lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from edl.data.cells import format_count
from edl.jobs.snapshot import Row
from sqlflow_edl.backends.base import LogLines
from sqlflow_edl.backends.report import INSTANCES, JOBS, SERVERS, JobReport, facts, instance_rows, server_rows
from sqlflow_edl.display.listing import ListLayout, shorten_text
from sqlflow_edl.display.output import as_table, write_rows
from sqlflow_edl.display.progress import bar
from sqlflow_edl.display.terminal import Capabilities, capabilities, console, in_ascii
from sqlflow_edl.display.views import OTHERS, show_list

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
LAYOUT = ListLayout("statement", ("place", "started", "took", "kind"), least=20)


def write_jobs(rows: Sequence[Sequence[str | None]], out: IO[str], others: str = OTHERS) -> str:
    """Write a line for each job, with its whole id, and return the footer.

    others: how to see omitted columns.
    """
    shown = show_list(JOBS, rows, LAYOUT, capabilities(out), others, format_count(len(rows), "job"))
    console(out).print(shown.table)
    return shown.footer


def write_job(job_report: JobReport, out: IO[str]) -> None:
    write_rows((("fact", False), ("value", False)), facts(job_report), out)
    out.write("\n")
    columns = ((name, kind is int) for name, kind in INSTANCES.items())
    write_rows(columns, instance_rows(job_report), out)
    if servers := server_rows(job_report):
        out.write("\n")
        write_rows(((name, number > 0) for number, name in enumerate(SERVERS)), servers, out)


# Columns of instances that give way where a line is too long; the note takes the rest of it.
_LIVE = ListLayout("note", ("role", "incarnation", "address", "place", "relaunches", "rows/s"), least=10)
# Facts that give way where the terminal is too low, in this order.
_LESS = ("tensorboard", "metrics", "kind", "started", "place", "statement", "took", "job")
_FIXED = 4  # lines beside the facts and instances: two headers, a blank line, a footer
_OF_SERVERS = 2  # the same for parameter servers


def live_job(job_report: JobReport, terminal: Capabilities) -> Group:
    """Return a job in lines that fit: its facts, with a bar, its instances and parameter servers.

    On a low terminal each of the three has its most important lines, and the number of the others.
    """
    from rich.console import Group

    rows = [
        (name, _with_bar(name, " ".join(value.split()), job_report, terminal))
        for name, value in facts(job_report)
    ]
    loaded = [row for row in job_report.instances if row.load is not None]
    servers = server_rows(job_report)
    room = terminal.height - _FIXED - (_OF_SERVERS if servers else 0)
    of_facts, of_instances, of_servers = _shares((len(rows), len(job_report.instances), len(servers)), room)
    rows = _most_important(rows, of_facts)
    left = terminal.width - max(len(name) for name, _ in rows) - 2
    about = as_table(
        (("fact", False), ("value", False)), [(name, shorten_text(text, left)) for name, text in rows]
    )
    lines = [
        (*(str(cell) if cell else "" for cell in row), f"{instance.rate:,.0f}" if instance.rate else "")
        for row, instance in zip(instance_rows(job_report), job_report.instances, strict=True)
    ]
    omitted = f", {len(lines) - of_instances} more than fit" if of_instances < len(lines) else ""
    shown = show_list(
        (*INSTANCES, "rows/s"),
        [lines[place] for place in _choose_remarkable(job_report.instances, of_instances)],
        _LIVE,
        terminal,
        "sqlflow job ID has all",
        format_count(len(lines), "instance") + omitted,
    )
    parts: list[RenderableType] = [about, "", shown.table, shorten_text(shown.footer, terminal.width)]
    if servers:
        if of_servers < len(servers):
            kept = [servers[place] for place in _choose_remarkable(loaded, of_servers - 1)]
            servers = [*kept, (f"{len(servers) - len(kept)} more", *[""] * (len(SERVERS) - 1))]
        parts += ["", as_table(((name, number > 0) for number, name in enumerate(SERVERS)), servers)]
    return Group(*parts)


def _shares(needs: Sequence[int], room: int) -> list[int]:
    """Divide lines among parts: what one does not want goes to the others. Each gets one at least."""
    lines, left = [0] * len(needs), len(needs)
    for place in sorted(range(len(needs)), key=needs.__getitem__):
        lines[place] = min(needs[place], max(1, room // left))
        room, left = room - lines[place], left - 1
    return lines


def _choose_remarkable(rows: Sequence[Row], most: int) -> list[int]:
    """Return the places of so many instances, in order: instances that do not run or have a note before others."""
    places = sorted(
        range(len(rows)), key=lambda place: rows[place].state == "running" and not rows[place].note
    )
    return sorted(places[:most])


def _most_important(rows: list[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """Return the facts that `most` lines show; the last line then has the number of the others."""
    kept = list(rows)
    if len(rows) <= most:
        return kept
    for name in _LESS:
        if len(kept) >= most:
            kept = [row for row in kept if row[0] != name]
    kept = kept[: most - 1]
    return [*kept, ("", f"{len(rows) - len(kept)} more")]


def _with_bar(name: str, value: str, job_report: JobReport, terminal: Capabilities) -> str:
    """Put a bar before the epoch, or before tasks of a job without epochs: a training's tasks come epoch by epoch."""
    share = None
    if name == "epoch":
        share = (job_report.epoch - 1) / max(1, job_report.epochs)
    elif not job_report.epochs and name.endswith(" tasks"):
        counts = job_report.tasks[name.removesuffix(" tasks")]
        share = counts.done / max(1, counts.todo + counts.doing + counts.done)
    if share is None:
        return value
    text = f"{bar(share)} {share:.0%}  "
    return (text if terminal.blocks else in_ascii(text)) + value
