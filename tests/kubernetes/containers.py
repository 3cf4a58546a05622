"""A container as a process of this machine: its command as it is, its environment, its output."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kubernetes.kinds import Object
from tests.kubernetes.output import Output

# Every image of the double has in it what the tests have, or the Python of a file system of an image.
IMAGE = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
IMAGE["PATH"] = f"{os.environ.get('SQLFLOW_TEST_IMAGE') or Path(sys.executable).parent}:{IMAGE['PATH']}"
REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
CANNOT_RUN = 128
LAST_WORDS = 4096
PIECE = 1 << 16


class Process:
    """One that was started. `on_end` is called from a thread of its own."""

    def __init__(
        self, container: Object, environment: dict[str, str], output: Output, on_end: Callable[[], None]
    ) -> None:
        self.identifier = "containerd://" + secrets.token_hex(32)
        self.output = output
        self._process: subprocess.Popen[bytes] | None = None
        self.error = ""
        self._last_words = last_words(output.path)
        self._falls_back = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        self.ran_out_of_memory = False
        self._ended = threading.Event()
        self._probe = container.get("readinessProbe", {}).get("exec", {}).get("command", [])
        self._surroundings: Any = {"cwd": container.get("workingDir") or output.path.parent}
        self._surroundings["env"] = {**IMAGE, **environment}
        command = [expanded(word, environment) for word in _command(container)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
                close_fds=False,  # of a thousand pods; none is inherited
                **self._surroundings,
            )
        except OSError as error:
            self.error = _refusal(command[0], error)
            output.end()
            return
        threading.Thread(target=self._attend, args=(self._process, on_end), daemon=True).start()

    def code(self) -> int | None:
        """None as long as it runs; a signal as a shell says it."""
        if self._process is None:
            return CANNOT_RUN
        found = self._process.returncode
        return found if found is None or found >= 0 else 128 - found

    @property
    def has_ended(self) -> bool:
        return self.code() is not None

    def wait(self, seconds: float) -> None:
        """For its end, at most so long."""
        if self._process is not None:
            self._ended.wait(seconds)

    def terminate(self) -> None:
        """As the first process of a container: a signal that it does not handle passes it by."""
        if self._process is not None and _handles(self._process.pid, signal.SIGTERM):
            self._process.terminate()

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just been waited for, by the other thread
                os.killpg(self._process.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """What it wrote to its file for that, or if it failed and says so, the end of its log."""
        if self._last_words.is_file() and (words := self._last_words.read_text(errors="replace")):
            return words[-LAST_WORDS:]
        if self._falls_back and self.code() != 0:
            return self.output.read()[-LAST_WORDS:].decode(errors="replace")
        return ""

    def succeeds_beside(self, seconds: float) -> bool:
        """Whether the command of its readiness probe does, within that time."""
        try:
            done = subprocess.run(
                self._probe,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                **self._surroundings,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def run_out_of_memory(self) -> None:
        """As if it had used more than it may."""
        self.ran_out_of_memory = True
        self.kill()

    def _attend(self, process: subprocess.Popen[bytes], on_end: Callable[[], None]) -> None:
        """Keep what it writes until it ends. What it leaves behind ends with it, as in a container."""
        assert process.stdout is not None
        pipe, end = process.stdout.fileno(), os.pidfd_open(process.pid)
        poller = select.poll()
        for descriptor in (pipe, end):
            poller.register(descriptor, select.POLLIN)
        while all(descriptor != end for descriptor, _ in poller.poll()):
            if piece := os.read(pipe, PIECE):
                self.output.add(piece)
            else:  # it has closed its output, and goes on
                poller.unregister(pipe)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(pipe, PIECE):
                self.output.add(piece)
        os.close(end)
        process.stdout.close()
        process.wait()
        self.output.end()
        self._ended.set()
        on_end()


def last_words(log: Path) -> Path:
    """The file at a container's terminationMessagePath."""
    return log.with_suffix(".end")


def expanded(text: str, environment: dict[str, str]) -> str:
    """With `$(NAME)` replaced where there is such a variable."""
    return REFERENCE.sub(lambda match: environment.get(match[1], match[0]), text)


def rewritten(container: Object, change: Callable[[str], str]) -> Object:
    """With its command, the values of its environment and its working directory changed."""
    found = dict(container)
    for name in ("command", "args"):
        found[name] = [change(word) for word in container.get(name, [])]
    if "workingDir" in container:
        found["workingDir"] = change(container["workingDir"])
    found["env"] = [
        {**one, "value": change(one["value"])} if "value" in one else one for one in container.get("env", [])
    ]
    if "exec" in container.get("readinessProbe", {}):
        probe = container["readinessProbe"]["exec"]
        found["readinessProbe"] = {"exec": {"command": [change(word) for word in probe["command"]]}}
    return found


def _command(container: Object) -> list[str]:
    """An image of the double starts a shell when nothing is said."""
    return [*container.get("command", []), *container.get("args", [])] or ["sh"]


def _refusal(program: str, error: OSError) -> str:
    """Why it could not be started, as containerd says it."""
    prefix = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
    prefix += "runc create failed: unable to start container process: exec: "
    if "/" not in program:
        return f'{prefix}"{program}": executable file not found in $PATH: unknown'
    why = (error.strerror or "").lower()
    return f'{prefix}"{program}": stat {program}: {why}: unknown'


def _handles(process: int, number: int) -> bool:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)
