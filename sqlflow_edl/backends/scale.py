"""Change of the numbers of workers and parameter servers of a running job, which its master carries out and keeps.

The master starts further workers, or asks the last ones to leave, which give back their tasks first. For servers see
`edl.master.ps.ps_manager`.
"""

from __future__ import annotations

from pathlib import Path

from edl.cluster.local.client import is_supervised
from edl.cluster.quota.quota import Quota
from edl.errors import ClusterError
from edl.jobs.cluster_folder import SCRIPT_MASTER, ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.spec import JobSpec, from_json
from sqlflow_edl.backends import master_call
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.backends.report import state_of
from sqlflow_edl.reports.text import format_count


def scale(job: JobFolder, numbers: Numbers) -> str:
    """Set the numbers and return a message. Raises ClusterError if one of them is fixed."""
    spec = _read_scalable(job, numbers)
    before = _tell_master(job, numbers)
    changed = before.describe_change(numbers)
    if not changed:
        return nothing_to_do(job, numbers)
    notes = "".join(f"\n  note: {note}" for note in _notes(job, spec, before, numbers))
    return f"job {job.id}: {changed}{notes}"


def nothing_to_do(job: JobFolder, numbers: Numbers) -> str:
    return f"job {job.id} has {numbers} already: there is nothing to do"


def _read_scalable(job: JobFolder, numbers: Numbers) -> JobSpec:
    """Return the JobSpec of a scalable job. Raises ClusterError if the numbers of the job cannot be changed."""
    status = job.status()
    if not status.is_alive:
        raise ClusterError(f"job {job.id} does not run: its state is {state_of(status)}")
    again = f"cancel it, and run its statement again with --workers {numbers.workers or 2}"
    if not is_supervised(job):
        raise ClusterError(f"job {job.id} runs in one process, without workers", hint=again)
    if ClusterFolder(job.path).run_spec().master == SCRIPT_MASTER:
        raise fixed_size_error(job, numbers)
    return check_strategy(job, numbers)


def fixed_size_error(job: JobFolder, numbers: Numbers) -> ClusterError:
    """Return the error for a job of a script."""
    return ClusterError(
        f"job {job.id} runs a script of `edl run`: its number of workers is fixed, because each knows it from its "
        "start (WORLD_SIZE), and it has no servers",
        hint=f"cancel it, and run the script again with `edl run --workers {numbers.workers or 2}`",
    )


def check_strategy(job: JobFolder, numbers: Numbers) -> JobSpec:
    """Return the JobSpec of a job with a master. Raises ClusterError if its strategy has no use for these numbers."""
    spec = from_json((job.program / "job.json").read_bytes())
    cluster = spec.cluster
    if spec.work == "train" and cluster.strategy == "local" and (numbers.workers or 1) > 1:
        raise ClusterError(
            f"job {job.id} trains with the strategy local: its only worker holds the parameters and shares them with "
            "no other",
            hint=f"cancel it, and train again WITH train.num_workers = {numbers.workers}",
        )
    if numbers.servers is not None and (spec.work != "train" or not cluster.parameter_servers):
        train = spec.work == "train"
        raise ClusterError(
            f"job {job.id} has no parameter servers: "
            + (
                f"it trains with the strategy {cluster.strategy}"
                if train
                else f"it is of the kind {spec.kind}"
            ),
            hint=f"cancel it, and train again WITH train.num_ps = {numbers.servers}" if train else None,
        )
    return spec


def _tell_master(job: JobFolder, numbers: Numbers) -> Numbers:
    """Tell the master the numbers and return those until now."""
    from edl.rpc import control_pb2 as pb

    request = pb.ScaleRequest(workers=numbers.workers, servers=numbers.servers)
    answer = master_call.call(
        job, lambda channel: channel.call(channel.stub.Scale, request, master_call.CALL_SECS)
    )
    return Numbers(int(answer.before), int(answer.servers_before))


def _notes(job: JobFolder, spec: JobSpec, before: Numbers, numbers: Numbers) -> list[str]:
    """Return what limits the use of more workers."""
    notes = []
    quota = ClusterFolder(job.path).run_spec().quota
    now = Numbers(numbers.workers or before.workers, numbers.servers or before.servers)
    if quota is not None and now.total > before.total:
        slots = Quota(Path(quota.folder)).look()[0]
        notes.append(
            f"its quota {quota.folder} has {format_count(slots, 'slot')}, and the job needs {now.total}: "
            "the others wait"
            if now.total > slots
            else f"they begin when its quota {quota.folder} has free slots"
        )
    return [*notes, *limits(spec, before, numbers)]


def limits(spec: JobSpec, before: Numbers, numbers: Numbers) -> list[str]:
    """Return what in the JobSpec limits the use of more workers."""
    cluster = spec.cluster
    if (numbers.workers or 0) <= max(
        before.workers or 0, cluster.grads_to_wait
    ) or cluster.strategy != "sync":
        return []
    size = format_count(cluster.grads_to_wait, "gradient")
    return [f"a step is still the mean of {size} (train.grads_to_wait), so not all workers are of use"]
