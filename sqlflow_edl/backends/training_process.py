"""Execution in a training process on this machine: one job at a time, started early, kept between statements.

Each framework has a process of its own: two in one process would each take all cores. The process of a framework that
the next statement does not use stays idle, for to import PyTorch or Keras again would take seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from edl.jobs.cores import available_cores
from edl.jobs.events import ProcessEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.run.idle_processes import IdleProcesses
from edl.run.training_client import TrainingProcess
from edl.spec import ENSEMBLE

MOST_IDLE = 2  # processes of other frameworks, each with 0.1 GB (trees) to 0.6 GB (Keras) of memory


class LocalSubmitter:
    """Submitter to the training process; close it to end all its processes.

    share: number of such processes that share the cores.
    """

    def __init__(self, share: int = 1) -> None:
        threads = max(1, available_cores() // share) if share > 1 else None
        self.threads = threads or available_cores()
        self._idle = IdleProcesses(MOST_IDLE, threads)
        self._process: TrainingProcess | None = None

    def warm(self, framework: str) -> None:
        """Start the process of the framework if it does not run; return at once."""
        process = self._process
        if process is not None and process.framework == framework and process.is_alive:
            return
        self._process = None
        if process is not None and process.framework != framework and process.is_ready:
            self._idle.put(process)
        elif process is not None:
            process.close()
        self._process = self._idle.take(framework)

    def prepare_trials(self, framework: str) -> None:
        """Start a process for trials of the framework in advance, if the one for the search itself runs."""
        if self._process is not None and self._process.framework == ENSEMBLE:
            self._process.prepare(framework)

    def is_loading(self, framework: str) -> bool:
        """Return True if a job of the framework must wait for its import, as far as is known here."""
        process = self._process
        if process is None or process.framework != framework:
            return not self._idle.has(framework)
        return not (process.is_ready and process.is_alive)

    def run(
        self,
        job: JobFolder,
        framework: str,
        on_event: Callable[[ProcessEvent], None],
        *,
        weights: Path | None = None,
        keeps_best: bool = False,
    ) -> Outcome:
        """Run the program in the job folder on its pinned rows, and wait for it. Raises JobError if it fails.

        keeps_best: the first Ctrl-C ends the job early with the result that it has reached.
        """
        self.warm(framework)
        process = self._process
        if process is None:
            raise RuntimeError("warm() starts a process")
        return process.run(job.program, job.path, on_event, weights=weights, keeps_best=keeps_best)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
        self._idle.close()
