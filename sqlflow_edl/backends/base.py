"""What can be asked of a job by a command that did not start it, wherever the job runs.

`sqlflow_edl.backends.find` finds the handle of a job; each place where jobs run has a class of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from edl.errors import ClusterError
from edl.jobs.events import EpochEnd, Progress, Tally
from edl.jobs.job_folder import JobFolder, State, Status
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Row, Snapshot


class LostSightError(ClusterError):
    """A job that goes on cannot be followed any more."""

    def __init__(self, job_id: str, why: str) -> None:
        super().__init__(why, hint=f"job {job_id} goes on: sqlflow attach {job_id} follows it")


class UnseenEndError(LostSightError):
    """A job is over, and nothing tells what it came to. state: how it ended, as far as that is known."""

    def __init__(self, state: State, why: str, hint: str = "") -> None:
        ClusterError.__init__(self, why, hint=hint)
        self.state = state


@dataclass(frozen=True, slots=True)
class Look:
    """A job at this moment.

    snapshot: what its master says, or said last; None: there is none. instances: its processes or pods, those that
    watch over the others first. logs: names of instances. notes: why it does not get on, in words. metrics: where
    Prometheus finds its figures.
    """

    status: Status
    snapshot: Snapshot | None = None
    instances: tuple[Row, ...] = ()
    logs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metrics: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A job in a list. status: None: it cannot be read. remark: why the status may be out of date."""

    id: str
    status: Status | None
    snapshot: Snapshot | None = None
    remark: str = ""


class Follower(Protocol):
    """Who is told of a job that runs. Every call returns quickly."""

    def note(self, text: str) -> None:
        """Something the user should know, such as why a part of the job waits."""

    def progress(self, event: Progress | EpochEnd | Tally) -> None: ...


class LogLines(Protocol):
    """Lines of a job's logs, each with the name of its instance, as they come. names: of the logs so far."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def __iter__(self) -> Iterator[tuple[str, str]]: ...


class JobHandle(Protocol):
    """A job wherever it runs. ClusterError: that place cannot be reached, or does not know the job."""

    @property
    def folder(self) -> JobFolder: ...

    def look(self) -> Look:
        """How the job is; its status is brought up to date. SpecError: that is damaged."""

    def follow(self, follower: Follower) -> Outcome:
        """Tell of the job from its start until it has ended; what it came to.

        An error of the job is raised as it was there; JobCancelledError: it was cancelled. What else ends the wait
        leaves the job as it is.
        """

    def cancel(self) -> None:
        """Have the job end, and wait until nothing of it runs."""

    def logs(self, instance: str | None, *, follow: bool) -> AbstractContextManager[LogLines]:
        """What an instance has printed, or all of them; follow: and prints, until the job has ended."""
