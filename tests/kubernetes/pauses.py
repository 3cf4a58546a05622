"""The image `pause`: it does nothing until it is told to end, for which no process is needed.

So a test can have a thousand pods that run, on a machine that could not have a thousand processes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from tests.kubernetes.containers import Process
from tests.kubernetes.kinds import Object
from tests.kubernetes.output import Output

KILLED = 137


def is_pause(container: Object) -> bool:
    repository = container["image"].rpartition("/")[2].partition(":")[0]
    return repository == "pause" and not container.get("command") and not container.get("args")


class Pause(Process):
    def __init__(self, output: Output, on_end: Callable[[], None]) -> None:
        self.identifier = "containerd://" + secrets.token_hex(32)
        self.output, self._on_end = output, on_end
        self.error, self.ran_out_of_memory = "", False
        self._code: int | None = None

    def code(self) -> int | None:
        return self._code

    def wait(self, seconds: float) -> None:
        """It doesn't end by itself."""

    def terminate(self) -> None:
        self._end(0)

    def kill(self) -> None:
        self._end(KILLED)

    def last_words(self) -> str:
        return ""

    def _end(self, code: int) -> None:
        if self._code is None:
            self._code = code
            self.output.end()
            self._on_end()
