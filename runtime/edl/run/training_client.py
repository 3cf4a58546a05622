"""Client of a training process. Imports neither a framework nor Arrow."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, cast

from edl.cluster.environment import environment, library_variables
from edl.errors import JobError
from edl.jobs.cores import available_cores
from edl.jobs.events import Observer, ignore
from edl.jobs.failure import Failed, to_error
from edl.jobs.outcome import JobInterruptedError, Outcome
from edl.jobs.termination import TerminatedError
from edl.run.training_protocol import (
    LOG,
    Cancel,
    Interrupt,
    Prepare,
    Ready,
    Request,
    Run,
    TrialRun,
    to_event,
    to_line,
)

STANDARD_OUTPUT = 1  # for the events of a process in a container, which is given no other file
END_SECONDS = 10.0  # grace period from the end of its input until a training process is killed
INTERRUPT_SECONDS = 100.0  # the same from an interruption, for its checkpoint


class ProcessDiedError(JobError):
    """Death of a training process during a job. `signal` killed it, 0 if none did."""

    signal = 0


class TrainingProcess:
    """Training process started by this client. `run` from one thread at a time; `cancel` from any."""

    def __init__(
        self,
        framework: str,
        threads: int,
        process: subprocess.Popen[bytes],
        events: IO[bytes],
        output: IO[bytes],
    ) -> None:
        self.framework = framework
        self.threads = threads
        self._process = process
        self._requests = cast(IO[bytes], process.stdin)
        self._events = events
        self._output = output  # its output before its first job
        self._number = 0
        self._ready = False  # as last reported; until then it imports the framework
        self._sending = threading.Lock()

    @classmethod
    def start_in_image(
        cls, image: str, framework: str, job: Path, threads: int | None = None
    ) -> TrainingProcess:
        """Start a process in a container of an image, for one job, and return at once."""
        from edl.run.containers import find_engine, write_job_command  # which load Arrow

        threads = threads or available_cores()
        variables = library_variables(threads)
        module = _module(framework, threads, STANDARD_OUTPUT)
        output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process)
        try:
            process = subprocess.Popen(  # noqa: S603 (an image that may run here, in a list)
                write_job_command(find_engine(), image, module, job.absolute(), variables),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        except BaseException:
            output.close()
            raise
        return cls(framework, threads, process, cast(IO[bytes], process.stdout), output)

    @classmethod
    def start(cls, framework: str, threads: int | None = None) -> TrainingProcess:
        """Start a process that begins to import the framework, and return at once.

        `threads` is the size of the framework's pools; None uses the cores available to this process.
        """
        threads = threads or available_cores()
        reading, writing = os.pipe()
        output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process)
        try:
            process = subprocess.Popen(  # noqa: S603 (our own module, in a list)
                _command(framework, threads, writing),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(writing,),
                start_new_session=True,
                env=environment(threads),
            )
        except BaseException:
            os.close(reading)
            output.close()
            raise
        finally:
            os.close(writing)
        return cls(framework, threads, process, os.fdopen(reading, "rb"), output)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """True once the process has reported that the framework is imported; its first job waits for that."""
        return self._ready

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def run(
        self,
        program: Path,
        job: Path,
        on_event: Observer,
        *,
        weights: Path | None = None,
        trial: TrialRun | None = None,
        keeps_best: bool = False,
    ) -> Outcome:
        """Run the program's job in the job folder, and wait for its end.

        For `weights` and `trial` see `Run`. An error of the job is raised unchanged. Raises
        JobCancelledError after `cancel`, ProcessDiedError with the exit status and the log if the process dies, and
        JobInterruptedError if SIGTERM reached it. Other exceptions during the wait (a KeyboardInterrupt, an error of
        `on_event`) cancel the job and are raised once it has ended; a second interrupt kills the process.
        TerminatedError interrupts the job in the same way, unless that `cancels`. `keeps_best`: the first
        KeyboardInterrupt ends the job early with the result that it has reached.
        """
        self._number += 1
        log = job / LOG
        request = Run(
            self._number,
            str(program.absolute()),
            str(job.absolute()),
            str(weights.absolute()) if weights else "",
            trial,
        )
        try:
            self._submit(request, log)
            try:
                end = self._follow(on_event, log)
            except KeyboardInterrupt as interrupt:
                if not keeps_best or type(interrupt) is not KeyboardInterrupt or not self._ready:
                    raise
                self.cancel()
                end = self._follow(on_event, log)
        except ProcessDiedError as died:
            if died.signal == signal.SIGTERM and trial is None:
                raise JobInterruptedError from None
            raise
        except BaseException as error:
            self._settle(log, keeps=isinstance(error, TerminatedError) and not error.cancels)
            raise
        if isinstance(end, Failed):
            raise to_error(end)
        return end

    def prepare(self, framework: str) -> None:
        """Let the process start one for the trials of the search that it is to run; a no-op if it has died."""
        with contextlib.suppress(JobError):
            self._send(Prepare(framework), None)

    def cancel(self) -> None:
        """Stop the running job between two minibatches; a no-op without one."""
        with contextlib.suppress(JobError):
            self._send(Cancel(self._number), None)

    def kill(self) -> None:
        """Kill the process with what it runs, and return at once. From any thread."""
        self._signal_kill()

    def close(self) -> None:
        """End the process, cancelling a running job; at once after an interrupt. Idempotent."""
        with contextlib.suppress(OSError):
            self._requests.close()
        try:
            if not self._ready:
                self._kill()
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
        except BaseException:
            self._kill()
            raise
        finally:
            self._events.close()
            self._output.close()

    def __enter__(self) -> TrainingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, request: Run, log: Path) -> None:
        try:
            self._send(request, log)
        except KeyboardInterrupt:  # an unknown part of the request may have been sent
            self._kill()
            raise

    def _send(self, request: Request, log: Path | None) -> None:
        try:
            with self._sending:
                self._requests.write(to_line(request))
                self._requests.flush()
        except (OSError, ValueError):  # the pipe is broken, or closed
            raise self._death(log) from None

    def _follow(self, on_event: Observer, log: Path) -> Outcome | Failed:
        """Pass events to `on_event` until the one that ends the job. Return it."""
        while line := self._events.readline():
            event = to_event(line)
            if isinstance(event, Outcome | Failed):
                return event
            if isinstance(event, Ready):
                self._ready = True
            else:
                on_event(event)
        raise self._death(log)

    def _settle(self, log: Path, *, keeps: bool) -> None:
        """Cancel an abandoned job, so that the process is idle for the next one; with `keeps`, interrupt it.

        A process that still imports its framework cannot react for seconds, and is killed instead: it has nothing to
        lose.
        """
        if not self._ready:
            self._kill()
            return
        with contextlib.suppress(JobError):
            self._send(Interrupt(self._number) if keeps else Cancel(self._number), None)
        alarm = threading.Timer(INTERRUPT_SECONDS, self._signal_kill)
        alarm.daemon = True
        if keeps:
            alarm.start()
        try:
            self._follow(ignore, log)
        except JobError:
            pass
        except BaseException:
            self._kill()
            raise
        finally:
            alarm.cancel()

    def _signal_kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _kill(self) -> None:
        self._signal_kill()
        self._process.wait()

    def _death(self, log: Path | None) -> ProcessDiedError:
        """Return the error that describes the death of the process, as far as known."""
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            code = -signal.SIGKILL
        if code == -signal.SIGKILL:
            hint = "the system kills processes that exhaust the memory; use a smaller batch size or model"
        else:
            hint = self._last_words() or "its log shows its last output"
        where = f"; its log is {log}" if log is not None and log.exists() else ""
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        error = ProcessDiedError(f"the training process {how}{where}", hint=hint)
        error.signal = max(0, -code)
        return error

    def _last_words(self) -> str:
        """Return the last line that the process printed before it had a log."""
        if self._output.closed:
            return ""
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _command(framework: str, threads: int, events: int) -> list[str]:
    """Return the command line. -P: a keras.py or a torch.py in the user's folder must not shadow the framework."""
    return [sys.executable, "-P", "-m", *_module(framework, threads, events)]


def _module(framework: str, threads: int, events: int) -> list[str]:
    """Return the module of a training process with its arguments."""
    options = ["--framework", framework, "--threads", str(threads), "--events", str(events)]
    return ["edl.entrypoints.training_process", *options]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
