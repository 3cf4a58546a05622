"""A play: a job on the double, with a master that says what the test has it say."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.deployment import Deployment, Policy, write_deployment
from edl.jobs import job_folder
from sqlflow_edl.backends.kubernetes.handle import KubernetesJobHandle
from tests.edl.cluster.local.conftest import wait_until
from tests.kubernetes.process import Cluster

# Says the lines of a pipe, and ends when one asks for that; the next master reads on.
MASTER = """exec < "$1"
while read -r line; do
  case "$line" in exit*) $line;; *) printf '%s\\n' "$line";; esac
done"""


class Play:
    """A Job of ours, and the pipe to its masters."""

    def __init__(self, cluster: Cluster, namespace: str, pipe: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._pipe_path = pipe
        os.mkfifo(pipe)
        self._pipe = os.open(pipe, os.O_RDWR)
        self.folder = job_folder.create("train", "SELECT 1 TO TRAIN x")
        self.name = names.job_name("train", self.folder.id)

    @property
    def handle(self) -> KubernetesJobHandle:
        return KubernetesJobHandle(self.folder)

    def start(
        self,
        *,
        retries: int = 3,
        suspend: bool = False,
        image: str = "ours",
        image_secs: float = 120.0,
        outage_secs: float = 3600.0,
        wait_secs: float | msgspec.UnsetType = msgspec.UNSET,
        queue: str = "",
        memory: str = "",
        account: str = "",
    ) -> None:
        container: dict[str, Any] = {
            "name": "master",
            "image": image,
            "command": ["sh", "-c", MASTER, "sh", str(self._pipe_path)],
        }
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
        }
        if memory:
            container["resources"] = {"requests": {"memory": memory}, "limits": {"memory": memory}}
        if account:
            spec["serviceAccountName"] = account
        template = {"metadata": {"labels": names.labels(self.name, self.folder.id, "master")}, "spec": spec}
        labels = {**names.labels(self.name, self.folder.id), **({names.QUEUE: queue} if queue else {})}
        body = {
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"backoffLimit": retries, "suspend": suspend, "template": template},
        }
        made = self.cluster.ask("POST", f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body)
        self.uid = made["metadata"]["uid"]
        self._post(
            "configmaps", {"metadata": {"name": names.status(self.name), "ownerReferences": [self.owner]}}
        )
        policy = Policy(image_secs=image_secs, outage_secs=outage_secs, wait_secs=wait_secs)
        write_deployment(
            self.folder.path,
            Deployment(self.name, self.namespace, self.folder.id, {}, {}, uid=self.uid, policy=policy),
        )
        self.folder.update(place=f"kubernetes {self.namespace}/{self.name}", started_as="another boot:1")

    @property
    def owner(self) -> dict[str, Any]:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": self.name,
            "uid": self.uid,
            "controller": False,
        }

    def says(self, *events: Any) -> None:
        """What the present master prints, or the next: events, or other lines."""
        for event in events:
            line = event.encode() if isinstance(event, str) else msgspec.json.encode(event)
            os.write(self._pipe, line + b"\n")

    def writes(self, **status: Any) -> None:
        """What the master writes into its ConfigMap."""
        name = names.status(self.name)
        data = {key.replace("_", "."): msgspec.json.encode(value).decode() for key, value in status.items()}
        body = {"metadata": {"name": name, "ownerReferences": [self.owner]}, "data": data}
        self.cluster.ask("PUT", f"/api/v1/namespaces/{self.namespace}/configmaps/{name}", body)

    def worker(self, name: str, script: str, *, cpu: str = "", queue: str = "") -> None:
        """A pod of a worker."""
        container: dict[str, Any] = {"name": "worker", "image": "ours", "command": ["sh", "-c", script]}
        if cpu:
            container["resources"] = {"requests": {"cpu": cpu}}
        labels = names.labels(self.name, self.folder.id, "worker")
        labels |= {names.INSTANCE: name, names.INCARNATION: "0", **({names.QUEUE: queue} if queue else {})}
        metadata = {"name": f"{self.name}-{name}-0", "labels": labels, "ownerReferences": [self.owner]}
        spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
        self._post("pods", {"metadata": metadata, "spec": spec})

    def pods(self) -> list[Any]:
        return self.cluster.ask("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]  # type: ignore[no-any-return]

    def limit_memory(self, most: str, kind: str = "resourcequotas") -> None:
        """Make a quota of the namespace, or a LimitRange of its containers."""
        by_kind = {
            "resourcequotas": {"hard": {"requests.memory": most}},
            "limitranges": {"limits": [{"type": "Container", "max": {"memory": most}}]},
        }
        self._post(kind, {"metadata": {"name": "few"}, "spec": by_kind[kind]})

    def delete_job(self) -> None:
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{self.name}"
        self.cluster.ask("DELETE", path, {"propagationPolicy": "Background"})

    def replace_master(self) -> None:
        """Delete its pod at once, and wait for the next."""
        old = self._running_master()
        path = f"/api/v1/namespaces/{self.namespace}/pods/{old}"
        self.cluster.ask("DELETE", path, {"gracePeriodSeconds": 0})
        wait_until(lambda: self._running_master() not in ("", old))

    def wait_for_master(self) -> None:
        """Wait until its pod runs."""
        wait_until(lambda: bool(self._running_master()))

    def starve_master(self) -> None:
        """Its container runs out of memory."""
        self.cluster.run_out_of_memory(self.namespace, self._running_master())

    def _running_master(self) -> str:
        for pod in self.pods():
            is_master = pod["metadata"]["labels"][names.ROLE] == "master"
            if is_master and pod["status"]["phase"] == "Running":
                return str(pod["metadata"]["name"])
        return ""

    def close(self) -> None:
        os.close(self._pipe)

    def _post(self, kind: str, body: Any) -> None:
        self.cluster.ask("POST", f"/api/v1/namespaces/{self.namespace}/{kind}", body)


class Told:
    """A follower that remembers, and does something when it hears of something, once."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.events: list[Any] = []
        self._reactions: list[tuple[Any, Callable[[], None]]] = []

    def on(self, heard: Any, then: Callable[[], None]) -> None:
        """heard: an event, or the beginning of a note."""
        self._reactions.append((heard, then))

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._react(lambda heard: isinstance(heard, str) and text.startswith(heard))

    def progress(self, event: Any) -> None:
        self.events.append(event)
        self._react(lambda heard: heard == event)

    def _react(self, fits: Callable[[Any], bool]) -> None:
        due = [reaction for reaction in self._reactions if fits(reaction[0])]
        self._reactions = [reaction for reaction in self._reactions if reaction not in due]
        for _, then in due:
            then()
