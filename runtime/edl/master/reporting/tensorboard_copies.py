"""Copies of a job's TensorBoard files next to its checkpoints, on a volume or in a bucket.

They are for a job with a folder that ends with its pod.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from edl.checkpoints.object_store import open_file_system

SECS = 30.0  # seconds between two copies
LAST_SECS = 10.0  # timeout of the last copy


class CurveCopies:
    """Background copier of the event files in `folder` to `place`, a folder or a URL. `log` logs the first failure."""

    def __init__(self, folder: Path, place: str, log: Callable[[str], None]) -> None:
        self._folder = folder
        self._place = place
        self._log = log
        self._sent: dict[str, int] = {}  # copied bytes of each file
        self._failed = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="edl-curves", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Copy the remaining files and stop. Blocks for `LAST_SECS` at most."""
        self._closed.set()
        self._thread.join(LAST_SECS)

    def _run(self) -> None:
        while not self._closed.wait(SECS):
            self._send()
        self._send()

    def _send(self) -> None:
        try:
            system, root = open_file_system(self._place)
            for path in sorted(self._folder.glob("*")):
                size = path.stat().st_size
                if self._sent.get(path.name) != size:
                    system.makedirs(root, exist_ok=True)
                    system.put_file(str(path), f"{root}/{path.name}")
                    self._sent[path.name] = size
        except Exception as error:  # libraries of stores raise any type
            if not self._failed:
                self._log(f"the curves of the job cannot be copied to {self._place}: {error}")
            self._failed = True
