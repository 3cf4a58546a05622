"""Which registry has the models of a data source, or of a store. Only that is imported."""

from __future__ import annotations

from edl.data.source import Source
from edl.models.registry.base import Registry

APPENDED = (
    "maxcompute",
)  # dialects of sources whose rows are never changed: see `edl.models.registry.append_only`


def open_registry(source: Source, store: str = "") -> Registry:
    """The models of a store, by default those that the data source keeps.

    store: a folder, or a URL as fsspec takes it. SourceError: it cannot be opened.
    """
    if store:
        from edl.models.registry.object_store import open_store

        return open_store(store)
    if source.dialect in APPENDED:
        from edl.models.registry.append_only import AppendedRegistry

        return AppendedRegistry(source)  # type: ignore[arg-type]
    from edl.models.registry.tables import TableRegistry

    return TableRegistry(source)
