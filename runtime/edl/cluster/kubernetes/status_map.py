"""Status of a job in a ConfigMap, for clients that do not follow its log: present figures, and its end.

A ConfigMap takes 1 MiB. The figures of thousands of instances are more, and compressed a tenth of that.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import threading
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError, Calls
from edl.cluster.kubernetes.deployment import Deployment
from edl.errors import ClusterError
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

INTERVAL = 5.0  # seconds between two writes
LAST_SECS = 120.0  # timeout of writing the end, which no other process would write later
SNAPSHOT, END = "snapshot.json", "end.json"
PACKED = "snapshot.json.zlib"  # in base64, in the place of a longer one
PLAIN = 64 << 10  # bytes of a snapshot that stays readable for people
LIMIT = 960 << 10  # bytes of the packed one; one that is longer lists no instances
_LONGEST = 256 << 20  # bytes that are unpacked

End = Outcome | Failed

_ends: msgspec.json.Decoder[End] = msgspec.json.Decoder(End)


class StatusMap:
    """Writer of the status, in a thread of its own, so that callers never wait. `interval` is the seconds between two
    writes.
    """

    def __init__(self, api: ApiClient, deployment: Deployment, interval: float = INTERVAL) -> None:
        self._calls = Calls(api, LAST_SECS)
        self._path = f"/api/v1/namespaces/{deployment.namespace}/configmaps/{names.status(deployment.name)}"
        self._interval = interval
        self._data: dict[str, str] = {}
        self._changed = threading.Condition()
        self._unwritten = self._ended = self._closed = False
        self._thread = threading.Thread(target=self._run, name="edl-board", daemon=True)
        self._thread.start()

    def show(self, snapshot: Snapshot) -> None:
        self._set(_pack_snapshot(snapshot))

    def end(self, end: End) -> None:
        """Publish the end of the job at once."""
        self._set({END: msgspec.json.encode(end).decode()})

    def close(self) -> None:
        """Write pending changes, within a time limit, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(LAST_SECS)
        self._calls.close()

    def _set(self, news: dict[str, str]) -> None:
        """Replace the end, or else the snapshot."""
        with self._changed:
            kept = {key: value for key, value in self._data.items() if (key == END) != (END in news)}
            self._data = {**kept, **news}
            self._unwritten, self._ended = True, self._ended or END in news
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._unwritten)
                if not self._unwritten:
                    return
                data, self._unwritten = self._data, False
            with contextlib.suppress(ClusterError):  # the next write repeats it
                self._write(data)
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._ended, self._interval)

    def _write(self, data: dict[str, str]) -> None:
        """Replace the data. Only this master writes them. A conflict is a change of labels or owners."""
        while True:
            config_map: dict[str, Any] = msgspec.json.decode(
                self._calls.ask("GET", self._path, is_needed=True)
            )
            try:
                self._calls.ask("PUT", self._path, {**config_map, "data": data}, is_needed=True)
                return
            except APIRefusedError as error:
                if error.status != 409:
                    raise


def _pack_snapshot(snapshot: Snapshot) -> dict[str, str]:
    """Return the snapshot as an entry of the data, packed if it is long."""
    plain = msgspec.json.encode(snapshot)
    if len(plain) <= PLAIN:
        return {SNAPSHOT: plain.decode()}
    packed = base64.b64encode(zlib.compress(plain)).decode()
    if len(packed) <= LIMIT:
        return {PACKED: packed}
    return _pack_snapshot(msgspec.structs.replace(snapshot, instances=(), members=()))


def read_snapshot(data: dict[str, str]) -> Snapshot | None:
    """Return the snapshot in the ConfigMap's data, or None if it is missing or cannot be read."""
    try:
        if PACKED in data:
            packed = base64.b64decode(data[PACKED], validate=True)
            return msgspec.json.decode(zlib.decompressobj().decompress(packed, _LONGEST), type=Snapshot)
        return msgspec.json.decode(data.get(SNAPSHOT, ""), type=Snapshot)
    except (msgspec.MsgspecError, UnicodeDecodeError, binascii.Error, zlib.error):
        return None


def read_end(data: dict[str, str]) -> End | None:
    """Return the end of the job, or None if it runs, as far as is known."""
    try:
        return _ends.decode(data.get(END, ""))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
