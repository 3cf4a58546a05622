"""How an instance ended, by its exit code, by what was asked of it, and by the memory there was."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from edl import exit_codes
from edl.cluster import Reason

_KILLS = {
    signal.SIGKILL,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
}  # somebody's doing; others are crashes


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. code: negative for the signal that ended it. starved: the memory had run out."""

    code: int
    starved: bool = False

    def __str__(self) -> str:
        """`killed by SIGKILL`, `exit code 1`."""
        if self.code >= 0:
            return f"exit code {self.code}"
        known = {number.value: number.name for number in signal.Signals}
        name = known.get(-self.code, f"signal {-self.code}")
        return f"killed by {name}{', for memory had run out' if self.starved else ''}"


def why(how: Exit, *, asked: bool) -> Reason:
    """asked: it was told to stop."""
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
    }
    return reasons.get(how.code, "failed")


class Memory:
    """Counts the processes that the system killed because the memory of our control group, or of all, ran out."""

    def __init__(self, counter: Path | None = None) -> None:
        self._counter = counter or counter_of()
        self._seen = self._read()

    def exit(self, code: int) -> Exit:
        """How a process ended that ended with this code just now."""
        return Exit(code, code == -signal.SIGKILL and self._ran_out())

    def _ran_out(self) -> bool:
        """Whether one more was killed than was told."""
        if self._read() <= self._seen:
            return False
        self._seen += 1
        return True

    def _read(self) -> int:
        try:
            found = re.search(r"^oom_kill (\d+)$", self._counter.read_text(), re.MULTILINE)
        except OSError:
            return 0
        return int(found[1]) if found else 0


def counter_of(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Path:
    """The file that has the count: of version 1 where that controls the memory, else of version 2.

    In a container the group's own folder may be all that can be seen of the hierarchy, as its root.
    """
    lines = groups.read_text().splitlines() if groups.exists() else []
    paths = {names: path.lstrip("/") for _, names, path in (line.split(":", 2) for line in lines)}
    if "memory" in paths:
        root, path, file = root / "memory", paths["memory"], "memory.oom_control"
    else:
        path, file = paths.get("", ""), "memory.events"
    within = root / path / file
    return within if within.exists() else root / file
