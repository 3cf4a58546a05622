"""Execution of a runnable: a Python program of the user's as a process of this machine, with its output as it comes.

It has the rights and the environment of this process, a process group of its own, and no standard input. It ends
with this process, however that ends.
"""

from __future__ import annotations

import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import msgspec

from edl.cluster.exit_reason import MemoryCounter
from edl.data.server_url import MOUNTED, SECRETS
from edl.errors import JobError
from edl.jobs.events import Output
from edl.run import containers
from edl.runnable import VARIABLE, RunnablePlace

LOG = "program.log"  # in the folder of logs
BEAT = 0.2  # seconds from an event to the next, also of a program that prints nothing: a receiver may interrupt it
END_SECONDS = 10.0  # grace period from an interrupt until the program is killed
_LONGEST = 1 << 16  # bytes of a line
_LAST = 5  # lines in an error


def run(
    job: Path,
    file: Path,
    arguments: Sequence[str],
    place: RunnablePlace,
    on_output: Callable[[Output], None],
    *,
    deadline: float = 0.0,
    image: str = "",
) -> None:
    """Run the program and wait for its end; its output is also in a log of the job folder. Raises JobError if it fails,
    or has not ended after `deadline` seconds (0: no limit). image: which has the file, to run it in a container.

    Any other exception during the wait (a KeyboardInterrupt, one of `on_output`) interrupts the program and is raised
    once it has ended; a second interrupt kills it.
    """
    memory, end = MemoryCounter(), time.monotonic() + (deadline or math.inf)
    late = JobError(f"{file.name} did not end before its deadline of {deadline:,.9g} s")
    reading, lifeline = os.pipe()
    last: deque[str] = deque(maxlen=_LAST)
    try:
        if image:
            process = _start_container(image, file, arguments, place)
        else:
            process = _start_process(file, arguments, place, reading)
        try:
            with (job / "logs" / LOG).open("wb") as log:
                for lines in _output(process, log):
                    last.extend(line for line in lines if line.strip())
                    on_output(Output(tuple(lines)))
                    if time.monotonic() >= end:
                        raise late
            code = process.wait(max(0.0, end - time.monotonic()) if deadline else None)
        except subprocess.TimeoutExpired:  # it had closed its output
            _stop(process)
            raise late from None
        except BaseException:
            _stop(process)
            raise
        finally:
            cast(IO[bytes], process.stdout).close()
            if process.stdin is not None:
                process.stdin.close()
    finally:
        os.close(reading)
        os.close(lifeline)
    if code:
        raise JobError(
            f"{file.name} ended with {memory.exit(code)}" + (f": {last[-1].strip()}" if last else ""),
            hint="\n".join([*list(last)[:-1], f"`sqlflow logs {job.name}` shows all that it printed"]),
        )


def _start_process(
    file: Path, arguments: Sequence[str], place: RunnablePlace, reading: int
) -> subprocess.Popen[bytes]:
    module = [sys.executable, "-P", "-m", "edl.entrypoints.runnable"]
    return subprocess.Popen(  # noqa: S603 (a file that may run here, in a list)
        [*module, str(reading), str(file), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(reading,),
        start_new_session=True,
        env={
            **_without_secrets(os.environ),
            "PYTHONUNBUFFERED": "1",
            VARIABLE: msgspec.json.encode(place).decode(),
        },
    )


def _start_container(
    image: str, file: Path, arguments: Sequence[str], place: RunnablePlace
) -> subprocess.Popen[bytes]:
    command = containers.write_command(containers.find_engine(), image, str(file), arguments, place)
    return subprocess.Popen(  # noqa: S603 (an image that may run here, in a list)
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=_without_secrets(os.environ),
    )


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the passwords of data sources, and where they are mounted in a pod."""
    return {name: value for name, value in environment.items() if name not in (SECRETS, MOUNTED)}


def _output(process: subprocess.Popen[bytes], log: IO[bytes]) -> Iterator[list[str]]:
    """Yield the lines that arrived, at least each BEAT, until the program and its output have ended."""
    pipe = cast(IO[bytes], process.stdout).fileno()
    left = b""
    with selectors.DefaultSelector() as arrivals:
        arrivals.register(pipe, selectors.EVENT_READ)
        while True:
            arrived = bool(arrivals.select(BEAT))
            chunk = os.read(pipe, _LONGEST) if arrived else b""
            log.write(chunk)
            log.flush()
            *whole, left = (left + chunk).split(b"\n")
            ended = not chunk and (arrived or process.poll() is not None)
            if ended or len(left) > _LONGEST:
                whole, left = [*whole, *([left] if left else [])], b""
            yield [_clean_line(line) for line in whole]
            if ended:
                return


def _clean_line(line: bytes) -> str:
    """Return the line as a terminal shows it, where a carriage return begins it anew, without control characters."""
    text = line.decode("utf-8", "replace").rstrip().rpartition("\r")[2]
    return "".join(
        character if character.isprintable() or character == "\t" else "\ufffd" for character in text
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the program with all its processes, as Ctrl-C in a terminal does, and kill what is left of them."""
    try:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(END_SECONDS)
    except (ProcessLookupError, subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
