"""Syntax errors of statements, as the parser of their database finds them; nothing runs.

`Source.syntax_error` asks the database of a source. The parsers of embedded databases need none: `syntax_error`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edl.errors import SourceError

# dialect -> module of its database's parser, imported on first use
PARSERS = {"duckdb": "edl.sources.duckdb.syntax", "sqlite": "edl.sources.sqlite.syntax"}


def syntax_error(sql: str, dialect: str) -> SourceError | None:
    """Return the error of one statement in a dialect of `PARSERS`, or None if its parser accepts the statement."""
    error: SourceError | None = import_module(PARSERS[dialect]).syntax_error(sql)
    return error
