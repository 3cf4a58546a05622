"""Training process: `python -m edl.entrypoints.training_process --framework keras --threads 2 --events FD`.

It is started early, so that importing the framework overlaps with compiling the statement. It runs jobs one after
another as requests arrive on standard input (see `edl.run.training_protocol`), and ends when that closes. Standard
output and error go to the log of the running job, with its start, some of its epochs and its end. It has a session of
its own, so a Ctrl-C of the terminal does not reach it: the client decides. SIGTERM, or the death of the client, makes
it end; a training leaves a checkpoint before that.
"""

from __future__ import annotations

import argparse
import gc
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NoReturn, get_args

from edl import exit_codes
from edl.cli.progress import format_figure
from edl.cluster.logs import log_to
from edl.errors import SQLFlowError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.events import EpochEnd, ProcessEvent
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, JobInterruptedError, Outcome
from edl.logs import log as write
from edl.run.training_client import STANDARD_OUTPUT, TrainingProcess
from edl.run.training_protocol import LOG, Cancel, Event, Prepare, Ready, Request, Run, to_line, to_request
from edl.spec.job import Framework

GRACE = 5.0  # seconds for a job to stop once its parent is gone
TRIAL_THREADS = 1  # of a process that is prepared for trials: several train at once
KEEP_SECS = 60.0  # the same for a training that writes a checkpoint


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="edl.entrypoints.training_process", description="Run the jobs of a client"
    )
    parser.add_argument("--framework", choices=get_args(Framework), required=True)
    parser.add_argument("--threads", type=int, required=True, help="threads of the framework's pools")
    parser.add_argument(
        "--events", type=int, required=True, help="file descriptor that events are written to"
    )
    options = parser.parse_args(arguments)
    # Unbuffered: Python aborts when it ends while a thread waits inside a buffered reader.
    requests = Requests(os.fdopen(os.dup(0), "rb", buffering=0))
    events = options.events
    if events == STANDARD_OUTPUT:  # which then is no place for what programs print
        events = os.dup(STANDARD_OUTPUT)
        os.dup2(sys.stderr.fileno(), STANDARD_OUTPUT)
    server = JobServer(options.threads, os.fdopen(events, "wb", buffering=0))
    server.warm_up(options.framework)
    signal.signal(signal.SIGTERM, lambda number, frame: requests.interrupt())
    while (job := requests.next()) is not None:
        server.run(*job, requests.take_prepared())
        gc.collect()  # closes connections that readers left in cycles, while nobody waits; see `frameworks._keep`
    return exit_codes.OK


class Stop:
    """Request to stop a job, from any thread. `keeps`: it can be interrupted after a checkpoint."""

    def __init__(self) -> None:
        self.cancelled, self.interrupted = threading.Event(), threading.Event()
        self.keeps = False

    def cancel(self) -> None:
        self.cancelled.set()

    def interrupt(self) -> None:
        self.interrupted.set()
        if not self.keeps:
            self.cancelled.set()


class Requests:
    """Reader of requests in a thread of its own, so that a cancel is received while a job runs. No job follows an
    interrupted one.
    """

    def __init__(self, lines: IO[bytes]) -> None:
        self._lines = lines
        self._jobs: queue.SimpleQueue[tuple[Run, Stop] | None] = queue.SimpleQueue()
        self._number, self._stop, self._is_trial = 0, Stop(), False  # of the last job
        self._runs = False
        self.prepared: TrainingProcess | None = None  # for a trial of a search
        threading.Thread(target=self._listen, name="edl-requests", daemon=True).start()

    def next(self) -> tuple[Run, Stop] | None:
        """Return the next job and what stops it, or None after the last one."""
        self._runs = False
        if self._stop.interrupted.is_set():
            return None
        request = self._jobs.get()
        self._runs = request is not None
        return request

    def take_prepared(self) -> TrainingProcess | None:
        """Return the process that was prepared, once."""
        prepared, self.prepared = self.prepared, None
        return prepared

    def interrupt(self) -> None:
        """Interrupt the job; without one, and in a trial of a search, end this process. For a signal handler."""
        if not self._runs or self._is_trial:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        self._stop.interrupt()

    def _listen(self) -> None:
        try:
            for line in self._lines:
                self._take(to_request(line))
        finally:
            self._stop.interrupt()
            self._jobs.put(None)
            seconds = KEEP_SECS if self._stop.keeps else GRACE
            abandon = threading.Timer(seconds, os._exit, [exit_codes.ABANDONED])
            abandon.daemon = True
            abandon.start()

    def _take(self, request: Request) -> None:
        if isinstance(request, Prepare):
            self.prepared = self.prepared or TrainingProcess.start(request.framework, TRIAL_THREADS)
        elif isinstance(request, Run):
            self._number, self._stop, self._is_trial = request.number, Stop(), request.trial is not None
            self._jobs.put((request, self._stop))
        elif request.number == self._number:
            self._stop.cancel() if isinstance(request, Cancel) else self._stop.interrupt()


