"""Training processes between two jobs: a process has imported one framework, which takes seconds."""

from __future__ import annotations

import threading

from edl.run.training_client import TrainingProcess

MOST_IDLE = 4  # beside those that train; an idle one takes no core, and 0.1 GB (trees) to 0.6 GB (Keras)


class IdleProcesses:
    """Idle training processes, at most `most`, each with so many threads (None: all cores). Thread-safe."""

    def __init__(self, most: int, threads: int | None) -> None:
        self._most = most
        self._threads = threads
        self._lock = threading.Lock()
        self._idle: list[TrainingProcess] = []

    def take(self, framework: str) -> TrainingProcess:
        """Return a living process of the framework, a new one if none is idle."""
        with self._lock:
            process = next((idle for idle in self._idle if idle.framework == framework), None)
            if process is not None:
                self._idle.remove(process)
        if process is not None and process.is_alive:
            return process
        if process is not None:
            process.close()
        return TrainingProcess.start(framework, self._threads)

    def has(self, framework: str) -> bool:
        """Return True if a living process of the framework is idle."""
        with self._lock:
            return any(process.framework == framework and process.is_alive for process in self._idle)

    def put(self, process: TrainingProcess) -> None:
        """Keep a process for later jobs; of too many, the one that has been idle longest is ended."""
        with self._lock:
            self._idle.append(process)
            ended = self._idle.pop(0) if len(self._idle) > self._most else None
        if ended is not None:
            ended.close()

    def close(self) -> None:
        """End all idle processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()
