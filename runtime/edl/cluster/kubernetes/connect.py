"""Clients of the API server, by the official library."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from edl.errors import ClusterError
from edl.installation import install_extras

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

POOL = 48  # connection pool: a master creates 32 pods at once, with other calls at the same time


def connect(context: str = "", *, in_pod: bool = False) -> ApiClient:
    """Return a client for a context of the user's kubeconfig, by default the current one; in a pod, for its own
    cluster.

    In a pod too, KUBECONFIG in the environment takes precedence. Raises ClusterError if there is no such context, or no
    kubeconfig.
    """
    client, config = _library()
    configuration = client.Configuration()
    try:
        if in_pod and not os.environ.get("KUBECONFIG"):
            config.load_incluster_config(client_configuration=configuration)
        else:
            config.load_kube_config(_file(), context=context or None, client_configuration=configuration)
    except config.ConfigException as error:
        raise ClusterError(f"no Kubernetes cluster can be reached: {error}", hint=_hint(context)) from None
    configuration.connection_pool_maxsize = POOL
    configuration.retries = False  # the caller decides what may be repeated
    api: ApiClient = client.ApiClient(configuration)
    return api


def default_namespace(context: str = "") -> str:
    """Return the namespace of the context, by default the current one; `default` if it names none or does not exist."""
    _, config = _library()
    with contextlib.suppress(config.ConfigException):
        contexts, current = config.list_kube_config_contexts(_file())
        named = (entry for entry in contexts if entry["name"] == context)
        context_entry = next(named, {}) if context else current
        return str(context_entry.get("context", {}).get("namespace") or "default")
    return "default"


def configured_namespaces() -> list[str]:
    """Return the namespaces that the contexts of the user's kubeconfig name."""
    _, config = _library()
    with contextlib.suppress(config.ConfigException):
        contexts, _ = config.list_kube_config_contexts(_file())
        return [name for entry in contexts if (name := entry.get("context", {}).get("namespace"))]
    return []


def current_context() -> str:
    """Return the name of the current context. Raises ClusterError if there is none."""
    _, config = _library()
    try:
        _, current = config.list_kube_config_contexts(_file())
    except config.ConfigException as error:
        raise ClusterError(f"no Kubernetes cluster can be reached: {error}", hint=_hint("")) from None
    return str(current["name"])


def _file() -> str | None:
    """Return the path in KUBECONFIG now; the library reads the variable only when it is imported."""
    return os.environ.get("KUBECONFIG")


def _library() -> tuple[Any, Any]:
    try:
        from kubernetes import client, config
    except ModuleNotFoundError:
        raise ClusterError(
            "the package kubernetes is not installed", hint=install_extras("kubernetes")
        ) from None
    return client, config


def _hint(context: str) -> str:
    if context:
        return "kubectl config get-contexts lists the contexts"
    return "set KUBECONFIG, or create ~/.kube/config as described by your cluster's documentation"
