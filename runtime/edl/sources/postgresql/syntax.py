"""PostgreSQL's parser: Parse of the extended protocol reads a statement without running it.

Parse also looks names up, and has the state of a syntax error for some errors in their use (`INSERT has more
expressions than target columns`), which an earlier statement may put right. Errors of the grammar come from the
server's scanner.
"""

from __future__ import annotations

from edl.errors import SourceError
from edl.sources.postgresql.connection import ERRORS, PostgreSQLConnection, state
from edl.sources.postgresql.errors import SYNTAX, translate_error

_SCANNER = ("scan.l", "gram.y", "scan.c", "gram.c")
_USUAL = "syntax error at"  # of servers that do not name the file


def syntax_error(connection: PostgreSQLConnection, sql: str) -> SourceError | None:
    """Return the error of one statement, or None if the parser accepts it. connection: not inside a transaction."""
    try:
        connection.describe(sql)
    except ERRORS as error:
        if state(error) == SYNTAX and _is_of_grammar(error):
            return translate_error(error, sql, lambda: connection)
    return None


def _is_of_grammar(error: Exception) -> bool:
    diagnosis = getattr(error, "diag", None)
    file = (diagnosis and diagnosis.source_file) or ""
    if not file:
        return _USUAL in str(error)
    return file.rpartition("/")[2] in _SCANNER
