"""Data sources, fixed rows, results and job folders. Light to import: databases and Arrow load when they are used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from edl.data.source import ConflictError, Pinned, Reader, Source
from edl.data.url import ROWS, connect, redacted

__all__ = ["ConflictError", "Pinned", "Reader", "Source", "connect", "open_reader", "redacted"]


def open_reader(pinned: Pinned, folder: Path) -> Reader:
    """A reader of the rows that were pinned in `folder`. SourceError: they are not there, or damaged."""
    from edl.data import file_ranges
    from edl.data import pinned as pinned_rows

    if pinned.table is not None:
        reader: Reader = import_module(ROWS[pinned.source.partition(":")[0]]).open_rows(pinned, pinned.table)
        return reader
    return (file_ranges.open_files if pinned.file == file_ranges.FILE else pinned_rows.open_reader)(
        pinned, folder
    )
