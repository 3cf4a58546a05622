"""Models of an image, as a pod of it lists them: a Job that runs for a second before a training is compiled."""

from __future__ import annotations

import contextlib
import secrets
import time

import msgspec

from edl.cluster.kubernetes import names, pod_state
from edl.cluster.kubernetes.api_calls import APIRefusedError, Calls
from edl.cluster.kubernetes.connect import connect, current_context
from edl.cluster.kubernetes.pods import Pod
from edl.errors import ClusterError
from edl.installation import VERSION
from edl.program.image_models import ImageSources, from_lines
from sqlflow_edl.backends.kubernetes import permissions
from sqlflow_edl.backends.kubernetes.apply import namespace_of
from sqlflow_edl.backends.kubernetes.manifests.rendering import render
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings

LIMIT = 300.0  # seconds for the image to be pulled and to answer
POLL = 0.2
PARTING = 10.0  # seconds to retry the removal of the Job
_HOPELESS = ("InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError")


def read_sources(image: str, settings: KubernetesSettings) -> ImageSources:
    """Return the build and the models of an image. settings: of the job that will train one of them.

    Raises ClusterError if no pod of the image runs, with the reason, SpecError if it lists no models.
    """
    context, namespace = settings.text("context") or current_context(), namespace_of(settings)
    name = f"{names.APP}-image-{secrets.token_hex(4)}"
    with connect(context) as api:
        pod = _SourcesPod(Calls(api), image, f"/apis/batch/v1/namespaces/{namespace}/jobs", namespace, name)
        pod.start(settings)
        try:
            pod.wait()
            return from_lines(pod.log(), image)
        finally:
            pod.remove()


class _Pods(msgspec.Struct):
    items: list[Pod]


class _SourcesPod:
    """Job with the pod that lists the models."""

    def __init__(self, calls: Calls, image: str, jobs: str, namespace: str, name: str) -> None:
        self._calls = calls
        self._image = image
        self._jobs = jobs
        self._namespace = namespace
        self._name = name
        self._pods = f"/api/v1/namespaces/{namespace}/pods"

    def start(self, settings: KubernetesSettings) -> None:
        labels = {"app.kubernetes.io/name": names.APP, names.NAME: self._name}
        job = render(
            "image_sources",
            metadata={"name": self._name, "namespace": self._namespace, "labels": labels},
            labels={"labels": labels},
            image=self._image,
            seconds=int(LIMIT),
            pull_policy=settings.text("image_pull_policy"),
            pull_secrets=[{"name": name} for name in settings.texts("image_pull_secrets")],
            node_selector=settings.pairs("node_selector"),
            user=settings.whole("run_as_user"),
            env=settings.pairs("env"),
        )
        try:
            self._calls.ask("POST", self._jobs, job, {"fieldValidation": "Strict"})
        except APIRefusedError as refused:
            right = permissions.Right("create", "batch", "jobs")
            raise permissions.explain_refusal(refused, right, self._namespace) from None

    def wait(self) -> None:
        """Wait until the pod has ended well. Raises ClusterError otherwise, with the reason."""
        end, why = time.monotonic() + LIMIT, "its pod was not made"
        while time.monotonic() < end:
            pod = self._find()
            if pod is not None and pod.status.phase == "Succeeded":
                return
            if pod is not None and pod.status.phase == "Failed":
                last = next(
                    filter(None, reversed([line.strip() for line in self.log()])), "it printed nothing"
                )
                raise self._error(f"its pod failed: {last}")
            why = (pod_state.pending_reason(pod) if pod is not None else "") or why
            if any(why.startswith(reason) for reason in _HOPELESS):
                raise self._error(why)
            time.sleep(POLL)
        raise self._error(f"it did not answer within {LIMIT:g} s: {why}")

    def log(self) -> list[str]:
        """Return the lines that the pod has printed."""
        pod = self._find()
        if pod is None:
            return []
        return (
            self._calls.ask("GET", f"{self._pods}/{pod.metadata.name}/log")
            .decode("utf-8", "replace")
            .splitlines()
        )

    def remove(self) -> None:
        """Delete the Job with its pod; if that fails, the cluster does it after a minute."""
        with contextlib.suppress(ClusterError):
            options = {"propagationPolicy": "Background"}
            self._calls.ask("DELETE", f"{self._jobs}/{self._name}", options, patience=PARTING)

    def _find(self) -> Pod | None:
        """Return the pod of the Job, or None before there is one."""
        query: dict[str, str | int] = {"labelSelector": f"{names.NAME}={self._name}"}
        answer = self._calls.ask("GET", self._pods, None, query)
        return next(iter(msgspec.json.decode(answer, type=_Pods).items), None)

    def _error(self, why: str) -> ClusterError:
        return ClusterError(
            f"the image {self._image} does not say which models it has: {why}",
            hint=f"its pod runs python -m edl.entrypoints.image_sources of sqlflow-edl {VERSION}; build it from this "
            "project's image, see sqlflow help images",
        )
