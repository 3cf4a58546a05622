"""Recorder of what Python processes do to the files below a folder. Each process with this folder on PYTHONPATH has it.

The records of all processes are one sequence: an operation and its record are made under a lock. `EDL_TESTING_RECORDED`
names the folder, `EDL_TESTING_RECORD` the file of records, each the length of its MessagePack and that:

    make PATH                 an empty file is new
    data PATH bytes           the content of a file: when it is closed, flushed to disk, renamed or linked
    write PATH offset bytes   of an unbuffered file
    sync PATH SITE            a file or a folder is flushed to disk, at a place in the source
    rename, link PATH TO      unlink, mkdir, rmdir PATH      symlink PATH bytes
    ack WHAT bytes            a function has returned that promises something to others: `PROMISES`
"""

# ruff: noqa: PTH109, PTH112, PTH115, PTH118
from __future__ import annotations

import builtins
import contextlib
import fcntl
import functools
import importlib.abc
import importlib.util
import io
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

ROOT = os.environ.get("EDL_TESTING_RECORDED", "")
RECORD = os.environ.get("EDL_TESTING_RECORD", "")
# Modules with the functions that promise something when they return, and what they promise of their arguments.
PROMISES: dict[str, list[tuple[str, str, str, Callable[..., bytes]]]] = {
    "edl.master.state_store": [("FileStateStore", "write", "state", lambda store, data: data)],
    "edl.ps.update_log": [
        ("UpdateLog", "append", "push", lambda log, push, arrays: _pushed(log, push, arrays)),
        ("UpdateLog", "begin", "segment", lambda log, name: f"{log._folder.parent.name} {name}".encode()),
    ],
    "edl.jobs.event_log": [("EventLog", "write", "event", lambda log, event: _event(event))],
}


class _Real:
    """Functions of the system as they were."""

    open, close, read, write, fsync, fdatasync = os.open, os.close, os.read, os.write, os.fsync, os.fdatasync
    replace, rename, link, unlink, mkdir, rmdir = (
        os.replace,
        os.rename,
        os.link,
        os.unlink,
        os.mkdir,
        os.rmdir,
    )
    truncate, ftruncate, symlink, file = os.truncate, os.ftruncate, os.symlink, staticmethod(io.open)


