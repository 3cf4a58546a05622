"""What the masters of a job print, one after another, as it comes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from edl.cluster.kubernetes.api_calls import RefusedError, UnreachableError
from edl.cluster.kubernetes.pods import Pod
from sqlflow_edl.backends.kubernetes.job_status import JobObjects
from sqlflow_edl.backends.kubernetes.logs.pod import PodLog

DRAIN = 10.0  # seconds that the log of a master may take to come when there is another


@dataclass
class _Reading:
    log: PodLog
    began: float
    lines: queue.Queue[str | RefusedError | None] = field(default_factory=queue.Queue)  # None: it has ended

    def run(self) -> None:
        """In a thread of its own."""
        try:
            for line in self.log:
                self.lines.put(line)
        except RefusedError as error:
            self.lines.put(error)
        except UnreachableError:
            pass
        finally:
            self.lines.put(None)


class MasterLogs:
    """Logs are read side by side and heard in the order of their pods."""

    def __init__(self, objects: JobObjects, clock: Callable[[], float] = time.monotonic) -> None:
        self._objects = objects
        self._clock = clock
        self._known: set[str] = set()  # uids of pods
        self._readings: list[_Reading] = []  # the one that is heard first

    @property
    def last(self) -> bool:
        """Whether there is nothing more to hear, as far as is known."""
        return not self._readings

    def read(self, pod: Pod) -> None:
        """Have the log of a pod read after the others, unless it is."""
        if pod.metadata.uid in self._known:
            return
        self._known.add(pod.metadata.uid)
        reading = _Reading(PodLog(self._objects, pod, follow=True), self._clock())
        self._readings.append(reading)
        threading.Thread(target=reading.run, name="sqlflow-log", daemon=True).start()

    def next(self, wait: float) -> str | None:
        """The next line; None: none came within `wait` seconds, or a log has ended. RefusedError: we may not."""
        if not self._readings:
            time.sleep(wait)
            return None
        try:
            line = self._readings[0].lines.get(timeout=wait)
        except queue.Empty:
            if self._is_left_behind():
                self._readings.pop(0).log.close()
            return None
        if line is None:
            self._readings.pop(0)
        elif isinstance(line, RefusedError):
            raise line
        return line

    def close(self) -> None:
        for reading in self._readings:
            reading.log.close()

    def _is_left_behind(self) -> bool:
        """Whether the pod that is heard has a successor, and says nothing: its node may be lost."""
        return len(self._readings) > 1 and self._clock() - self._readings[1].began > DRAIN
