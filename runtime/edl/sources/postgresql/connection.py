"""Connections to PostgreSQL: opening, statements, and the description of their columns.

There are two drivers. psycopg runs the statements of a session: it describes the columns of a query without running
it, with their exact types, tells the place of an error, and cancels a statement from another thread; ADBC has none of
these. The rows of jobs are read by ADBC, which turns binary COPY into Arrow without Python objects, over connections
of their own (`edl.sources.postgresql.pinning`). Both are libpq, so that they understand the same options.

The session's time zone is UTC, and its forms of values are PostgreSQL's defaults, whatever the server is set to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import Any

from edl.data.server_url import NoPasswordError, ServerURL
from edl.data.source import UnreachableError
from edl.errors import SourceError, did_you_mean
from edl.installation import install_extras
from edl.sources.words import Lexicon

try:
    import adbc_driver_postgresql  # noqa: F401 (missing here, and not in the middle of a job)

    from edl.sources.postgresql.driver import ExecStatus, TransactionStatus, generators, psycopg
except ImportError:
    raise SourceError(
        "postgresql:// needs psycopg and ADBC's driver", hint=install_extras("postgresql")
    ) from None

ERRORS: tuple[type[Exception], ...] = (psycopg.Error,)
# passed to libpq as they are
_LIBPQ = (
    "application_name",
    "channel_binding",
    "connect_timeout",
    "gssencmode",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
)
OPTIONS = (*_LIBPQ, "pin", "schema", "socket")
LEAST_VERSION = 14  # the first with bit_xor, for digests

# between two looks of the server, in a statement, at whether its client is there: a cancellation that arrives before
# the statement has begun has no effect, and the client may be killed
CHECK_MS = 5000

_EXTRA_TYPES = (
    "SELECT oid::bigint, typname, typtype = 'e' OR typcategory = 'S' FROM pg_type WHERE oid = ANY (?::oid[])"
)
_CHUNK = 2048  # rows: what fits into a processor's cache as Python objects
_FORMS = {
    "TimeZone": "'UTC'",
    "DateStyle": "'ISO, MDY'",
    "IntervalStyle": "'postgres'",
    "bytea_output": "'hex'",
    "extra_float_digits": "1",
}
_SESSION = "; ".join(f"SET {name} = {value}" for name, value in _FORMS.items()) + (
    "; SET standard_conforming_strings = on; SET lock_timeout = '20s'"
)
# in a transaction: texts of values are what they are in a new session, whatever the user has set
USUAL_FORMS = "; ".join(f"SET LOCAL {name} = {value}" for name, value in _FORMS.items())
# loaded as Python values; all other types are loaded as texts
_NATIVE = frozenset(
    ("bool", "bytea", "float4", "float8", "int2", "int4", "int8", "oid", "bpchar", "name", "text", "varchar")
)


@dataclass(frozen=True, slots=True)
class Described:
    """Column of a result as the server describes it: the number of its type and the type's modifier, or -1."""

    name: str
    oid: int
    modifier: int


class Array(list[Any]):
    """Values of an array, and the array as the server writes it."""

    text = ""


class QueryResult:
    """Rows of a running statement. The driver cancels the statement if not all of them are read."""

    def __init__(self, columns: Sequence[Described], rows: Iterator[Any]) -> None:
        self.columns = columns
        self._running = rows
        first = list(islice(rows, 1))  # runs the statement
        self._rows = chain(first, rows)

    def fetchmany(self, count: int) -> list[tuple[Any, ...]]:
        return list(islice(self._rows, count))

    def close(self) -> None:
        self._running.close()  # type: ignore[attr-defined]


