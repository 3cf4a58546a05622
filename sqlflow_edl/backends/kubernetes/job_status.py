"""State of one job on the API server: its Job, its pods, their logs, and its master's status."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError, Calls
from edl.cluster.kubernetes.deployment import Deployment
from edl.cluster.kubernetes.pods import Metadata, Pod, PodCondition, PodList

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

T = TypeVar("T")

_VISIBILITY = "/apis/visibility.kueue.x-k8s.io/v1beta1"
_KUEUE, _OWNER = "/apis/kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/job-uid"  # its objects; a label of workloads
SILENCE = 60.0  # seconds after which the stream of a log counts as broken


class KubernetesJobSpec(msgspec.Struct, rename="camel"):
    suspend: bool = False


class JobStatus(msgspec.Struct, rename="camel"):
    conditions: list[PodCondition] | None = None
    failed: int = 0


class KubernetesJob(msgspec.Struct):
    """Version of a `batch/v1` Job."""

    metadata: Metadata
    spec: KubernetesJobSpec = msgspec.field(default_factory=KubernetesJobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)

    def condition(self, kind: str) -> PodCondition | None:
        """Return the condition, if its status is True."""
        return next(
            (one for one in self.status.conditions or () if one.type == kind and one.status == "True"), None
        )

    def is_of(self, deployment: Deployment) -> bool:
        """Return True if the Job is the deployment's: by uid, or by job id if the uid was not recorded."""
        if deployment.uid:
            return self.metadata.uid == deployment.uid
        return (self.metadata.labels or {}).get(names.JOB_ID) == deployment.job

    @property
    def queue(self) -> str:
        """Queue of Kueue that resumes the Job, or empty."""
        return (self.metadata.labels or {}).get(names.QUEUE, "")

    @property
    def is_over(self) -> bool:
        return self.condition("Complete") is not None or self.condition("Failed") is not None


class KubernetesJobList(msgspec.Struct):
    items: list[KubernetesJob]


class JobEvent(msgspec.Struct):
    """Event of an object. type: `Normal` or `Warning`. count: how often it came; None if not counted."""

    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None


class EventList(msgspec.Struct):
    items: list[JobEvent]


class NamespaceStatus(msgspec.Struct):
    phase: str = ""


class Namespace(msgspec.Struct):
    status: NamespaceStatus = msgspec.field(default_factory=NamespaceStatus)


class PendingWorkload(msgspec.Struct):
    """Workload of Kueue that waits, with the places counted from 0."""

    metadata: Metadata
    position: int = msgspec.field(default=0, name="positionInLocalQueue")


class PendingWorkloads(msgspec.Struct):
    items: list[PendingWorkload] = []


class WorkloadStatus(msgspec.Struct):
    conditions: list[PodCondition] = []


