"""Jobs whose instances can encrypt their calls (`edl.tls`)."""

from __future__ import annotations

from edl.errors import SemanticError
from edl.spec import JobSpec
from edl.spec.job import Cluster
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings


def encrypts(spec: JobSpec | RunnableSpec, settings: KubernetesSettings) -> bool:
    """Return True if the job has certificates. Raises SemanticError if not all of its connections would be encrypted.

    The program of TO RUN has no peer.
    """
    if not settings.true("tls") or isinstance(spec, RunnableSpec):
        return False
    if spec.work == "train":
        check(spec.cluster, settings)
    return True


def check(cluster: Cluster, settings: KubernetesSettings) -> None:
    """Raise SemanticError if workers of a training with these settings would talk to each other without TLS."""
    if settings.true("tls") and cluster.strategy == "allreduce":
        raise SemanticError(
            "kubernetes.tls cannot encrypt the sockets of gloo and XGBoost, by which the workers of an all-reduce "
            "group exchange gradients, and those of trees histograms",
            hint="train networks on parameter servers (train.num_ps) and trees on one worker; or leave kubernetes.tls "
            "out, on a network that encrypts",
        )
