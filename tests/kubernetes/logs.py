"""Logs of containers: of now or of the run before, the last lines of them, or as they are written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from tests.kubernetes import errors
from tests.kubernetes.api import Api, Target
from tests.kubernetes.container_life import Container
from tests.kubernetes.containers import Process
from tests.kubernetes.kinds import Kind, Object
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.messages import Answer, Request
from tests.kubernetes.output import Output, stamped

PLAIN = {"Content-Type": "text/plain"}
OPTIONS = Kind("", "PodLogOptions", ())
LEAST = {
    "tailLines": (0, "must be greater than or equal to 0"),
    "limitBytes": (1, "must be greater than 0"),
    "sinceSeconds": (1, "must be greater than 0"),
}
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff")


class Logs:
    def __init__(self, api: Api, kubelet: Kubelet) -> None:
        self._api, self._kubelet = api, kubelet
        api.parts["GET", "pods", "log"] = self.answer

    def answer(self, target: Target, request: Request) -> Answer:
        options = request.options
        with self._api.store.changed:
            pod = self._api.registry.read(target.key)
            _check(target.name, options)
            name = _container(pod, options.get("container", ""))
            if not pod["spec"].get("nodeName"):
                return Answer(status=204, headers={"Content-Type": ""})
            container = self._kubelet.container(pod["metadata"]["uid"], name)
            process = _process(target.name, name, container, previous=options.get("previous") == "true")
        pieces = self._pieces(process.output, options)
        if options.get("follow") == "true":
            return Answer(stream=pieces, headers=PLAIN)
        return Answer(b"".join(pieces), headers=PLAIN)

    def _pieces(self, output: Output, options: dict[str, str]) -> Iterator[bytes]:
        left = int(options.get("limitBytes") or 2**63)
        for piece in self._unlimited(output, options):
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return

    def _unlimited(self, output: Output, options: dict[str, str]) -> Iterator[bytes]:
        """What is there already, as far as it is asked for, and then what comes."""
        has_times, since = options.get("timestamps") == "true", self._since(options)
        lines = output.lines()
        start = sum(len(line) for _, line in lines)
        begins = not lines or lines[-1][1].endswith(b"\n")  # whether what comes next begins a line
        chosen = [one for one in lines if one[0] >= since]
        if "tailLines" in options:
            count = int(options["tailLines"])
            chosen = chosen[-count:] if count else []
        if chosen:
            yield b"".join(stamped(*one) if has_times else one[1] for one in chosen)
        if options.get("follow") != "true":
            return
        for piece in output.follow(start):
            if not has_times:
                yield piece
                continue
            for line in piece.splitlines(keepends=True):
                yield stamped(output.time(start), line) if begins else line
                begins, start = line.endswith(b"\n"), start + len(line)

    def _since(self, options: dict[str, str]) -> float:
        if "sinceSeconds" in options:
            return self._api.clock.now() - int(options["sinceSeconds"])
        if "sinceTime" in options:
            return dt.datetime.fromisoformat(options["sinceTime"]).timestamp()
        return 0.0


def _check(name: str, options: dict[str, str]) -> None:
    causes = [
        errors.invalid_value(field, int(options[field]), why)
        for field, (least, why) in LEAST.items()
        if field in options and int(options[field]) < least
    ]
    if "stream" in options:
        causes.append(errors.forbidden_field("stream", "may not be specified"))
    if causes:
        raise errors.invalid(OPTIONS, name, causes)


def _container(pod: Object, asked: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    names, init = ([one["name"] for one in spec.get(kind, [])] for kind in ("containers", "initContainers"))
    if asked and asked not in [*names, *init]:
        raise errors.bad_request(f"container {asked} is not valid for pod {name}")
    if not asked and len(names) > 1:
        either = f" or one of the init containers: [{' '.join(init)}]" if init else ""
        raise errors.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]{either}"
        )
    return asked or str(names[0])


def _process(pod: str, name: str, container: Container | None, *, previous: bool) -> Process:
    """Whose log is asked for."""
    if previous:
        if container is None or container.previous is None:
            why = f'previous terminated container "{name}" in pod "{pod}" not found'
            raise errors.bad_request(why)
        return container.previous
    if container is None or container.process is None:
        waits = container.waits if container is not None else None
        reason = waits.reason if waits is not None else "ContainerCreating"
        if reason in NO_IMAGE:
            reason = "trying and failing to pull image"
        raise errors.bad_request(f'container "{name}" in pod "{pod}" is waiting to start: {reason}')
    return container.process
