"""Files that others see whole or not at all, and that survive a crash of the machine where they have to."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file atomically, readable by this user alone. A `durable` one survives a crash of the machine."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
        if durable:
            sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path beside the file to write to. It replaces the file at the end of the context.

    After an error the older file is as it was. A link stays, and a device or a pipe is yielded itself.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        yield target
        return
    partial = _partial_path(target)
    try:
        yield partial
        if target.exists():
            shutil.copymode(target, partial)
        sync(partial)
        partial.replace(target)
        with contextlib.suppress(OSError):  # not every file system flushes folders
            sync(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def check_room(path: Path, size: int) -> None:
    """Raise OSError if `replacing` could not write a file of `size` bytes at the path. The path stays as it is."""
    target = path.resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        return
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    partial = _partial_path(target)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)
    finally:
        partial.unlink(missing_ok=True)


def _partial_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def make_folders(path: Path) -> None:
    """Create a folder, and those above it that are missing. The new names survive a crash of the machine."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        sync(folder.parent)


def sync_tree(folder: Path) -> None:
    """Flush all that is in a folder, and its own name, to disk. What others remove meanwhile is skipped."""
    for place, _, names in os.walk(folder):
        for path in (*(Path(place, name) for name in names), Path(place)):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() or path.is_dir():  # a pipe would wait for a writer
                    sync(path)
    sync(folder.parent)


def sync(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_folder(folder: Path) -> str | None:
    """Return the folder of a program if files may be written there, else None: the folder for temporary files."""
    return str(folder) if os.access(folder, os.W_OK) else None
