"""Standard output and standard error of a command, which a job outlasts: their reader may exit, as `head` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from edl.errors import JobError


@contextmanager
def outlasting_readers() -> Iterator[None]:
    """Let what is printed inside the context go nowhere after an error, as when its reader has exited.

    Figures and rows must not be lost to another error, such as a full disk: JobError is raised at the end.
    """
    open_missing()
    before = sys.stdout, sys.stderr
    out, messages = _Outlasting(sys.stdout), _Outlasting(sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, messages)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        out.flush()
        messages.flush()
    if out.error is not None and not isinstance(out.error, BrokenPipeError):
        raise JobError(f"cannot write to standard output: {out.error.strerror or out.error}")


def open_missing() -> None:
    """Open standard streams that were closed before this process began, else files would get their numbers."""
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def discard_writes(stream: IO[str]) -> None:
    """Let all that is written from now on go nowhere, also what Python flushes at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class _Outlasting:
    """Text stream that ignores all writes after the first `error`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._drop(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        self.error = self.error or error
        discard_writes(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
