"""The node: runs pods as processes of this machine and says how they do."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from tests.kubernetes import environment, pod_status
from tests.kubernetes.access import Access
from tests.kubernetes.containers import Process, rewritten
from tests.kubernetes.controllers import NEVER, Pace
from tests.kubernetes.kinds import POD, SERVICE_ACCOUNT, Key, Object
from tests.kubernetes.registry import TERMINAL, Deletion, Registry
from tests.kubernetes.services import Services
from tests.kubernetes.volumes import Volumes

NODE_ADDRESS = "127.0.0.1"
KILLED = 0.15  # real seconds until a process is gone that was killed


class Stage(Enum):
    BOUND = auto()
    CREATING = auto()
    STARTED = auto()
    RUNNING = auto()
    ENDED = auto()
    DONE = auto()


@dataclass
class Kubelet:
    registry: Registry
    access: Access
    services: Services
    addresses: Iterator[str]  # of pods
    folder: Path
    url: str  # of the API server, for the pods
    pace: Pace
    _lives: dict[str, PodLife] = field(default_factory=dict)  # by uid
    _seen: int = 0

    def step(self, now: float) -> float:
        store = self.registry.store
        for change in store.since(self._seen):
            if change.key.kind is POD and change.object["spec"].get("nodeName"):
                self._hear(change.key, change.object, gone=change.type == "DELETED", now=now)
        self._seen = store.revision
        return min((life.step(now) for life in list(self._lives.values())), default=NEVER)

    def kill_all(self) -> None:
        for life in self._lives.values():
            life.kill()

    def run_out_of_memory(self, namespace: str, name: str) -> None:
        """The first container of a pod that runs."""
        pod = self.registry.read(Key(POD, namespace, name))
        container = pod["spec"]["containers"][0]["name"]
        self._lives[pod["metadata"]["uid"]].processes[container].run_out_of_memory()

    def log(self, uid: str, container: str) -> Path | None:
        life = self._lives.get(uid)
        process = life.processes.get(container) if life else None
        return process.log if process else None

    def is_running(self, uid: str, container: str) -> bool:
        life = self._lives.get(uid)
        return life is not None and life.processes[container].code() is None

    def _hear(self, key: Key, pod: Object, *, gone: bool, now: float) -> None:
        uid = pod["metadata"]["uid"]
        if gone:
            life = self._lives.pop(uid, None)
            if life is not None:
                life.kill()
        elif uid not in self._lives and pod["status"]["phase"] not in TERMINAL:
            self._lives[uid] = PodLife(self, key, uid, next(self.addresses), now)


class PodLife:
    """One pod on the node, from stage to stage; deletion may come in at any of them."""

    def __init__(self, kubelet: Kubelet, key: Key, uid: str, address: str, now: float) -> None:
        self._kubelet, self._key, self._uid, self._address = kubelet, key, uid, address
        self._folder = kubelet.folder / uid
        self.processes: dict[str, Process] = {}
        self._started: str = ""
        self._ends: dict[str, str] = {}  # when containers ended
        self._stage = Stage.BOUND
        self._due = now + kubelet.pace.notice
        self._is_told_to_end = False

    def step(self, now: float) -> float:
        pod = self._kubelet.registry.store.get(self._key)
        if pod is None or pod["metadata"]["uid"] != self._uid:
            return NEVER
        if "deletionTimestamp" in pod["metadata"] and not self._is_told_to_end:
            self._end(pod, now)
        if now < self._due and self._stage is not Stage.RUNNING:  # which may end at any time
            return self._due
        if self._stage in (Stage.STARTED, Stage.RUNNING):
            self._look(pod, now)
        else:
            steps = {Stage.BOUND: self._create, Stage.CREATING: self._start, Stage.ENDED: self._finish}
            if self._stage is Stage.DONE:
                self._leave(pod)
            else:
                steps[self._stage](pod, now)
        return self._due

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()

    def _next(self, stage: Stage, due: float) -> None:
        self._stage, self._due = stage, due

    def _create(self, pod: Object, now: float) -> None:
        specs = pod["spec"]["containers"]
        waiting = {"waiting": {"reason": "ContainerCreating"}}
        containers = [pod_status.container(spec, waiting) for spec in specs]
        names = [spec["name"] for spec in specs]
        self._say(pod, "Pending", pod_status.creating(names), containers)
        self._next(Stage.CREATING, now + self._kubelet.pace.start)

    def _start(self, pod: Object, now: float) -> None:
        kubelet, store = self._kubelet, self._kubelet.registry.store
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        self._started = kubelet.registry.clock.stamp()

        def on_end() -> None:
            with store.changed:
                store.changed.notify_all()

        volumes = Volumes(store, kubelet.access, pod, kubelet.folder, self._address)
        given = self._given(pod)
        for spec in pod["spec"]["containers"]:
            mounted = functools.partial(volumes.place, spec)
            placed = rewritten(spec, lambda text, mounted=mounted: kubelet.services.place(mounted(text)))
            variables = environment.of(store, pod, placed, self._address, given)
            self.processes[spec["name"]] = Process(placed, variables, folder, on_end)
        self._next(Stage.STARTED, now + kubelet.pace.publish)

    def _given(self, pod: Object) -> dict[str, str]:
        """What a pod that has a token finds beside its own environment, so that clients find the API server."""
        sources = [one for volume in pod["spec"].get("volumes", []) for one in _sources(volume)]
        if not any("serviceAccountToken" in source for source in sources):
            return {}
        kubelet, account = self._kubelet, pod["spec"]["serviceAccountName"]
        config = kubelet.access.kubeconfig(kubelet.url, Key(SERVICE_ACCOUNT, self._key.namespace, account))
        path = self._folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return {"KUBECONFIG": str(path)}

    def _look(self, pod: Object, now: float) -> None:
        for process in self.processes.values() if self._stage is Stage.STARTED else ():
            process.wait(self._kubelet.pace.moment)
        stamp = self._kubelet.registry.clock.stamp()
        for name, process in self.processes.items():
            if process.code() is not None:
                self._ends.setdefault(name, stamp)
        if len(self._ends) == len(self.processes):
            self._say_ended(pod, now)
        elif self._stage is Stage.STARTED:
            self._say(pod, "Running", pod_status.running(), self._containers(pod))
            self._next(Stage.RUNNING, now)
        if self._stage is Stage.RUNNING:
            self._wait(now)

    def _say_ended(self, pod: Object, now: float) -> None:
        if not self._is_told_to_end:  # who is told to, ends in one go
            outcome = pod_status.ended(succeeded=self._succeeded(), is_last=False)
            self._say(pod, pod["status"]["phase"], outcome, self._containers(pod))
        self._next(Stage.ENDED, now + self._kubelet.pace.finish)

    def _wait(self, now: float) -> None:
        self._due = NEVER if not self._is_told_to_end else self._kill_at
        if self._due <= now:
            self.kill()
            for process in self.processes.values():
                process.wait(KILLED)  # it is gone at once, and its end is seen at this time of the clock
            self._kill_at = NEVER
            self._due = now

    def _finish(self, pod: Object, now: float) -> None:
        succeeded = self._succeeded()
        outcome = pod_status.ended(succeeded=succeeded, is_last=True)
        self._say(pod, "Succeeded" if succeeded else "Failed", outcome, self._containers(pod))
        self._next(Stage.DONE, now + self._kubelet.pace.remove if self._is_told_to_end else NEVER)

    def _leave(self, pod: Object) -> None:
        self._due = NEVER
        if "deletionTimestamp" in pod["metadata"]:
            self._kubelet.registry.delete(self._key, Deletion(grace=0))

    def _end(self, pod: Object, now: float) -> None:
        self._is_told_to_end = True
        self._kill_at = now + pod["metadata"]["deletionGracePeriodSeconds"]
        for process in self.processes.values():
            process.terminate()
        if self._stage is Stage.DONE or not self.processes:
            self._next(Stage.DONE, now)
        else:
            self._due = min(self._due, now)

    def _succeeded(self) -> bool:
        return all(process.code() == 0 for process in self.processes.values())

    def _containers(self, pod: Object) -> list[Object]:
        return [self._container(spec) for spec in pod["spec"]["containers"]]

    def _container(self, spec: Object) -> Object:
        process = self.processes[spec["name"]]
        code, identifier = process.code(), process.identifier
        if spec["name"] not in self._ends or code is None:
            state: Object = {"running": {"startedAt": self._started}}
        else:
            state = pod_status.terminated(code, self._started, self._ends[spec["name"]], identifier)
            if process.ran_out_of_memory:
                state["terminated"]["reason"] = "OOMKilled"
        return pod_status.container(spec, state, identifier=identifier)

    def _say(
        self, pod: Object, phase: str, conditions: pod_status.Conditions, containers: list[Object]
    ) -> None:
        registry = self._kubelet.registry
        addresses: Object = {"hostIP": NODE_ADDRESS, "hostIPs": [{"ip": NODE_ADDRESS}]}
        if self.processes:
            addresses |= {"podIP": self._address, "podIPs": [{"ip": self._address}]}
        moment = pod_status.Moment(phase, conditions, containers)
        status = pod_status.written(pod["status"], moment, registry.clock.stamp(), addresses)
        registry.store.put(self._key, {**pod, "status": status})


def _sources(volume: Object) -> list[Object]:
    return volume.get("projected", {}).get("sources") or []
