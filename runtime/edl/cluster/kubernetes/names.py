"""Names and labels of a job's objects. All of them are derived from the name of its `batch/v1` Job."""

from __future__ import annotations

import re
from typing import Literal

from edl.cluster import Instance

APP = "sqlflow-edl"
PORT = 50001  # port of the master
METRICS = 50002  # port of a master pod that serves /metrics
HEALTH = 50003  # port of a master pod that its liveness probe asks
LONGEST = 40  # characters of a job's name, so that names with a suffix fit into 63
JOB_ID = f"{APP}/job"  # label and annotation
ROLE, INSTANCE, INCARNATION = f"{APP}/role", f"{APP}/instance", f"{APP}/incarnation"  # labels
# Annotations of the Job: wishes of its user.
WORKERS, SERVERS, PAUSED = f"{APP}/workers", f"{APP}/servers", f"{APP}/paused"
RESUMED = f"{APP}/resumed"  # date of the last resumption
CANCELLED = f"{APP}/cancelled"  # said to followers before its pods end
NAME = "app.kubernetes.io/instance"  # label
# Of Kueue: labels of Jobs and pods, and the gate of a pod that it has not admitted.
QUEUE, QUEUE_PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
QUEUE_GATE = "kueue.x-k8s.io/admission"
# Pods that Kueue admits together: the label of their group, annotations with their number, and with `false` for a group
# that is over when all of them have ended.
QUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
QUEUE_GROUP_SIZE, QUEUE_GROUP_REPEATS = (
    "kueue.x-k8s.io/pod-group-total-count",
    "kueue.x-k8s.io/retriable-in-group",
)

PodRole = Literal["master", "worker", "ps", "program"]


def job_name(kind: str, job_id: str) -> str:
    """Return a name for the Job: a DNS label, unique as the job's id is. `kind` is `train`, for example, or a model's
    name.
    """
    unique = job_id.rpartition("-")[2]
    words = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-") or "job"
    room = LONGEST - len(APP) - len(unique) - 2
    return f"{APP}-{words[:room].strip('-')}-{unique}"


def pod(job: str, instance: Instance) -> str:
    return f"{job}-{instance.name}-{instance.incarnation}"


def files(job: str, number: int) -> str:
    """Return the name of the ConfigMap with a part of the job's files."""
    return f"{job}-files-{number}"


def state_store(job: str) -> str:
    return f"{job}-state"


def status(job: str) -> str:
    return f"{job}-status"


def output(job: str, number: int) -> str:
    """Return the name of a ConfigMap for the output that comes back to the client."""
    return f"{job}-output-{number}"


def secrets(job: str) -> str:
    return f"{job}-secrets"


def address(job: str, namespace: str) -> str:
    """Return the address of the master, host:port."""
    return f"{job}.{namespace}.svc:{PORT}"


def labels(job: str, job_id: str, role: PodRole | None = None) -> dict[str, str]:
    """Return the labels of an object of the job, or of a pod with the role."""
    common = {"app.kubernetes.io/name": APP, NAME: job, JOB_ID: job_id}
    return {**common, ROLE: role} if role is not None else common


def selector(job: str) -> str:
    """Return the label selector of the pods of workers and servers."""
    return f"{NAME}={job},{ROLE} in (worker,ps)"
