"""Deployment of a job: written by the client as `cluster/kubernetes.json`, read by the master and other clients."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import msgspec

from edl.cluster import Role
from edl.errors import SpecError
from edl.files import replace_file
from edl.jobs.cluster_folder import DEPLOYMENT as FILE
from edl.reachability import OUTAGE_SECS


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reaction of the master to stuck pods, and of master and client to an API server that does not answer.

    `pending_secs` is the time that a parameter server may wait for a node until a worker takes its place. `image_secs`
    is the time that an image, or another prerequisite of a container, may be missing until the instance counts as
    failed. The memory of a pod grows by `memory_factor` after it ran out of it, up to the quantity `memory_limit`; if
    that is empty, up to four times the initial memory. A node is avoided after `node_failures` instances have failed on
    it, see `edl.cluster.kubernetes.pod_cache`. The API server is waited for as long as `outage_secs`, by default
    OUTAGE_SECS. The job may wait for its pods as long as `wait_secs`, by default without a limit. It begins when
    `min_workers` are ready, by default with the first one. Earlier versions do not know these three fields.
    """

    pending_secs: float = 300.0
    image_secs: float = 120.0
    memory_factor: float = 1.5
    memory_limit: str = ""
    node_failures: int = 3
    outage_secs: float | msgspec.UnsetType = msgspec.UNSET
    wait_secs: float | msgspec.UnsetType = msgspec.UNSET
    min_workers: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def least_workers(self) -> int:
        """Number of workers that must be ready before the first task."""
        return 1 if self.min_workers is msgspec.UNSET else self.min_workers

    @property
    def longest_outage(self) -> float:
        """Seconds that an API server without an answer is waited for."""
        return OUTAGE_SECS if self.outage_secs is msgspec.UNSET else self.outage_secs

    @property
    def longest_wait(self) -> float:
        """Seconds that the job may wait for its pods; infinite without a limit."""
        return math.inf if self.wait_secs is msgspec.UNSET else self.wait_secs


class Priorities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Priority classes of workers: the first `fraction` of them, rounded up, have `high`, the others `low`.

    So some workers continue when others are preempted. An empty name means no class.
    """

    high: str = ""
    low: str = ""
    fraction: float = 1.0


class Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Location of a job's objects, and the manifests of its pods.

    `name` is the Job's name, see `edl.cluster.kubernetes.names`, and `uid` its uid, empty until it is known to exist.
    `job` is the job's id. `context` is a context of the client's kubeconfig, empty for the current one. `worker` and
    `ps` are pod manifests; the master adds name, labels, owner, EDL_INSTANCE, priority class and, after a pod ran out
    of it, memory. In each, the first container is the instance's. `first` is the role of the pod of the Job itself.
    `outputs` is the number of ConfigMaps in which the output of the job comes back to its client.
    """

    name: str
    namespace: str
    job: str
    worker: dict[str, Any]
    ps: dict[str, Any]
    uid: str = ""
    context: str = ""
    policy: Policy = Policy()
    priorities: Priorities = Priorities()
    first: Literal["master", "program"] = "master"
    outputs: int = 0
    version: Literal[1] = 1

    @property
    def has_master(self) -> bool:
        """False for a job of one pod that runs a user's program."""
        return self.first == "master"

    def manifest(self, role: Role) -> dict[str, Any]:
        return self.worker if role == "worker" else self.ps


def write_deployment(job: Path, deployment: Deployment) -> None:
    """Write the deployment into the job folder."""
    folder = job / "cluster"
    folder.mkdir(mode=0o700, exist_ok=True)
    replace_file(folder / FILE, msgspec.json.format(msgspec.json.encode(deployment), indent=2))


def read_deployment(job: Path) -> Deployment | None:
    """Return the deployment, or None if the job is not on Kubernetes.

    Raises SpecError if the file is damaged, or of another version.
    """
    try:
        return msgspec.json.decode((job / "cluster" / FILE).read_bytes(), type=Deployment)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"the deployment of job {job.name} cannot be read: {error}") from None
