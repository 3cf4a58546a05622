"""Reports on jobs for users and programs: the list of jobs, and one job with its tasks and instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from edl.jobs.job_folder import JobFolder, Status
from edl.jobs.snapshot import WAITING, Counts, Row, ServerCounts, Snapshot
from edl.models.pending import orders_damage, resume_command, store_command
from sqlflow_edl.backends.base import JobDetails, JobSummary
from sqlflow_edl.reports.text import duration, number, percent
from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.lexer import code_tokens

STATEMENT = 60  # characters of a statement in the list of jobs
_ANY = replace(DIALECTS["duckdb"], hash_comments=True)  # with the comments of all dialects


class JobReport(msgspec.Struct, frozen=True):
    """Report on a job. Times are UTC in ISO 8601; seconds: from its start to its end, or to now.

    tasks: by kind. step: minibatches that were trained. loss: the mean over this epoch, so far. rows_per_second:
    recent rate. cut: the last complete checkpoint. instances: its processes or pods, supervising ones first. logs:
    their names. notes: reasons why some make no progress. metrics: the address for Prometheus while the job runs.
    tensorboard: the folder of its curves; both are empty if there is none. group, members, lost_updates, lost_rows,
    counts, workers, servers, server_change, phase, total, elapsed (its seconds), limit, share: as in `Snapshot`.
    place: as in `Status`.
    """

    id: str
    kind: str
    state: str
    place: str
    started: str
    ended: str
    seconds: float
    statement: str
    error: str
    tasks: dict[str, Counts]
    epoch: int
    epochs: int
    rows: int
    generation: int
    checkpoint: str
    instances: tuple[Row, ...]
    logs: tuple[str, ...]
    notes: tuple[str, ...]
    step: int
    loss: float | None
    rows_per_second: float
    metrics: str
    tensorboard: str
    group: int
    members: tuple[str, ...]
    lost_updates: int
    lost_rows: int
    counts: ServerCounts
    workers: int
    servers: int
    server_change: str
    phase: str
    total: int
    elapsed: float
    limit: float
    share: float | None


def report(job: JobFolder, details: JobDetails) -> JobReport:
    status = details.status
    snapshot = details.snapshot or Snapshot(status.started, "")
    instances = details.instances
    if not status.is_alive:
        instances = tuple(msgspec.structs.replace(row, state="ended", task="") for row in instances)
    return JobReport(
        id=job.id,
        kind=status.kind,
        state=_state(status, snapshot),
        place=status.place,
        started=status.started,
        ended=(ended := job.read_end_time(status)),
        seconds=_seconds(status, ended),
        statement=status.statement,
        error=status.error,
        tasks=snapshot.tasks,
        epoch=snapshot.epoch,
        epochs=snapshot.epochs,
        rows=snapshot.rows,
        generation=snapshot.generation,
        checkpoint=snapshot.checkpoint,
        instances=instances,
        logs=details.logs,
        notes=tuple(filter(None, (*details.notes, snapshot.scaling, *_describe_remains(job, status)))),
        step=snapshot.step,
        loss=snapshot.loss,
        rows_per_second=snapshot.rate,
        metrics=details.metrics,
        group=snapshot.group,
        members=snapshot.members,
        tensorboard=str(job.tensorboard) if job.tensorboard.is_dir() else "",
        lost_updates=snapshot.lost_updates,
        lost_rows=snapshot.lost_rows,
        counts=snapshot.counts,
        workers=snapshot.workers,
        servers=snapshot.servers,
        server_change=snapshot.server_change,
        phase=snapshot.phase,
        total=snapshot.total,
        elapsed=snapshot.seconds,
        limit=snapshot.limit,
        share=snapshot.done_share,
    )


def _describe_remains(job: JobFolder, status: Status) -> tuple[str, ...]:
    if status.state in ("failed", "died") and job.has_result:
        if job.archive.exists():
            return (f"the model is in {job.archive}; {store_command(job.path)} stores it",)
        return (f"the rows are in {job.results}; `edl fetch {job.id}` writes them",)
    if not (job.can_resume or status.state == "paused"):
        return ()
    if (damage := orders_damage(job.path)) is not None:
        return (f"it cannot be resumed: {damage}", *filter(None, [job.export_hint]))
    until = "" if status.state == "paused" else f", until {status.kept_until:%Y-%m-%d %H:%M}Z"
    return (f"{resume_command(job.path)} continues it{until}",)


def state_of(status: Status) -> str:
    """Return the state; `died` for a job if its process ended without recording its end."""
    return "died" if status.state == "running" and not status.is_alive else status.state


def _state(status: Status, snapshot: Snapshot | None) -> str:
    """Return the state; WAITING for a job without room for its instances."""
    return WAITING if status.is_alive and snapshot is not None and snapshot.waits else state_of(status)


JOBS = ("job", "kind", "state", "place", "started", "took", "statement")


def list_rows(summaries: Iterable[JobSummary]) -> Iterator[tuple[str | None, ...]]:
    """Yield a row of `JOBS` for each job; a job with an unreadable status is `damaged`, or of a later version."""
    return map(_line, summaries)


def _line(job: JobSummary) -> tuple[str | None, ...]:
    status = job.status
    if status is None:
        return job.id, None, job.remark or "damaged", None, None, None, None
    statement = " ".join(_without_comments(status.statement).split())
    if len(statement) > STATEMENT:
        statement = statement[: STATEMENT - 1] + "…"
    state = _state(status, job.snapshot)
    return (
        job.id,
        status.kind,
        f"{state}: {job.remark}" if job.remark else state,
        status.place,
        _minute(status.started),
        duration(_seconds(status, job.ended)),
        statement,
    )


def _without_comments(statement: str) -> str:
    """Return the statement without the comments before its first word."""
    return next((statement[token.start :] for token in code_tokens(statement, 0, _ANY)), statement)


def facts(job_report: JobReport) -> list[tuple[str, str]]:
    """Return the properties of a job, without its instances."""
    rows = [("job", job_report.id), ("kind", job_report.kind), ("state", job_report.state)]
    if job_report.place:
        rows.append(("place", job_report.place))
    rows += [("started", _minute(job_report.started)), ("took", duration(job_report.seconds))]
    if job_report.workers:
        rows.append(("workers", f"{job_report.workers}"))
    if job_report.servers:
        rows.append(("servers", job_report.server_change or f"{job_report.servers}"))
    rows += _describe_progress(job_report)
    if job_report.loss is not None:
        rows.append(("loss", number(job_report.loss)))
    if job_report.generation > 1:
        rows.append(("generation", f"{job_report.generation}"))
    if job_report.group:
        rows.append(("group", f"{job_report.group}: {', '.join(job_report.members)}"))
    if job_report.checkpoint:
        rows.append(("checkpoint", job_report.checkpoint))
    rows += _updates(job_report)
    rows += _tables(job_report)
    rows += [(f"{kind} tasks", tasks(counts)) for kind, counts in job_report.tasks.items()]
    rest = ("metrics", "tensorboard", "error", "statement")
    rows += [(name, getattr(job_report, name)) for name in rest if getattr(job_report, name)]
    rows += [("note", note) for note in job_report.notes]
    return rows


INSTANCES = {
    "name": str,
    "role": str,
    "state": str,
    "place": str,
    "address": str,
    "incarnation": int,
    "relaunches": int,
    "task": str,
    "note": str,
}


def instance_rows(job_report: JobReport) -> list[tuple[Any, ...]]:
    """Return a row of `INSTANCES` for each instance."""
    return [tuple(getattr(row, name) for name in INSTANCES) for row in job_report.instances]


SERVERS = ("parameter server", "rows", "MB", "pulled rows/s", "pushed rows/s", "busy")


def server_rows(job_report: JobReport) -> list[tuple[str, ...]]:
    """Return a row of `SERVERS` for each parameter server that has reported its load."""
    return [
        (
            row.name,
            f"{row.load.rows:,}",
            f"{row.load.bytes / 1e6:,.1f}",
            f"{row.load.pulled:,.0f}",
            f"{row.load.pushed:,.0f}",
            percent(row.load.busy),
        )
        for row in job_report.instances
        if row.load is not None
    ]


def tasks(counts: Counts) -> str:
    """Return `3 to do, 2 in work, 1 done`."""
    return f"{counts.todo:,} to do, {counts.doing:,} in work, {counts.done:,} done"


def _describe_progress(job_report: JobReport) -> Iterator[tuple[str, str]]:
    """Yield the epoch and the rows, of a search its trials, and its time if that is limited."""
    if job_report.epoch:
        yield "epoch", f"{job_report.epoch} of {job_report.epochs}"
    if job_report.phase == "search":
        yield "trials", trials(job_report.rows, job_report.total)
        if job_report.limit:
            yield "search time", f"{duration(job_report.elapsed)}, limit {duration(job_report.limit)}"
    elif job_report.rows:
        yield "rows", f"{job_report.rows:,}"


def trials(ended: int, candidates: int) -> str:
    """Return `8 of up to 84`, or `84` if all have ended."""
    return f"{ended:,} of up to {candidates:,}" if ended < candidates else f"{ended:,}"


def _updates(job_report: JobReport) -> Iterator[tuple[str, str]]:
    """Yield what is known of the updates of parameter servers."""
    if job_report.lost_updates:
        how = "with lost servers or workers (train.durable_updates)"
        lost = f"{job_report.lost_updates:,}, of {job_report.lost_rows:,} rows, {how}"
        yield "lost updates", lost
    if job_report.counts.stale:
        yield "stale gradients", f"{job_report.counts.stale:,}, computed again for a later round"
    stale = job_report.counts.staleness
    if stale.gradients:
        reduced = f"{stale.reduced:,} of {stale.gradients:,} gradients were beyond train.max_staleness"
        more = f"; {reduced}" if stale.reduced else ""
        yield "staleness", f"{stale.mean:,.1f} updates on average, at most {stale.maximum:,}{more}"


def _tables(job_report: JobReport) -> Iterator[tuple[str, str]]:
    """Yield the rows of the embedding tables on all servers, and what their limits did."""
    loads = [row.load for row in job_report.instances if row.load is not None]
    rows: Counter[str] = Counter()
    for load in loads:
        rows.update(load.tables)
    if rows:
        yield "embedding rows", ", ".join(f"{name} {count:,}" for name, count in sorted(rows.items()))
    evicted, refused = job_report.counts.evicted, job_report.counts.refused
    if evicted:
        yield "evicted rows", f"{evicted:,} (train.embedding_max_rows, train.embedding_ttl_steps)"
    if refused:
        yield "refused gradients", f"{refused:,}, of ids without a row yet (train.embedding_min_count)"


def _seconds(status: Status, ended: str) -> float:
    end = datetime.fromisoformat(ended) if ended else datetime.now(UTC)
    return (end - datetime.fromisoformat(status.started)).total_seconds()


def _minute(time: str) -> str:
    """Format the time to the second, in UTC."""
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S}Z"
