"""How a job is deployed: written by the client as `cluster/kubernetes.json`, read by the master and other clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from edl.cluster import Role
from edl.errors import SpecError
from edl.jobs.run_folder import DEPLOYMENT as FILE


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the master does about pods that do not get on.

    pending_secs: that a parameter server may wait for a node until a worker stands in for it. image_secs: that an
    image, or what else a container needs to start, may be out of reach until the instance counts as failed.
    memory_factor: by which a pod's memory grows after it ran out of it. memory_limit: up to which, as a quantity;
    empty: four times what it had first.
    """

    pending_secs: float = 300.0
    image_secs: float = 120.0
    memory_factor: float = 1.5
    memory_limit: str = ""


class Priorities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Priority classes of workers: the first `fraction` of them, rounded up, have `high`, the others `low`.

    So some go on when others are preempted. An empty class is none.
    """

    high: str = ""
    low: str = ""
    fraction: float = 1.0


class Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a job's objects are, and what its pods look like.

    name: of the Job; see `edl.cluster.kubernetes.names`. uid: of the Job, which owns all others; empty as long as it is
    not known to be there.
    job: the job's id. context: of the client's kubeconfig; empty: the current one. worker, ps: pod manifests, to
    which the master adds name, labels, owner, EDL_INSTANCE, priority class and, after one ran out of it, memory. In
    each, the first container is the instance's.
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
    version: Literal[1] = 1

    def manifest(self, role: Role) -> dict[str, Any]:
        return self.worker if role == "worker" else self.ps


def write_deployment(job: Path, deployment: Deployment) -> None:
    """Keep it in the job folder."""
    folder = job / "cluster"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(deployment), indent=2))


def read_deployment(job: Path) -> Deployment | None:
    """None: the job is not on Kubernetes. SpecError: damaged, or of another version."""
    try:
        return msgspec.json.decode((job / "cluster" / FILE).read_bytes(), type=Deployment)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise SpecError(f"how job {job.name} is deployed cannot be read: {error}") from None
