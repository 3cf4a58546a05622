"""A disk that remembers what of it was flushed, and what it may have after the machine has crashed.

A file has the content of its last flush, or any of what was written since. A folder has the names of its last flush,
and any number of the changes since, in their order; folders are independent of each other, as POSIX permits.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.edl.end_to_end.crashes.recording import Operation

Tree: TypeAlias = "dict[str, bytes | Path | Tree]"  # content of a folder; a path is a symbolic link's
NO_CHANGE = ("ack",)


@dataclass(eq=False)
class File:
    data: bytes = b""
    flushed: bytes = b""

    @property
    def is_flushed(self) -> bool:
        return self.data == self.flushed


@dataclass(frozen=True)
class Link:
    to: Path


@dataclass(eq=False)
class Folder:
    """`changes` are those since the last flush, each of one or two names at once; None is a removed one."""

    names: dict[str, File | Link | Folder] = field(default_factory=dict)
    flushed: dict[str, File | Link | Folder] = field(default_factory=dict)
    changes: list[dict[str, File | Link | Folder | None]] = field(default_factory=list)

    def change(self, **names: File | Link | Folder | None) -> None:
        for name, node in names.items():
            if node is None:
                self.names.pop(name, None)
            else:
                self.names[name] = node
        self.changes.append(names)

    def flush(self) -> None:
        self.flushed, self.changes = dict(self.names), []

    def after(self, changes: int) -> Mapping[str, File | Link | Folder]:
        """Return the names after so many of the changes since the last flush."""
        if changes >= len(self.changes):
            return self.names
        found = dict(self.flushed)
        for change in self.changes[:changes]:
            for name, node in change.items():
                if node is None:
                    found.pop(name, None)
                else:
                    found[name] = node
        return found


class Disk:
    """The recorded folder. Its folders `existing` were there before and are flushed."""

    def __init__(self, *existing: Path) -> None:
        self.root = Folder()
        for path in existing:
            at = self.root
            for name in path.parts:
                if name not in at.names:
                    at.change(**{name: Folder()})
                    at.flush()
                found = at.names[name]
                assert isinstance(found, Folder)
                at = found

    def apply(self, operation: Operation) -> None:
        _, what, path, more = operation
        if what in NO_CHANGE:
            return
        folder, name = self._parent(path)
        if what == "symlink":
            [to] = more
            assert isinstance(to, bytes)
            folder.change(**{name: Link(Path(to.decode()))})
        elif what in ("make", "mkdir"):
            folder.change(**{name: File() if what == "make" else Folder()})
        elif what in ("data", "write"):
            self._write(folder.names[name], *more)
        elif what == "sync":
            found = folder.names[name]
            if isinstance(found, Folder):
                found.flush()
            elif isinstance(found, File):
                found.flushed = found.data
        elif what in ("unlink", "rmdir"):
            folder.change(**{name: None})
        else:
            self._rename(folder, name, str(more[0]), keeps=what == "link")

    def _write(self, file: File | Link | Folder, *more: bytes | int | str) -> None:
        assert isinstance(file, File)
        data = more[-1]
        assert isinstance(data, bytes)
        if len(more) == 1:
            file.data = data
        else:
            at = int(more[0])
            file.data = file.data[:at].ljust(at, b"\0") + data + file.data[at + len(data) :]

    def _rename(self, folder: Folder, name: str, to: str, *, keeps: bool) -> None:
        there, new = self._parent(to)
        node = folder.names[name]
        if there is folder and new == name:
            return
        if there is folder:
            folder.change(**{new: node, **({} if keeps else {name: None})})
        else:
            there.change(**{new: node})
            if not keeps:
                folder.change(**{name: None})

    def _parent(self, path: str) -> tuple[Folder, str]:
        at = self.root
        *parents, name = path.split("/")
        for parent in parents:
            found = at.names[parent]
            assert isinstance(found, Folder), path
            at = found
        return at, name


Choose = Callable[[Folder], Mapping[str, "File | Link | Folder"]]
Content = Callable[[File], bytes]


def tree(folder: Folder, names: Choose, content: Content) -> Tree:
    """Return what a folder has, by the choice of its names and the contents of files."""
    found: Tree = {}
    for name, node in names(folder).items():
        if isinstance(node, Folder):
            found[name] = tree(node, names, content)
        else:
            found[name] = content(node) if isinstance(node, File) else node.to
    return found


def _all(folder: Folder) -> Mapping[str, File | Link | Folder]:
    return folder.names


def _flushed_names(folder: Folder) -> Mapping[str, File | Link | Folder]:
    return folder.flushed


def _zeros(file: File) -> bytes:
    return file.data if file.is_flushed else file.flushed + bytes(max(0, len(file.data) - len(file.flushed)))


def _half(file: File) -> bytes:
    kept = (
        max(len(file.flushed), len(file.data) // 2)
        if file.data.startswith(file.flushed)
        else len(file.data) // 2
    )
    return file.data if file.is_flushed else file.data[:kept]


def _last_data(file: File) -> bytes:
    return file.data


def _flushed_data(file: File) -> bytes:
    return file.flushed


CRASHES: dict[str, tuple[Choose, Content]] = {
    "processes": (_all, _last_data),  # all are killed: the machine still has everything
    "nothing unflushed": (_flushed_names, _flushed_data),
    "names alone": (_all, _flushed_data),
    "names and zeros": (_all, _zeros),
    "names and half of the data": (_all, _half),
    "data alone": (_flushed_names, _last_data),
}


def drawn(seed: int) -> tuple[Choose, Content]:
    """A crash after which of each folder, and of each file, any part is there."""
    draw = random.Random(seed)  # noqa: S311 (a test)
    chosen: dict[int, Mapping[str, File | Link | Folder]] = {}

    def names(folder: Folder) -> Mapping[str, File | Link | Folder]:
        if id(folder) not in chosen:
            chosen[id(folder)] = folder.after(draw.randint(0, len(folder.changes)))
        return chosen[id(folder)]

    def cut(file: File) -> bytes:
        at_least = len(file.flushed) if file.data.startswith(file.flushed) else 0
        return file.data[: draw.randint(at_least, len(file.data))]

    def content(file: File) -> bytes:
        ways = (_last_data, _flushed_data, _zeros, cut)
        return file.data if file.is_flushed else draw.choice(ways)(file)

    return names, content


def damage(content: Tree, path: Sequence[str], seed: int) -> Tree:
    """Return the same with a bit of a file changed, or the file cut to a part."""
    name, *inside = path
    found = content[name]
    if isinstance(found, dict):
        return {**content, name: damage(found, inside, seed)}
    assert isinstance(found, bytes)
    draw = random.Random(seed)  # noqa: S311 (a test)
    at = draw.randrange(len(found))
    if draw.random() < 0.3:
        return {**content, name: found[:at]}
    return {**content, name: found[:at] + bytes([found[at] ^ 1 << draw.randrange(8)]) + found[at + 1 :]}


def write(content: Tree, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for name, found in content.items():
        if isinstance(found, bytes):
            (folder / name).write_bytes(found)
        elif isinstance(found, Path):
            (folder / name).symlink_to(found)
        else:
            write(found, folder / name)


def digest(content: Tree, *, without: tuple[str, ...] = ()) -> bytes:
    """Return what two trees have in common only if they are equal, but for names with the ends that are left out."""
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(name for name in content if not name.endswith(without)):
        each = content[name]
        if isinstance(each, dict):
            part = digest(each, without=without)
        else:
            part = each if isinstance(each, bytes) else bytes(each)
        found.update(f"{name}\0{len(part)}\0{type(each).__name__}\0".encode() + part)
    return found.digest()


def read_tree(folder: Path) -> Tree:
    found: Tree = {}
    for path in folder.iterdir():
        if path.is_symlink():
            found[path.name] = path.readlink()
        else:
            found[path.name] = path.read_bytes() if path.is_file() else read_tree(path)
    return found
