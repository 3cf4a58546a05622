"""A job's objects in the double, as small as they can be, and what becomes of it there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from edl import exit_codes
from edl.cluster.kubernetes import names, status_map
from edl.cluster.kubernetes.deployment import FILE, Deployment, write_deployment
from edl.data import Source
from edl.data.pinned import write_pinned
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, RunSpec
from edl.jobs.event_log import Event, EventReader
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.pending import Intent, write_intent
from edl.program import read_spec
from edl.spec import Rows, to_json
from tests.edl import programs
from tests.kubernetes.process import Cluster

R = TypeVar("R")
SECONDS = 120.0  # that something may take before a test fails
POLL = 0.05
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True)
class Deployed:
    """A job. The pod of its master is on its way."""

    double: Cluster
    deployment: Deployment
    folder: Path  # of the test

    def events(self) -> list[Event]:
        """What the present master has told."""
        log = self.folder / "master.log"
        log.write_text(self.log())
        with EventReader(log) as reader:
            return [*reader.read()]

    def log(self) -> str:
        """Of the present master; empty where there is none."""
        core = client.CoreV1Api(self.double.client())
        try:
            return str(core.read_namespaced_pod_log(self.master(), self.deployment.namespace))
        except (ApiException, StopIteration):
            return ""

    def master(self) -> str:
        """The name of its pod."""
        found = (pod for pod in self.pods() if pod["metadata"]["labels"][names.ROLE] == "master")
        return str(
            next(pod for pod in found if "deletionTimestamp" not in pod["metadata"])["metadata"]["name"]
        )

    def pods(self) -> list[dict[str, Any]]:
        return list(self.double.ask("GET", f"/api/v1/namespaces/{self.deployment.namespace}/pods")["items"])

    def phase(self, name: str) -> str:
        """Of an instance's pod, such as worker-0-1."""
        found = {pod["metadata"]["name"]: str(pod["status"]["phase"]) for pod in self.pods()}
        return found.get(f"{self.deployment.name}-{name}", "")

    def phases(self) -> set[str]:
        """Of all pods."""
        return {str(pod["status"]["phase"]) for pod in self.pods()}

    def delete(self, pod: str, grace: int = 0) -> None:
        path = f"/api/v1/namespaces/{self.deployment.namespace}/pods/{pod}"
        self.double.ask("DELETE", path, {"gracePeriodSeconds": grace})

    def conditions(self) -> dict[str, str]:
        """Of the Job: type and reason."""
        found = self._job().get("conditions", [])
        return {each["type"]: each.get("reason", "") for each in found if each["status"] == "True"}

    def failures(self) -> int:
        """Of masters, as far as they count."""
        return int(self._job().get("failed", 0))

    def _job(self) -> dict[str, Any]:
        path = f"/apis/batch/v1/namespaces/{self.deployment.namespace}/jobs/{self.deployment.name}"
        return dict(self.double.ask("GET", path)["status"])

    def status(self) -> dict[str, str]:
        """What the board shows."""
        path = (
            f"/api/v1/namespaces/{self.deployment.namespace}/configmaps/{names.status(self.deployment.name)}"
        )
        return dict(self.double.ask("GET", path).get("data", {}))

    def until(self, done: Callable[[], R]) -> R:
        """What `done` says, as soon as that is something."""
        end = time.monotonic() + SECONDS
        while not (found := done()):
            assert time.monotonic() < end, (self.conditions(), [pod["status"] for pod in self.pods()])
            time.sleep(POLL)
        return found


def job_of(source: Source, query: str, intent: Intent, rows: Rows, **program: Any) -> JobFolder:
    """A job folder with the program and the rows of the query, pinned in the source; changes: of the JobSpec."""
    job = job_folder.create(intent.kind)
    changes = program.pop("changes", {})
    programs.simple(job.program, rows=rows, **program)
    spec = msgspec.structs.replace(read_spec(job.program), kind=intent.kind, **changes)
    (job.program / "job.json").write_bytes(to_json(spec))
    write_pinned(job.rows, source.pin(query, job.rows, seed=0, shuffle=intent.kind == "train"))
    write_intent(job.path, intent)
    return job


def outcome_of(deployed: Deployed) -> Outcome:
    """When the Job is complete."""
    deployed.until(deployed.conditions)
    assert "Complete" in deployed.conditions()
    end = status_map.read_end(deployed.status())
    assert isinstance(end, Outcome)
    deployed.until(lambda: deployed.events()[-1:] == [end])  # the log of a pod may come after its end
    return end


