"""Interface of a running job for commands that did not start it, on any backend.

`sqlflow_edl.backends.find` returns the handle of a job; each backend has a class of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from edl.data.cells import format_count
from edl.errors import ClusterError
from edl.jobs.events import StatementEvent
from edl.jobs.job_folder import JobFolder, State, Status
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Row, Snapshot


class LostSightError(ClusterError):
    """Loss of contact with a job that continues."""

    def __init__(self, job_id: str, why: str) -> None:
        super().__init__(why, hint=f"job {job_id} continues; follow it with `sqlflow attach {job_id}`")


class UnseenEndError(LostSightError):
    """End of a job with an unknown result. state: how it ended, as far as that is known."""

    def __init__(self, state: State, why: str, hint: str = "") -> None:
        ClusterError.__init__(self, why, hint=hint)
        self.state = state


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of instances of a job; None for a number that stays as it is."""

    workers: int | None = None
    servers: int | None = None

    @property
    def total(self) -> int:
        return (self.workers or 0) + (self.servers or 0)

    def describe_change(self, after: Numbers) -> str:
        """Return `2 → 4 workers, 1 → 2 parameter servers`, or an empty text if nothing changes."""
        pairs = ((self.workers, after.workers, "worker"), (self.servers, after.servers, "parameter server"))
        return ", ".join(
            f"{before} → {format_count(now, what)}"
            for before, now, what in pairs
            if now not in (None, before)
        )

    def __str__(self) -> str:
        pairs = ((self.workers, "worker"), (self.servers, "parameter server"))
        return " and ".join(format_count(number, what) for number, what in pairs if number is not None)


@dataclass(frozen=True, slots=True)
class JobDetails:
    """Current state of a job.

    snapshot: the last report of its master, or None if there is none. instances: its processes or pods, supervising
    ones first. logs: names of instances. notes: reasons why it makes no progress. metrics: the address for Prometheus.
    """

    status: Status
    snapshot: Snapshot | None = None
    instances: tuple[Row, ...] = ()
    logs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metrics: str = ""


@dataclass(frozen=True, slots=True)
class JobSummary:
    """Entry in the list of jobs.

    status: None if it cannot be read. ended: time of its end, see `JobFolder.ended`. remark: the reason why the status
    may be outdated, or what the job waits for.
    """

    id: str
    status: Status | None
    snapshot: Snapshot | None = None
    remark: str = ""
    ended: str = ""


class Follower(Protocol):
    """Receiver of the events of a running job. Every call returns quickly."""

    def note(self, text: str) -> None:
        """Report something the user should know, such as why a part of the job waits."""

    def progress(self, event: StatementEvent) -> None: ...


class LogLines(Protocol):
    """Lines of a job's logs as they arrive, each with the name of its instance. names: of the logs so far."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def __iter__(self) -> Iterator[tuple[str, str]]: ...


class JobHandle(Protocol):
    """Handle of a job on any backend. Raises ClusterError if the backend is unreachable or does not know the job."""

    @property
    def folder(self) -> JobFolder: ...

    def details(self) -> JobDetails:
        """Return the current state of the job after updating its status. Raises SpecError if that is damaged."""

    def follow(self, follower: Follower) -> Outcome:
        """Report the job's events from its start to its end, and return its result.

        Raises the job's own error if it failed, and JobCancelledError if it was cancelled. Any other interruption of
        the wait leaves the job running.
        """

    @property
    def can_cancel(self) -> bool:
        """False for a job that runs inside a process that also does other work."""

    def cancel(self) -> None:
        """Cancel the job, and wait until nothing of it runs."""

    def pause(self) -> str:
        """Stop the job after a checkpoint, wait until its instances have ended, and return a message.

        Raises ClusterError if it does not run, or could not be resumed.
        """

    def resume(self) -> str:
        """Continue a paused job, or a training that failed or died, and return a message.

        It continues when this process ends. Raises ClusterError if it cannot be resumed, SourceError if its rows are
        gone or its result could not be stored.
        """

    def scale(self, numbers: Numbers) -> str:
        """Set the numbers of workers and servers and return a message. Raises ClusterError if one is fixed."""

    def logs(self, instance: str | None, *, follow: bool) -> AbstractContextManager[LogLines]:
        """Return the log lines of an instance, or of all. follow: continue until the job has ended."""

    def tail(self, instance: str | None, lines: int) -> list[tuple[str, str]]:
        """Return the last log lines of an instance, or of all, each with the name of its instance."""