class _Log:
    def __init__(self) -> None:
        self._thread, self._depth = threading.RLock(), 0
        self._file, self._pid = -1, -1

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        with self._thread:
            if self._pid != os.getpid():  # of a fork: the lock of a file belongs to a process
                self._file, self._pid = (
                    _Real.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
                    os.getpid(),
                )
            if not self._depth:
                fcntl.lockf(self._file, fcntl.LOCK_EX)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    fcntl.lockf(self._file, fcntl.LOCK_UN)

    def add(self, what: str, path: str, *more: Any) -> None:
        import msgspec

        record = msgspec.msgpack.encode((os.getpid(), what, path, *more))
        _Real.write(self._file, len(record).to_bytes(4, "little") + record)

    def add_content(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.add("data", path, _content(path))


log = _Log()


def ack(what: str, data: bytes = b"") -> None:
    """Record a promise, such as the client's promise that the model is stored."""
    with log.lock():
        log.add("ack", what, data)


def _content(path: str) -> bytes:
    file = _Real.open(path, os.O_RDONLY)
    try:
        pieces = []
        while piece := _Real.read(file, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        _Real.close(file)


def _place(path: Any, folder: int | None = None) -> str | None:
    """Return the absolute path of a file that is recorded, given by a path or a descriptor, else None."""
    try:
        if isinstance(path, int):
            found = os.readlink(f"/proc/self/fd/{path}")
        else:
            base = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else os.getcwd()
            above, name = os.path.split(os.path.join(base, os.fsdecode(path)))
            found = os.path.join(os.path.realpath(above), name)
    except OSError:
        return None
    return found if found.startswith(ROOT + "/") and not found.endswith(" (deleted)") else None


def _site() -> str:
    """Return the place in the runtime that flushes: the line, and for one of `edl.files` the caller's, too."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        _, inside, module = frame.f_code.co_filename.rpartition("/runtime/edl/")
        if inside and frame.f_code.co_name != "sync":
            found.append(f"{module}:{frame.f_lineno} {frame.f_code.co_name}")
            if module != "files.py":
                break
        frame = frame.f_back
    return " < ".join(found)


# Functions in place of the system's --------------------------------------------------------------------


def _record_open(path: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
    if not any(letter in mode for letter in "wax+") or (place := _place(path)) is None:
        return _Real.file(path, mode, *more, **named)
    with log.lock():
        is_new = not os.path.lexists(place)
        file = _Real.file(path, mode, *more, **named)
        if is_new:
            log.add("make", place)
        elif "w" in mode and not isinstance(path, int):
            log.add("data", place, b"")
    close = file.close

    def record_and_close() -> None:
        if file.closed:
            return
        with log.lock():
            try:
                file.flush()
                if (now := _place(file.fileno())) is not None:
                    log.add_content(now)
            finally:
                close()

    file.close = record_and_close
    return file


def _record_os_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    place = _place(path, dir_fd) if flags & (os.O_CREAT | os.O_TRUNC) else None
    if place is None:
        return _Real.open(path, flags, mode, dir_fd=dir_fd)
    with log.lock():
        is_new = not os.path.lexists(place)
        file = _Real.open(path, flags, mode, dir_fd=dir_fd)
        if is_new:
            log.add("make", place)
        elif flags & os.O_TRUNC:
            log.add("data", place, b"")
        return file


def _write(file: int, data: Any) -> int:
    if (place := _place(file)) is None:
        return _Real.write(file, data)
    with log.lock():
        written = _Real.write(file, data)
        log.add("write", place, os.lseek(file, 0, os.SEEK_CUR) - written, bytes(data[:written]))
        return written


def _syncing(sync: Callable[[int], None]) -> Callable[[Any], None]:
    def recorded(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        if (place := _place(descriptor)) is None:
            return sync(descriptor)
        with log.lock():
            is_folder = os.path.isdir(place)
            if not is_folder:
                log.add_content(place)
            sync(descriptor)
            log.add("sync", place, f"{'names' if is_folder else 'data'}, {_site()}")
        return None

    return recorded


def _renaming(rename: Callable[..., None], what: str = "rename") -> Callable[..., None]:
    def recorded(source: Any, target: Any, **named: Any) -> None:
        here, there = _place(source), _place(target)
        if here is None and there is None:
            return rename(source, target, **named)
        assert here is not None and there is not None, (source, target)
        with log.lock():
            if stat.S_ISREG(os.lstat(here).st_mode):
                log.add_content(here)
            rename(source, target, **named)
            log.add(what, here, there)
        return None

    return recorded


def _changing(change: Callable[..., None], what: str) -> Callable[..., None]:
    def recorded(path: Any, *more: Any, dir_fd: int | None = None) -> None:
        if (place := _place(path, dir_fd)) is None:
            return change(path, *more, dir_fd=dir_fd)
        with log.lock():
            change(path, *more, dir_fd=dir_fd)
            log.add(what, place)
        return None

    return recorded


def _symlink(target: Any, path: Any, *more: Any, **named: Any) -> None:
    if (place := _place(path)) is None:
        return _Real.symlink(target, path, *more, **named)
    with log.lock():
        _Real.symlink(target, path, *more, **named)
        log.add("symlink", place, os.fsencode(target))
    return None


def _truncating(truncate: Callable[..., None]) -> Callable[..., None]:
    def recorded(file: Any, length: int) -> None:
        if (place := _place(file)) is None:
            return truncate(file, length)
        with log.lock():
            truncate(file, length)
            log.add_content(place)
        return None

    return recorded


# Promises ---------------------------------------------------------------------------------------------------


def _pushed(log: Any, push: Any, arrays: Any) -> bytes:
    import zlib

    from edl.ps import wire

    return f"{log._folder.parent.name} {zlib.crc32(wire.encode(push, arrays))}".encode()


def _event(event: Any) -> bytes:
    import msgspec

    return bytes(msgspec.json.encode(event))


class _Finder(importlib.abc.MetaPathFinder):
    """Finder of the modules with promises. Their functions are replaced when they are imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in PROMISES:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(found for finder in others if (found := finder.find_spec(name, path, target)) is not None)
        execute = spec.loader.exec_module

        def execute_and_replace(module: Any) -> None:
            execute(module)
            for owner, method, what, content in PROMISES[name]:
                _acknowledge(getattr(module, owner), method, what, content)

        spec.loader.exec_module = execute_and_replace
        return spec


def _acknowledge(owner: Any, method: str, what: str, content: Callable[..., bytes]) -> None:
    original = getattr(owner, method)

    @functools.wraps(original)
    def acknowledged(*arguments: Any) -> Any:
        found = original(*arguments)
        ack(what, content(*arguments))
        return found

    setattr(owner, method, acknowledged)


def _install() -> None:
    builtins.open = io.open = _record_open  # type: ignore[assignment]
    os.open, os.write = _record_os_open, _write  # type: ignore[assignment]
    os.fsync, os.fdatasync = _syncing(_Real.fsync), _syncing(_Real.fdatasync)
    os.replace, os.rename = _renaming(_Real.replace), _renaming(_Real.rename)
    os.link = _renaming(_Real.link, "link")
    os.unlink = os.remove = _changing(_Real.unlink, "unlink")
    os.mkdir, os.rmdir = _changing(_Real.mkdir, "mkdir"), _changing(_Real.rmdir, "rmdir")
    os.symlink = _symlink
    os.truncate, os.ftruncate = _truncating(_Real.truncate), _truncating(_Real.ftruncate)
    sys.meta_path.insert(0, _Finder())


if ROOT:
    _install()
