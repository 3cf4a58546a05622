"""Starts the containers of a pod that has its volumes and its address."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from tests.kubernetes import environment, images
from tests.kubernetes.container_life import Container
from tests.kubernetes.containers import Process, last_words, rewritten
from tests.kubernetes.images import Reason
from tests.kubernetes.kinds import SERVICE_ACCOUNT, Key, Object
from tests.kubernetes.output import Output
from tests.kubernetes.pauses import Pause, is_pause
from tests.kubernetes.volumes import Volumes

if TYPE_CHECKING:
    from tests.kubernetes.kubelet import Kubelet

# What the node says when an image cannot be had, before `Error: …` with the reason.
TOLD = {"InvalidImageName": "InspectFailed", "ErrImageNeverPull": "ErrImageNeverPull"}


class Starter:
    def __init__(self, kubelet: Kubelet, pod: Object, version: str, address: str) -> None:
        """MountError: a volume cannot be had."""
        self._kubelet, self._version, self._address = kubelet, version, address
        self._folder = kubelet.folder / pod["metadata"]["uid"]
        self._folder.mkdir(parents=True, exist_ok=True)
        store = kubelet.registry.store
        self._volumes = Volumes(store, kubelet.access, pod, kubelet.folder, address)
        self._given = self._access(pod)

    def start(self, container: Container, pod: Object) -> Process | Reason:
        """Or why not."""
        spec, store = container.spec, self._kubelet.registry.store
        if problem := self._pulled(container, pod):
            return problem
        log = self._folder / f"{container.name}.{container.runs_before}.log"

        def place(text: str) -> str:
            return self._kubelet.services.place(self._volumes.place(spec, last_words(log), text))

        placed = rewritten(spec, place)
        try:
            variables = environment.of(store, pod, placed, self._address, self._given)
        except environment.MissingError as missing:
            self._say(pod, container, "Failed", f"Error: {missing}")
            return Reason("CreateContainerConfigError", str(missing))
        output = Output(log, self._kubelet.registry.clock.now)
        wake = functools.partial(self._kubelet.wake, pod["metadata"]["uid"])
        process = Pause(output, wake) if is_pause(spec) else Process(placed, variables, output, wake)
        self._say(pod, container, "Created", f"Created container: {container.name}")
        if process.error:
            self._say(pod, container, "Failed", f"Error: {process.error}")
        else:
            self._say(pod, container, "Started", f"Started container {container.name}")
        return process

    def _pulled(self, container: Container, pod: Object) -> Reason | None:
        image, policy = container.spec["image"], container.spec["imagePullPolicy"]
        problem = images.problem(image, policy)
        if problem is None and policy != "Always":
            self._say(pod, container, "Pulled", f'Container image "{image}" already present on machine')
        elif problem is None or problem.reason == "ErrImagePull":
            self._say(pod, container, "Pulling", f'Pulling image "{image}"')
        if problem is None:
            return None
        if problem.reason == "ErrImagePull":
            self._say(pod, container, "Failed", f'Failed to pull image "{image}": {problem.message}')
        else:
            self._say(pod, container, TOLD[problem.reason], problem.message)
        self._say(pod, container, "Failed", f"Error: {problem.reason}")
        return problem

    def _access(self, pod: Object) -> dict[str, str]:
        """What a pod that has a token finds beside its own environment, so that clients find the API server."""
        projected = [one.get("projected", {}) for one in pod["spec"].get("volumes", [])]
        sources = [source for one in projected for source in one.get("sources", [])]
        if not any("serviceAccountToken" in source for source in sources):
            return {}
        account = Key(SERVICE_ACCOUNT, pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"])
        path = self._folder / "kubeconfig"
        path.write_text(json.dumps(self._kubelet.access.kubeconfig(self._kubelet.url, account)))
        return {"KUBECONFIG": str(path)}

    def _say(self, pod: Object, container: Container, reason: str, message: str) -> None:
        self._kubelet.say(pod, self._version, reason, message, container)
