"""Rights of an account of MySQL: the server checks most rights for a statement when it prepares the statement.

It checks the rights to rename and drop a table only where it would do so: a table that is not there is renamed to
itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from edl.sources.mysql import queries
from edl.sources.mysql.connection import ERRORS, MySQLConnection, code
from edl.sources.mysql.errors import DENIED, translate_error


def check_rights(connection: MySQLConnection, statements: Iterable[str]) -> None:
    """Raise MissingRightError if the account may not run one of the statements. None of them runs."""
    for sql in statements:
        try:
            connection.run(queries.prepare_query(sql, connection))
            connection.run("DEALLOCATE PREPARE sqlflow_edl_query")
        except ERRORS as error:  # others are not of rights: the table may be made by then
            _raise_if_denied(error)


def check_may_replace(connection: MySQLConnection, table: str) -> None:
    """Raise MissingRightError if the account may not rename and drop tables. `table`: one that is not there."""
    try:
        connection.run(f"RENAME TABLE {table} TO {table}")
    except ERRORS as error:  # there is no such table
        _raise_if_denied(error)


def _raise_if_denied(error: Exception) -> None:
    if code(error) in DENIED:
        raise translate_error(error, "") from None
