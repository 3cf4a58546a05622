"""Choice of the registry of a data source or a store. Only the chosen one is imported."""

from __future__ import annotations

from edl.data.source import Source
from edl.models.registry.base import Registry

# Dialects of sources with append-only tables, see `edl.models.registry.append_only`.
APPENDED = ("maxcompute",)


def open_registry(source: Source, store: str = "") -> Registry:
    """Open the registry in a store (a folder or an fsspec URL), by default the registry of the data source.

    Raises SourceError if it cannot be opened.
    """
    if store := store or source.model_store:
        from edl.models.registry.object_store import open_store

        return open_store(store)
    if source.dialect in APPENDED:
        from edl.models.registry.append_only import AppendedRegistry

        return AppendedRegistry(source)  # type: ignore[arg-type]
    from edl.models.registry.tables import TableRegistry

    return TableRegistry(source)
