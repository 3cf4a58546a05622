"""MySQL's parser: PREPARE reads a statement without running it.

The server does not prepare some kinds of statements, and names of tables are looked up too; only errors of the grammar
count.
"""

from __future__ import annotations

from edl.errors import SourceError
from edl.sources.mysql import queries
from edl.sources.mysql.connection import ERRORS, MySQLConnection, code
from edl.sources.mysql.errors import SYNTAX, UNDECLARED, translate_error


def syntax_error(connection: MySQLConnection, sql: str) -> SourceError | None:
    """Return the error of one statement, or None if the parser accepts it, or the server does not prepare it (1295)."""
    try:
        connection.run(queries.prepare_query(sql, connection))
        connection.run("DEALLOCATE PREPARE sqlflow_edl_query")
    except ERRORS as error:
        if code(error) in (SYNTAX, UNDECLARED):
            return translate_error(error, sql, lambda: connection)
    return None
