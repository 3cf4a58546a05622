"""Metadata common to all objects of a job: name, namespace, owner, labels and annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edl.cluster.kubernetes import names, pod_manifests
from edl.cluster.kubernetes.names import PodRole
from edl.spec import JobSpec
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.backends.kubernetes.manifests.rendering import Object
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a job in the cluster.

    name: of the Job. job: its id. labels, annotations: the user's, which are added to ours.
    """

    name: str
    namespace: str
    job: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @classmethod
    def of(
        cls, job: str, spec: JobSpec | RunnableSpec, settings: KubernetesSettings, namespace: str
    ) -> Identity:
        called = (spec.output.name or spec.kind) if spec.kind == "train" else spec.kind
        name = names.job_name(called, job)
        return cls(name, namespace, job, settings.pairs("labels"), settings.pairs("annotations"))

    def metadata(self, name: str, *, owner: str = "") -> Object:
        """Return the metadata of an object. owner: uid of the Job; the object is deleted with the Job."""
        result: Object = {"name": name, "namespace": self.namespace, **self.describe()}
        if owner:
            result["ownerReferences"] = [pod_manifests.owner_reference(self.name, owner)]
        return result

    def describe(self, role: PodRole | None = None, queue: Mapping[str, str] | None = None) -> Object:
        """Return labels and annotations. role: of a pod. queue: labels for Kueue."""
        labels = {**self.labels, **names.labels(self.name, self.job, role), **(queue or {})}
        return {"labels": labels, **({"annotations": dict(self.annotations)} if self.annotations else {})}
