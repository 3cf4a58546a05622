"""Model registry in a store of its own: a folder or an object store.

    sqlflow-edl.json                                       marks a model store and holds its version
    models/<name>-<digest of the name>/<version>/claim…    claim of the number
                                                /saving-…  events of the version, a document for each
                                                /archive   its archive

Objects are added and never changed; archives of dropped versions are removed. So writers on several machines need no
lock, and readers see nothing half-written: an archive counts once an event says that it is ready.

Each object exists as a whole or not at all, and is never changed. `StoredObjects` relies on the common guarantee of
object stores: after a write, every listing contains the object. They have no locks, and not all of them can create an
object only if it does not exist. A shared folder can, with one call: `LocalObjects`."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from edl.data.url import redacted
from edl.errors import SourceError, SpecError, SQLFlowError
from edl.files import replacing
from edl.installation import install_extras
from edl.models.registry.events import EventRegistry, Events
from edl.models.registry.records import ModelVersion, RegistryEvent

MARK = "sqlflow-edl.json"
MODELS = "models"
ARCHIVE = "archive"
PROBE = f"{MODELS}/.probe"  # hidden from lists
_SUFFIX = ".json"  # of event documents
_LONGEST_PAUSE = 2.0  # seconds
_READ_AT_ONCE = 1000  # documents


class Mark(msgspec.Struct, frozen=True):
    version: int = 1


def open_store(store: str) -> StoredRegistry:
    """Open the registry in a folder or an fsspec URL. Raises SourceError if it cannot be opened."""
    return StoredRegistry(open_objects(store))


class StoredRegistry(EventRegistry):
    """Models of a store. `pause` sleeps for some seconds after a conflict with another writer."""

    def __init__(self, objects: StoredObjects, *, pause: Callable[[float], object] = time.sleep) -> None:
        super().__init__(objects.url)
        self._objects = objects
        self._pause = pause
        self._known: dict[str, RegistryEvent] = {}  # events do not change
        self._marked = False

    # Steps of writing ------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        if self._is_marked():
            return
        # Another writer may have marked it meanwhile; otherwise the objects are foreign.
        if self._objects.names() and not self._is_marked():
            raise SourceError(
                f"{self.url} holds objects other than models",
                hint=f"use a separate folder for models, such as {self.url}/models",
            )
        self._objects.put(MARK, msgspec.json.encode(Mark()))

    def _try_writing(self) -> None:
        self._objects.put(PROBE, b"")
        with contextlib.suppress(SourceError):  # models need no right to remove
            self._objects.remove(PROBE)

    def _claim(self, name: str, above: int = 0) -> int:
        for attempt in itertools.count():
            version = 1 + max(above, *self._numbers(name), 0)
            if self._objects.claim(_folder(name, version)):
                break
            self._pause(min(0.02 * 2**attempt, _LONGEST_PAUSE) * secrets.randbelow(1000) / 1000)
        return version

    def _append(self, event: RegistryEvent) -> None:
        name = f"{event.event}-{event.pointer}-{secrets.token_hex(8)}{_SUFFIX}"
        self._objects.put(f"{_folder(event.name, event.version)}/{name}", msgspec.json.encode(event))

    def _upload(self, name: str, version: int, key: str, archive: Path) -> tuple[int, str]:
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        self._objects.upload(_archive(name, version), archive)
        return size, digest

    def _remove_archive(self, name: str, version: int, key: str) -> None:
        self._objects.remove(_archive(name, version))

    # Steps of reading ------------------------------------------------------------------------------------

    def _read_all_events(self) -> Events:
        return self._events(MODELS)

    def _read_events(self, name: str) -> Events:
        return [event for event in self._events(_folder(name)) if event.name == name]

    def _events(self, folder: str) -> Events:
        if not self._is_marked():
            return []
        names = [name for name in self._objects.names(folder) if name.endswith(_SUFFIX)]
        new = [name for name in names if name not in self._known]
        for start in range(0, len(new), _READ_AT_ONCE):
            read = self._objects.read(new[start : start + _READ_AT_ONCE])
            self._known.update((name, self._event(name, content)) for name, content in read.items())
        return [self._known[name] for name in names if name in self._known]

    def _event(self, name: str, content: bytes) -> RegistryEvent:
        try:
            return msgspec.json.decode(content, type=RegistryEvent)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SpecError(f"{name} in the model store {self.url} is damaged: {error}") from None

    def _numbers(self, name: str) -> Iterator[int]:
        """Yield the versions that are claimed, or for which there was an attempt."""
        folder = _folder(name)
        for path in self._objects.names(folder):
            yield int(path.removeprefix(f"{folder}/").partition("/")[0])

    def _download(self, version: ModelVersion) -> Iterator[bytes]:
        home = self._home(version.name, version.version)
        yield from self._objects.pieces(_archive(home, version.version))

    def _is_marked(self) -> bool:
        """Return True if this is a model store. Raises SpecError if it has another version."""
        if self._marked:
            return True
        content = self._objects.read([MARK]).get(MARK)
        if content is None:
            return False
        try:
            version = msgspec.json.decode(content, type=Mark).version
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SpecError(f"{MARK} in the model store {self.url} is damaged: {error}") from None
        if version != Mark().version:
            raise SpecError(
                f"the model store {self.url} has version {version}, but this program reads version 1",
                hint="install a newer sqlflow-edl",
            )
        self._marked = True
        return True


def _folder(name: str, version: int | None = None) -> str:
    """Return the folder of a name: as readable as a path can be, and unique."""
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:60].lstrip(".")
    folder = f"{MODELS}/{readable}-{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}"
    return folder if version is None else f"{folder}/{version:06d}"


def _archive(name: str, version: int) -> str:
    return f"{_folder(name, version)}/{ARCHIVE}"


PIECE_BYTES = 4 << 20
CLAIM = "claim"  # prefix of the objects that claim a folder


class StoredObjects:
    """Objects below `root`; names are relative paths. `url` is displayed in errors, all of which are SourceErrors."""

    def __init__(self, system: Any, root: str, url: str) -> None:
        self.url = url
        self._system = system
        self._root = root.rstrip("/")

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all objects in the folder and its subfolders; empty if there is no such folder."""
        with self._errors("list what it has"):
            self._system.invalidate_cache()
            try:
                all_paths = self._system.find(self._path(folder))
            except FileNotFoundError:
                return []
        # Some stores list the folder itself if its first object is added meanwhile.
        inside = (path for path in all_paths if path.startswith(f"{self._path(folder)}/"))
        names = (path.removeprefix(f"{self._root}/") for path in inside)
        return sorted(name for name in names if not name.rpartition("/")[2].startswith("."))

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of the objects that exist."""
        paths = {self._path(name): name for name in names}
        if not paths:
            return {}
        with self._errors("be read"):
            contents = self._system.cat(list(paths), on_error="return")
            for content in contents.values():
                if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                    raise content
        return {paths[path]: content for path, content in contents.items() if isinstance(content, bytes)}

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the object's content in pieces; nothing if it does not exist."""
        with self._errors("be read"):
            try:
                file = self._system.open(self._path(name), "rb")
            except FileNotFoundError:
                return
            with file:
                while piece := file.read(PIECE_BYTES):
                    yield piece

    def put(self, name: str, content: bytes) -> None:
        with self._errors("be written to"):
            self._system.pipe_file(self._path(name), content)

    def upload(self, name: str, file: Path) -> None:
        with self._errors("be written to"):
            self._system.put_file(str(file), self._path(name))

    def remove(self, name: str) -> None:
        """Remove the object if it exists."""
        with self._errors("be written to"), contextlib.suppress(FileNotFoundError):
            self._system.rm_file(self._path(name))

    def claim(self, folder: str) -> bool:
        """Claim the folder. Return True for at most one claimant, and for none after that.

        Each claimant adds an object and then lists the folder: of two, the one that lists last sees both objects. A
        claimant that sees another's object withdraws its own.
        """
        mine = f"{folder}/{CLAIM}-{secrets.token_hex(8)}"
        self.put(mine, b"")
        if self.names(folder) == [mine]:
            return True
        self.remove(mine)
        return False

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Translate the errors that a store's library raises."""
        try:
            yield
        except SQLFlowError:
            raise
        except Exception as error:
            why = str(error) or type(error).__name__
            raise SourceError(f"the model store {self.url} cannot {what}: {why}") from error


