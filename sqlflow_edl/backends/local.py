"""Jobs on this machine: inside the process of their client, or with a supervisor."""

from __future__ import annotations

from contextlib import AbstractContextManager

from edl.cluster.local import client
from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder, Process
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Row, Snapshot, read_snapshot
from sqlflow_edl.backends.base import Follower, JobDetails, JobSummary, Numbers
from sqlflow_edl.backends.log_files import LogFiles, log_names, tail


class LocalJobHandle:
    """Job on this machine."""

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder
        self._cluster = ClusterFolder(folder.path)

    def details(self) -> JobDetails:
        status = self.folder.status()
        snapshot = read_snapshot(self._cluster.snapshot)
        instances = self._instances(status.pid, snapshot)
        address = self._cluster.metrics()
        metrics = f"http://{address}/metrics" if address and status.is_alive else ""
        return JobDetails(status, snapshot, instances, log_names(self.folder), metrics=metrics)

    def summary(self) -> JobSummary:
        """Return the job's entry in the list. Raises SpecError if its status is damaged."""
        status = self.folder.status()
        snapshot = read_snapshot(self._cluster.snapshot) if status.is_alive else None
        return JobSummary(self.folder.id, status, snapshot, ended=self.folder.read_end_time(status))

    def follow(self, follower: Follower) -> Outcome:
        return client.attach(self.folder, follower.progress)

    @property
    def can_cancel(self) -> bool:
        return client.is_supervised(self.folder)

    def cancel(self) -> None:
        if self.folder.status().state in ("paused", "interrupted"):
            from edl.master.resume import remove_checkpoints

            remove_checkpoints(self.folder)
            self.folder.end("cancelled")
            return
        if self.can_cancel:
            client.cancel(self.folder)
            return
        inside = (
            f"job {self.folder.id} runs inside process {self.folder.status().pid}, which also does other work"
        )
        raise ClusterError(inside, hint="stop it with Ctrl-C there, or end that process")

    def pause(self) -> str:
        from sqlflow_edl.backends import steering
        from sqlflow_edl.backends.local_steering import SteeredLocalJob

        return steering.pause(SteeredLocalJob(self.folder))

    def resume(self) -> str:
        from sqlflow_edl.backends import resume

        return resume.resume(self.folder)

    def scale(self, numbers: Numbers) -> str:
        from sqlflow_edl.backends import steering
        from sqlflow_edl.backends.local_steering import SteeredLocalJob

        return steering.scale(SteeredLocalJob(self.folder), numbers)

    def logs(self, instance: str | None, *, follow: bool) -> AbstractContextManager[LogFiles]:
        return LogFiles(self.folder, instance, follow=follow)

    def tail(self, instance: str | None, lines: int) -> list[tuple[str, str]]:
        return tail(self.folder, instance, lines)

    def _instances(self, client_pid: int, snapshot: Snapshot | None) -> tuple[Row, ...]:
        supervisor = self._cluster.process("supervisor")
        if supervisor is None:
            return (Row("client", "client", 0, "running", f"pid {client_pid}"),)
        relaunches = snapshot.master_relaunches if snapshot is not None else 0
        return (
            Row("supervisor", "supervisor", 0, "running", f"pid {supervisor.pid}"),
            _master(self._cluster.process("master"), self._cluster.address(), relaunches),
            *(snapshot.instances if snapshot is not None else ()),
        )


def _master(process: Process | None, address: str, relaunches: int) -> Row:
    state, place = ("running", f"pid {process.pid}") if process and process.runs else ("pending", "")
    return Row("master", "master", relaunches, state, place, address, relaunches)
