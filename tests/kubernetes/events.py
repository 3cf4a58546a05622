"""Events: what the cluster's parts say of a pod or a Job, for people who ask why it does not get on."""

from __future__ import annotations

import datetime as dt
import uuid

from tests.kubernetes.clock import Clock
from tests.kubernetes.kinds import EVENT, Key, Object
from tests.kubernetes.store import Store

SCHEDULER = "default-scheduler"
JOBS = "job-controller"
Said = tuple[str, str, str, str]  # uid, container, reason, message


class Events:
    """What is said again is counted, not said twice. The store's lock is held."""

    def __init__(self, store: Store, clock: Clock, node: str) -> None:
        self._store, self._clock, self._node = store, clock, node
        self._said: dict[Said, Key] = {}
        self._last = 0  # ns

    def of_node(self, pod: Object, of: str, reason: str, message: str, container: str = "") -> None:
        """`of`: the version of the pod that the node goes by. `container`: the path of its field."""
        told = self._told(pod, reason, message, _type(reason, message), of)
        if container:
            told["involvedObject"]["fieldPath"] = container
        told |= {"source": {"component": "kubelet", "host": self._node}, "eventTime": None}
        told |= {"firstTimestamp": self._clock.stamp(), "lastTimestamp": self._clock.stamp(), "count": 1}
        told |= {"reportingComponent": "kubelet", "reportingInstance": self._node}
        self._put((pod["metadata"]["uid"], container, reason, message), told)

    def of_scheduler(
        self, pod: Object, reason: str, message: str, action: str, related: Object | None = None
    ) -> None:
        told = self._told(pod, reason, message, _type(reason, message), "")
        told |= {"related": _reference(related)} if related else {}
        told |= {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": self._moment()}
        reporter = {"reportingComponent": SCHEDULER, "reportingInstance": f"{SCHEDULER}-{self._node}"}
        self._put((pod["metadata"]["uid"], "", reason, message), told | {"action": action, **reporter})

    def of_jobs(self, job: Object, reason: str, message: str, kind: str = "Normal") -> None:
        told = self._told(job, reason, message, kind, "")
        told |= {"source": {"component": JOBS}, "eventTime": None, "count": 1}
        told |= {"firstTimestamp": self._clock.stamp(), "lastTimestamp": self._clock.stamp()}
        told |= {"reportingComponent": JOBS, "reportingInstance": ""}
        self._put((job["metadata"]["uid"], "", reason, message), told)

    def _told(self, found: Object, reason: str, message: str, kind: str, of: str) -> Object:
        about = _reference(found)
        about["resourceVersion"] = of or about["resourceVersion"]
        return {"involvedObject": about, "reason": reason, "message": message, "type": kind}

    def _put(self, said: Said, told: Object) -> None:
        before = self._store.get(self._said[said]) if said in self._said else None
        if before is not None:
            self._store.put(self._said[said], _again(before, self._clock.stamp(), self._moment()))
            return
        metadata = told["involvedObject"]
        name = f"{metadata['name']}.{self._unique():x}"
        key = self._said[said] = Key(EVENT, metadata["namespace"], name)
        head = {"name": name, "namespace": key.namespace, "uid": str(uuid.uuid4())}
        head["creationTimestamp"] = self._clock.stamp()
        self._store.put(key, {"kind": EVENT.name, "apiVersion": EVENT.api_version, "metadata": head, **told})

    def _unique(self) -> int:
        self._last = max(self._last + 1, int(self._clock.now() * 1e9))
        return self._last

    def _moment(self) -> str:
        return dt.datetime.fromtimestamp(self._clock.now(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _reference(found: Object) -> Object:
    named = {name: found["metadata"][name] for name in ("namespace", "name", "uid", "resourceVersion")}
    return {"kind": found["kind"], "apiVersion": found["apiVersion"], **named}


def _type(reason: str, message: str) -> str:
    is_bad = reason.startswith("Failed") or reason == "Unhealthy" or message.startswith("Back-off restarting")
    return "Warning" if is_bad else "Normal"


def _again(before: Object, stamp: str, moment: str) -> Object:
    if "count" in before:
        return {**before, "count": before["count"] + 1, "lastTimestamp": stamp}
    count = before.get("series", {}).get("count", 1) + 1
    return {**before, "series": {"count": count, "lastObservedTime": moment}}
