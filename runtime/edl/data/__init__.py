"""Data sources, pinned rows, results and job folders. Databases and Arrow are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from edl.data.source import ConflictError, Pinned, Reader, ReleasableSource, Source, TextSource
    from edl.data.url import connect, open_beside, redacted
    from edl.spec import Split

__all__ = [
    "ConflictError",
    "Pinned",
    "Reader",
    "ReleasableSource",
    "Source",
    "Split",
    "TextSource",
    "connect",
    "open_beside",
    "open_reader",
    "redacted",
]


_MODULES = {
    "edl.data.source": ("ConflictError", "Pinned", "Reader", "ReleasableSource", "Source", "TextSource"),
    "edl.data.url": ("connect", "open_beside", "redacted"),
    "edl.spec": ("Split",),
}

if not TYPE_CHECKING:  # else mypy would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name on first use: `sqlflow --help` needs none of them."""
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(module), name)
        return value


def open_reader(pinned: Pinned, folder: Path) -> Reader:
    """Return a reader of the rows pinned in `folder`. Raises SourceError if they are missing or damaged."""
    from edl.data import pinned as pinned_rows
    from edl.data.files import file_ranges
    from edl.data.url import ROWS

    if pinned.table is not None:
        reader: Reader = import_module(ROWS[pinned.source.partition(":")[0]]).open_rows(pinned, pinned.table)
        return reader
    return (file_ranges.open_files if pinned.file == file_ranges.FILE else pinned_rows.open_reader)(
        pinned, folder
    )