class QueuedWorkload(msgspec.Struct):
    """Workload that Kueue admits: a Job, a pod, or a group of pods."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)

    @property
    def obstacle(self) -> str:
        """Why there is no room for it; empty if there is, or nothing is known yet."""
        refused = (
            condition.message or ""
            for condition in self.status.conditions
            if condition.type == "QuotaReserved" and condition.status == "False"
        )
        return next(refused, "")


class Workloads(msgspec.Struct):
    items: list[QueuedWorkload] = []


class ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class JobObjects:
    """Reader of the job's objects. Raises RefusedError without permission, UnreachableError without an answer."""

    def __init__(self, calls: Calls, deployment: Deployment) -> None:
        self._calls = calls
        self.deployment = deployment
        self._core = f"/api/v1/namespaces/{deployment.namespace}"
        self._job = f"/apis/batch/v1/namespaces/{deployment.namespace}/jobs/{deployment.name}"
        self._shows_queues = self._shows_workloads = True  # until the cluster refuses it, or has no such API

    def job(self) -> KubernetesJob | None:
        """Return the Job, or None if there is none or another has its name."""
        stored = self._read(self._job, KubernetesJob)
        return stored if stored is not None and stored.is_of(self.deployment) else None

    def pods(self) -> list[Pod]:
        """Return the pods of master, workers and servers, oldest first within each role."""
        query: dict[str, str | int] = {"labelSelector": f"{names.NAME}={self.deployment.name},{names.ROLE}"}
        answer = self._calls.ask("GET", f"{self._core}/pods", query=query)
        return sorted(msgspec.json.decode(answer, type=PodList).items, key=_order)

    def pod(self, name: str) -> Pod | None:
        return self._read(f"{self._core}/pods/{name}", Pod)

    def status(self) -> dict[str, str]:
        """Return the data of the ConfigMap NAME-status."""
        config_map = self._read(f"{self._core}/configmaps/{names.status(self.deployment.name)}", ConfigMap)
        return (config_map.data or {}) if config_map is not None else {}

    def is_namespace_ending(self) -> bool:
        """Return True if the namespace is being deleted, or is gone; False if that cannot be read."""
        try:
            answer = self._calls.ask("GET", f"/api/v1/namespaces/{self.deployment.namespace}")
        except APIRefusedError as error:
            return error.status == 404
        except APIUnreachableError:
            return False
        return msgspec.json.decode(answer, type=Namespace).status.phase == "Terminating"

    def warnings(self, kind: str, name: str) -> list[JobEvent]:
        """Return the warning events of an object; none without permission."""
        selector = f"involvedObject.kind={kind},involvedObject.name={name}"
        try:
            answer = self._calls.ask("GET", f"{self._core}/events", query={"fieldSelector": selector})
        except APIRefusedError:
            return []
        return [
            event for event in msgspec.json.decode(answer, type=EventList).items if event.type == "Warning"
        ]

    def queue_places(self, queue: str) -> dict[str, str]:
        """Return the place in the queue of each Job and pod that waits there, by uid: `3 of 7`.

        Empty if Kueue does not show its queues, or not to this user.
        """
        if not self._shows_queues:
            return {}
        path = f"{_VISIBILITY}/namespaces/{self.deployment.namespace}/localqueues/{queue}/pendingworkloads"
        try:
            workloads = msgspec.json.decode(self._calls.ask("GET", path), type=PendingWorkloads).items
        except (APIRefusedError, msgspec.MsgspecError):
            self._shows_queues = False
            return {}
        return {
            owner.uid: f"{workload.position + 1:,} of {len(workloads):,}"
            for workload in workloads
            for owner in workload.metadata.owner_references or ()
        }

    def queue_reasons(self, waiting: Mapping[str, str]) -> dict[str, str]:
        """Return why Kueue has no room for Jobs and pods, by uid.

        waiting: the groups of pods that are admitted together, by uid; empty for those that are admitted alone. Empty
        if there is no Kueue, or this user may not read its workloads.
        """
        if not self._shows_workloads or not waiting:
            return {}
        path = f"{_KUEUE}/namespaces/{self.deployment.namespace}/workloads"
        alone = ",".join(uid for uid, group in waiting.items() if not group)
        reasons: dict[str, str] = {}
        try:
            if alone:
                answer = self._calls.ask("GET", path, query={"labelSelector": f"{_OWNER} in ({alone})"})
                for workload in msgspec.json.decode(answer, type=Workloads).items:
                    reasons[(workload.metadata.labels or {}).get(_OWNER, "")] = workload.obstacle
            for group in {*waiting.values()} - {""}:
                if (together := self._read(f"{path}/{group}", QueuedWorkload)) is not None:
                    of_group = (uid for uid, name in waiting.items() if name == group)
                    reasons |= dict.fromkeys(of_group, together.obstacle)
        except (APIRefusedError, msgspec.MsgspecError):
            self._shows_workloads = False
        return reasons

    def log(self, pod: Pod, *, follow: bool, since_secs: int | None) -> BaseHTTPResponse:
        """Open the log of the pod's first container, each line with a timestamp. Status 204 means nothing yet."""
        containers = pod.spec.containers or []
        query: dict[str, str | int] = {"timestamps": "true", "follow": "true" if follow else "false"}
        if containers:
            query["container"] = containers[0].name
        if since_secs is not None:
            query["sinceSeconds"] = since_secs
        return self._calls.stream(f"{self._core}/pods/{pod.metadata.name}/log", query, SILENCE)

    def end(self, pod: Pod, grace: int) -> None:
        """Delete the pod with a grace period in seconds. Return at once; ignore a missing pod or permission."""
        with suppress(APIRefusedError):
            self._calls.ask("DELETE", f"{self._core}/pods/{pod.metadata.name}", {"gracePeriodSeconds": grace})

    def patch(self, change: dict[str, object]) -> None:
        """Merge the change into the Job. Raises ClusterError if the API server refuses."""
        self._calls.ask("PATCH", self._job, change)

    def delete(self) -> None:
        """Delete the Job, and with it all that it owns. Return at once; ignore a missing Job."""
        uid = self.deployment.uid
        if not uid:
            stored = self.job()
            if stored is None:
                return
            uid = stored.metadata.uid
        try:
            options = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
            self._calls.ask("DELETE", self._job, options)
        except APIRefusedError as error:
            if error.status not in (404, 409):  # 409: another Job has the name now
                raise

    def _read(self, path: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode(self._calls.ask("GET", path), type=kind)
        except APIRefusedError as error:
            if error.status == 404:
                return None
            raise


def instance_name(pod: Pod) -> str:
    """Return `master`, `program`, or the name of a worker or server."""
    if pod.instance is not None:
        return pod.instance.name
    return (pod.metadata.labels or {}).get(names.ROLE, "master")


def _order(pod: Pod) -> tuple[str, int, str, bool]:
    """Sort masters first, ended ones before others.

    Masters have no incarnation, and creation times are of whole seconds, so that an ended one was the earlier.
    """
    instance = pod.instance
    name, incarnation = (instance.name, instance.incarnation) if instance is not None else ("", 0)
    return name, incarnation, pod.metadata.creation_timestamp or "", not pod.has_ended
