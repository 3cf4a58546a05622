"""Result sets in files: a file is there whole, or stays as it was."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from edl.errors import SQLFlowError

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".md": "markdown",
}


def format_of(path: Path) -> str:
    """The format that the file's name asks for; empty when it asks for none."""
    return _FORMATS.get(path.suffix.casefold(), "")


class OutputFile:
    """Takes text; `keep` makes it the file at `path`, and without that nothing has happened.

    What is there and no regular file, such as a pipe, takes the text as it comes. SQLFlowError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._final = Path(os.path.realpath(path))  # a link stays one
        with self._errors():
            self._partial = self._final.with_name(f".{self._final.name}.{os.getpid()}.partial")
            if self._final.exists() and not stat.S_ISREG(self._final.stat().st_mode):
                self._partial = self._final
            self.out: IO[str] = self._partial.open("w", encoding="utf-8", newline="")

    def keep(self) -> None:
        with self._errors():
            self.out.close()
            if self._partial != self._final:
                self._partial.replace(self._final)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._errors():
            self.out.close()
            if self._partial != self._final:
                self._partial.unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            hint = "the folder is not there" if isinstance(error, FileNotFoundError) else None
            raise SQLFlowError(f"cannot write {self.path}: {error.strerror}", hint=hint) from None
