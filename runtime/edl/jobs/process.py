"""Identity of a process: its id, which is reused, together with its start time."""

from __future__ import annotations

import os
from pathlib import Path

_MODULES = {"sqlflow_edl.cli.main": "sqlflow", "edl.cli.main": "edl"}  # commands that are run by python -m


def start_time(pid: int) -> str | None:
    """Return the start time of a process, which with its pid identifies it, or None if it does not run.

    On Linux it is in ticks since boot. Where it cannot be read, it is empty for every running process, which is then
    identified by its id alone.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "" if not Path("/proc/self/stat").exists() and _runs(pid) else None
    # The program's name, in parentheses, may contain anything; the state is field 3, the start time field 22.
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


def command(pid: int) -> str:
    """Return the program of a process and its subcommand, as `sqlflow run`; empty where that cannot be read.

    Other arguments are left out, since they may be secret.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    if len(words) > 1 and Path(words[0]).name.startswith("python"):
        words = words[2:] if words[1] == "-m" else words[1:]
    program = Path(words[0]).name if words and not words[0].startswith("-") else "python"
    program = _MODULES.get(program, program)
    is_subcommand = program in ("sqlflow", "edl") and len(words) > 1 and words[1].isalpha()
    return f"{program} {words[1]}" if is_subcommand else program
