"""A container as a process of this machine: its command as it is, its environment, its output in a file."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.kubernetes.kinds import Object

# Every image of the double has in it what the tests have.
IMAGE = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
IMAGE["PATH"] = f"{Path(sys.executable).parent}:{IMAGE['PATH']}"
REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
CANNOT_RUN = 128


class Process:
    """One that was started. `on_end` is called from a thread of its own."""

    def __init__(
        self, container: Object, environment: dict[str, str], folder: Path, on_end: Callable[[], None]
    ) -> None:
        self.identifier = "containerd://" + secrets.token_hex(32)
        self.log = folder / f"{container['name']}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.error = ""
        self.ran_out_of_memory = False
        self._ended = threading.Event()
        command = [expanded(word, environment) for word in _command(container)]
        try:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    cwd=container.get("workingDir") or folder,
                    env={**IMAGE, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            self.error = str(error)
            return
        threading.Thread(target=self._wait, args=(on_end,), daemon=True).start()

    def code(self) -> int | None:
        """None as long as it runs; a signal as a shell says it."""
        if self._process is None:
            return CANNOT_RUN
        found = self._process.returncode
        return found if found is None or found >= 0 else 128 - found

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
            os.killpg(self._process.pid, signal.SIGKILL)

    def run_out_of_memory(self) -> None:
        """As if it had used more than it may."""
        self.ran_out_of_memory = True
        self.kill()

    def _wait(self, on_end: Callable[[], None]) -> None:
        assert self._process is not None
        self._process.wait()
        self._ended.set()
        on_end()


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
    return found


def _command(container: Object) -> list[str]:
    """An image of the double starts a shell when nothing is said."""
    return [*container.get("command", []), *container.get("args", [])] or ["sh"]


def _handles(process: int, number: int) -> bool:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)
