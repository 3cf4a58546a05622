"""Pods of a job: fields common to all of them, and fields of each role."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from edl import reachability, tls
from edl.checkpoints.factory import MOST, VARIABLE
from edl.cluster.kubernetes import names, quantities
from edl.cluster.kubernetes.names import PodRole
from edl.data.url import redacted
from edl.errors import SemanticError
from edl.frameworks import device
from edl.installation import VERSION
from edl.program.model_packages import OPTION, read_configured_packages
from edl.program.model_packages import VARIABLE as PACKAGES_VARIABLE
from edl.program.user_model import PATH_VARIABLE
from edl.spec import TREES, JobSpec
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.backends.kubernetes import certificates
from sqlflow_edl.backends.kubernetes.manifests import merging
from sqlflow_edl.backends.kubernetes.manifests.config_maps import Map
from sqlflow_edl.backends.kubernetes.manifests.identity import Identity
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object, render
from sqlflow_edl.backends.kubernetes.manifests.resources import resources
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings

VOLUME = "/edl/volume"  # mount path of the volume claim
START_SECS = 120.0  # time for a master to read its state, before it answers its probe
PROBE_SECS = 2  # interval of probes
# Of silence until a master is replaced. Its pod ends MASTER_GRACE later, and the Job makes the next one 10 s after
# that: 35 s in all. Workers hold tasks for 20 s, so that a master that was ended in vain costs little.
SILENT_SECS = 12.0
# A master needs a second to write its state. The kubelet gives a hanging one this time too: it ends a pod that does not
# restart its only container by the grace period of the pod, and ignores that of the probe.
MASTER_GRACE = 10  # seconds
OF_DISK = Decimal("0.8")  # share of the master's disk for checkpoints: logs are on it too
LONGEST_LABEL = 63  # characters of its value
MODULES = "/opt/models"  # folder in the image for the user's modules

_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
# The root file system is read-only, so files are written to the pod's own /tmp.
_WRITABLE = {
    "HOME": "/tmp",  # noqa: S108 - of the container
    "TMPDIR": "/tmp",  # noqa: S108
    "XDG_CACHE_HOME": "/tmp/cache",  # noqa: S108
    "XDG_CONFIG_HOME": "/tmp/config",  # noqa: S108
    "XDG_STATE_HOME": "/tmp/state",  # noqa: S108
    "NUMBA_CACHE_DIR": "/tmp/numba",  # noqa: S108
}


def manifest(
    role: PodRole,
    identity: Identity,
    spec: JobSpec | RunnableSpec,
    settings: KubernetesSettings,
    files: Mapping[str, Map],
    timeout: float,
) -> Object:
    """Return the pod of a role. Raises SemanticError if a setting is wrong.

    files: the ConfigMaps with the job's files, by name. timeout: seconds of silence after which a master is replaced.
    """
    _check_updates(spec, settings)
    encrypted = certificates.encrypts(spec, settings)
    _check_gpus(spec, settings)
    _check_least_workers(spec, settings)
    pod = render(
        "pod",
        role=role,
        entry=role if role in ("master", "program") else "instance",
        metadata=identity.describe(role, queue=_queue(role, settings)),
        image=settings.text("image") or _stock_image(settings),
        pull_policy=settings.text("image_pull_policy"),
        pull_secrets=[{"name": name} for name in settings.texts("image_pull_secrets")],
        service_account=settings.text("service_account")
        or ("default" if role == "program" else identity.name),
        priority_class=settings.text("priority_class")
        if role != "worker"
        else "",  # the master sets the class of workers
        node_selector=_select_by_role(
            role, settings.pairs("node_selector"), settings.pairs("worker_node_selector")
        ),
        tolerations=_tolerations(role, settings),
        user=settings.whole("run_as_user"),
        grace_secs=min(settings.whole("grace_secs"), MASTER_GRACE if role == "master" else math.inf),
        env=_environment(role, identity, settings, encrypted=encrypted),
        resources=resources(settings, spec, role),
        port=names.PORT,
        health_port=names.HEALTH,
        probe_secs=PROBE_SECS,
        start_failures=_failures(max(START_SECS, timeout)),
        life_failures=_failures(timeout),
        volume=settings.text("volume"),
        files=[(name, packed.items) for name, packed in files.items()],
        secret=names.secrets(identity.name),
    )
    if path := settings.text("pod_template"):
        for template in merging.templates(Path(path))["worker" if role == "program" else role]:
            pod = merging.apply_template(template, pod, role)
    return pod


def _stock_image(settings: KubernetesSettings) -> str:
    """Return the image that is built from this version, with CUDA if workers ask for GPUs."""
    return f"{names.APP}:{VERSION}" + ("-gpu" if settings.whole("worker_gpu") else "")


def _check_gpus(spec: JobSpec | RunnableSpec, settings: KubernetesSettings) -> None:
    """Raise SemanticError if the job computes on GPUs that its workers don't ask for, or asks for some in vain."""
    if isinstance(spec, RunnableSpec):
        return
    gpus = settings.whole("worker_gpu")
    if spec.device == "cuda" and not gpus:
        raise SemanticError(
            f"{spec.kind}.device is cuda, and pods see a GPU only if they ask for it",
            hint="set kubernetes.worker_gpu = 1",
        )
    if gpus and (spec.device == "cpu" or spec.framework in TREES):
        why = "trees compute on the CPU" if spec.framework in TREES else f"{spec.kind}.device is cpu"
        raise SemanticError(
            f"{why}, and kubernetes.worker_gpu is {gpus}", hint="leave kubernetes.worker_gpu out"
        )


