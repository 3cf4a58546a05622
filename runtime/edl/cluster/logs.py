"""Log files of instances."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def open_log(file: Path) -> int:
    """Open the file for appending, readable by this user alone, and return the descriptor."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def log_to(file: Path) -> None:
    """Append standard output and error of this process, of Python and of native code, to the file."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = open_log(file)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
