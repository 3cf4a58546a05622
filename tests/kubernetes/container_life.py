"""One container on the node: its runs, one after the other, and why it waits between them."""

from __future__ import annotations

from tests.kubernetes import pod_status
from tests.kubernetes.containers import Process
from tests.kubernetes.controllers import NEVER
from tests.kubernetes.images import Reason
from tests.kubernetes.kinds import Object

UNKNOWN = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "startedAt": None,
    "finishedAt": None,
}


class Container:
    def __init__(self, spec: Object, waits: Reason, *, is_init: bool = False) -> None:
        self.spec, self.is_init, self.name = spec, is_init, str(spec["name"])
        self.waits: Reason | None = waits
        self.process: Process | None = None  # of now, or the last one
        self.previous: Process | None = None
        self.restarts = 0
        self.failures = 0  # in a row, to have its image
        self.due = 0.0  # when it is tried again
        self.is_ready = False
        self.is_unknown = False  # its pod went before it was ever there
        self.ended_at = 0.0
        self._started = self._ended = ""
        self._last: Object = {}

    @property
    def runs(self) -> bool:
        return self.process is not None and not self.process.has_ended

    @property
    def code(self) -> int | None:
        """Of its last run; None: it runs, or has never run."""
        return self.process.code() if self.process else None

    @property
    def is_done(self) -> bool:
        return self.code == 0

    @property
    def runs_before(self) -> int:
        return self.restarts + 1 if self.process else 0

    @property
    def path(self) -> str:
        """Of its field in the pod, as events name it."""
        return f"spec.{'initContainers' if self.is_init else 'containers'}{{{self.name}}}"

    def wants(self, policy: str) -> bool:
        """To be started, or started again, by the pod's restart policy."""
        if self.process is None:
            return True
        if not self._ended or (self.is_init and self.is_done):
            return False
        return policy == "Always" or (policy == "OnFailure" and not self.is_done)

    def is_over(self, policy: str) -> bool:
        return bool(self._ended) and not self.wants(policy)

    def run(self, process: Process, stamp: str) -> None:
        if self.process is not None:
            self._last, self.previous = self._terminated(self.process), self.process
            self.restarts += 1
        self.process, self.waits, self.failures = process, None, 0
        self._started, self._ended = stamp, ""
        self.is_ready, self.due = "readinessProbe" not in self.spec, NEVER

    def notice(self, stamp: str, now: float) -> bool:
        """Whether it has ended since this was asked last."""
        if self.process is None or self._ended or not self.process.has_ended:
            return False
        self._ended, self.ended_at, self.is_ready, self.due = stamp, now, False, now
        return True

    def forget(self) -> bool:
        """The runs before the last, as the node does when the pod has ended. Whether there were any."""
        last, self._last = self._last, {}
        return bool(last)

    def state(self) -> Object:
        if self.is_unknown:
            return {"terminated": UNKNOWN}
        if self.waits is not None:
            message = {"message": self.waits.message} if self.waits.message else {}
            return {"waiting": {"reason": self.waits.reason, **message}}
        assert self.process is not None
        if self._ended:
            return self._terminated(self.process)
        return {"running": {"startedAt": self._started}}

    def status(self) -> Object:
        started = self.process is not None
        found: Object = {"name": self.name, "state": self.state()}
        if self.waits is not None and started:  # between two runs
            assert self.process is not None
            found["lastState"] = self._terminated(self.process)
        else:
            found["lastState"] = self._last
        ready = self.is_done if self.is_init else self.runs and self.is_ready
        found |= {"ready": ready and not self.waits, "restartCount": self.restarts}
        return found | pod_status.of_image(
            self.spec, self.process.identifier if self.process else "", is_running="running" in found["state"]
        )

    def _terminated(self, process: Process) -> Object:
        code = process.code()
        told = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
        started = self._started
        if process.ran_out_of_memory:
            told["reason"] = "OOMKilled"
        elif process.error:
            told |= {"reason": "StartError", "message": process.error}
            started = "1970-01-01T00:00:00Z"
        elif message := process.last_words():
            told["message"] = message
        times = {"startedAt": started, "finishedAt": self._ended}
        return {"terminated": {**told, **times, "containerID": process.identifier}}
