"""URLs of data sources: what they name, and how they are shown without their secrets.

    duckdb:///iris.duckdb        a file, relative to the working directory      duckdb:iris.duckdb, iris.duckdb
    duckdb:////data/iris.duckdb  a file by its absolute path                    duckdb:/data/iris.duckdb
    duckdb:                      a database in memory                           duckdb://:memory:

Percent escapes are decoded in the forms with `//`; the short forms are taken as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlencode

from edl.errors import SourceError, nearest

if TYPE_CHECKING:
    from edl.data.source import Source

# scheme -> the class of its source, imported when it is used; what it is a URL of decides nothing else
SOURCES = {
    "duckdb": ("edl.data.duckdb", "DuckDBSource"),
}
PLANNED = ("sqlite", "mysql", "maxcompute", "csv", "parquet", "recordio")

DUCKDB_SUFFIXES = (".duckdb", ".ddb", ".db")
MEMORY = ":memory:"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SECRET_OPTION = re.compile(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SourceURL:
    """A URL taken apart. `location` is what follows the scheme: for DuckDB a path, or `:memory:`."""

    scheme: str
    location: str

    @property
    def in_memory(self) -> bool:
        return self.location == MEMORY

    def __str__(self) -> str:
        return f"{self.scheme}:///{quote(self.location, safe='/:~')}"


def parse(url: str) -> SourceURL:
    """The parts of a URL. SourceError: a scheme that is unknown or not there yet, or no place in the URL."""
    match = _SCHEME.match(url)
    if not match:
        if url.lower().endswith(DUCKDB_SUFFIXES):
            return SourceURL("duckdb", url)
        raise SourceError(
            f"{redacted(url) or '(empty)'} is not the URL of a data source",
            hint="write it as duckdb:///path/to/file.duckdb",
        )
    scheme = match[1].lower()
    if scheme not in SOURCES:
        raise _unknown(scheme)
    return SourceURL(scheme, _location(url, url[match.end() :]))


def redacted(url: str) -> str:
    """The URL without password and other secrets: safe to show, log and store, good enough to name the source.

    It never fails, and takes away rather too much from a URL whose password has unescaped characters.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    rest, question, options = rest.partition("?") if "@" not in rest.partition("?")[2] else (rest, "", "")
    if not rest.startswith("/") and "@" in rest:
        account, _, host = rest.rpartition("@")
        rest = f"{account.partition(':')[0]}@{host}"
    shown = [(key, value) for key, value in parse_qsl(options) if not _SECRET_OPTION.search(key)]
    return f"{scheme}://{rest}" + (question + urlencode(shown) if shown else "")


def connect(url: str, *, create: bool = False) -> Source:
    """An open connection to the data source that `url` names.

    create: make a database file that does not exist. Without it a missing file is a SourceError, because a typing
    error in the path would otherwise become an empty database and an unknown table.
    """
    parsed = parse(url)
    module, name = SOURCES[parsed.scheme]
    source: Source = getattr(import_module(module), name).connect(parsed, create=create)
    return source


def _unknown(scheme: str) -> SourceError:
    if scheme in PLANNED:
        return SourceError(
            f"data sources of the scheme {scheme} are not there yet", hint=f"known: {', '.join(SOURCES)}"
        )
    near = nearest(scheme, SOURCES)
    known = f"known schemes: {', '.join(SOURCES)}; not there yet: {', '.join(PLANNED)}"
    return SourceError(
        f"{scheme} is not a scheme of data sources", hint=f"did you mean {near}? {known}" if near else known
    )


def _location(url: str, rest: str) -> str:
    """`rest` is what follows `duckdb:`."""
    if not rest.startswith("//"):
        return rest or MEMORY
    host, _, path = rest[2:].partition("/")
    if host not in ("", MEMORY) or (host and path):
        raise SourceError(
            f"{redacted(url)} names a host, {host.rpartition('@')[2]}, and DuckDB has none",
            hint="duckdb:///file.duckdb is relative to the working directory, duckdb:////data/file.duckdb absolute",
        )
    return unquote(path) or MEMORY
