"""One pod on the node, from stage to stage; deletion may come in at any of them.

What a node says at which moment is taken from recordings: containers that ended are told before the phase that follows
from it, and how a pod ends that was told to is told in one piece.
"""

from __future__ import annotations

import functools
from enum import Enum, auto
from typing import TYPE_CHECKING

from tests.kubernetes import images, pod_status
from tests.kubernetes.container_life import Container
from tests.kubernetes.containers import Process
from tests.kubernetes.controllers import NEVER
from tests.kubernetes.images import Reason
from tests.kubernetes.kinds import Key, Object
from tests.kubernetes.probes import Probes
from tests.kubernetes.registry import Deletion
from tests.kubernetes.starting import Starter
from tests.kubernetes.volumes import MountError

if TYPE_CHECKING:
    from tests.kubernetes.kubelet import Kubelet

NODE_ADDRESS = "127.0.0.1"
KILLED = 0.15  # real seconds until a process is gone that was killed
EXCEEDED = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}


class Stage(Enum):
    BOUND = auto()
    CREATING = auto()
    ACTIVE = auto()
    ENDED = auto()
    DONE = auto()


class PodLife:
    def __init__(self, kubelet: Kubelet, key: Key, pod: Object, address: str, now: float) -> None:
        self._kubelet, self._key, self._address = kubelet, key, address
        self._uid, self._version = pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]
        self._policy, init = pod["spec"]["restartPolicy"], pod["spec"].get("initContainers", [])
        waits = Reason("PodInitializing" if init else "ContainerCreating")
        self.init = [Container(spec, waits, is_init=True) for spec in init]
        self.containers = [Container(spec, waits) for spec in pod["spec"]["containers"]]
        self._waits = waits
        self._probes = Probes(self.containers, functools.partial(kubelet.wake, self._uid))
        self._starter: Starter | None = None  # there as soon as the pod has its address
        self._is_up = False  # and as long as it has one
        self._stage, self._due = Stage.BOUND, now + kubelet.pace.notice
        self._fresh: list[Process] = []  # started, and not yet told
        self._look_at = 0.0  # when that is to be told
        self._is_told_to_end = False
        self._kill_at = self._deadline = NEVER
        self._why: Object = {}

    def step(self, now: float) -> float:
        pod = self._kubelet.registry.store.get(self._key)
        if pod is None or pod["metadata"]["uid"] != self._uid:
            return NEVER
        self._hear(pod, now)
        if now < self._due and self._stage is not Stage.ACTIVE:  # in which something may end at any time
            return self._due
        steps = {
            Stage.BOUND: self._create,
            Stage.CREATING: self._set_up,
            Stage.ACTIVE: self._sync,
            Stage.ENDED: self._finish,
            Stage.DONE: self._leave,
        }
        steps[self._stage](pod, now)
        return self._due

    def container(self, name: str) -> Container | None:
        return next((one for one in self._all() if one.name == name), None)

    def kill(self) -> None:
        for container in self._all():
            if container.process is not None:
                container.process.kill()

    def _all(self) -> list[Container]:
        return [*self.init, *self.containers]

    def _next(self, stage: Stage, due: float) -> None:
        self._stage, self._due = stage, due

    # To its start

    def _create(self, pod: Object, now: float) -> None:
        self._say(pod)
        self._deadline = now + pod["spec"].get("activeDeadlineSeconds", NEVER)
        self._next(Stage.CREATING, now + self._kubelet.pace.start)

    def _set_up(self, pod: Object, now: float) -> None:
        try:
            self._starter = Starter(self._kubelet, pod, self._version, self._address)
        except MountError as error:
            if "deletionTimestamp" in pod["metadata"]:
                self._next(Stage.DONE, now)
            else:
                self._kubelet.say(pod, self._version, "FailedMount", str(error), None)
                self._due = now + self._kubelet.pace.sync
            return
        self._is_up = True
        self._act(pod, now)
        self._look_at = now + self._kubelet.pace.publish
        self._next(Stage.ACTIVE, self._look_at)

    # While it runs

    def _sync(self, pod: Object, now: float) -> None:
        self._notice(now)
        if now >= self._kill_at:
            self._kill(now)
        if now < self._look_at:
            self._due = min(self._look_at, self._kill_at)
            return
        for process in self._fresh:
            process.wait(self._kubelet.pace.moment)
        self._fresh.clear()
        self._notice(now)
        if self._is_over():
            if self._is_told_to_end:  # it ends in one go
                self._next(Stage.ENDED, now + self._kubelet.pace.remove)
            else:
                self._say(pod)
                self._next(Stage.ENDED, now + self._kubelet.pace.finish)
            return
        self._say(pod)
        if not self._is_told_to_end:
            self._act(pod, now)
            if not self._fresh:
                self._say(pod)
        self._wait(self._probes.step(now))

    def _notice(self, now: float) -> None:
        """Which containers have ended."""
        pace, stamp = self._kubelet.pace, self._kubelet.registry.clock.stamp()
        for container in self._all():
            if container.notice(stamp, now) and container.restarts:
                container.due = now + (pace.finish if container.restarts == 1 else pace.sync)

    def _kill(self, now: float) -> None:
        self._kill_at = NEVER
        self.kill()
        for container in self._all():
            if container.process is not None:
                container.process.wait(
                    KILLED
                )  # it is gone at once, and its end is seen at this time of the clock
        self._notice(now)

    def _wait(self, probe: float = NEVER) -> None:
        tries = [one.due for one in self._startable() if one.wants(self._policy)]
        if self._is_told_to_end:
            tries, probe = [], NEVER
        look = self._look_at if self._fresh else NEVER
        self._due = min([look, self._kill_at, self._deadline, probe, *tries])

    def _startable(self) -> list[Container]:
        """Those whose turn it is."""
        left = [one for one in self.init if not one.is_done]
        return left[:1] or self.containers

    def _act(self, pod: Object, now: float) -> None:
        for container in self._startable():
            if container.wants(self._policy) and container.due <= now:
                self._try(container, pod, now)
        if self._fresh:
            self._look_at = now + self._kubelet.pace.publish

    def _try(self, container: Container, pod: Object, now: float) -> None:
        """To start it, unless it is time to back off."""
        pace, image, waits = self._kubelet.pace, container.spec["image"], container.waits
        if waits is not None and waits.reason == "ErrImagePull":
            container.waits = images.backing_off(image, waits)
            container.due = now + max(pace.sync, pace.backed_off(container.failures) - pace.sync)
            self._tell(pod, container, "BackOff", f'Back-off pulling image "{image}"')
            self._tell(pod, container, "Failed", "Error: ImagePullBackOff")
        elif waits is None and container.restarts:
            self._back_off(container, pod, now)
        else:
            self._start(container, pod, now)

    def _back_off(self, container: Container, pod: Object, now: float) -> None:
        pace, whose = self._kubelet.pace, f"{self._key.name}_{self._key.namespace}({self._uid})"
        seconds = pace.backed_off(container.restarts)
        message = f"back-off {seconds:.0f}s restarting failed container={container.name} pod={whose}"
        container.waits = Reason("CrashLoopBackOff", message)
        container.due = max(now + pace.sync, container.ended_at + seconds)
        what = f"Back-off restarting failed container {container.name} in pod {whose}"
        self._tell(pod, container, "BackOff", what)

    def _start(self, container: Container, pod: Object, now: float) -> None:
        assert self._starter is not None
        outcome = self._starter.start(container, pod)
        if isinstance(outcome, Reason):
            container.waits, container.due = outcome, now + self._kubelet.pace.sync
            container.failures += 1
        else:
            container.run(outcome, self._kubelet.registry.clock.stamp())
            self._fresh.append(outcome)

    # To its end

    def _hear(self, pod: Object, now: float) -> None:
        """Whether it is to end. What has begun to start, starts before."""
        if self._is_told_to_end or self._stage in (Stage.BOUND, Stage.CREATING):
            return
        if "deletionTimestamp" in pod["metadata"]:
            self._end(pod, now, pod["metadata"]["deletionGracePeriodSeconds"])
        elif now >= self._deadline and self._stage is Stage.ACTIVE:
            self._why = EXCEEDED
            self._end(pod, now, pod["spec"]["terminationGracePeriodSeconds"])

    def _end(self, pod: Object, now: float, grace: float) -> None:
        self._is_told_to_end, self._deadline = True, NEVER
        self._kill_at = now + max(grace, self._kubelet.pace.grace)
        if self._stage is not Stage.ACTIVE:
            self._due = min(self._due, now)
        elif any(one.process for one in self._all()):
            if not self._fresh:
                self._say(pod)
            for container in self._all():
                if container.runs and container.process is not None:
                    self._tell(pod, container, "Killing", f"Stopping container {container.name}")
                    container.process.terminate()
            self._due = now
        else:
            self._take_down(pod, now)

    def _take_down(self, pod: Object, now: float) -> None:
        """A pod none of whose containers was ever started."""
        for container in self._all():
            container.waits = self._waits
        self._say(pod)
        self._is_up = False
        self._say(pod)
        self._next(Stage.ENDED, now + self._kubelet.pace.finish)

    def _is_over(self) -> bool:
        """Whether no container runs or will run again."""
        if self._is_told_to_end:
            return not any(one.runs for one in self._all())
        if any(one.is_over(self._policy) and not one.is_done for one in self.init):
            return True
        return all(one.is_over(self._policy) for one in self.containers)

    def _finish(self, pod: Object, now: float) -> None:
        pace = self._kubelet.pace
        if sum(one.forget() for one in self.containers):
            self._say(pod)
            self._due = now + pace.remove
            return
        self._is_up = False
        for container in self._all() if self._is_told_to_end else ():
            container.is_unknown = container.process is None
        self._say(pod, "Succeeded" if self._succeeded() else "Failed", self._why)
        self._next(Stage.DONE, now + pace.remove if "deletionTimestamp" in pod["metadata"] else NEVER)

    def _leave(self, pod: Object, now: float) -> None:
        self._due = NEVER
        if "deletionTimestamp" in pod["metadata"]:
            self._kubelet.registry.delete(self._key, Deletion(grace=0))

    # What is said

    def _succeeded(self) -> bool:
        return all(one.is_done for one in self.containers)

    def _tell(self, pod: Object, container: Container, reason: str, message: str) -> None:
        self._kubelet.say(pod, self._version, reason, message, container)

    def _say(self, pod: Object, phase: str = "", why: Object | None = None) -> None:
        """`phase`: the last one."""
        registry = self._kubelet.registry
        pod = registry.read(self._key)
        addresses: Object = {"hostIP": NODE_ADDRESS, "hostIPs": [{"ip": NODE_ADDRESS}]}
        if self._starter is not None:
            addresses |= {"podIP": self._address, "podIPs": [{"ip": self._address}]}
        statuses = [[one.status() for one in group] for group in (self.containers, self.init)]
        moment = pod_status.Moment(
            phase or self._phase(pod["status"]["phase"]), self._conditions(), *statuses, why or {}
        )
        status = pod_status.written(pod["status"], moment, registry.clock.stamp(), addresses)
        registry.store.put(self._key, {**pod, "status": status})

    def _phase(self, before: str) -> str:
        """Of a pod that has not ended: its last phase is told when nothing is left of it."""
        if self._is_over() or any(one.process is None for one in self.containers):
            return before
        return "Running"

    def _conditions(self) -> pod_status.Conditions:
        end = ""
        if self._why or (self._is_over() and any(one.process for one in self._all())):
            end = "PodCompleted" if self._succeeded() else "PodFailed"
        return pod_status.conditions_of(
            is_set_up=self._is_up,
            uninitialized=[one.name for one in self.init if not one.is_done],
            unready=[one.name for one in self.containers if not (one.runs and one.is_ready)],
            end=end,
        )
