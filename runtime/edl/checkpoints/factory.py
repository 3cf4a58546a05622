"""Choice of a job's checkpoint store, from its environment.

EDL_CHECKPOINTS is a folder that all instances see, the URL of an object store, or the word `master` for the master's
disk. The default is the job folder: all instances of one machine see it; on Kubernetes, the master's disk.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from edl.checkpoints import CheckpointStore
from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.master_store import Keeper
from edl.cluster import Instance
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.spec import Checkpoints

VARIABLE = "EDL_CHECKPOINTS"
MOST = "EDL_CHECKPOINTS_BYTES"  # maximum on the master's disk; 0, the default, means no limit
MASTER = "master"


def _place(job: Path) -> str:
    """Return the variable: as the job's run specification has it, or as in the environment."""
    folder = ClusterFolder(job)
    if not folder.has_run_spec:
        return os.environ.get(VARIABLE, "")
    spec = folder.run_spec()
    named = spec.environment.get(VARIABLE) or os.environ.get(VARIABLE, "")
    return named if named in ("", MASTER) or "://" in named else str(Path(spec.folder) / named)


def are_with_master(job: Path) -> bool:
    """Return True if instances send their checkpoints to the master, because they share no disk."""
    named = _place(job)
    return named == MASTER or (ClusterFolder(job).is_spread and not named)


def keeper(job: Path) -> Keeper | None:
    """Return the master's store of checkpoints, or None if it stores none."""
    if not are_with_master(job):
        return None
    return Keeper(JobFolder(job).checkpoints, int(os.environ.get(MOST, "0")))


def adapt_settings(settings: Checkpoints, job: Path, servers: int) -> Checkpoints:
    """Return the checkpoint settings of the JobSpec, adapted to the store and the number of servers."""
    return with_master(settings, servers) if are_with_master(job) else settings


def with_master(settings: Checkpoints, servers: int) -> Checkpoints:
    """Return the settings for servers without a shared disk: several replicate shards to each other, too large for the
    master.
    """
    return msgspec.structs.replace(settings, copies="neighbours") if servers > 1 else settings


def for_master(job: Path) -> CheckpointStore:
    """Return the master's view of the store. Raises JobError if the object store cannot be opened."""
    return _open_named_store(job, MASTER) or SharedFolder(JobFolder(job).checkpoints)


def curves(job: Path) -> str:
    """Return the folder or URL with copies of a job's curves, or an empty text.

    A job has copies only if its folder vanishes with its pods.
    """
    named = _place(job)
    deployed = ClusterFolder(job).is_deployed
    return f"{named.rstrip('/')}/tensorboard/{job.name}" if deployed and named not in ("", MASTER) else ""


def for_instance(job: Path, instance: Instance) -> CheckpointStore:
    """Return an instance's view of the store. Raises JobError if the object store cannot be opened."""
    folder_of_instance = JobFolder(job).own / f"{instance.name}-{instance.incarnation}"
    if are_with_master(job):
        from edl.checkpoints.master_client import Relay  # imports gRPC

        folder = ClusterFolder(job)
        return Relay(folder_of_instance, folder.address(), folder.token())
    return _open_named_store(job, str(folder_of_instance.name)) or SharedFolder(JobFolder(job).checkpoints)


def _open_named_store(job: Path, who: str) -> CheckpointStore | None:
    """Return the store that the environment names, or None if that is the default or the master's disk."""
    named = _place(job)
    if named in ("", MASTER):
        return None
    if "://" in named:
        from edl.checkpoints.object_store import ObjectStore

        return ObjectStore(f"{named.rstrip('/')}/{job.name}", JobFolder(job).own / who)
    return SharedFolder(Path(named) / job.name, volume=True)