def _check_least_workers(spec: JobSpec | RunnableSpec, settings: KubernetesSettings) -> None:
    """Raise SemanticError if a job is to wait for more workers than it has."""
    least = settings.whole("min_workers")
    if isinstance(spec, JobSpec) and least > spec.cluster.workers:
        count = spec.cluster.workers
        raise SemanticError(
            f"kubernetes.min_workers is {least}, and the job has {count} {'worker' if count == 1 else 'workers'}",
            hint=f"set {spec.kind}.num_workers = {least}, or leave kubernetes.min_workers out",
        )


def _queue(role: PodRole, settings: KubernetesSettings) -> dict[str, str]:
    """Return the labels for Kueue of pods that no Job controls; the Job has the labels for its own pods."""
    if role in ("master", "program"):
        return {}
    return queue_labels(settings)


def queue_labels(settings: KubernetesSettings) -> dict[str, str]:
    labels = {names.QUEUE: settings.text("queue"), names.QUEUE_PRIORITY: settings.text("queue_priority")}
    return {name: value for name, value in labels.items() if value}


def _failures(seconds: float) -> int:
    """Return the number of failed probes in a row that take so long."""
    return max(1, round(seconds / PROBE_SECS))


def check_settings(settings: KubernetesSettings) -> None:
    """Raise SemanticError if a setting is wrong, independent of the job."""
    for name in settings.pairs("env"):
        if name.startswith("EDL_"):
            raise SemanticError(
                f"kubernetes.env sets {name}, which is reserved for the job",
                hint="leave it out, or rename it",
            )
        if name == PACKAGES_VARIABLE:
            raise SemanticError(
                f"kubernetes.env sets {name}, which a statement may not",
                hint=f"set {name} where sqlflow runs, or give {OPTION}: pods get the same",
            )
    _check_queue(settings)
    if settings.text("volume_code") and not settings.text("volume"):
        raise SemanticError("kubernetes.volume_code needs a volume", hint="set kubernetes.volume too")
    if redacted(url := settings.text("checkpoints")) != url:
        raise SemanticError(
            f"kubernetes.checkpoints holds a password or a key: {redacted(url)}",
            hint="leave it out, and give pods the store's credentials from a Secret, by a pod template",
        )
    if path := settings.text("pod_template"):
        merging.templates(Path(path))


