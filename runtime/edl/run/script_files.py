"""Files that the workers of a script exchange in pods: the master keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl.checkpoints import GoneError
from edl.jobs.cluster_folder import SCRIPT

if TYPE_CHECKING:
    from edl.checkpoints.master_client import Relay


def send(relay: Relay, file: str, content: bytes) -> None:
    """Send a file to the master for the other workers."""
    path = relay.folder / SCRIPT / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    relay.publish(SCRIPT, file)


def fetch_file(relay: Relay, file: str) -> bytes | None:
    """Return a file that a worker has sent to the master, or None if there is none."""
    try:
        return (relay.fetch(SCRIPT, file) / file).read_bytes()
    except GoneError:
        return None
