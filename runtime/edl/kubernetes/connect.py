"""Clients of the API server, by the official library."""

from __future__ import annotations

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
                context=context or None, client_configuration=configuration
            )
    except config.ConfigException as error:
        raise ClusterError(f"no Kubernetes cluster can be reached: {error}", hint=_hint(context)) from None
    configuration.connection_pool_maxsize = POOL
    configuration.retries = False  # who calls decides what may be repeated
    return client.ApiClient(configuration)


def _hint(context: str) -> str:
    if context:
        return "kubectl config get-contexts lists those that there are"
    return "set KUBECONFIG, or make ~/.kube/config as your cluster's documentation says"
