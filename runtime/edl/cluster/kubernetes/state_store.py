"""State store of a master in a ConfigMap of its job.

Writes are optimistic: each names the version that it follows. A new master takes the store over by writing its own name
into it, and from then on all writes of earlier masters are refused.
"""

from __future__ import annotations

import base64
import secrets
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError, Calls, missing_right
from edl.cluster.kubernetes.deployment import Deployment
from edl.errors import ClusterError, DamagedError, JobError, SpecError, SQLFlowError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

LIMIT = (1 << 20) - 1024  # bytes in a ConfigMap besides the other key
KEY = "state.1"  # includes the version
HOLDER = "holder"

_Map = dict[str, Any]


class ConfigMapStateStore:
    """State store of a job, taken over by this master.

    Raises ClusterError if the ConfigMap is unavailable, or another master has taken it over, and JobError if it is gone
    or the account lacks a right to it. `patience` is the number of seconds to wait for the API server, by default those
    of the deployment's policy: training goes on meanwhile.
    """

    def __init__(self, api: ApiClient, deployment: Deployment, patience: float | None = None) -> None:
        self._calls = Calls(api, deployment.policy.longest_outage if patience is None else patience)
        folder = f"/api/v1/namespaces/{deployment.namespace}/configmaps"
        self._path = f"{folder}/{names.state_store(deployment.name)}"
        self._namespace = deployment.namespace
        self._job = f"/apis/batch/v1/namespaces/{deployment.namespace}/jobs/{deployment.name}"
        self._holder = secrets.token_hex(8)
        self._map = self._get()
        while not self._put({**(self._map.get("binaryData") or {})}):
            self._map = self._get()  # the previous master wrote in between

    def read(self) -> bytes | None:
        """Return the last written state, or None before the first write. Raises SpecError if it is damaged, or of
        another version.
        """
        kept = self._map.get("binaryData") or {}
        if kept and KEY not in kept:
            raise SpecError(f"the state of this job is of another version: {', '.join(sorted(kept))}")
        if KEY not in kept:
            return None
        try:
            return zlib.decompress(base64.b64decode(kept[KEY], validate=True))
        except (ValueError, zlib.error):
            raise DamagedError("the state of this job is damaged") from None

    def write(self, data: bytes) -> None:
        """Write the state and return when it is durable. Raises JobError if it is too large for a ConfigMap."""
        kept = pack_state(data)
        while not self._put(kept):
            stored = self._get()
            if (stored.get("data") or {}).get(HOLDER) != self._holder:
                raise ClusterError("this job has another master")
            self._map = stored
            if stored.get("binaryData") == kept:  # the answer was lost, not the write
                return

    def close(self) -> None:
        """Stop waiting for the API server."""
        self._calls.close()

    def _get(self) -> _Map:
        try:
            config_map: _Map = msgspec.json.decode(self._calls.ask("GET", self._path, is_needed=True))
        except APIRefusedError as error:
            if error.status == 404:
                raise self._absence() from None
            raise self._refusal(error, "read") from None
        return config_map

    def _put(self, kept: dict[str, str]) -> bool:
        """Write; return False after a conflict, with another writer or with an own write after a lost answer."""
        body = {**self._map, "data": {HOLDER: self._holder}, "binaryData": kept}
        try:
            self._map = msgspec.json.decode(self._calls.ask("PUT", self._path, body, is_needed=True))
        except APIRefusedError as error:
            if error.status == 404:
                raise self._absence() from None
            if error.status == 409:
                return False
            raise self._refusal(error, "written") from None
        return True

    def _refusal(self, error: APIRefusedError, what: str) -> SQLFlowError:
        lacking = missing_right(error, self._namespace)
        return lacking or ClusterError(f"the state of the job cannot be {what}: {error.message}")

    def _absence(self) -> SQLFlowError:
        """Return the error of a missing ConfigMap. Those of a deleted Job go before the pod of its master ends."""
        try:
            job = msgspec.json.decode(self._calls.ask("GET", self._job))
        except ClusterError:  # it is gone too, or may not be read
            return ClusterError("the job was deleted from the cluster")
        if "deletionTimestamp" in job["metadata"]:
            return ClusterError("the job was deleted from the cluster")
        name = self._path.rpartition("/")[2]
        return JobError(
            f"the ConfigMap {name} is gone, and with it the state of the job",
            hint="the audit log of the cluster tells who deleted it",
        )


def pack_state(data: bytes) -> dict[str, str]:
    """Return the binary data of a ConfigMap with this state. Raises JobError if it is too large for one."""
    packed = zlib.compress(data)
    if len(packed) > LIMIT:
        size = len(packed) / (1 << 20)
        raise JobError(
            f"the state of the job has grown to {size:.1f} MiB, more than a ConfigMap takes",
            hint="use fewer workers, or fewer and simpler metrics",
        )
    return {KEY: base64.b64encode(packed).decode()}
