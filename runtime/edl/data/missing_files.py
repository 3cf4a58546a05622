"""Hints for files that are not there: the name that was meant, a folder's files, options that belong to a source."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

from edl.data.url import SUFFIXES
from edl.errors import nearest

_MOST = 2000  # entries of a folder that are looked at
_CURLY = "‘’“”"


def missing_file_hint(path: str, *, quote: str = "") -> str | None:
    """Return what to write in place of a path that names no file, or None. quote: around paths, as in SQL."""

    def quoted(name: object) -> str:
        return f"{quote}{name}{quote}"

    if (straight := path.strip(_CURLY)) != path:
        return f"write straight quotes: '{straight}'"
    without, question, options = path.partition("?")
    if question and "=" in options and Path(without).is_file():
        return f"options belong to the source: --source {path!r}, and FROM '{without}'"
    if Path(path).is_dir():
        return _files_of_folder(Path(path), quoted)
    if "\\" in path:
        return _on_this_machine(PureWindowsPath(path), quoted)
    near = _nearest_file(Path(path))
    return f"did you mean {quoted(near)}?" if near else None


def _files_of_folder(folder: Path, quoted: Callable[[object], str]) -> str:
    suffixes = (path.suffix.lower() for path in itertools.islice(folder.iterdir(), _MOST))
    endings = Counter(ending for ending in suffixes if ending in SUFFIXES)
    if not endings:
        return f"{folder} is a folder, and has no files of rows"
    [(ending, _)] = endings.most_common(1)
    return f"{folder} is a folder; its files are {quoted(f'{folder}/*{ending}')}"


def _on_this_machine(path: PureWindowsPath, quoted: Callable[[object], str]) -> str:
    """Return the hint for a path with backslashes: the file of that name, if it is here."""
    relative = Path(*path.parts[1:] if path.anchor else path.parts)
    for candidate in (Path("/mnt") / path.drive.rstrip(":").lower() / relative, relative, Path(path.name)):
        if candidate.is_file():
            return f"did you mean {quoted(candidate)}?"
    return "this is a path of Windows; write slashes, and the folder where this machine has the file"


def _nearest_file(path: Path) -> Path | None:
    folder = path.parent
    if not folder.is_dir():
        near = nearest(folder.name, _names(folder.parent))
        moved = folder.parent / near / path.name if near else Path(path.name)
        return moved if moved.is_file() else None
    near = nearest(path.name, _names(folder))
    return folder / near if near else None


def _names(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return [path.name for path in itertools.islice(folder.iterdir(), _MOST)]
