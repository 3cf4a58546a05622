"""List of jobs: those that a visitor asks for, by state, kind, model or words, in pages, by time or by a metric."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edl.errors import SemanticError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import read_end
from edl.jobs.events import Figures
from edl.jobs.job_folder import JobFolder, state_folder
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot, read_snapshot
from edl.metrics.names import by_name
from sqlflow_edl.backends.base import JobSummary
from sqlflow_edl.backends.report import JOBS, list_rows, state_of
from sqlflow_edl.extensions.web.job_progress import ProgressView, job_progress
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.parse import read_statements

PAGE = 50  # jobs
MOST_SORTED = 1000  # jobs from which metrics are read to sort by one
METRICS = 2  # of a line
_MOST_KNOWN = 20_000  # jobs with statements and ends that are kept


@dataclass(frozen=True)
class JobQuery:
    """Jobs that a visitor asks for. sort: a metric, or empty for the time."""

    state: str = ""
    kind: str = ""
    model: str = ""
    text: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> JobQuery:
        """Return what the parameters of a path ask for."""
        page = parameters.get("page", "")
        words = {
            name: parameters.get(name, "").strip() for name in ("state", "kind", "model", "text", "sort")
        }
        return cls(**words, page=int(page) if page.isdecimal() and len(page) < 7 else 1)

    @property
    def parameters(self) -> dict[str, object]:
        """Parameters of the path, without the page."""
        return {name: getattr(self, name) for name in ("state", "kind", "model", "text", "sort")}


@dataclass(frozen=True)
class Line:
    """Job in the list. model: what it makes or uses. result: what it wrote, or why it failed."""

    id: str
    kind: str
    state: str
    place: str
    started: str
    took: str
    statement: str
    model: str
    result: str
    metrics: Sequence[tuple[str, float | None]]
    progress: ProgressView


@dataclass(frozen=True)
class JobPage:
    """Page of the list. count: jobs that were asked for, of total. states, kinds, models, metrics: what to ask for."""

    wanted: JobQuery
    lines: Sequence[Line]
    count: int
    total: int
    states: Sequence[str]
    kinds: Sequence[str]
    models: Sequence[str]
    metrics: Sequence[str]

    @property
    def first_number(self) -> int:
        return (self.wanted.page - 1) * PAGE + 1

    @property
    def pages(self) -> int:
        return max(1, -(-self.count // PAGE))


@dataclass
class JobList:
    """Lists of jobs, for several threads. What does not change of a job is read once."""

    _statements: dict[str, tuple[str, str]] = field(default_factory=dict)
    _ends: dict[str, tuple[Figures, Snapshot | None]] = field(default_factory=dict)

    def lines(self, summaries: Sequence[JobSummary], metric: str = "") -> list[Line]:
        """Return a line for each job. metric: the one to show first."""
        return [
            self._line(job, row, metric) for job, row in zip(summaries, list_rows(summaries), strict=True)
        ]

    def page(self, summaries: Sequence[JobSummary], query: JobQuery) -> JobPage:
        """Return the wanted page of these jobs, the last started first."""
        jobs = [job for job in summaries if self._is_wanted(job, query)]
        if query.sort:
            jobs = self._sort_rows(jobs[:MOST_SORTED], query.sort) + jobs[MOST_SORTED:]
        pages = max(1, -(-len(jobs) // PAGE))
        number = min(max(query.page, 1), pages)
        lines = self.lines(jobs[(number - 1) * PAGE : number * PAGE], query.sort)
        named = [line.model for line in lines if line.model]
        metrics = [name for line in lines for name, _ in line.metrics]
        return JobPage(
            replace(query, page=number),
            lines,
            len(jobs),
            len(summaries),
            _choices((_state(job) for job in summaries), query.state),
            _choices((job.status.kind for job in summaries if job.status is not None), query.kind),
            _choices(named),
            _choices(metrics, query.sort),
        )

    def _is_wanted(self, job: JobSummary, query: JobQuery) -> bool:
        status = job.status
        if query.state and _state(job) != query.state:
            return False
        if query.kind and (status is None or status.kind != query.kind):
            return False
        statement = " ".join(status.statement.casefold().split()) if status is not None else ""
        if not all(word in statement or word in job.id for word in query.text.casefold().split()):
            return False
        name = query.model.casefold()
        if not name:
            return True
        # most jobs are of other models, and a search for a text is faster than the parser
        return name.rpartition(".")[2] in statement and name in self._find_model_and_table(job)[0].casefold()

    def _sort_rows(self, jobs: Sequence[JobSummary], metric: str) -> list[JobSummary]:
        """Return the jobs with the metric, the best first, and then the others."""
        pairs = [(job, self._end(job)[0].get(metric)) for job in jobs]
        sign = 1 if _is_better_low(metric) else -1
        measured = sorted(
            ((job, value) for job, value in pairs if value is not None), key=lambda pair: sign * pair[1]
        )
        return [job for job, _ in measured] + [job for job, value in pairs if value is None]

    def _line(self, job: JobSummary, row: Sequence[str | None], metric: str) -> Line:
        shown = {name: value or "" for name, value in zip(JOBS, row, strict=True)}
        model, result = self._find_model_and_table(job)
        figures, last = self._end(job)
        names = sorted(figures, key=lambda name: (name != metric, name == "loss"))
        if job.status is not None and job.status.error:
            result = job.status.error.partition("\n")[0]
        return Line(
            job.id,
            shown["kind"],
            shown["state"],
            shown["place"],
            shown["started"],
            shown["took"],
            shown["statement"],
            model,
            result,
            [(name, figures[name]) for name in names[:METRICS]],
            job_progress(job.snapshot or last, state_of(job.status)) if job.status else ProgressView(),
        )

    def _find_model_and_table(self, job: JobSummary) -> tuple[str, str]:
        """Return the model that the job makes or uses, and the table that it writes."""
        if job.status is None:
            return "", ""
        if job.id not in self._statements:
            _make_room(self._statements)
            self._statements[job.id] = names_in(job.status.statement)
        return self._statements[job.id]

    def _end(self, job: JobSummary) -> tuple[Figures, Snapshot | None]:
        """Return the figures and the last snapshot of a job that has ended."""
        if job.status is None or job.status.is_alive:
            return {}, None
        if job.id not in self._ends:
            _make_room(self._ends)
            folder = ClusterFolder(JobFolder(state_folder() / "jobs" / job.id).path)
            end = read_end(folder.events)
            figures = end.figures if isinstance(end, Outcome) and end.kind in ("train", "evaluate") else {}
            last = figures, read_snapshot(folder.snapshot)
            if job.status.state not in ("done", "cancelled"):  # others may be resumed
                return last
            self._ends[job.id] = last
        return self._ends[job.id]


def names_in(text: str) -> tuple[str, str]:
    """Return the model that a statement makes or uses, and the table that it writes; empty where it names none."""
    statement = (
        next((parsed for parsed in read_statements(text) if isinstance(parsed, Statement)), None)
        if text
        else None
    )
    if statement is None:
        return "", ""
    traits, into = statement.traits, str(statement.into[0]) if statement.into else ""
    if traits.makes == "model":
        return into, ""
    used = getattr(statement, traits.uses) if traits.uses else None
    return str(used or ""), str(statement.target or into)


def _state(job: JobSummary) -> str:
    return state_of(job.status) if job.status is not None else "damaged"


def _is_better_low(metric: str) -> bool:
    with contextlib.suppress(SemanticError):
        return not by_name(metric, None, exact=True).higher_is_better
    return metric.endswith("loss")


def _choices(values: Iterable[str], chosen: str = "") -> list[str]:
    return sorted({*values, *filter(None, [chosen])})


def _make_room(cache: dict[str, Any]) -> None:
    if len(cache) >= _MOST_KNOWN:
        cache.clear()
