"""Change of the number of workers of a running job, which its master carries out and keeps.

The master starts further workers, or asks the last ones to leave, which give back their tasks first.
"""

from __future__ import annotations

from pathlib import Path

from edl.cluster.local.client import is_supervised
from edl.cluster.quota.quota import Quota
from edl.errors import ClusterError
from edl.jobs.job_folder import JobFolder
from edl.jobs.run_folder import SCRIPT_MASTER, ClusterFolder
from edl.spec import JobSpec, from_json
from sqlflow_edl.backends import master_call
from sqlflow_edl.backends.report import state_of
from sqlflow_edl.reports.text import counted


def scale(job: JobFolder, workers: int) -> str:
    """Set the number of workers and return a message. Raises ClusterError if the job has a fixed number."""
    spec = _scalable(job, workers)
    before = _tell_master(job, workers)
    if before == workers:
        return f"job {job.id} has {counted(workers, 'worker')} already: there is nothing to do"
    notes = "".join(f"\n  note: {note}" for note in _notes(job, spec, before, workers))
    return f"job {job.id}: {before} → {counted(workers, 'worker')}{notes}"


def _scalable(job: JobFolder, workers: int) -> JobSpec:
    """Return the JobSpec of a job whose number of workers can be changed. Raises ClusterError for any other."""
    status = job.status()
    if not status.alive:
        raise ClusterError(f"job {job.id} does not run: its state is {state_of(status)}")
    again = f"cancel it, and run its statement again with --workers {workers}"
    if not is_supervised(job):
        raise ClusterError(f"job {job.id} runs in one process, without workers", hint=again)
    if ClusterFolder(job.path).spec().master == SCRIPT_MASTER:
        raise fixed(job, workers)
    return check_strategy(job, workers)


def fixed(job: JobFolder, workers: int) -> ClusterError:
    """Return the error for a job of a script."""
    return ClusterError(
        f"job {job.id} runs a script of `edl run`: its number of workers is fixed, because each knows it from its "
        "start (WORLD_SIZE)",
        hint=f"cancel it, and run the script again with `edl run --workers {workers}`",
    )


def check_strategy(job: JobFolder, workers: int) -> JobSpec:
    """Return the JobSpec of a job with a master. Raises ClusterError if its strategy has no use for as many workers."""
    spec = from_json((job.program / "job.json").read_bytes())
    if spec.work == "train" and spec.cluster.strategy == "local" and workers > 1:
        raise ClusterError(
            f"job {job.id} trains with the strategy local: its only worker holds the parameters and shares them with "
            "no other",
            hint=f"cancel it, and train again WITH train.num_workers = {workers}",
        )
    return spec


def _tell_master(job: JobFolder, workers: int) -> int:
    """Tell the master the number of workers and return the number until now."""
    from edl.rpc import control_pb2 as pb

    request = pb.ScaleRequest(workers=workers)
    answer = master_call.call(
        job, lambda channel: channel.call(channel.stub.Scale, request, master_call.CALL_SECS)
    )
    return int(answer.before)


def _notes(job: JobFolder, spec: JobSpec, before: int, workers: int) -> list[str]:
    """Return what limits the use of more workers."""
    notes = []
    quota = ClusterFolder(job.path).spec().quota
    if workers > before and quota is not None:
        slots = Quota(Path(quota.folder)).look()[0]
        needed = workers + spec.cluster.parameter_servers
        notes.append(
            f"its quota {quota.folder} has {counted(slots, 'slot')}, and the job needs {needed}: the others wait"
            if needed > slots
            else f"they begin when its quota {quota.folder} has free slots"
        )
    return [*notes, *limits(spec, before, workers)]


def limits(spec: JobSpec, before: int, workers: int) -> list[str]:
    """Return what in the JobSpec limits the use of more workers."""
    cluster = spec.cluster
    if workers <= max(before, cluster.grads_to_wait) or cluster.strategy != "sync":
        return []
    size = counted(cluster.grads_to_wait, "gradient")
    return [f"a step is still the mean of {size} (train.grads_to_wait), so not all workers are of use"]
