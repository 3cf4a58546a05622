"""Logs of a job's successive masters, as one stream."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError
from edl.cluster.kubernetes.pods import Pod
from sqlflow_edl.backends.kubernetes.job_status import JobObjects
from sqlflow_edl.backends.kubernetes.logs.pod import PodLog

DRAIN = 10.0  # seconds to wait for the log of a master that has a successor


@dataclass
class _LogReading:
    log: PodLog
    began: float
    lines: queue.Queue[str | APIRefusedError | None] = field(default_factory=queue.Queue)  # None: the end

    def run(self) -> None:
        """Read the log, in a thread of its own."""
        try:
            for line in self.log:
                self.lines.put(line)
        except APIRefusedError as error:
            self.lines.put(error)
        except APIUnreachableError:
            pass
        finally:
            self.lines.put(None)


class MasterLogs:
    """Logs of the masters, read in parallel and returned in the order of their pods."""

    def __init__(self, objects: JobObjects, clock: Callable[[], float] = time.monotonic) -> None:
        self._objects = objects
        self._clock = clock
        self._known: set[str] = set()  # uids of pods
        self._readings: list[_LogReading] = []  # the current one first

    @property
    def is_last(self) -> bool:
        """True if no log is open, as far as is known."""
        return not self._readings

    def read(self, pod: Pod) -> None:
        """Start to read the log of a pod, unless it is known; its lines follow the lines of earlier pods."""
        if pod.metadata.uid in self._known:
            return
        self._known.add(pod.metadata.uid)
        reading = _LogReading(PodLog(self._objects, pod, follow=True), self._clock())
        self._readings.append(reading)
        threading.Thread(target=reading.run, name="sqlflow-log", daemon=True).start()

    def next(self, wait: float) -> str | None:
        """Return the next line, or None if none came within `wait` seconds or a log has ended.

        Raises RefusedError without permission.
        """
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
        elif isinstance(line, APIRefusedError):
            raise line
        return line

    def close(self) -> None:
        for reading in self._readings:
            reading.log.close()

    def _is_left_behind(self) -> bool:
        """Return True if the current pod has a successor and is silent: its node may be lost."""
        return len(self._readings) > 1 and self._clock() - self._readings[1].began > DRAIN
