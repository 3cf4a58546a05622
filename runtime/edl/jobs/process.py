"""Which process is which: a process id alone is used again, together with the start time it is not."""

from __future__ import annotations

import os
from pathlib import Path


def start_time(pid: int) -> str | None:
    """What tells this process from every other that had or will have its id; None when no such process runs.

    Linux says when it started, in ticks since the machine did. Where that cannot be read, the text is empty for
    every process that runs, and a process is known by its id alone.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "" if not Path("/proc/self/stat").exists() and _runs(pid) else None
    # The name of the program, in parentheses, may hold anything; the start is field 22, the state field 3.
    state, *numbers = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}:{numbers[18]}"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
