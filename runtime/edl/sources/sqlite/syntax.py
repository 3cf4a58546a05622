"""SQLite's parser: it compiles a statement without running it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from edl.errors import SourceError
from edl.sources.sqlite.errors import LEXICON, translate_error

_SYNTAX = re.compile(r"near \".*\": syntax error|incomplete input|unrecognized token", re.DOTALL)


def syntax_error(sql: str) -> SourceError | None:
    """Return the error of one statement, or None if the parser accepts it. Pragmas act as they are compiled: None.

    SQLite looks names up behind the last word of a statement, so an empty database in memory does.
    """
    word = LEXICON.first_word(sql)
    if word == "PRAGMA":
        return None
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(sql if word == "EXPLAIN" else f"EXPLAIN {sql}").close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            return translate_error(error, connection, sql) if _SYNTAX.search(str(error)) else None
    return None
