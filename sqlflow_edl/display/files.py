"""Result sets in files. A file is complete, or keeps its previous content."""

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
    ".parquet": "parquet",
}
_OPEN = tuple(map(Path, ("/dev/fd", "/dev/stdout", "/dev/stderr", "/proc")))  # open files of a process


def format_of(path: Path) -> str:
    """Return the format that the file's suffix names, or an empty string."""
    return SUFFIXES.get(path.suffix.casefold(), "")


def path_of(text: str) -> Path:
    """Expand the user's path. Raises SQLFlowError if its ~ names no home folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise SQLFlowError(f"there is no such home folder: {text}") from None


@contextmanager
def name_write_errors(path: Path) -> Iterator[None]:
    """Raise OSErrors of the block as an SQLFlowError that names the file."""
    try:
        yield
    except OSError as error:
        hint = "the folder is not there" if isinstance(error, FileNotFoundError) else None
        raise SQLFlowError(f"cannot write {path}: {error.strerror}", hint=hint) from None


class OutputFile:
    """Text file that appears at `path` only on `keep`; without it the path stays unchanged.

    A pipe or a device receives the text as it is written. Raises SQLFlowError if it cannot be written; use
    `writing` around writes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with name_write_errors(path):
            self.passes_on = _takes_it_as_it_comes(path)
            self._final = path if self.passes_on else path.resolve()  # keep a symbolic link
            self._partial = self._final if self.passes_on else self._choose_sibling()
            self.out: IO[str] = self._partial.open("a", encoding="utf-8", newline="")

    def keep(self) -> None:
        with name_write_errors(self.path):
            self.out.close()
            if not self.passes_on:
                self._replace()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # the write has already reported a full disk
            self.out.close()
        if not self.passes_on:
            self._partial.unlink(missing_ok=True)

    def _choose_sibling(self) -> Path:
        """Choose a new file with the permissions of the existing one, else the user's default.

        Raises OSError if the existing file may not be written.
        """
        exists = self._final.exists()
        if exists:
            os.close(os.open(self._final, os.O_WRONLY))
        folder = self._final.parent
        if exists and not os.access(folder, os.W_OK):
            folder = Path(tempfile.gettempdir())
        partial = folder / f".{self._final.name}.{os.getpid()}.partial"
        partial.unlink(missing_ok=True)
        if exists:
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copymode(self._final, partial)
        return partial

    def _replace(self) -> None:
        try:
            self._partial.replace(self._final)
        except OSError:  # a mount point of its own, or a read-only folder
            shutil.copyfile(self._partial, self._final)


def _takes_it_as_it_comes(path: Path) -> bool:
    """Return True if the path cannot be replaced: a pipe, a device, or a file that is already open."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            return True
    return any(path.absolute().is_relative_to(place) for place in _OPEN)
