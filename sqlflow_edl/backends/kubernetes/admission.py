"""Check of the Pod Security Standard that a namespace enforces, by a pod that is tried and not created."""

from __future__ import annotations

from contextlib import suppress

from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError, Calls
from edl.cluster.kubernetes.connect import connect
from edl.errors import ClusterError
from sqlflow_edl.backends.kubernetes.apply import namespace_of
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings

# The level restricted refuses it, because its container may gain privileges. Its amounts suit namespaces with quotas.
_UNRESTRICTED_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "sqlflow-edl-admission-"},
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "tried",
                "image": "none",
                "resources": {part: {"cpu": "1m", "memory": "1Mi"} for part in ("requests", "limits")},
            }
        ],
    },
}


def describe_open_admission(settings: KubernetesSettings) -> str:
    """Return a note if the namespace of the settings admits pods that break the level restricted.

    Return an empty text if it refuses them, or if this cannot be asked: without the right to create pods, or without
    an answer of the API server.
    """
    with suppress(ClusterError), connect(settings.text("context")) as api:
        namespace = namespace_of(settings)
        if _admits(Calls(api), namespace):
            return (
                f"the namespace {namespace} does not enforce the Pod Security Standard restricted, so its pods may get "
                "the folders and the network of their node; an administrator enforces it with `kubectl label namespace "
                f"{namespace} pod-security.kubernetes.io/enforce=restricted`"
            )
    return ""


def _admits(calls: Calls, namespace: str) -> bool:
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        calls.ask("POST", path, _UNRESTRICTED_POD, {"dryRun": "All"}, patience=0.0)
    except (APIRefusedError, APIUnreachableError):
        return False
    return True
