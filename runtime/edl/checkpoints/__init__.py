"""Stores of a job's checkpoints, through which instances read the files that others have written.

    folder                       folder that all instances see: the job's, on one machine; or on a volume
    master_client, master_store  disk of the master, over its port, where instances share no disk
    object_store                 object store, by fsspec
    local_copies                 common base of the last two: each instance has files of its own
    factory                      choice of the store

A checkpoint is a named folder of files. Its last file is published last, and completes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from edl.errors import JobError

POSITION = "position.msgpack"  # last file of a trainer's checkpoint; that of servers is their manifest


class GoneError(JobError):
    """Error of a checkpoint that does not exist any more."""


class CheckpointStore(Protocol):
    """View of one instance on the checkpoints of its job. `folder` is where it writes and reads files itself; it is
    `shared` if all instances see it.

    Methods may take long, and raise JobError or OSError if the store cannot be reached.
    """

    folder: Path
    shared: bool

    def publish(self, name: str, *files: str) -> None:
        """Publish complete files of `folder / name`. Others see each of them whole or not at all.

        The local files may be moved away.
        """
        ...

    def fetch(self, name: str, *files: str) -> Path:
        """Return `folder / name` with these files, or with all published ones if none is named.

        Files fetched under another name may be removed. Raises GoneError if the files do not exist any more.
        """
        ...

    def names(self, having: str = "") -> list[str]:
        """Return the sorted names of checkpoints; with `having`, of those in which this file was published."""
        ...

    def remove(self, name: str) -> None: ...

    def clear(self) -> None:
        """Remove all that is outside of the job's folder, after its end."""
        ...
