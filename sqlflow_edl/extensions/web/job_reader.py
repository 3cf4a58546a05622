"""Jobs as the pages show them: the list, and one job with its curve so far and the end of its logs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventReader
from edl.jobs.events import EpochEnd, Figures, TrialEnd
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.tasks.curve import LearningCurve
from sqlflow_edl.backends import find
from sqlflow_edl.backends.base import JobHandle
from sqlflow_edl.backends.report import JobReport, report, state_of
from sqlflow_edl.extensions.web.job_list import JobList, JobPage, JobQuery, Line
from sqlflow_edl.extensions.web.job_progress import ProgressView, job_progress, where_it_runs

MOST = 32  # jobs with events that stay open
LINES = 200  # of a log


@dataclass(frozen=True)
class JobView:
    """A job. log: the last lines of an instance, or of all, each with the instance. problem: reason why there are
    none. where: how to cancel it where `can_cancel` is False.
    """

    report: JobReport
    curve: Sequence[EpochEnd]
    trials: Sequence[TrialEnd]
    figures: Figures
    runs: bool
    can_cancel: bool
    instance: str
    log: Sequence[tuple[str, str]]
    problem: str
    progress: ProgressView
    where: str

    @property
    def best(self) -> TrialEnd | None:
        """The best trial of a search so far."""
        return next((trial for trial in reversed(self.trials) if trial.best), None)


@dataclass
class _EventCache:
    """Events of a job that have been read so far."""

    reader: EventReader
    curve: LearningCurve = field(default_factory=LearningCurve)
    trials: list[TrialEnd] = field(default_factory=list)
    figures: Figures = field(default_factory=dict)

    def read(self) -> None:
        for event in self.reader.read():
            if isinstance(event, EpochEnd):
                self.curve.add(event)
            elif isinstance(event, TrialEnd):
                self.trials.append(event)
            elif isinstance(event, Outcome) and event.kind in ("train", "evaluate"):
                self.figures = event.figures


class JobReader:
    """Reader of the user's jobs, for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: OrderedDict[str, _EventCache] = OrderedDict()
        self._list = JobList()

    def lines(self, most: int) -> list[Line]:
        """Return the jobs that were started last."""
        return self._list.lines(find.summaries()[: -most - 1 : -1])

    def page(self, query: JobQuery) -> JobPage:
        """Return a page of the list of jobs."""
        return self._list.page(find.summaries()[::-1], query)

    def job(self, job_id: str, instance: str = "") -> JobView:
        """Return a job. Raises SemanticError for an unknown one, or an instance of it that has no log."""
        handle = find.find(job_id)
        details = handle.details()
        curve, trials, figures = self._so_far(handle.folder)
        log, problem = _tail(handle, instance)
        status = details.status
        is_inside = status.is_alive and not handle.can_cancel
        return JobView(
            report(handle.folder, details),
            curve,
            trials,
            figures,
            status.is_alive,
            status.is_alive and handle.can_cancel,
            instance,
            log,
            problem,
            job_progress(details.snapshot, state_of(status)),
            where_it_runs(status.pid) if is_inside else "",
        )

    def cancel(self, job_id: str) -> str:
        """Cancel the job and return a message. Raises ClusterError if it does not run."""
        return find.cancel(find.find(job_id))

    def _so_far(self, folder: JobFolder) -> tuple[Sequence[EpochEnd], Sequence[TrialEnd], Figures]:
        with self._lock:
            if folder.id in self._events and self._events[folder.id].reader.is_replaced:
                self._events.pop(folder.id).reader.close()
            if folder.id not in self._events:
                self._events[folder.id] = _EventCache(EventReader(ClusterFolder(folder.path).events))
            self._events.move_to_end(folder.id)
            while len(self._events) > MOST:
                self._events.popitem(last=False)[1].reader.close()
            events = self._events[folder.id]
            events.read()
            return events.curve.rows, tuple(events.trials), events.figures


def _tail(handle: JobHandle, instance: str) -> tuple[Sequence[tuple[str, str]], str]:
    try:
        return find.tail(handle, instance or None, LINES), ""
    except ClusterError as error:
        return (), error.message
