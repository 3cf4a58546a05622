"""Clients of the API server, by the official library."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from edl.errors import ClusterError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

POOL = 48  # connections that are kept: a master creates 32 pods at once, and asks for other things beside


def connect(context: str = "", *, in_pod: bool = False) -> ApiClient:
    """A client for the context of the user's kubeconfig, the current one by default; in a pod, for its own cluster.

    In a pod too, a KUBECONFIG in the environment comes first. ClusterError: there is no such context, or none at all.
    """
    try:
        from kubernetes import client, config
    except ModuleNotFoundError:
        raise ClusterError(
            "the package kubernetes is not installed", hint="pip install 'sqlflow-edl[kubernetes]'"
        ) from None
    configuration = client.Configuration()
    try:
        if in_pod and not os.environ.get("KUBECONFIG"):
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                os.environ.get("KUBECONFIG"),  # the library reads that when it is imported, and not again
                context=context or None,
                client_configuration=configuration,
            )
    except config.ConfigException as error:
        raise ClusterError(f"no Kubernetes cluster can be reached: {error}", hint=_hint(context)) from None
    configuration.connection_pool_maxsize = POOL
    configuration.retries = False  # who calls decides what may be repeated
    return client.ApiClient(configuration)


def default_namespace(context: str = "") -> str:
    """That of the context, the current one by default; `default` where it names none, or there is none."""
    from kubernetes import config

    with contextlib.suppress(config.ConfigException):
        contexts, current = config.list_kube_config_contexts()  # type: ignore[no-untyped-call]
        found = next((each for each in contexts if each["name"] == context), current)
        return str(found["context"].get("namespace") or "default")
    return "default"


def _hint(context: str) -> str:
    if context:
        return "kubectl config get-contexts lists those that there are"
    return "set KUBECONFIG, or make ~/.kube/config as your cluster's documentation says"
