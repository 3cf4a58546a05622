"""The node: runs pods as processes of this machine and says how they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubernetes.access import Access
from tests.kubernetes.container_life import Container
from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.events import Events
from tests.kubernetes.kinds import POD, Key, Object
from tests.kubernetes.nodes import pods_on
from tests.kubernetes.pod_life import PodLife
from tests.kubernetes.registry import TERMINAL, Registry
from tests.kubernetes.services import Services


@dataclass
class Kubelet:
    registry: Registry
    access: Access
    services: Services
    events: Events
    addresses: Iterator[str]  # of pods
    folder: Path
    url: str  # of the API server, for the pods
    pace: Pace
    _lives: dict[str, PodLife] = field(default_factory=dict)  # by uid
    _due: dict[str, float] = field(default_factory=dict)  # when each of them is looked at next
    _lost: set[str] = field(default_factory=set)  # nodes
    _seen: int = 0

    def step(self, now: float) -> float:
        store = self.registry.store
        for change in store.since(self._seen):
            if change.key.kind is POD and change.object["spec"].get("nodeName"):
                self._hear(change.key, change.object, gone=change.type == "DELETED", now=now)
        self._seen = store.revision
        for uid in [uid for uid, due in self._due.items() if due <= now]:
            self._due[uid] = self._lives[uid].step(now)
        return min(self._due.values(), default=NEVER)

    def kill_all(self) -> None:
        with self.registry.store.lock:
            for life in self._lives.values():
                life.kill()

    def lose(self, node: str) -> None:
        """Its pods are killed, and nothing is said of them any more."""
        self._lost.add(node)
        for pod in pods_on(self.registry.store, node):
            self._forget(pod["metadata"]["uid"])

    def wake(self, uid: str) -> None:
        """Something has happened to a process of the pod."""
        with self.registry.store.changed:
            if uid in self._due:
                self._due[uid] = 0.0
            self.registry.store.changed.notify_all()

    def say(self, pod: Object, version: str, reason: str, message: str, container: Container | None) -> None:
        """As an event, of the pod as it was when the node heard of it."""
        path = "" if container is None else container.path
        self.events.of_node(pod, version, reason, message, path)

    def run_out_of_memory(self, namespace: str, name: str) -> None:
        """The first container of a pod that runs."""
        pod = self.registry.read(Key(POD, namespace, name))
        process = self._lives[pod["metadata"]["uid"]].containers[0].process
        assert process is not None, "it does not run yet"
        process.run_out_of_memory()

    def container(self, uid: str, name: str) -> Container | None:
        """Of a pod that the node knows."""
        life = self._lives.get(uid)
        return life.container(name) if life else None

    def _hear(self, key: Key, pod: Object, *, gone: bool, now: float) -> None:
        uid = pod["metadata"]["uid"]
        if gone:
            self._forget(uid)
        elif pod["spec"]["nodeName"] in self._lost:
            return
        elif uid in self._lives:
            self._due[uid] = now
        elif pod["status"]["phase"] not in TERMINAL:
            self._lives[uid] = PodLife(self, key, pod, next(self.addresses), now)
            self._due[uid] = now

    def _forget(self, uid: str) -> None:
        self._due.pop(uid, None)
        if (life := self._lives.pop(uid, None)) is not None:
            life.kill()
