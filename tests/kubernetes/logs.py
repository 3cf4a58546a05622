"""Logs of containers: of now, the last lines of them, or as they are written."""

from __future__ import annotations

from collections.abc import Iterator

from tests.kubernetes import errors
from tests.kubernetes.api import Api, Target
from tests.kubernetes.containers import Process
from tests.kubernetes.kinds import Object
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.messages import Answer, Request

PLAIN = {"Content-Type": "text/plain"}
POLL = 0.05  # seconds between looks at a file that is followed


class Logs:
    def __init__(self, api: Api, kubelet: Kubelet) -> None:
        self._api, self._kubelet = api, kubelet
        api.parts["GET", "pods", "log"] = self.answer

    def answer(self, target: Target, request: Request) -> Answer:
        with self._api.store.changed:
            pod = self._api.registry.read(target.key)
            if not pod["spec"].get("nodeName"):
                return Answer(status=204)
            name = self._container(pod, request.options.get("container", ""))
            container = self._kubelet.container(pod["metadata"]["uid"], name)
        if container is None or container.process is None:
            reason = _waits_for(pod, name)
            raise errors.bad_request(
                f'container "{name}" in pod "{target.name}" is waiting to start: {reason}'
            )
        if request.options.get("follow") == "true":
            return Answer(stream=self._followed(container.process), headers=PLAIN)
        return Answer(_last(container.process.log.read_bytes(), request.options), headers=PLAIN)

    def _container(self, pod: Object, asked: str) -> str:
        names = [one["name"] for one in pod["spec"]["containers"]]
        if asked and asked not in names:
            raise errors.bad_request(f"container {asked} is not valid for pod {pod['metadata']['name']}")
        return asked or str(names[0])

    def _followed(self, process: Process) -> Iterator[bytes]:
        store, clock = self._api.store, self._api.clock
        with process.log.open("rb") as log:
            while True:
                is_over = process.has_ended
                if piece := log.read():
                    yield piece
                elif is_over:
                    return
                with store.changed:
                    clock.changed.wait(POLL)


def _waits_for(pod: Object, name: str) -> str:
    for status in pod["status"].get("containerStatuses", []):
        if status["name"] == name and "waiting" in status["state"]:
            return str(status["state"]["waiting"]["reason"])
    return "ContainerCreating"


def _last(content: bytes, options: dict[str, str]) -> bytes:
    lines = content.splitlines(keepends=True)
    if "tailLines" in options:
        count = int(options["tailLines"])
        lines = lines[-count:] if count else []
    limited = b"".join(lines)
    return limited[: int(options["limitBytes"])] if "limitBytes" in options else limited
