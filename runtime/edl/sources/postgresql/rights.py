"""Rights of an account of PostgreSQL, tried in transactions that are undone."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from edl.sources.postgresql.connection import ERRORS, PostgreSQLConnection, state
from edl.sources.postgresql.errors import DENIED, translate_error


def check_rights(connection: PostgreSQLConnection, statements: Iterable[str]) -> None:
    """Raise MissingRightError if the account may not run one of the statements; what they do is undone."""
    for sql in statements:
        try:
            connection.run(f"BEGIN; {sql}")
        except ERRORS as error:  # others are not of rights: the table may be made by then
            if state(error) in DENIED:
                raise translate_error(error, "") from None
        finally:
            with suppress(*ERRORS):
                connection.run("ROLLBACK")
