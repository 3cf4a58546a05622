"""Result sets in files: a file is there whole, or stays as it was."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from edl.errors import SQLFlowError

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".md": "markdown",
}
_OPEN = tuple(map(Path, ("/dev/fd", "/dev/stdout", "/dev/stderr", "/proc")))  # files of a process


def format_of(path: Path) -> str:
    """The format that the file's name asks for; empty when it asks for none."""
    return SUFFIXES.get(path.suffix.casefold(), "")


def path_of(text: str) -> Path:
    """The path that a user has written; SQLFlowError: its ~ is nobody's folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise SQLFlowError(f"there is no such home folder: {text}") from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """SQLFlowError: what happens within could not be written to the file."""
    try:
        yield
    except OSError as error:
        hint = "the folder is not there" if isinstance(error, FileNotFoundError) else None
        raise SQLFlowError(f"cannot write {path}: {error.strerror}", hint=hint) from None


class OutputFile:
    """Takes text; `keep` makes it the file at `path`, and without that nothing has happened.

    A pipe or a device takes the text as it comes. SQLFlowError: it cannot be written; use `writing` around writes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            self.passes_on = _takes_it_as_it_comes(path)
            self._final = path if self.passes_on else path.resolve()  # a link stays one
            self._partial = self._final if self.passes_on else self._beside()
            self.out: IO[str] = self._partial.open("a", encoding="utf-8", newline="")

    def keep(self) -> None:
        with writing(self.path):
            self.out.close()
            if not self.passes_on:
                self._replace()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # a disk that is full has been told of
            self.out.close()
        if not self.passes_on:
            self._partial.unlink(missing_ok=True)

    def _beside(self) -> Path:
        """A new file for our user's eyes or those of who may read the one that is there. OSError: it may not be
        written.
        """
        there = self._final.exists()
        if there:
            os.close(os.open(self._final, os.O_WRONLY))
        folder = self._final.parent
        if there and not os.access(folder, os.W_OK):
            folder = Path(tempfile.gettempdir())
        partial = folder / f".{self._final.name}.{os.getpid()}.partial"
        partial.unlink(missing_ok=True)
        if there:
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copymode(self._final, partial)
        return partial

    def _replace(self) -> None:
        try:
            self._partial.replace(self._final)
        except OSError:  # mounted by itself, or in a folder that we may not write into
            shutil.copyfile(self._partial, self._final)


def _takes_it_as_it_comes(path: Path) -> bool:
    """Whether nothing can be put in its place: a pipe, a device, a file that is open already."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            return True
    return any(path.absolute().is_relative_to(place) for place in _OPEN)
