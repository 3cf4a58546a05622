"""Implementation of `Cluster` with pods.

Each instance is a pod, owned by the job's Job. The name of a pod includes the incarnation, so that a request may be
repeated: an existing pod of that name is the requested one.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from edl.cluster import Change, Instance, NoRoomError, Room
from edl.cluster.kubernetes import names, pod_manifests
from edl.cluster.kubernetes.api_calls import (
    PATIENCE,
    APIRefusedError,
    APIUnreachableError,
    Calls,
    missing_right,
)
from edl.cluster.kubernetes.deployment import Deployment
from edl.cluster.kubernetes.pod_cache import PodCache
from edl.cluster.kubernetes.pod_manifests import PodGroup
from edl.cluster.kubernetes.pod_state import is_never_admitted
from edl.cluster.kubernetes.pods import Metadata, Pod, PodList
from edl.cluster.kubernetes.watch import PodStream
from edl.errors import ClusterError, JobError
from edl.logs import log

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

WATCH_SECS = 60.0
LOOK_SECS = 1.0  # interval of checks for stuck and superseded pods
PAGE = 500  # pods per request
LEAST_GRACE = 1  # seconds; with 0, the server forgets a pod that may still run
TIDYING = 4  # threads that delete superseded pods
AT_ONCE = 32
SHORT = 3.0  # patience in seconds of calls that are repeated soon anyway

Changes = list[Change]  # defined here, because inside KubernetesCluster `list` is its method

_lists = msgspec.json.Decoder(PodList)


class KubernetesCluster:
    """Pods of one job. Thread-safe.

    `workers` is the number of workers in the JobSpec. `watch_secs` is the duration of one watch. `patience` has the
    meaning of `Calls.patience`.
    """

    room: Room | None = None  # Kubernetes queues pods without limit

    def __init__(
        self,
        api: ApiClient,
        deployment: Deployment,
        workers: int,
        *,
        watch_secs: float = WATCH_SECS,
        patience: float = PATIENCE,
    ) -> None:
        self._calls = Calls(api, patience)
        self._deployment, self._workers, self._watch_secs = deployment, workers, watch_secs
        self._path = f"/api/v1/namespaces/{deployment.namespace}/pods"
        self._selector = names.selector(deployment.name)
        self._lock = threading.Lock()
        self._cache = PodCache(deployment)
        self._told: set[str] = set()  # avoided nodes that were logged
        self._newest: dict[str, int] = {}  # last started incarnation by name
        self._group = PodGroup(deployment)
        self._version = ""
        self._closed = threading.Event()
        self._stream: PodStream | None = None
        self._tidying = ThreadPoolExecutor(TIDYING, "edl-tidy")

    def start(self, instance: Instance) -> None:
        """Create the instance's pod.

        Raises NoRoomError also if the server does not answer: repeating the request shows if the pod was created.
        Raises LackingRightError if the account may not create pods, as `list` does if it may not list them.
        """
        name, incarnation = instance.key
        with self._lock:
            newest = self._newest.get(name, -1)
            memory, avoided = self._cache.memory(name), self._update_avoided_nodes()
            group = "" if memory is not None or avoided else self._group.join(instance, self._cache.has_ended)
        if incarnation == newest:
            return
        if incarnation < newest:
            raise ClusterError(f"{name} has reached incarnation {newest}, later than {incarnation}")
        try:
            manifest = pod_manifests.pod(self._deployment, instance, self._workers, memory, avoided, group)
            self._calls.ask("POST", self._path, manifest, is_needed=True)
        except APIUnreachableError as error:
            raise NoRoomError(error.message) from None
        except APIRefusedError as error:
            self._accept(instance, error)
        with self._lock:
            self._newest[name] = max(incarnation, self._newest.get(name, -1))

    @property
    def _has_run(self) -> bool:
        """True if an instance of the job has run: others may go on with it."""
        with self._lock:
            return self._cache.has_run

    @property
    def unfit(self) -> frozenset[str]:
        """Names of the instances on nodes that the job avoids."""
        with self._lock:
            return self._cache.unfit

    def _update_avoided_nodes(self) -> dict[str, int]:
        """Return the nodes to avoid, and log the new ones."""
        failures = self._cache.avoided_nodes
        for node in failures.keys() - self._told:
            log(f"pods of the job avoid {node} from now on: {failures[node]} instances have failed there")
        self._told = set(failures)
        return failures

    def stop(self, instance: Instance, grace: float) -> None:
        with self._lock:
            self._cache.stopping(instance.key)
        options: dict[str, object] = {"gracePeriodSeconds": max(LEAST_GRACE, math.ceil(grace))}
        self._delete(names.pod(self._deployment.name, instance), options)

    def list(self) -> list[Change]:
        try:
            pods, version = _read_all(self._calls, self._path, self._selector)
        except APIRefusedError as error:
            raise missing_right(error, self._deployment.namespace) or error from None
        with self._lock:
            changes = self._cache.replace_pods(pods)
            self._version = version
            for change in changes:
                name, incarnation = change.instance.key
                self._newest[name] = max(incarnation, self._newest.get(name, -1))
            self._group.observe(pods)
        return changes

    def poll(self) -> Changes:
        """Return the states as `list` does, after stuck pods were given up: for callers that do not watch.

        An instance with a deleted pod is reported once.
        """
        changes = {change.instance.key: change for change in self.list()}
        for change in self._look():
            if isinstance(change, Change):
                changes[change.instance.key] = change
        self._tidy()
        return [*changes.values()]

    def end_of(self, instance: Instance) -> Change | None:
        """Return the end of an instance with a deleted pod, also after its report; None for another instance."""
        with self._lock:
            return self._cache.end_of(instance.key)

    def watch(self) -> Iterator[Change | Room]:
        """Yield changes since the last `list`, or the present states first if there was none."""
        if not self._version:
            yield from self.list()
        stream = PodStream(self._calls, self._path, self._selector, self._version, self._watch_secs)
        self._stream = stream
        look_at = 0.0
        try:
            while not self._closed.is_set():
                news = stream.next(LOOK_SECS)
                if news is not None and (change := self._receive(*news)) is not None:
                    yield change
                if time.monotonic() >= look_at:
                    yield from self._look()
                    self._tidy()
                    look_at = time.monotonic() + LOOK_SECS
        finally:
            stream.close()

    def end_all(self, grace: float) -> None:
        """Stop all instances that have not ended, several at once. Ended pods stay for their logs, until the Job is
        deleted.
        """
        present = [change.instance for change in self.list() if change.state != "ended"]
        with ThreadPoolExecutor(AT_ONCE, "edl-stop") as stopping:
            for _ in stopping.map(partial(self.stop, grace=grace), present):
                pass

    def close(self) -> None:
        self._closed.set()
        self._calls.close()
        if self._stream is not None:
            self._stream.close()
        self._tidying.shutdown(wait=False, cancel_futures=True)

    def _accept(self, instance: Instance, refused: APIRefusedError) -> None:
        """Raise the error for a refused pod, unless it exists already."""
        if refused.reason == "AlreadyExists":
            if not self._is_ours(names.pod(self._deployment.name, instance)):
                raise ClusterError(f"{refused.message}, and it belongs to another job")
            return
        if not self._has_run and is_never_admitted(refused.message):
            raise JobError(
                f"the cluster never admits {instance.name}: {refused.message}",
                hint=f"kubernetes.{instance.role}_memory and kubernetes.{instance.role}_cpu ask for less, or have the "
                "limit of the namespace raised",
            )
        if refused.status == 403 and "exceeded quota" in refused.message:
            raise NoRoomError(refused.message)
        if (lacking := missing_right(refused, self._deployment.namespace)) is not None:
            raise lacking
        raise ClusterError(f"the cluster refuses {instance.name}: {refused.message}")

    def _is_ours(self, name: str) -> bool:
        """Return True if the pod belongs to this job. A deleted one does: the job chose its name.

        It is listed, not read, because the master may list it anyway.
        """
        page = self._calls.ask("GET", self._path, query={"fieldSelector": f"metadata.name={name}"})
        return all(self._owns(pod.metadata) for pod in _lists.decode(page).items)

    def _owns(self, metadata: Metadata) -> bool:
        owners = {owner.uid for owner in metadata.owner_references or ()}
        return (
            self._deployment.uid in owners
            and (metadata.labels or {}).get(names.JOB_ID) == self._deployment.job
        )

    def _delete(self, pod: str, options: dict[str, object], patience: float | None = None) -> bool:
        """Delete a pod; return False if it does not exist, or does not meet the preconditions in `options`."""
        try:
            self._calls.ask("DELETE", f"{self._path}/{pod}", options, patience=patience)
        except APIRefusedError as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    def _receive(self, pod: Pod, is_there: bool) -> Change | None:
        with self._lock:
            return self._cache.update_pod(pod) if is_there else self._cache.delete_pod(pod)

    def _look(self) -> Iterator[Change]:
        """Give up stuck pods and yield their changes."""
        with self._lock:
            given_up = self._cache.given_up(time.monotonic())
        for pod, verdict in given_up:
            if not verdict.withdraw or self._withdraw(pod, unchanged=verdict.reason == "no room"):
                with self._lock:
                    change = self._cache.give_up(pod, verdict)
                if change is not None:
                    yield change

    def _withdraw(self, pod: Pod, *, unchanged: bool) -> bool:
        """Delete a stuck pod; return False if that has to be retried. With `unchanged`, only if it has made no
        progress.
        """
        metadata = pod.metadata
        before = {"uid": metadata.uid}
        if unchanged:
            before["resourceVersion"] = metadata.resource_version
        try:
            return self._delete(
                metadata.name, {"gracePeriodSeconds": LEAST_GRACE, "preconditions": before}, SHORT
            )
        except ClusterError:
            return False

    def _tidy(self) -> None:
        """Delete ended pods that are no longer needed, in the background."""
        with self._lock:
            superseded = self._cache.list_superseded()
        with contextlib.suppress(RuntimeError):  # the pool is closed
            for pod in superseded:
                options: dict[str, object] = {"preconditions": {"uid": pod.metadata.uid}}
                self._tidying.submit(self._delete, pod.metadata.name, options)


def _read_all(calls: Calls, path: str, selector: str) -> tuple[list[Pod], str]:
    """Return all pods and the version of their list. If the list's pages expire, it is read again in one request."""
    query: dict[str, str | int] = {"labelSelector": selector, "limit": PAGE}
    pods: list[Pod] = []
    while True:
        try:
            page = _lists.decode(calls.ask("GET", path, query=query, is_needed=True))
        except APIRefusedError as error:
            if error.status != 410:
                raise
            pods, query = [], {"labelSelector": selector}
            continue
        except (msgspec.DecodeError, UnicodeDecodeError) as error:  # else it would end the watching thread
            raise ClusterError(f"the list of pods cannot be read: {error}") from None
        pods += page.items
        if not page.metadata.continue_:
            return pods, page.metadata.resource_version
        query["continue"] = page.metadata.continue_
