"""Pods as sent by the API server: the fields that a master needs, and their instances."""

from __future__ import annotations

import msgspec

from edl.cluster import Instance, Role
from edl.cluster.kubernetes import names


class Owner(msgspec.Struct, rename="camel"):
    uid: str = ""


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class Resources(msgspec.Struct):
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(msgspec.Struct):
    name: str = ""
    resources: Resources = msgspec.field(default_factory=Resources)


class Gate(msgspec.Struct):
    name: str = ""


class PodSpec(msgspec.Struct, rename="camel"):
    containers: list[Container] | None = None
    node_name: str = ""
    scheduling_gates: list[Gate] | None = None


class Waiting(msgspec.Struct):
    reason: str = ""
    message: str = ""


class Terminated(msgspec.Struct, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None  # None if that is unknown


class ContainerState(msgspec.Struct):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct):
    name: str = ""
    image: str = ""
    state: ContainerState = msgspec.field(default_factory=ContainerState)


class PodCondition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None


class _Labels(msgspec.Struct, array_like=True):
    name: str
    role: Role
    incarnation: int

    @property
    def instance(self) -> Instance:
        return Instance(self.name, self.role, self.incarnation)


class Pod(msgspec.Struct):
    """Version of a pod. The instance is its first container; containers of a job are never restarted."""

    metadata: Metadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def queue_group(self) -> str:
        """Group of pods that Kueue admits together with this one; empty if it is admitted alone."""
        return (self.metadata.labels or {}).get(names.QUEUE_GROUP, "")

    @property
    def instance(self) -> Instance | None:
        """Instance of the pod, or None if its labels name none."""
        labels = self.metadata.labels or {}
        values = (labels.get(names.INSTANCE), labels.get(names.ROLE), labels.get(names.INCARNATION))
        try:
            return msgspec.convert(values, _Labels, strict=False).instance
        except msgspec.ValidationError:
            return None

    @property
    def gates(self) -> list[str]:
        """Names of the gates that keep the scheduler from looking at the pod."""
        return [gate.name for gate in self.spec.scheduling_gates or ()]

    @property
    def place(self) -> str:
        """`pod NAME on NODE`; empty before it has a node."""
        node = self.spec.node_name
        return f"pod {self.metadata.name} on {node}" if node else ""

    @property
    def statuses(self) -> list[ContainerStatus]:
        """Statuses of all containers, init containers first."""
        return [*(self.status.init_container_statuses or ()), *(self.status.container_statuses or ())]

    @property
    def end(self) -> Terminated | None:
        """End of the instance's container, or None if it has not ended or the end is unknown."""
        containers, statuses = self.spec.containers, self.status.container_statuses or []
        first = containers[0].name if containers else ""
        container = next((status for status in statuses if status.name == first or not first), None)
        return container.state.terminated if container else None

    @property
    def has_ended(self) -> bool:
        """True if the pod or its instance's container has ended; the latter is reported about a second before the
        former.
        """
        return self.status.phase in ("Succeeded", "Failed") or self.end is not None

    def condition(self, kind: str) -> PodCondition | None:
        return next((entry for entry in self.status.conditions or () if entry.type == kind), None)


class PodList(msgspec.Struct):
    """Page of pods. `continue_` is the token of the next page, empty for the last one."""

    class Place(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
        resource_version: str = ""
        continue_: str = ""

    metadata: Place
    items: list[Pod]


class PodEvent(msgspec.Struct):
    """Line of a watch. `object` is a pod, for a bookmark only its `resourceVersion`, for an error a refusal."""

    type: str
    object: msgspec.Raw


class Refusal(msgspec.Struct):
    """Error body of the API server."""

    message: str = ""
    reason: str = ""
