"""Merge of a user's pod template with our pods: our fields win, everything else is the template's.

Lists of named items are merged by name, as Kubernetes merges them; tolerations are concatenated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edl.cluster.kubernetes.names import ROLE, PodRole
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object, yaml_of

OURS = "instance"  # name of our container in a template

# Field of a list -> the key of its items.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
# lists with items that are merged; in others an item replaces an item
_DEEP = ("containers", "initContainers")
_APPENDED = ("tolerations",)


def templates(path: Path) -> dict[PodRole, list[Object]]:
    """Return the Pods of a file, by the role they are for. Raises SemanticError for any other object."""
    try:
        documents = yaml_of(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SemanticError(f"cannot read the pod template {path}: {error}") from None
    except SQLFlowError as error:
        raise SemanticError(f"the pod template {path}: {error.message}") from None
    by_role: dict[PodRole, list[Object]] = {"master": [], "worker": [], "ps": []}
    for document in documents:
        role = _check_template(document, path)
        for pod_role in by_role:
            if role in ("", pod_role):
                by_role[pod_role].append(document)
    return by_role


def _check_template(document: Any, path: Path) -> str:
    """Return the role that a document is for; empty for all roles."""
    if not isinstance(document, dict) or document.get("kind") != "Pod" or document.get("apiVersion") != "v1":
        raise SemanticError(
            f"the pod template {path} holds an object that is not a Pod",
            hint="each of its documents has apiVersion: v1 and kind: Pod",
        )
    metadata = document.get("metadata") or {}
    role = str((metadata.get("labels") or {}).get(ROLE, "")) if isinstance(metadata, dict) else ""
    if role not in ("", "master", "worker", "ps"):
        raise SemanticError(
            f"the pod template {path} is for the role {role!r}",
            hint=f"the label {ROLE} is master, worker or ps",
        )
    containers = (document.get("spec") or {}).get("containers") or []
    if not all(isinstance(container, dict) and container.get("name") for container in containers):
        raise SemanticError(f"the pod template {path} has a container without a name", hint=f"ours is {OURS}")
    return role


def apply_template(template: Mapping[str, Any], pod: Object, container: str) -> Object:
    """Return the pod with the template's additional fields.

    container: the name of our container, which the template calls `instance`.
    """
    spec = dict(template.get("spec") or {})
    spec["containers"] = [
        {**container_found, "name": container} if container_found.get("name") == OURS else container_found
        for container_found in spec.get("containers") or []
    ]
    kept = {name: value for name, value in (template.get("metadata") or {}).items() if name in _METADATA}
    merged = _merge_objects({"metadata": kept, "spec": spec}, pod)
    ours = [
        container_found
        for container_found in merged["spec"]["containers"]
        if container_found["name"] == container
    ]
    others = [
        container_found
        for container_found in merged["spec"]["containers"]
        if container_found["name"] != container
    ]
    return {**merged, "spec": {**merged["spec"], "containers": ours + others}}


_METADATA = ("labels", "annotations")


def _merge_objects(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    result = {**lower, **upper}
    for name in lower.keys() & upper.keys():
        one, other = lower[name], upper[name]
        if isinstance(one, dict) and isinstance(other, dict):
            result[name] = _merge_objects(one, other)
        elif isinstance(one, list) and isinstance(other, list):
            result[name] = _lists(name, one, other)
    return {name: result[name] for name in [*upper, *(name for name in lower if name not in upper)]}


def _lists(name: str, lower: list[Any], upper: list[Any]) -> list[Any]:
    if name in _APPENDED:
        return upper + [item for item in lower if item not in upper]
    key = _KEYS.get(name)
    if key is None or not all(isinstance(item, dict) and key in item for item in lower):
        return upper
    theirs = {item[key]: item for item in lower}
    both = []
    for item in upper:
        other = theirs.pop(item[key], {})
        both.append(_merge_objects(other, item) if name in _DEEP else item)
    return both + list(theirs.values())
