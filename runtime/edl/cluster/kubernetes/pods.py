"""Pods as the API server tells of them: what a master needs to know, and its own words for instances."""

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
    owner_references: list[Owner] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class Resources(msgspec.Struct):
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(msgspec.Struct):
    name: str = ""
    resources: Resources = msgspec.field(default_factory=Resources)


class PodSpec(msgspec.Struct, rename="camel"):
    containers: list[Container] | None = None
    node_name: str = ""


class Waiting(msgspec.Struct):
    reason: str = ""
    message: str = ""


class Terminated(msgspec.Struct, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(msgspec.Struct):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct):
    name: str = ""
    image: str = ""
    state: ContainerState = msgspec.field(default_factory=ContainerState)


class Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
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
    """One version of a pod. The instance is its first container; pods of a job never start one again."""

    metadata: Metadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def instance(self) -> Instance | None:
        """Which it is; None: its labels say nothing of one."""
        labels = self.metadata.labels or {}
        told = (labels.get(names.INSTANCE), labels.get(names.ROLE), labels.get(names.INCARNATION))
        try:
            return msgspec.convert(told, _Labels, strict=False).instance
        except msgspec.ValidationError:
            return None

    @property
    def place(self) -> str:
        """`pod NAME on NODE`; empty before it has a node."""
        node = self.spec.node_name
        return f"pod {self.metadata.name} on {node}" if node else ""

    @property
    def statuses(self) -> list[ContainerStatus]:
        """Of all containers, those that come first first."""
        return [*(self.status.init_container_statuses or ()), *(self.status.container_statuses or ())]

    @property
    def end(self) -> Terminated | None:
        """How the instance's container ended; None: it did not, or nobody knows."""
        containers, statuses = self.spec.containers, self.status.container_statuses or []
        first = containers[0].name if containers else ""
        found = next((each for each in statuses if each.name == first or not first), None)
        return found.state.terminated if found else None

    @property
    def has_ended(self) -> bool:
        """The container's end is told about a second before that of the pod."""
        return self.status.phase in ("Succeeded", "Failed") or self.end is not None

    def condition(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions or () if each.type == kind), None)


class PodList(msgspec.Struct):
    """A page of pods. `continue_`: where the next begins; empty at the last."""

    class Place(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
        resource_version: str = ""
        continue_: str = ""

    metadata: Place
    items: list[Pod]


class Event(msgspec.Struct):
    """A line of a watch. object: a pod, of a bookmark its `resourceVersion` alone, of an error a refusal."""

    type: str
    object: msgspec.Raw


class Refusal(msgspec.Struct):
    """What the server says where it refuses."""

    message: str = ""
    reason: str = ""
