"""Objects of a model store: each exists as a whole or not at all, and is never changed.

`StoredObjects` relies on the common guarantee of object stores: after a write, every listing contains the object. They
have no locks, and not all of them can create an object only if it does not exist. A shared folder can, with one call:
`LocalObjects`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from edl.data.url import redacted
from edl.errors import SourceError, SQLFlowError
from edl.files import replacing
from edl.installation import install_extras

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
