"""Peers that workers do not reach, as their heartbeats say."""

from __future__ import annotations

from collections.abc import Callable


class Obstacles:
    """Last report of each worker. `log` gets each new one, with `advice`."""

    def __init__(self, log: Callable[[str], object], advice: str = "") -> None:
        self._log = log
        self._advice = advice
        self._found: dict[str, tuple[int, str]] = {}

    def on_heard(self, name: str, incarnation: int, text: str) -> None:
        """Record the report of a worker, empty if it reaches all peers."""
        before = self.of(name, incarnation)
        self._found[name] = (incarnation, text)
        if text and text != before:
            self._log("; ".join(filter(None, (f"{name} {text}", self._advice))))
        elif before and not text:
            self._log(f"{name} reaches its peers again")

    def of(self, name: str, incarnation: int) -> str:
        """Return the report of an instance; empty if there is none of this incarnation."""
        record = self._found.get(name)
        return record[1] if record is not None and record[0] == incarnation else ""
