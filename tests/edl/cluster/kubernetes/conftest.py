"""A job's place in the double: its Job, suspended, and what the job's master is told of it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from kubernetes import client, watch

from edl.cluster import Change, Instance, Room, State
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.cluster import KubernetesCluster
from edl.cluster.kubernetes.deployment import Deployment
from edl.master.instances.watch import follow
from tests.kubernetes.process import Cluster

_numbers = itertools.count()
SECONDS = 20.0  # that something may take before a test fails


def pod_manifest(script: str, **container: Any) -> dict[str, Any]:
    """Of a shell that runs the script."""
    main = {"name": "main", "image": "busybox:1", "command": ["sh", "-c", script], **container}
    return {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [main], "restartPolicy": "Never"}}


class Site:
    """The Job of one job in a namespace of its own."""

    def __init__(self, double: Cluster, script: str = "sleep 100", **container: Any) -> None:
        self.double = double
        self.namespace = double.new_namespace()
        name = f"job-{next(_numbers)}"
        manifest = pod_manifest(script, **container)
        template = {"spec": manifest["spec"]}
        body = {"metadata": {"name": name}, "spec": {"suspend": True, "template": template}}
        made = double.ask("POST", f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body)
        self.deployment = Deployment(
            name, self.namespace, f"id-{name}", manifest, manifest, uid=made["metadata"]["uid"]
        )
        self._clusters: list[KubernetesCluster] = []
        for kept in (names.state_store(name), names.status(name)):
            body = {"metadata": {"name": kept, "labels": {"team": "a"}}}
            double.ask("POST", f"/api/v1/namespaces/{self.namespace}/configmaps", body)

    def token_of_a_master(self) -> str:
        """With the rights of its role, and no others."""
        name, core = self.deployment.name, f"/api/v1/namespaces/{self.namespace}"
        kept = [names.state_store(name), names.status(name)]
        rules = [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "get", "list", "watch"]},
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "verbs": ["get", "update"],
                "resourceNames": kept,
            },
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"], "resourceNames": [name]},
        ]
        group = "rbac.authorization.k8s.io"
        rights = f"/apis/{group}/v1/namespaces/{self.namespace}"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        role = {"apiGroup": group, "kind": "Role", "name": name}
        metadata = {"name": name}
        self.double.ask("POST", f"{core}/serviceaccounts", {"metadata": metadata})
        self.double.ask("POST", f"{rights}/roles", {"metadata": metadata, "rules": rules})
        self.double.ask(
            "POST", f"{rights}/rolebindings", {"metadata": metadata, "roleRef": role, "subjects": [subject]}
        )
        path = f"{core}/serviceaccounts/{name}/token"
        return str(self.double.ask("POST", path, {"spec": {}})["status"]["token"])

    def kept(self, name: str) -> dict[str, Any]:
        """The ConfigMap of that name."""
        found: dict[str, Any] = self.double.ask(
            "GET", f"/api/v1/namespaces/{self.namespace}/configmaps/{name}"
        )
        return found

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def cluster(
        self, *, watch_secs: float = 60.0, patience: float = 30.0, **changes: Any
    ) -> KubernetesCluster:
        """As one master of four workers has it; changes: of the deployment."""
        deployment = msgspec.structs.replace(self.deployment, **changes)
        made = KubernetesCluster(
            self.double.client(), deployment, 4, watch_secs=watch_secs, patience=patience
        )
        self._clusters.append(made)
        return made

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.double.ask("GET", self.path)["items"]
        return found

    def names(self) -> list[str]:
        """Of pods, without the job's."""
        prefix = len(self.deployment.name) + 1
        return [pod["metadata"]["name"][prefix:] for pod in self.pods()]

    def delete(self, name: str, grace: int = 0) -> None:
        """As somebody else: a pod, named as in `names`."""
        path = f"{self.path}/{self.deployment.name}-{name}"
        self.double.ask("DELETE", path, {"gracePeriodSeconds": grace})

    def up(self, *instances: Instance) -> None:
        """Until these, which run, have said so in their logs."""
        core = client.CoreV1Api(self.double.client())
        for instance in instances:
            name = names.pod(self.deployment.name, instance)
            with contextlib.closing(
                watch.Watch().stream(core.read_namespaced_pod_log, name, self.namespace)
            ) as lines:
                assert next(lines) == "up"

    def comes_to(self, names: list[str]) -> None:
        """Until these are all pods that there are."""
        core = client.CoreV1Api(self.double.client())
        since = core.list_namespaced_pod(self.namespace).metadata.resource_version
        if self.names() != names:
            options = {"resource_version": since, "timeout_seconds": int(SECONDS)}
            events = watch.Watch().stream(core.list_namespaced_pod, self.namespace, **options)
            with contextlib.closing(events):
                assert any(self.names() == names for _ in events), self.names()

    def close(self) -> None:
        """It may be closed before."""
        if not self._clusters:
            return
        while self._clusters:
            self._clusters.pop().close()
        self.double.go_wrong()
        self.double.ask("DELETE", self.path, {"gracePeriodSeconds": 0})


class Following:
    """What a master is told of a cluster, in the order in which it is."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster
        self._told = threading.Condition()
        self.changes: list[Change] = []
        self.found: list[list[Change]] = [cluster.list()]
        self.changes += self.found[0]
        arguments = (cluster, self._on_change, self._found, lambda _: threading.Event().wait(0.05))
        self._thread = threading.Thread(target=follow, args=arguments)
        self._thread.start()

    def until(self, done: Callable[[Following], Any]) -> Any:
        """What `done` says, as soon as that is something."""
        end = time.monotonic() + SECONDS
        with self._told:
            while not (found := done(self)):
                assert time.monotonic() < end, self.changes
                self._told.wait(0.1)
        return found

    def last(self, instance: Instance) -> Change | None:
        return next((change for change in reversed(self.changes) if change.instance == instance), None)

    def comes_to(self, state: State, *instances: Instance) -> list[Change]:
        """The changes that said so, when all have."""

        def done(_: Following) -> list[Change]:
            last = [self.last(instance) for instance in instances]
            found = [change for change in last if change is not None and change.state == state]
            return found if len(found) == len(instances) else []

        changes: list[Change] = self.until(done)
        return changes

    def close(self) -> None:
        self._cluster.close()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def _on_change(self, change: Change | Room) -> None:
        assert isinstance(change, Change)
        with self._told:
            self.changes.append(change)
            self._told.notify_all()

    def _found(self, changes: list[Change]) -> None:
        with self._told:
            self.found.append(changes)
            self.changes += changes
            self._told.notify_all()


@pytest.fixture
def site(kubernetes: Cluster) -> Iterator[Callable[..., Site]]:
    """site(script): a job with instances that run the script. double: one of its own, where nodes are to change."""
    kubernetes.go_wrong()
    made: list[Site] = []

    def make(script: str = "sleep 100", *, double: Cluster = kubernetes, **container: Any) -> Site:
        made.append(Site(double, script, **container))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def followed() -> Iterator[Callable[[KubernetesCluster], Following]]:
    made: list[Following] = []

    def follow_it(cluster: KubernetesCluster) -> Following:
        made.append(Following(cluster))
        return made[-1]

    yield follow_it
    for each in made:
        each.close()
