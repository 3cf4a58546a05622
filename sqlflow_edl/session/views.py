"""Views of a data source: a query that reads one also reads tables that it does not name."""

from __future__ import annotations

from edl.data.source import Source

_QUERIES = {  # scheme of a source -> query for its view names; without one, any table may be a view
    "duckdb": "SELECT view_name FROM duckdb_views() WHERE NOT internal",
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'view'",
    "mysql": "SELECT table_name FROM information_schema.views",
    "postgresql": "SELECT viewname FROM pg_views UNION SELECT matviewname FROM pg_matviews",
}


def views(source: Source) -> frozenset[str] | None:
    """Return the folded names of the views in the source, or None if any table may be one."""
    query = _QUERIES.get(source.url.partition(":")[0])
    reader = source.execute(query) if query else None
    if reader is None:
        return None
    return frozenset(str(name).casefold() for name in reader.read_all().column(0).to_pylist())