def deploy(
    double: Cluster,
    job: JobFolder,
    spec: RunSpec,
    secrets: dict[str, str],
    folder: Path,
    state_store: dict[str, str] | None = None,
    lacks: tuple[str, str] = ("", ""),
) -> Deployed:
    """Make the objects of the job. Its folder is complete but for how it is run.
    state_store: the data of its ConfigMap. lacks: a resource and the verb that its account may not use on it.
    """
    ClusterFolder(job.path).write_run_spec(spec)
    name = names.job_name("test", job.id)
    paths = [str(path.relative_to(job.path)) for path in job.path.rglob("*") if path.is_file()]
    made = _Objects(double, double.new_namespace(), name, job.id, (*paths, f"cluster/{FILE}"))
    uid = made.make_job()
    deployment = Deployment(name, made.namespace, job.id, made.pod("worker"), made.pod("ps"), uid=uid)
    write_deployment(job.path, deployment)
    made.make_rest(job.path, secrets, state_store or {}, lacks)
    batch = client.BatchV1Api(double.client())
    batch.patch_namespaced_job(name, made.namespace, {"spec": {"suspend": False}})
    return Deployed(double, deployment, folder)


@dataclass(frozen=True)
class _Objects:
    double: Cluster
    namespace: str
    name: str
    job: str
    files: tuple[str, ...]  # of the job folder

    def pod(self, role: names.PodRole) -> dict[str, Any]:
        host = {"name": "EDL_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        values = {
            "EDL_FILES": "/edl/files",
            "EDL_SECRETS": "/edl/secrets",
            "EDL_JOB": f"/edl/job/{self.job}",
            "EDL_MASTER": names.address(self.name, self.namespace),
            "HOME": "/edl/job/home",
        }
        items = [{"key": _key(path), "path": path} for path in self.files]
        entry = "master" if role == "master" else "instance"
        container = {
            "name": role,
            "image": "edl:1",
            "command": ["python", "-P", "-m", "edl.entrypoints.pod", entry],
            "env": [host, *({"name": name, "value": value} for name, value in values.items())],
            "volumeMounts": [
                {"name": "files", "mountPath": "/edl/files"},
                {"name": "secrets", "mountPath": "/edl/secrets"},
                {"name": "job", "mountPath": "/edl/job"},
            ],
        }
        spec = {
            "restartPolicy": "Never",
            "serviceAccountName": self.name,
            "automountServiceAccountToken": role == "master",
            "containers": [container],
            "volumes": [
                {"name": "files", "configMap": {"name": names.files(self.name, 0), "items": items}},
                {"name": "secrets", "secret": {"secretName": names.secrets(self.name)}},
                {"name": "job", "emptyDir": {}},
            ],
        }
        return {"metadata": {"labels": names.labels(self.name, self.job, role)}, "spec": spec}

    def make_job(self) -> str:
        """Suspended; its uid."""
        codes = [
            ("FailJob", [exit_codes.USAGE, exit_codes.JOB_FAILED]),
            ("Ignore", [exit_codes.PREEMPTED]),
        ]
        rules = [
            {"action": action, "onExitCodes": {"containerName": "master", "operator": "In", "values": values}}
            for action, values in codes
        ]
        spec = {
            "suspend": True,
            "backoffLimit": 3,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": rules},
            "template": self.pod("master"),
        }
        return str(self._make("/apis/batch/v1", "jobs", self.name, spec=spec)["metadata"]["uid"])

    def make_rest(
        self, job: Path, secrets: dict[str, str], state_store: dict[str, str], lacks: tuple[str, str]
    ) -> None:
        data = {_key(path): (job / path).read_text() for path in self.files}
        self._make("/api/v1", "configmaps", names.files(self.name, 0), data=data)
        self._make("/api/v1", "configmaps", names.state_store(self.name), binaryData=state_store)
        self._make("/api/v1", "configmaps", names.status(self.name))
        told = {"token": "t0ken", "secrets.json": msgspec.json.encode(secrets).decode()}
        self._make("/api/v1", "secrets", names.secrets(self.name), stringData=told)
        selector = {names.NAME: self.name, names.ROLE: "master"}
        service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
        service["ports"] = [{"name": "control", "port": names.PORT}]
        self._make("/api/v1", "services", self.name, spec=service)
        self._make("/api/v1", "serviceaccounts", self.name)
        pods = {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["create", "delete", "list", "watch"],
        }
        maps = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"]}
        maps["resourceNames"] = [names.state_store(self.name), names.status(self.name)]
        jobs = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}
        rules = [pods, maps, jobs]
        for rule in rules:
            if lacks[0] in rule["resources"]:
                rule["verbs"] = [verb for verb in rule["verbs"] if verb != lacks[1]]
        self._make(RBAC, "roles", self.name, rules=rules)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.name}
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        self._make(
            RBAC,
            "rolebindings",
            self.name,
            roleRef=reference,
            subjects=[subject],
        )

    def _make(self, group: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
        body = {"metadata": {"name": name}, **rest}
        return dict(self.double.ask("POST", f"{group}/namespaces/{self.namespace}/{kind}", body))


def _key(path: str) -> str:
    return path.replace("/", "__")
