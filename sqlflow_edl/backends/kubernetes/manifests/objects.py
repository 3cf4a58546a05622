"""Objects of a job: a Job with the master as its pod, and all objects that the master needs, owned by the Job.

Its network policies let its pods talk to each other, to name servers and to their data, and to nothing else. A policy
knows addresses and labels, and no host names; a data source with a name in its URL is its port on any host."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from edl import exit_codes
from edl.build import Build
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.deployment import Deployment, Policy, Priorities
from edl.cluster.kubernetes.output_maps import MAPS
from edl.cluster.kubernetes.state_store import pack_state
from edl.data.server_url import parse_server
from edl.data.url import SERVERS
from edl.jobs.cluster_folder import CLIENT, SCRIPT_WORKER, WORKER, RunSpec, master_timeout
from edl.jobs.script_run import FILE as SCRIPT
from edl.models.pending import FILE as INTENT
from edl.models.pending import Intent
from edl.reachability import OUTAGE_SECS
from edl.spec import JobSpec
from edl.spec.runnable import FILE, RunnableSpec
from sqlflow_edl.backends.kubernetes.manifests import pods
from sqlflow_edl.backends.kubernetes.manifests.config_maps import Map, pack
from sqlflow_edl.backends.kubernetes.manifests.identity import Identity
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object, render
from sqlflow_edl.backends.kubernetes.manifests.resources import threads
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings

DEPLOYMENT = "cluster/kubernetes.json"
LONGEST_STATEMENT = 2000  # characters in an annotation


@dataclass(frozen=True, slots=True)
class Submission:
    """Job before its submission.

    job: its id. files: of its folder, by path. token: that authenticates its calls. build: of this client. secrets: of
    its data sources, by the URL without password. certificates: files of `edl.tls` by name, empty if calls
    are plain. state: of an earlier master of the job, empty for a new one. script: record of the script that workers
    run; its arguments may be secret.
    """

    job: str
    spec: JobSpec | RunnableSpec
    settings: KubernetesSettings
    namespace: str
    files: Mapping[str, bytes]
    token: str
    build: Build
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificates: Mapping[str, str] = field(default_factory=dict, repr=False)
    script: bytes = field(default=b"", repr=False)
    state: bytes = field(default=b"", repr=False)


class JobManifests:
    """Renderer of a submission's objects.

    Raises SemanticError if a setting is wrong, ClusterError if the files are too large.
    """

    def __init__(self, submission: Submission) -> None:
        self._of = submission
        self._settings = settings = submission.settings
        self._identity = Identity.of(submission.job, submission.spec, settings, submission.namespace)
        self.name = self._identity.name
        self.namespace = submission.namespace
        timeout, spec = master_timeout(os.environ, pods.SILENT_SECS), submission.spec
        self._first: Literal["master", "program"] = "program" if isinstance(spec, RunnableSpec) else "master"
        threads_each = threads(settings)
        if isinstance(spec, RunnableSpec):
            # it imports no framework
            how, files = RunSpec("torch", threads_each), {FILE: msgspec.json.encode(spec)}
        else:
            worker = SCRIPT_WORKER if submission.script else WORKER
            how = RunSpec(spec.framework, threads_each, detached=True, master_timeout=timeout, worker=worker)
            files = {}
        intent = submission.files.get(INTENT)
        self._intent = msgspec.json.decode(intent, type=Intent) if intent else None
        files["cluster/spec.json"] = msgspec.json.encode(how)
        files[f"cluster/{CLIENT}"] = msgspec.json.encode(submission.build)
        packed = pack({**submission.files, **files})
        # Number 0 is the deployment's, which names all others.
        self._files = {names.files(self.name, number): part for number, part in enumerate(packed, 1)}
        [deployment] = pack({DEPLOYMENT: b""})
        mounted = {names.files(self.name, 0): deployment, **self._files}
        others: tuple[names.PodRole, ...] = ("worker", "ps") if self._first == "master" else ()
        self._pods: dict[names.PodRole, Object] = {
            role: pods.manifest(role, self._identity, spec, settings, mounted, timeout)
            for role in (self._first, *others)
        }

    @property
    def _outputs(self) -> int:
        """Number of ConfigMaps for output that comes back to the client."""
        intent = self._intent
        if self._of.script:  # for what its workers tell each other
            return 1
        comes_back = intent is not None and not intent.source and not intent.name
        return MAPS if comes_back and self._of.spec.kind in ("train", "predict") else 0

    @property
    def queue(self) -> dict[str, str]:
        """Labels of the Job with which Kueue resumes it; empty without a queue."""
        return pods.queue_labels(self._settings)

    def job(self) -> Object:
        """Return the Job, suspended."""
        first, spec = self._pods[self._first], self._of.spec
        metadata = self._identity.metadata(self.name)
        metadata["annotations"] = {
            **metadata.get("annotations", {}),
            names.JOB_ID: self._of.job,
            f"{names.APP}/statement": spec.statement[:LONGEST_STATEMENT],
            f"{names.APP}/source": spec.query.source,
        }
        return render(
            "job",
            metadata=metadata,
            container=self._first,
            retries=self._settings.whole("master_retries") if self._first == "master" else 0,
            ttl_secs=self._settings.whole("ttl_secs"),
            final=[exit_codes.USAGE, exit_codes.JOB_FAILED],
            left=[exit_codes.PREEMPTED],
            pod={"metadata": first["metadata"], "spec": first["spec"]},
        )

    def deployment(self, uid: str) -> Deployment:
        """Return the deployment, which the master and other clients read. uid: of the Job."""
        settings = self._settings
        return Deployment(
            name=self.name,
            namespace=self._of.namespace,
            job=self._of.job,
            worker=self._pods.get("worker", {}),
            ps=self._pods.get("ps", {}),
            first=self._first,
            outputs=self._outputs,
            uid=uid,
            context=settings.text("context"),
            policy=Policy(
                settings.number("pending_secs"),
                settings.number("image_secs"),
                settings.number("memory_factor"),
                settings.text("most_memory"),
                settings.whole("node_failures"),
                msgspec.UNSET if (outage := settings.number("outage_secs")) == OUTAGE_SECS else outage,
                settings.number("wait_secs") or msgspec.UNSET,
                settings.whole("min_workers") or msgspec.UNSET,
            ),
            priorities=Priorities(
                settings.text("priority_class"),
                settings.text("low_priority_class"),
                settings.number("high_priority_fraction"),
            ),
        )

    def owned_objects(self, uid: str) -> list[Object]:
        """Return all other objects. uid: of the Job, their owner."""
        deployment = msgspec.json.format(msgspec.json.encode(self.deployment(uid)), indent=2) + b"\n"
        [described] = pack({DEPLOYMENT: deployment})
        files = {names.files(self.name, 0): described, **self._files}
        maps = [self._config_map(name, uid, content) for name, content in files.items()]
        policies = self._network_policies(uid) if self._settings.true("network_policy") else []
        if self._first == "program":  # nothing calls it, and it calls no API server
            return [*policies, *maps, self._secret(uid)]
        return [
            *policies,
            self._service(uid),
            *maps,
            self._state_store(uid),
            self._config_map(names.status(self.name), uid),
            *(self._config_map(name, uid) for name in self._output_maps),
            self._secret(uid),
            *([] if self._settings.text("service_account") else self._rights(uid)),
        ]

    @property
    def _output_maps(self) -> list[str]:
        return [names.output(self.name, number) for number in range(self._outputs)]

    def _service(self, uid: str) -> Object:
        selector = {names.NAME: self.name, names.ROLE: "master"}
        return render("service", metadata=self._metadata(self.name, uid), selector=selector, port=names.PORT)

    def _config_map(self, name: str, uid: str, content: Map | None = None) -> Object:
        content = content or Map()
        metadata = self._metadata(name, uid)
        return render("config_map", metadata=metadata, data=content.data, binary_data=content.binary_data)

    def _state_store(self, uid: str) -> Object:
        metadata = self._metadata(names.state_store(self.name), uid)
        state = pack_state(self._of.state) if self._of.state else {}
        return render("config_map", metadata=metadata, data={}, binary_data=state)

    def _network_policies(self, uid: str) -> list[Object]:
        spec, store = self._of.spec, self._intent.store if self._intent is not None else ""
        validation = spec.validation.source if isinstance(spec, JobSpec) and spec.validation else ""
        urls = (spec.query.source, validation, store, self._settings.text("checkpoints"))
        return network_policies(self.name, self._first, lambda name: self._metadata(name, uid), urls)

    def _secret(self, uid: str) -> Object:
        secrets = msgspec.json.encode(self._of.secrets).decode()
        data = {"token": self._of.token, "secrets.json": secrets, **self._of.certificates}
        if self._of.script:
            data[SCRIPT] = self._of.script.decode()
        return render("secret", metadata=self._metadata(names.secrets(self.name), uid), data=data)

    def _rights(self, uid: str) -> list[Object]:
        """Return the account and permissions of the master; other pods have none."""
        metadata = self._metadata(self.name, uid)
        maps = [names.state_store(self.name), names.status(self.name), *self._output_maps]
        return [
            render("service_account", metadata=metadata),
            render("role", metadata=metadata, config_maps=maps, job=self.name),
            render("role_binding", metadata=metadata, name=self.name, namespace=self._of.namespace),
        ]

    def _metadata(self, name: str, uid: str) -> Object:
        return self._identity.metadata(name, owner=uid)


HTTPS = 443  # of object stores, of MaxCompute, and of the API server's Service
API_SERVER = 6443  # of most API servers themselves, which a policy may see in place of their Service

Destination = tuple[str, tuple[int, ...]]  # range of addresses, empty for any; ports


def network_policies(
    name: str, first: Literal["master", "program"], metadata: Callable[[str], Object], urls: Iterable[str]
) -> list[Object]:
    """Return the policy of all pods of the job `name`, and one of its master, which calls the API server.

    first: role of the Job's own pod. metadata: of a policy, by its name. urls: of the data sources, the model store and
    the checkpoints; empty ones and folders are ignored.
    """
    destinations = sorted({_destination(url) for url in urls if "://" in url})
    selector = {names.NAME: name}
    common = render(
        "network_policy", metadata=metadata(name), selector=selector, role="", destinations=destinations
    )
    if first != "master":
        return [common]
    api_server = render(
        "network_policy",
        metadata=metadata(f"{name}-master"),
        selector={**selector, names.ROLE: "master"},
        role="master",
        destinations=[("", (HTTPS, API_SERVER))],
    )
    return [common, api_server]


def _destination(url: str) -> Destination:
    """Return where a data source or an object store is. An object store is behind HTTPS, at any address."""
    scheme = url.partition("://")[0].partition("+")[0]
    if scheme not in SERVERS:
        return "", (HTTPS,)
    server = parse_server(url, SERVERS[scheme])
    return _range(server.host.strip("[]")), (server.port or HTTPS,)


def _range(host: str) -> str:
    """Return the range of a single address, empty for a name."""
    try:
        return str(ipaddress.ip_network(host))
    except ValueError:
        return ""
