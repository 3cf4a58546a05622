"""Stores of a job's checkpoints, through which instances read the files that others have written.

    folder                       folder that all instances see: the job's, on one machine; or on a volume
    master_client, master_store  disk of the master, over its port, where instances share no disk
    object_store                 object store, by fsspec
    local_copies                 common base of the last two: each instance has files of its own
    factory                      choice of the store
    integrity                    checksums of files, for every kind of checkpoint
    trainer                      checkpoints of a trainer; parameter servers have `edl.ps.checkpoint`

A checkpoint is a named folder of files. Its last file is published last, and completes it. Then the master adds its own
state of that moment, from which the job can be resumed if the state store is lost. A checkpoint that is found damaged
is marked by a file with the reason. It is never resumed from, and only removed with the job.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from edl.errors import JobError
from edl.files import replace_file

POSITION = "position.msgpack"  # last file of a trainer's checkpoint; servers end theirs with the manifest
STATE = "state"  # state of the master, added once the checkpoint is complete
FIRST_SECS = 10.0  # seconds of training until its first checkpoint, if the setting in seconds is longer
DAMAGED = "damaged.txt"  # mark of a checkpoint that is damaged: the reason


class GoneError(JobError):
    """Error of a checkpoint that does not exist any more."""


class Facts(NamedTuple):
    """Size of a checkpoint in bytes, and the time of its newest file in seconds of `time.time`; None for unknown."""

    bytes: int | None = None
    written: float | None = None


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

    def facts(self, name: str) -> Facts: ...

    def remove(self, name: str) -> None: ...

    def clear(self) -> None:
        """Remove all that is outside of the job's folder, after its end."""
        ...


def sound_names(store: CheckpointStore, last: str) -> list[str]:
    """Return the sorted names of checkpoints that are complete by their file `last` and not known to be damaged."""
    damaged = {*store.names(DAMAGED)}
    return [name for name in store.names(last) if name not in damaged]


def mark_damaged(store: CheckpointStore, name: str, why: str) -> None:
    """Mark a checkpoint as damaged. Raises OSError or JobError if that fails."""
    folder = store.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / DAMAGED, f"{why}\n".encode())
    store.publish(name, DAMAGED)
