"""What the API server knows of one job: its Job, its pods, what they print, and what its master says of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import Calls, RefusedError
from edl.cluster.kubernetes.deployment import Deployment
from edl.cluster.kubernetes.pods import Condition, Metadata, Pod, PodList

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

T = TypeVar("T")

SILENCE = 60.0  # seconds after which the stream of a log counts as broken


class JobSpec(msgspec.Struct, rename="camel"):
    suspend: bool = False


class JobStatus(msgspec.Struct, rename="camel"):
    conditions: list[Condition] | None = None
    failed: int = 0


class Job(msgspec.Struct):
    """One version of a `batch/v1` Job."""

    metadata: Metadata
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)

    def condition(self, kind: str) -> Condition | None:
        """The condition, if it holds."""
        return next(
            (one for one in self.status.conditions or () if one.type == kind and one.status == "True"), None
        )

    def is_of(self, deployment: Deployment) -> bool:
        """By its uid; where its client was gone before that was known, by the job's id."""
        if deployment.uid:
            return self.metadata.uid == deployment.uid
        return (self.metadata.labels or {}).get(names.JOB_ID) == deployment.job

    @property
    def is_over(self) -> bool:
        return self.condition("Complete") is not None or self.condition("Failed") is not None


class JobList(msgspec.Struct):
    items: list[Job]


class Event(msgspec.Struct):
    """What the cluster tells of an object. type: `Normal` or `Warning`."""

    type: str = ""
    reason: str = ""
    message: str = ""


class EventList(msgspec.Struct):
    items: list[Event]


class ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class JobObjects:
    """Asks for them. RefusedError: we may not; UnreachableError: the server does not answer."""

    def __init__(self, calls: Calls, deployment: Deployment) -> None:
        self._calls = calls
        self.deployment = deployment
        self._core = f"/api/v1/namespaces/{deployment.namespace}"
        self._job = f"/apis/batch/v1/namespaces/{deployment.namespace}/jobs/{deployment.name}"

    def job(self) -> Job | None:
        """None: it is not there, or another has its name."""
        found = self._read(self._job, Job)
        return found if found is not None and found.is_of(self.deployment) else None

    def pods(self) -> list[Pod]:
        """Of master, workers and servers, the oldest of each first."""
        query: dict[str, str | int] = {"labelSelector": f"{names.NAME}={self.deployment.name},{names.ROLE}"}
        answer = self._calls.ask("GET", f"{self._core}/pods", query=query)
        return sorted(msgspec.json.decode(answer, type=PodList).items, key=_order)

    def pod(self, name: str) -> Pod | None:
        return self._read(f"{self._core}/pods/{name}", Pod)

    def status(self) -> dict[str, str]:
        """What is in the ConfigMap NAME-status."""
        found = self._read(f"{self._core}/configmaps/{names.status(self.deployment.name)}", ConfigMap)
        return (found.data or {}) if found is not None else {}

    def warnings(self, kind: str, name: str) -> list[Event]:
        """What went wrong with an object; nothing where we may not ask."""
        selector = f"involvedObject.kind={kind},involvedObject.name={name}"
        try:
            answer = self._calls.ask("GET", f"{self._core}/events", query={"fieldSelector": selector})
        except RefusedError:
            return []
        return [
            event for event in msgspec.json.decode(answer, type=EventList).items if event.type == "Warning"
        ]

    def log(self, pod: Pod, *, follow: bool, since_secs: int | None) -> BaseHTTPResponse:
        """What its first container prints, each line after its time; status 204: nothing yet."""
        containers = pod.spec.containers or []
        query: dict[str, str | int] = {"timestamps": "true", "follow": "true" if follow else "false"}
        if containers:
            query["container"] = containers[0].name
        if since_secs is not None:
            query["sinceSeconds"] = since_secs
        return self._calls.stream(f"{self._core}/pods/{pod.metadata.name}/log", query, SILENCE)

    def end(self, pod: Pod, grace: int) -> None:
        """Tell it to end, within `grace` seconds. Returns at once; nothing when it is gone, or we may not."""
        with suppress(RefusedError):
            self._calls.ask("DELETE", f"{self._core}/pods/{pod.metadata.name}", {"gracePeriodSeconds": grace})

    def delete(self) -> None:
        """The Job, and with it all that it owns; nothing when it is gone. Returns at once."""
        uid = self.deployment.uid
        if not uid:
            found = self.job()
            if found is None:
                return
            uid = found.metadata.uid
        try:
            options = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
            self._calls.ask("DELETE", self._job, options)
        except RefusedError as error:
            if error.status not in (404, 409):  # 409: the name is another Job's by now
                raise

    def _read(self, path: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode(self._calls.ask("GET", path), type=kind)
        except RefusedError as error:
            if error.status == 404:
                return None
            raise


def instance_name(pod: Pod) -> str:
    """`master`, or that of a worker or server."""
    return pod.instance.name if pod.instance is not None else "master"


def _order(pod: Pod) -> tuple[str, int, str, bool]:
    """Masters first. They have no incarnation, and times are of whole seconds: one that has ended was before."""
    found = pod.instance
    name, incarnation = (found.name, found.incarnation) if found is not None else ("", 0)
    return name, incarnation, pod.metadata.creation_timestamp or "", not pod.has_ended
