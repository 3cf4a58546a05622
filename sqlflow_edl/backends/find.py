"""The user's jobs, wherever they run: the one place that tells the kinds of handles apart."""

from __future__ import annotations

from contextlib import AbstractContextManager

from edl.errors import ClusterError, SemanticError, SpecError, did_you_mean
from edl.jobs import job_folder
from edl.jobs.job_folder import JobFolder
from sqlflow_edl.backends.base import JobHandle, Listed, LogLines
from sqlflow_edl.backends.local import Here
from sqlflow_edl.backends.report import state_of


def find(job_id: str) -> JobHandle:
    """The job of an id, or of its only beginning or end. SemanticError: none, or several."""
    return handle(job_folder.find(job_id))


def handle(folder: JobFolder) -> JobHandle:
    """SpecError: the job's folder is damaged."""
    if folder.status().place:
        from sqlflow_edl.backends.kubernetes.handle import OnKubernetes

        return OnKubernetes(folder)
    return Here(folder)


def logs(
    job: JobHandle, instance: str | None = None, *, follow: bool = False
) -> AbstractContextManager[LogLines]:
    """What an instance has printed, or all of them; see `JobHandle.logs`. SemanticError: there is no such instance."""
    if instance is not None and instance not in (known := job.look().logs):
        hint = did_you_mean(instance, known)
        raise SemanticError(f"job {job.folder.id} has no log of {instance}", hint=hint)
    return job.logs(instance, follow=follow)


def cancel(job: JobHandle) -> str:
    """End the job, and say so. ClusterError: it does not run."""
    status = job.look().status
    if not status.alive:
        raise ClusterError(f"job {job.folder.id} does not run: it is {state_of(status)}")
    job.cancel()
    return f"job {job.folder.id}: {job.folder.status().state}"


def listed() -> list[Listed]:
    """All jobs, the oldest first. Those elsewhere are asked for there."""
    folders = job_folder.jobs()
    remarks = _refreshed([folder for folder in folders if _runs_elsewhere(folder)])
    return [_listed(folder, remarks.get(folder.id, "")) for folder in folders]


def _listed(folder: JobFolder, remark: str) -> Listed:
    try:
        return Listed(folder.id, folder.status(), remark=remark) if remark else Here(folder).listed()
    except SpecError:
        return Listed(folder.id, None)


def _runs_elsewhere(folder: JobFolder) -> bool:
    try:
        status = folder.status()
    except SpecError:
        return False
    return bool(status.place) and status.alive


def _refreshed(folders: list[JobFolder]) -> dict[str, str]:
    """Why we do not know how they are now, by the id of the job."""
    if not folders:
        return {}
    from sqlflow_edl.backends.kubernetes.listing import refresh

    return refresh(folders)
