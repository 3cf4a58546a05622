"""Lookup of the user's jobs on all backends: the only module that distinguishes kinds of handles."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

from edl.errors import ClusterError, LaterVersionError, SemanticError, SpecError, did_you_mean
from edl.jobs import job_folder
from edl.jobs.job_folder import JobFolder
from sqlflow_edl.backends.base import JobHandle, JobSummary, LogLines
from sqlflow_edl.backends.local import LocalJobHandle
from sqlflow_edl.backends.report import state_of


def find(job_id: str) -> JobHandle:
    """Return the job of an id or of a unique prefix or suffix of one. Raises SemanticError for none or several."""
    return handle(job_folder.find(job_id))


def handle(folder: JobFolder) -> JobHandle:
    """Return the handle of the job. Raises SpecError if its folder is damaged."""
    if folder.status().place:
        from sqlflow_edl.backends.kubernetes.handle import KubernetesJobHandle

        return KubernetesJobHandle(folder)
    return LocalJobHandle(folder)


def logs(
    job: JobHandle, instance: str | None = None, *, follow: bool = False
) -> AbstractContextManager[LogLines]:
    """Return the log lines of an instance, or of all; see `JobHandle.logs`.

    Raises SemanticError if there is no such instance.
    """
    _check_instance(job, instance)
    return job.logs(instance, follow=follow)


def tail(job: JobHandle, instance: str | None, lines: int) -> list[tuple[str, str]]:
    """Return the last log lines of an instance, or of all; see `JobHandle.tail`.

    Raises SemanticError if there is no such instance.
    """
    _check_instance(job, instance)
    return job.tail(instance, lines)


def _check_instance(job: JobHandle, instance: str | None) -> None:
    if instance is not None and instance not in (names := job.details().logs):
        hint = did_you_mean(instance, names)
        raise SemanticError(f"job {job.folder.id} has no log of {instance}", hint=hint)


def cancel(job: JobHandle) -> str:
    """Cancel the job and return a message. Raises ClusterError if it neither runs, nor is paused or interrupted."""
    status = job.details().status
    if not status.is_alive and status.state not in ("paused", "interrupted"):
        raise ClusterError(f"job {job.folder.id} does not run: its state is {state_of(status)}")
    job.cancel()
    return f"job {job.folder.id}: {job.folder.status().state}"


def summaries() -> list[JobSummary]:
    """Return all jobs, oldest first. The status of remote jobs is updated first."""
    folders = job_folder.jobs()
    remarks = _refresh_jobs([folder for folder in folders if _runs_elsewhere(folder)])
    return [_summary(folder, remarks.get(folder.id, "")) for folder in folders]


def tables_held() -> Iterator[str]:
    """Yield a line for each table of pinned rows in a server that a job keeps to be resumed."""
    for folder in job_folder.jobs():
        with contextlib.suppress(SpecError, OSError):  # of another version, or without rows
            if folder.can_resume:
                yield from _table_held(folder)


def _table_held(folder: JobFolder) -> Iterator[str]:
    from edl.data.pinned import read_pinned  # loads Arrow, which a list without such a job does not need

    pinned, status = read_pinned(folder.rows), folder.status()
    if pinned.table is not None:
        until = "" if status.state == "paused" else f" until {status.kept_until.date()}"
        yield (
            f"job {folder.id} keeps the table {pinned.table.name} of {pinned.source}{until}, to be resumed; when it "
            "is resumed or cancelled, the next session there drops the table"
        )


def _summary(folder: JobFolder, remark: str) -> JobSummary:
    try:
        return (
            JobSummary(folder.id, folder.status(), remark=remark)
            if remark
            else LocalJobHandle(folder).summary()
        )
    except LaterVersionError as error:
        return JobSummary(folder.id, None, remark=f"{error.what} (of a later version)")
    except SpecError:
        return JobSummary(folder.id, None)


def _runs_elsewhere(folder: JobFolder) -> bool:
    try:
        status = folder.status()
    except SpecError:
        return False
    return bool(status.place) and status.is_alive


def _refresh_jobs(folders: list[JobFolder]) -> dict[str, str]:
    """Update the status of remote jobs and return remarks, by job id."""
    if not folders:
        return {}
    from sqlflow_edl.backends.kubernetes.listing import refresh

    return refresh(folders)