class JobServer:
    """Runner of jobs and reporter of their events."""

    def __init__(self, threads: int, events: IO[bytes]) -> None:
        self._threads = threads
        self._events = events
        self._stop = Stop()  # of the last job

    def tell(self, event: Event) -> None:
        try:
            self._events.write(to_line(event))
        except BrokenPipeError:  # the client has died
            if not self._stop.keeps:
                os._exit(exit_codes.ABANDONED)
            self._stop.interrupt()

    def warm_up(self, framework: str) -> None:
        """Import the framework. An error is left to be reported by the job that needs it."""
        began = time.monotonic()
        from edl import frameworks
        from edl.data import pandas_later

        pandas_later.postpone()
        try:
            frameworks.prepare(framework, self._threads)
        except SQLFlowError:
            traceback.print_exc()
        self.tell(Ready(time.monotonic() - began))

    def run(self, request: Run, stop: Stop, prepared: TrainingProcess | None = None) -> None:
        """Run one job and report its end in any case. prepared: a process for its first trial."""
        self._stop = stop
        job = JobFolder(Path(request.job))
        log = job.path / LOG
        log_to(log)
        try:
            outcome = self._run(request, job, stop, prepared)
        except JobCancelledError as error:
            end = JobInterruptedError() if stop.interrupted.is_set() else error
            write(end.message)
            self.tell(to_failed(end, str(log)))
        except JobInterruptedError as error:
            write(error.message)
            self.tell(to_failed(error, str(log)))
        except Exception as error:
            traceback.print_exc()
            self.tell(to_failed(error, str(log)))
        else:
            write(f"{outcome.kind}: {outcome.rows:,} rows in {outcome.seconds:.1f} s")
            self.tell(outcome)

    def _run(self, request: Run, job: JobFolder, stop: Stop, prepared: TrainingProcess | None) -> Outcome:
        from edl.program import read_spec
        from edl.run import job_runner
        from edl.run.search import driver, explaining, trial

        folder = Path(request.program)
        weights = Path(request.weights) if request.weights else None
        spec = read_spec(folder)
        if request.trial is not None:
            spec = trial.adapt_spec(spec, request.trial)
        write(
            f"{spec.kind}: {spec.model.name} in {spec.framework}, {self._threads} threads, process {os.getpid()}"
        )
        with job_runner.load_program(folder, spec, threads=self._threads) as program:
            if spec.search is not None:
                return driver.run(
                    program,
                    job,
                    self._threads,
                    observer=self._observe,
                    cancelled=stop.cancelled,
                    interrupted=stop.interrupted,
                    prepared=prepared,
                )
            if request.trial is not None:
                if request.trial.explained:
                    return explaining.run(program, job, request.trial.explained, cancelled=stop.cancelled)
                # Nobody follows a trial, and a round of trees may take less time than an event.
                left_out = request.trial.left_out
                return trial.run(
                    program, job, weights, left_out=left_out, observer=self._log, cancelled=stop.cancelled
                )
            stop.keeps = spec.kind == "train" and ClusterFolder(job.path).has_run_spec
            return job_runner.run_job(
                program,
                job,
                weights,
                observer=self._observe,
                cancelled=stop.cancelled,
                interrupted=stop.interrupted,
            )

    def _observe(self, event: ProcessEvent) -> None:
        """Report the event to the client and log it."""
        self.tell(event)
        self._log(event)

    def _log(self, event: ProcessEvent) -> None:
        """Log the epochs 1, 2, 4, 8 and so on."""
        if isinstance(event, EpochEnd) and event.final and event.epoch & (event.epoch - 1) == 0:
            figures = ", ".join(f"{name} {format_figure(value)}" for name, value in event.metrics.items())
            validation = f"; validation: {figures}" if figures else ""
            write(f"epoch {event.epoch}: loss {format_figure(event.loss)}{validation}")


def end(code: int) -> NoReturn:
    """Exit at once: the libraries' exit handlers take seconds, and an idle process has nothing to lose."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    end(main())