class PostgreSQLConnection:
    """Connection that commits every statement by itself. Only `cancel` may be called from another thread.

    `extra_types` holds the types that are not part of PostgreSQL, by number: their name, and True for texts, which are
    enums and the types that PostgreSQL compares as texts.
    """

    def __init__(self, url: ServerURL) -> None:
        self._url = url
        self.driver: Any = None
        self.extra_types: dict[int, tuple[str, bool]] = {}
        self.open()

    def open(self) -> None:
        """Connect, or connect again. Raises SourceError."""
        try:
            self.driver = psycopg.connect(
                **arguments(self._url),
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=None,
            )
        except ERRORS as error:
            raise _connection_error(error, self._url) from None
        _load_as_texts(self.driver)
        version = self.driver.info.server_version // 10_000
        if version < LEAST_VERSION:
            self.close()
            raise SourceError(
                f"the server is PostgreSQL {version}; PostgreSQL {LEAST_VERSION} or later is needed"
            )
        schema = dict(self._url.options).get("schema")
        path = f"; SET search_path = {identifier(schema)}, public" if schema else ""
        self.driver.execute(_SESSION + path)
        with suppress(*ERRORS):  # of a server on a system that cannot
            self.driver.execute(f"SET client_connection_check_interval = {CHECK_MS}")

    @property
    def password(self) -> str:
        """Password that opened the server, wherever libpq found it."""
        text: str = self.driver.info.password
        return text

    @property
    def is_open(self) -> bool:
        return not self.driver.closed and not self.driver.broken

    @property
    def in_transaction(self) -> bool:
        return self.driver.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def describe(self, sql: str) -> list[Described]:
        """Return the columns of a statement, without running it; none if it has no rows."""
        pgconn = self.driver.pgconn
        pgconn.send_prepare(b"", sql.encode())
        self._answer()
        pgconn.send_describe_prepared(b"")
        result = self._answer()
        names = [(result.fname(at) or b"").decode() for at in range(result.nfields)]
        return [Described(name, result.ftype(at), result.fmod(at)) for at, name in enumerate(names)]

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> QueryResult:
        """Run one statement, with `?` in place of its parameters. Its rows are fetched on demand."""
        if parameters:
            sql = number_parameters(sql)
        columns = self.describe(sql)
        self.learn_types(columns)  # now: nothing else runs on the connection while rows are fetched
        cursor = self.driver.cursor()
        if not columns:
            cursor.execute(sql, parameters or None)
            return QueryResult((), iter(()))
        return QueryResult(columns, cursor.stream(sql, parameters or None, size=_CHUNK))

    def learn_types(self, columns: Iterable[Described]) -> None:
        """Look up the columns' types that are not part of PostgreSQL."""
        unknown = {column.oid for column in columns if psycopg.adapters.types.get(column.oid) is None}
        if unknown := unknown - self.extra_types.keys():
            rows = self.fetch_all(_EXTRA_TYPES, (sorted(unknown),))
            self.extra_types |= {number: (name, is_text) for number, name, is_text in rows}

    def run(self, sql: str) -> int:
        """Run internal statements without rows. Return the number of changed rows."""
        changed: int = self.driver.execute(sql).rowcount
        return max(changed, 0)

    def fetch_all(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a small internal query."""
        rows: list[tuple[Any, ...]] = self.driver.execute(
            number_parameters(sql), parameters or None
        ).fetchall()
        return rows

    def copy(self, sql: str, chunks: Iterable[bytes]) -> None:
        """Run a COPY FROM STDIN with these bytes."""
        with self.driver.cursor().copy(sql) as copy:
            for chunk in chunks:
                copy.write(chunk)

    def cancel(self) -> None:
        """Stop the running statement, if any."""
        if self.driver.pgconn.transaction_status == TransactionStatus.ACTIVE:
            with suppress(*ERRORS):
                self.driver.cancel_safe()

    def _answer(self) -> Any:
        """Return the result of what was sent. Other threads run meanwhile, and an interruption ends the wait."""
        [*_, result] = self.driver.wait(generators.execute(self.driver.pgconn))
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result, self.driver.info.encoding)
        return result

    def close(self) -> None:
        if self.driver is not None:
            with suppress(*ERRORS):
                self.driver.close()

    __del__ = close  # of a source that nobody closed, without the driver's warning


# Words of PostgreSQL's SQL; comments are nested once at most.
LEXICON = Lexicon(
    re.compile(
        r"""(?P<skip>\s+|--[^\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*.*?\*/)*(?:\*/|\Z))
      | (?P<text>e'(?:[^'\\]|\\.|'')*'?|(?:[bxn]|u&)?'(?:[^']|'')*'?|\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))
      | (?P<name>"(?:[^"]|"")*"?|[^\W\d][\w$]*)
      | (?P<other>\d[\w.]*|.)""",
        re.VERBOSE | re.DOTALL | re.IGNORECASE,
    ),
    '"',
)


def number_parameters(sql: str) -> str:
    """Return the statement with numbers in place of its question marks: $1, $2 and so on."""
    if "?" not in sql:
        return sql
    parts: list[str] = []
    end = marks = 0
    for token in LEXICON.words(sql):
        if token[0] == "?":
            marks += 1
            parts += [sql[end : token.start()], f"${marks}"]
            end = token.end()
    return "".join([*parts, sql[end:]])


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_options(url: ServerURL) -> None:
    """Raise SourceError if the URL has an unknown option or names no database."""
    for option, _ in url.options:
        if option not in OPTIONS:
            raise SourceError(
                f"{url.scheme} URLs have no option {option}",
                hint=did_you_mean(option, OPTIONS) or f"known: {', '.join(OPTIONS)}",
            )
    if not url.path or "/" in url.path:
        raise SourceError(f"{url} names no database", hint="write it as postgresql://user@host/database")


def arguments(url: ServerURL) -> dict[str, Any]:
    """Return libpq's parameters. What the URL leaves out comes from libpq's places, such as ~/.pgpass."""
    options = dict(url.options)
    named = {
        "host": options.get("socket") or url.host.strip("[]"),
        "port": url.port,
        "user": url.user,
        "password": url.password,
        "dbname": url.path,
        "client_encoding": "utf8",
        "connect_timeout": 10,
        "application_name": "sqlflow-edl",
        **{option: value for option, value in options.items() if option in _LIBPQ},
    }
    return {name: value for name, value in named.items() if value}


def with_password(url: ServerURL, connection: PostgreSQLConnection) -> ServerURL:
    """Return the URL with the password of the connection. The password is stored for child processes."""
    return url if url.password else replace(url, password=connection.password).with_password()


def state(error: BaseException) -> str:
    """Return the SQLSTATE of an error; empty if the server reported none."""
    return getattr(error, "sqlstate", None) or ""


def is_lost(error: BaseException) -> bool:
    """Return True if the connection is lost or the server shuts down, so that a new connection may continue."""
    code = state(error)
    return code.startswith(("08", "57P")) or (not code and isinstance(error, psycopg.OperationalError))


def _load_as_texts(driver: Any) -> None:
    from psycopg.types.string import TextLoader

    for kind in psycopg.adapters.types:
        if kind.name not in _NATIVE:
            driver.adapters.register_loader(kind.oid, TextLoader)
        if kind.array_oid:
            driver.adapters.register_loader(kind.array_oid, _array_loader(kind.array_oid))


@cache
def _array_loader(oid: int) -> Any:
    """Return a loader of `Array`."""
    from psycopg.adapt import Loader

    lists: Any = psycopg.adapters.get_loader(oid, psycopg.pq.Format.TEXT)

    class ArrayLoader(Loader):  # type: ignore[misc]
        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._lists = lists(oid, context)

        def load(self, data: Any) -> Array:
            loaded = Array(self._lists.load(data))
            loaded.text = bytes(data).decode()
            return loaded

    return ArrayLoader


def _connection_error(error: Exception, url: ServerURL) -> SourceError:
    lines = [line for line in str(error).splitlines() if line.strip()]
    message = (
        lines[0].rpartition("FATAL:")[2].removeprefix("connection failed: ").strip() if lines else "no answer"
    )
    hint = next((hint for said, hint in _HINTS if said in str(error)), None)
    kind = UnreachableError if any(said in str(error) for said in _PASSING) else SourceError
    if not url.password and any(said in str(error) for said in _DENIED):
        kind = NoPasswordError
    return kind(f"cannot open {url}: {message.rstrip('.')}", hint=hint)


_PASSING = (
    "Connection refused",
    "timeout expired",
    "timed out",
    "starting up",
    "shutting down",
    "too many c",  # … clients already, … connections for role
    "remaining connection slots",
    "server closed the connection",
    "could not translate host name",
    "failed to resolve host",  # psycopg's own look-up
    "No route to host",
    "Network is unreachable",
)
_DENIED = ("no password supplied", "password authentication failed")
_HINTS = (
    ("failed to resolve host", "check the name of the host, and the name service"),
    (
        "no password supplied",
        "give the password by -p, in SQLFLOW_SOURCE, in PGPASSWORD or in the connections file",
    ),
    (
        "password authentication failed",
        "the password is wrong, or there is no such user",
    ),
    ("certificate verify failed", "name the file with the server's authority: sslrootcert=/path/to/ca.pem"),
    ("root certificate file", "name the file with the server's authority: sslrootcert=/path/to/ca.pem"),
    ("does not match host name", "write the host as the server's certificate has it"),
    ("does not support SSL", "enable TLS on the server, or leave sslmode out"),
    (
        "no pg_hba.conf entry",
        "the server's administrator must admit this user from this host; it may require sslmode=require",
    ),
    ("does not exist", "check the names of user and database"),
    ("Connection refused", "check host and port, and that the server is running"),
    ("could not translate host name", "check the host"),
    ("No such file or directory", "check the folder of the server's socket"),
)
