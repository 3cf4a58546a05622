"""Exit reason of an instance, from its exit code, the requests made to it, and the memory that was available."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from edl import exit_codes
from edl.cluster import Reason

# Sent from outside; other signals are crashes.
_KILLS = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@dataclass(frozen=True, slots=True)
class Exit:
    """Exit of a process. `code` is negative for a signal. `starved` is True if memory had run out."""

    code: int
    starved: bool = False

    def __str__(self) -> str:
        """Return `killed by SIGKILL` or `exit code 1`."""
        if self.code >= 0:
            return f"exit code {self.code}"
        signals = {number.value: number.name for number in signal.Signals}
        name = signals.get(-self.code, f"signal {-self.code}")
        return f"killed by {name}{' because memory ran out' if self.starved else ''}"


def find_reason(how: Exit, *, asked: bool) -> Reason:
    """Return the reason. `asked` is True if the process was asked to stop."""
    if asked:
        return "stopped"
    if how.code < 0:
        if how.starved:
            return "out of memory"
        return "killed" if -how.code in _KILLS else "failed"
    reasons: dict[int, Reason] = {
        exit_codes.OK: "done",
        exit_codes.PREEMPTED: "preempted",
        exit_codes.ABANDONED: "lost",
        exit_codes.HUNG: "hung",
    }
    return reasons.get(how.code, "failed")


class MemoryCounter:
    """Counter of processes that the system has killed because the memory of this control group, or all memory, ran
    out.
    """

    def __init__(self, counter: Path | None = None) -> None:
        self._counter = counter or counter_of()
        self._seen = self._read()

    def exit(self, code: int) -> Exit:
        """Return the exit of a process that has just ended with this code."""
        return Exit(code, code == -signal.SIGKILL and self._ran_out())

    def _ran_out(self) -> bool:
        """Return True if another process was killed for lack of memory since the last call."""
        if self._read() <= self._seen:
            return False
        self._seen += 1
        return True

    def _read(self) -> int:
        try:
            match = re.search(r"^oom_kill (\d+)$", self._counter.read_text(), re.MULTILINE)
        except OSError:
            return 0
        return int(match[1]) if match else 0


def counter_of(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Path:
    """Return the file with the counter: of cgroup v1 if it controls memory, else of v2.

    In a container, the group's own folder may be all that is visible of the hierarchy, as its root.
    """
    lines = groups.read_text().splitlines() if groups.exists() else []
    paths = {names: path.lstrip("/") for _, names, path in (line.split(":", 2) for line in lines)}
    if "memory" in paths:
        root, path, file = root / "memory", paths["memory"], "memory.oom_control"
    else:
        path, file = paths.get("", ""), "memory.events"
    within = root / path / file
    return within if within.exists() else root / file
