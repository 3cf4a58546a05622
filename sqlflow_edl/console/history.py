"""What was typed, kept in a file of the user's state folder for the next console; never a password."""

from __future__ import annotations

import os
import re
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from edl.jobs.job_folder import state_folder

FILE = "history"

# Words beside which a password stands, and `user:password@` of a URL. Too much is left out rather than too little.
_SECRET = re.compile(
    r"passw|passphrase|\bpwd\b|identified|secret|credential|token|api_?key|access_?key|://[^/\s]*:[^/\s]*@",
    re.IGNORECASE,
)


def holds_secret(text: str) -> bool:
    """Whether it looks like that."""
    return bool(_SECRET.search(text))


class Kept(FileHistory):
    """A file of the user's alone. Of this console too, but not of the next, is what holds a secret."""

    def store_string(self, string: str) -> None:
        if not holds_secret(string):
            super().store_string(string)


def history() -> History:
    """That of the state folder; of this console alone where nothing can be written there."""
    path = state_folder() / FILE
    try:
        _prepare(path)
    except OSError:
        return InMemoryHistory()
    return Kept(path)


def _prepare(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
