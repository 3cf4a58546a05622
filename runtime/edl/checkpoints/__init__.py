"""Where the checkpoints of a job are kept, so that an instance finds what another one has written.

    folder    a folder that all instances see: of the job, on one machine; or on a volume
    relay     the disk of the master, over its port, where instances share no disk; `keeper` is its other end
    objects   an object store, by fsspec
    copies    what the last two have in common: each instance has files of its own
    opening   which of them a job has

A checkpoint is a folder of files with a name. Its last file is published last, and makes it complete.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from edl.errors import JobError

POSITION = "position.msgpack"  # the last file of a trainer's checkpoint; that of servers' is their manifest


class GoneError(JobError):
    """A checkpoint is not there any more."""


class CheckpointStore(Protocol):
    """What one instance sees of the checkpoints of its job. folder: where it writes and reads the files itself.

    Methods may take long, and raise JobError or OSError where the store cannot be reached.
    """

    folder: Path

    def publish(self, name: str, *files: str) -> None:
        """These files of `folder / name` are complete; each is there for all others when it is there as a whole.

        They may be moved away.
        """
        ...

    def fetch(self, name: str, *files: str) -> Path:
        """`folder / name`, where these files are now; all that were published, where none is named.

        It may take what was fetched under another name away. GoneError: they are not there any more.
        """
        ...

    def names(self, having: str = "") -> list[str]:
        """Of checkpoints, in their order; having: of those in which this file was published."""
        ...

    def remove(self, name: str) -> None: ...

    def clear(self) -> None:
        """The job is over: remove all that is kept outside of its folder."""
        ...
