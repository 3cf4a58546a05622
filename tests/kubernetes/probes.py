"""Readiness: commands that are run beside a container, in threads, for as long as it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.kubernetes.container_life import Container
from tests.kubernetes.controllers import NEVER


class Probes:
    """Of one pod. `wake` is called when a container has come to be ready, or is so no more."""

    def __init__(self, containers: list[Container], wake: Callable[[], None]) -> None:
        self._containers = [one for one in containers if "readinessProbe" in one.spec]
        self._wake = wake
        self._due: dict[str, float] = {}  # by the identifier of what runs

    def step(self, now: float) -> float:
        """Ask where it is time. When it is time next."""
        next_due = NEVER
        for container in self._containers:
            if not container.runs or container.process is None:
                continue
            probe, key = container.spec["readinessProbe"], container.process.identifier
            due = self._due.setdefault(key, now + probe.get("initialDelaySeconds", 0))
            if due <= now:
                threading.Thread(target=self._ask, args=(container,), daemon=True).start()
                due = self._due[key] = now + probe["periodSeconds"]
            next_due = min(next_due, due)
        return next_due

    def _ask(self, container: Container) -> None:
        """Commands only."""
        process = container.process
        if process is None:
            return
        is_ready = process.succeeds_beside(container.spec["readinessProbe"]["timeoutSeconds"])
        if is_ready != container.is_ready and process is container.process:
            container.is_ready = is_ready
            self._wake()