class LocalObjects(StoredObjects):
    """Objects of a folder. Several machines may share it."""

    def put(self, name: str, content: bytes) -> None:
        path = Path(self._path(name))
        with self._errors("be written to"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as partial:  # flushed: the job's own copy of a model is removed then
                partial.write_bytes(content)

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        contents = {}
        for name in names:
            with self._errors("be read"), contextlib.suppress(FileNotFoundError):
                contents[name] = Path(self._path(name)).read_bytes()
        return contents

    def claim(self, folder: str) -> bool:
        path = Path(self._path(folder)) / CLAIM
        with self._errors("be written to"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            except FileExistsError:
                return False
        return True


def open_objects(store: str) -> StoredObjects:
    """Open a folder or an fsspec URL. Raises SourceError if it cannot be opened, or if the URL holds a secret."""
    if redacted(store) != store:
        raise SourceError(
            f"the URL of the model store {redacted(store)} holds a password or a key",
            hint="leave it out; the store's library finds its credentials in the environment, see sqlflow help models",
        )
    try:
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem
    except ImportError:
        raise SourceError(
            "the package fsspec is not installed, which model stores need",
            hint=install_extras("model-store"),
        ) from None
    try:
        system, root = url_to_fs(str(Path(store).expanduser()) if "://" not in store else store)
    except ImportError as error:
        raise SourceError(f"the model store {store} cannot be opened: {error}") from None
    except Exception as error:
        raise SourceError(
            f"the model store {store} cannot be opened: {error}",
            hint="name a folder, or a URL such as s3://bucket/models",
        ) from None
    if isinstance(system, LocalFileSystem):
        system.auto_mkdir = True
        return LocalObjects(system, root, f"file://{root}")
    return StoredObjects(system, root, store.rstrip("/"))