def _check_queue(settings: KubernetesSettings) -> None:
    for name in (names.QUEUE, names.QUEUE_PRIORITY):
        if name in settings.pairs("labels"):
            setting = "queue" if name == names.QUEUE else "queue_priority"
            raise SemanticError(
                f"kubernetes.labels sets {name}, which would keep the job from starting",
                hint=f"set kubernetes.{setting} in its place",
            )
    if settings.text("queue_priority") and not settings.text("queue"):
        raise SemanticError("kubernetes.queue_priority needs a queue", hint="set kubernetes.queue too")
    for name in ("queue", "queue_priority"):
        if (text := settings.text(name)) and not (_SUBDOMAIN.fullmatch(text) and len(text) <= LONGEST_LABEL):
            raise SemanticError(
                f"kubernetes.{name} is {text!r}, which no object of Kubernetes can be named",
                hint="lower-case letters, digits, - and ., at most 63 of them; kubectl get localqueues lists queues",
            )


def _checkpoints(settings: KubernetesSettings) -> str:
    """Return a folder that all pods share, or a URL; empty if there is none."""
    on_volume = f"{VOLUME}/checkpoints" if settings.text("volume") else ""
    return settings.text("checkpoints") or on_volume


def _check_updates(spec: JobSpec | RunnableSpec, settings: KubernetesSettings) -> None:
    """Raise SemanticError if servers are to log updates where their replacements do not see them."""
    place = _checkpoints(settings)
    logged = isinstance(spec, JobSpec) and spec.cluster.durable_updates != "none"
    if logged and (not place or "://" in place):
        raise SemanticError(
            "train.durable_updates needs a volume, on which parameter servers log updates",
            hint="set kubernetes.volume and leave kubernetes.checkpoints out, or leave train.durable_updates out",
        )


def _environment(
    role: PodRole, identity: Identity, settings: KubernetesSettings, *, encrypted: bool
) -> dict[str, str]:
    code = settings.text("volume_code").strip("/")
    disk = settings.text("master_disk")
    patience, outage = reachability.limit(), settings.number("outage_secs")
    ours = {
        "EDL_FILES": "/edl/files",
        "EDL_SECRETS": "/edl/secrets",
        tls.VARIABLE: "/edl/secrets" if encrypted else "",
        "EDL_JOB": f"/edl/job/{identity.job}",
        "EDL_MASTER": names.address(identity.name, identity.namespace),
        VARIABLE: _checkpoints(settings),
        MOST: str(int(OF_DISK * quantities.value(disk))) if disk and role == "master" else "",
        PATH_VARIABLE: f"{VOLUME}/{code}:{MODULES}" if code else "",
        PACKAGES_VARIABLE: ",".join(read_configured_packages()),
        device.AUTO: "cuda" if role == "worker" and settings.whole("worker_gpu") else "",
        reachability.OUTAGE_VARIABLE: "" if outage == reachability.OUTAGE_SECS else f"{outage:g}",
        reachability.VARIABLE: "" if patience == reachability.LIMIT else f"{patience:g}",
    }
    return {**{name: value for name, value in ours.items() if value}, **_WRITABLE, **settings.pairs("env")}


def _select_by_role(role: PodRole, every: dict[str, str], worker: dict[str, str]) -> dict[str, str]:
    return {**every, **worker} if role in ("worker", "program") else every


def _tolerations(role: PodRole, settings: KubernetesSettings) -> list[dict[str, str]]:
    taints = settings.texts("tolerations")
    if role in ("worker", "program"):
        taints += settings.texts("worker_tolerations")
    return [_toleration(taint) for taint in dict.fromkeys(taints)]


def _toleration(taint: str) -> dict[str, str]:
    """Return the toleration of a taint `key=value:effect`; the value and the effect are optional."""
    name, _, effect = taint.partition(":")
    key, equals, value = name.partition("=")
    toleration = (
        {"key": key, "operator": "Equal", "value": value} if equals else {"key": key, "operator": "Exists"}
    )
    return {**toleration, "effect": effect} if effect else toleration
