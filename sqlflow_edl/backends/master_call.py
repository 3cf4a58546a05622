"""Calls to the master of a job on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder

if TYPE_CHECKING:
    from edl.rpc.channel import MasterChannel

T = TypeVar("T")
PATIENCE = 20.0  # seconds for a master that starts, or is replaced
CALL_SECS = 10.0
POLL = 0.1


def call(job: JobFolder, make: Callable[[MasterChannel], T]) -> T:
    """Make a call to the master of a running job; repeat it while a master starts.

    Raises ClusterError if the job has ended, or its master does not answer.
    """
    from edl.rpc.channel import AwayError, MasterChannel

    folder = ClusterFolder(job.path)
    end = time.monotonic() + PATIENCE
    with MasterChannel(folder.address(), folder.token()) as channel:
        while True:
            try:
                return make(channel)
            except AwayError:
                if not job.status().is_alive:
                    raise ClusterError(f"job {job.id} has ended meanwhile") from None
                if time.monotonic() >= end:
                    raise
            time.sleep(POLL)
