"""History of the prompt, in a file of the user's state folder; never with a password."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from edl.jobs.job_folder import state_folder
from sqlflow_edl.session.secrets import holds_secret

FILE = "history"


class Kept(FileHistory):
    """History file that only the user can read. A text with a secret stays in memory only.

    size: number of texts to offer, the latest ones.
    """

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(path)
        self._size = size

    def load_history_strings(self) -> Iterable[str]:
        return islice(super().load_history_strings(), self._size)

    def store_string(self, string: str) -> None:
        if not holds_secret(string):
            super().store_string(string)


def history(size: int) -> History:
    """Open the history of the state folder, or one in memory if that folder is not writable."""
    path = state_folder() / FILE
    try:
        _prepare(path)
    except OSError:
        return InMemoryHistory()
    return Kept(path, size)


def _prepare(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
