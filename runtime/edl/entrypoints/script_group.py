"""Process group of a script's workers without a common folder: rank 0 announces its address through the master."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edl.cluster import Instance
from edl.cluster.environment import own_host
from edl.errors import SpecError
from edl.jobs.job_folder import JobFolder
from edl.jobs.script_run import WORKLOAD, Attempt, attempt_file
from edl.run.script_files import fetch_file, send
from edl.run.storage import relay_of

if TYPE_CHECKING:
    from edl.checkpoints.master_client import Relay

LOOK_SECS = 0.5  # between two questions for the address


def meet(job: Path, instance: Instance) -> Attempt:
    """Return this start of all workers, when rank 0 has announced where its process group is.

    A worker that comes when others train together has no use for the group, and does not wait.
    """
    relay, file = relay_of(JobFolder(job)), f"group-{instance.incarnation}.json"
    announced = _read_announcement(relay, instance)
    if instance.name == "worker-0":
        attempt = msgspec.structs.replace(announced, port=_free_port(), host=own_host())
        send(relay, file, msgspec.json.encode(attempt))
        return attempt
    while True:
        if (content := fetch_file(relay, file)) is not None:
            try:
                return msgspec.json.decode(content, type=Attempt)
            except msgspec.MsgspecError as error:
                raise SpecError(f"the address of worker-0 is damaged: {error}") from None
        if fetch_file(relay, WORKLOAD) is not None:
            return announced
        time.sleep(LOOK_SECS)


def _read_announcement(relay: Relay, instance: Instance) -> Attempt:
    """Return this start of all workers as the master has it, without a process group of its own."""
    content = fetch_file(relay, attempt_file(instance.incarnation))
    if content is None:
        return Attempt(instance.incarnation, 0)
    return msgspec.structs.replace(msgspec.json.decode(content, type=Attempt), port=0)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((own_host(), 0))
        port: int = free.getsockname()[1]
        return port
