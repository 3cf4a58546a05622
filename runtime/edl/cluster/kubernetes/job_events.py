"""Events of a Job, so that `kubectl describe job` tells what its master notes: lost instances, waits, resumptions.

The right to create events is optional. Without it, and while the API server does not answer, notes are in the log of
the master alone.
"""

from __future__ import annotations

import queue
import re
import secrets
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError, Calls
from edl.cluster.kubernetes.deployment import Deployment
from edl.logs import log

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

PATIENCE = 5.0  # seconds to retry the API server
MOST_WAITING = 100  # notes that wait to be sent; others are left out
LAST_SECS = 2.0  # for the last notes, when the master ends
LONGEST = 1024  # characters of a message that the API server takes

# Reason and type of a note by the words in it; the first row with them counts.
_REASONS = (
    (re.compile(r"ran out of memory"), "OutOfMemory", "Warning"),
    (re.compile(r" waits: |there is no room"), "NoRoom", "Warning"),
    (re.compile(r"training (resumes|restarts)|is resumed"), "Resumed", "Normal"),
    (re.compile(r"the next master continues"), "MasterReplaced", "Normal"),
    (re.compile(r"preempted|evicted|is to end"), "Preempted", "Normal"),
    (re.compile(r"is paused"), "Paused", "Normal"),
    (re.compile(r"^workers: |^parameter servers: |automatic number"), "Scaled", "Normal"),
    (re.compile(r"not reach|left out of the group"), "Unreachable", "Warning"),
    (re.compile(r"\blost\b|killed|failed|crashed|is stopped|did not join"), "InstanceLost", "Warning"),
)
OTHER = ("Note", "Normal")


class JobEvents:
    """Writer of the events, in a thread of its own, so that callers never wait."""

    def __init__(self, api: ApiClient, deployment: Deployment) -> None:
        self._calls = Calls(api, PATIENCE)
        self._deployment = deployment
        self._path = f"/api/v1/namespaces/{deployment.namespace}/events"
        self._notes: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="edl-events", daemon=True)
        self._thread.start()

    def log(self, text: str) -> None:
        """Write the text to the log, and make an event of it."""
        log(text)
        if not self._notes.full():
            self._notes.put(text)

    def close(self) -> None:
        """Send what waits, within a time limit, and stop."""
        if not self._notes.full():
            self._notes.put(None)
        self._thread.join(LAST_SECS)
        self._calls.close()

    def _run(self) -> None:
        while (text := self._notes.get()) is not None:
            try:
                self._calls.ask("POST", self._path, self._manifest(text))
            except APIUnreachableError:  # the log has it
                continue
            except APIRefusedError as error:
                if error.is_right_missing:
                    return

    def _manifest(self, text: str) -> dict[str, object]:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        reason, kind = reason_of(text)
        about = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": self._deployment.name,
            "namespace": self._deployment.namespace,
            "uid": self._deployment.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{self._deployment.name}.{secrets.token_hex(8)}"},
            "involvedObject": about,
            "reason": reason,
            "type": kind,
            "message": text[:LONGEST],
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": names.APP},
            "reportingComponent": names.APP,
            "reportingInstance": self._deployment.name,
        }


def reason_of(text: str) -> tuple[str, str]:
    """Return the reason and the type of the event for a note: `Normal` or `Warning`."""
    return next(((reason, kind) for words, reason, kind in _REASONS if words.search(text)), OTHER)
