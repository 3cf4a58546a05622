"""What the API server adds to an object that is created: the defaults of its fields, and what admission fills in."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from typing import Any

from tests.kubernetes import quantities
from tests.kubernetes.kinds import BUDGET, CONFIG_MAP, JOB, POD, PRIORITY_CLASS, SECRET, SERVICE, Object

LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # what the server makes names of
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a place


def random_suffix() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(5))


def fill(kind: Any, found: Object) -> None:
    """In place, before the object is checked."""
    metadata = found["metadata"]
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        if not metadata.get(name, True):
            del metadata[name]
    if kind in FILLERS:
        FILLERS[kind](found)


def _fill_map(found: Object) -> None:
    for name in ("data", "binaryData"):
        if not found.get(name, True):
            del found[name]


def _fill_secret(found: Object) -> None:
    for name, text in (found.pop("stringData", None) or {}).items():
        found.setdefault("data", {})[name] = base64.b64encode(text.encode()).decode()
    found.setdefault("type", "Opaque")
    _fill_map(found)


def _fill_service(found: Object) -> None:
    spec = found["spec"]
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
    defaults = {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    found["spec"] = {**defaults, **spec}
    found["status"] = {"loadBalancer": {}}


def _fill_pod(found: Object) -> None:
    fill_pod_spec(found["spec"])
    spec = found["spec"]
    spec.setdefault("enableServiceLinks", True)
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        resources = container["resources"]
        if "limits" in resources:
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    found["status"] = {"phase": "Pending", "qosClass": quality(spec)}


def fill_pod_spec(spec: Object) -> None:
    """Of a pod, or of the template of a Job."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        _fill_container(container)
    for volume in spec.get("volumes", []):
        _fill_volume(volume)


def _fill_container(container: Object) -> None:
    image = container.get("image", "")
    tagged = ":" in image.rpartition("/")[2]
    is_name = image == image.lower()
    latest = is_name and (image.endswith(":latest") or not tagged)
    container.setdefault("resources", {})
    for amounts in container["resources"].values():
        if isinstance(amounts, dict):
            amounts.update({name: quantities.canonical(POD, amount) for name, amount in amounts.items()})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for source in _sources(container):
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")
        if "resourceFieldRef" in source:
            source["resourceFieldRef"].setdefault("divisor", "0")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _fill_probe(container[name])


def _sources(container: Object) -> Iterator[Object]:
    return (variable["valueFrom"] for variable in container.get("env", []) if "valueFrom" in variable)


def _fill_probe(probe: Object) -> None:
    defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    for name, value in defaults.items():
        probe.setdefault(name, value)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("scheme", "HTTP")


def _fill_volume(volume: Object) -> None:
    for name in ("configMap", "secret", "downwardAPI", "projected"):
        if name in volume:
            volume[name].setdefault("defaultMode", 0o644)
    for item in volume.get("downwardAPI", {}).get("items", []):
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")


def _fill_job(found: Object) -> None:
    spec, uid, name = found["spec"], found["metadata"]["uid"], found["metadata"]["name"]
    spec.setdefault("parallelism", 1)
    if spec["parallelism"] == 1 or spec.get("completionMode") == "Indexed":
        spec.setdefault("completions", 1)
    per_index = "backoffLimitPerIndex" in spec
    spec.setdefault("backoffLimit", 2**31 - 1 if per_index else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", policy)
    if not spec.setdefault("manualSelector", False):
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    metadata = spec["template"].setdefault("metadata", {})
    metadata.setdefault("creationTimestamp", None)
    labels = {"controller-uid": uid, "job-name": name}
    prefixed = {f"batch.kubernetes.io/{label}": value for label, value in labels.items()}
    metadata["labels"] = {**(metadata.get("labels") or {}), **prefixed, **labels}
    if not found["metadata"].get("labels"):
        found["metadata"]["labels"] = dict(metadata["labels"])
    fill_pod_spec(spec["template"]["spec"])
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        for pattern in rule.get("onPodConditions", []):
            pattern.setdefault("status", "True")
    found["status"] = {}


def _fill_priority(found: Object) -> None:
    found.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _fill_budget(found: Object) -> None:
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    found["status"] = dict.fromkeys(counts, 0)


FILLERS = {
    BUDGET: _fill_budget,
    PRIORITY_CLASS: _fill_priority,
    POD: _fill_pod,
    JOB: _fill_job,
    SERVICE: _fill_service,
    SECRET: _fill_secret,
    CONFIG_MAP: _fill_map,
}


def quality(spec: Object) -> str:
    """The class that decides whose pods go first when memory is short."""
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    amounts = [(c["resources"].get("requests", {}), c["resources"].get("limits", {})) for c in containers]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    if all(requests == limits and {"cpu", "memory"} <= limits.keys() for requests, limits in amounts):
        return "Guaranteed"
    return "Burstable"


def admit_pod(found: Object, priority: int, *, mounts_token: bool) -> None:
    """What admission adds: the service account and its token, tolerations, the priority.

    `mounts_token`: whether the account says that its pods get one, where the pod itself says nothing.
    """
    spec = found["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(one.get("key") == key for one in tolerations):
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**toleration, "tolerationSeconds": 300})
    spec["priority"] = priority
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("automountServiceAccountToken", mounts_token):
        _mount_token(spec)


def _mount_token(spec: Object) -> None:
    name = f"kube-api-access-{random_suffix()}"
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    spec.setdefault("volumes", []).append(
        {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}
    )
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": name, "readOnly": True, "mountPath": TOKEN_FOLDER})
