"""Wishes of clients to the master of a job, as annotations of its Job: the numbers of workers and servers, and a pause.

No call reaches a master from outside of its cluster, but whoever started the job may patch the Job. An annotation stays
until it is changed, so a master that starts finds the wishes too.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from edl.cluster import Wishes
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIUnreachableError, Calls
from edl.cluster.kubernetes.deployment import Deployment
from edl.cluster.kubernetes.pods import Metadata
from edl.errors import ClusterError
from edl.logs import log

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

PATIENCE = 10.0  # seconds to retry the API server


class _Job(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)


class JobWishes:
    """Reader of the wishes. It blocks; one thread at a time may call it."""

    def __init__(self, api: ApiClient, deployment: Deployment) -> None:
        self._calls = Calls(api, PATIENCE)
        self._path = f"/apis/batch/v1/namespaces/{deployment.namespace}/jobs/{deployment.name}"
        self._last = Wishes()
        self._has_failed = False

    def read(self) -> Wishes:
        """Return the present wishes, or the last ones if the Job cannot be read; a reason that lasts is logged once."""
        try:
            job = msgspec.json.decode(self._calls.ask("GET", self._path), type=_Job)
        except APIUnreachableError:  # those who wait for the API server tell of it
            return self._last
        except (ClusterError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            if not self._has_failed:
                log(
                    f"`sqlflow pause` and `sqlflow scale` have no effect, because the Job cannot be read: {error}"
                )
            self._has_failed = True
            return self._last
        self._has_failed = False
        self._last = wishes_of(job.metadata)
        return self._last

    def close(self) -> None:
        """Stop waiting for the API server."""
        self._calls.close()


def wishes_of(job: Metadata) -> Wishes:
    """Return the wishes that a Job is annotated with; a number that is none is ignored."""
    notes = job.annotations or {}
    workers, servers = (_number(notes.get(name, "")) for name in (names.WORKERS, names.SERVERS))
    cancelled = names.CANCELLED in notes or job.deletion_timestamp is not None
    return Wishes(
        workers, notes.get(names.PAUSED) == "true", servers, notes.get(names.RESUMED, ""), cancelled
    )


def _number(text: str) -> int | None:
    with contextlib.suppress(ValueError):
        return number if (number := int(text)) > 0 else None
    return None
