"""Progress of a job as a share and in words, for its page and its line in the list."""

from __future__ import annotations

from typing import NamedTuple

from edl.data.cells import format_count
from edl.jobs.process import command
from edl.jobs.snapshot import Snapshot
from sqlflow_edl.backends.report import trials
from sqlflow_edl.reports.text import duration, percent


class ProgressView(NamedTuple):
    """Progress of a job. share: None if it is unknown."""

    share: float | None = None
    words: str = ""


def job_progress(snapshot: Snapshot | None, state: str) -> ProgressView:
    """Return how far a job is, or was when it ended. What is done is done in full, also if it ended early."""
    share = 1.0 if (is_done := state in ("done", "finished")) else None
    if snapshot is None:
        return ProgressView(share)
    if share is None:
        share = _share(snapshot)
    if snapshot.phase == "search":
        words = f"{trials(snapshot.rows, snapshot.total)} trials"
        if snapshot.limit and not is_done:
            words += f", {duration(snapshot.seconds)} of {duration(snapshot.limit)}"
        return ProgressView(share, words)
    if not snapshot.epochs:
        return ProgressView(share, percent(share) if share is not None and not is_done else "")
    if not is_done:
        return ProgressView(share, f"epoch {snapshot.epoch:,} of {snapshot.epochs:,}")
    if snapshot.epoch < snapshot.epochs:
        return ProgressView(share, f"{snapshot.epoch:,} of {snapshot.epochs:,} epochs")
    return ProgressView(share, format_count(snapshot.epoch, "epoch"))


def _share(snapshot: Snapshot) -> float | None:
    """Return the share of the work; for jobs of earlier versions, of the epochs, or of tasks if there are no epochs."""
    if snapshot.done_share is not None:
        return snapshot.done_share
    if snapshot.epochs:
        return max(0, snapshot.epoch - 1) / snapshot.epochs
    tasks = snapshot.tasks.values()
    total = sum(counts.todo + counts.doing + counts.done for counts in tasks)
    return sum(counts.done for counts in tasks) / total if total else None


def where_it_runs(pid: int) -> str:
    """Tell how a job is cancelled that runs inside a process which also does other work."""
    program = command(pid)
    if program.startswith(("ipykernel", "jupyter")):
        return (
            f"This job runs inside the kernel of a notebook (pid {pid}). Interrupt the kernel to cancel it."
        )
    named = f"`{program}` (pid {pid})" if program else f"process {pid}"
    return f"This job runs inside {named}. Press Ctrl-C in that terminal to cancel it."
