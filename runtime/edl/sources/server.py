"""Base of databases on a server: one connection for the session, another for questions, pinned rows in a table.

The user's statements, and internal ones of the same transaction, run on one connection, so that a query sees its
temporary tables and settings. After a long idle time the connection is checked before use, and replaced if it is lost.

Pinned rows stay in the database as a private table, see `edl.sources.server_pinning`. For users without the right to
create tables they are a file, as with an embedded database.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from edl.data.server_url import ServerURL
from edl.data.source import Pinned, PinningRates, RowEstimate
from edl.errors import SourceError
from edl.sources.cursors import CursorSource
from edl.sources.pinned_tables import DeniedError, drop_abandoned
from edl.sources.pinning_cost import IN_FILE
from edl.sources.server_pinning import Pinning
from edl.sources.staging import Staging
from edl.sources.words import strip_end
from edl.spec import Split

IDLE_SECS = 30.0  # idle time after which a connection is checked before use
_STOPPING_SECS = 0.05  # between two attempts to stop a statement


class ServerConnection(Protocol):
    """Connection to a server, as far as all servers use it alike."""

    @property
    def is_open(self) -> bool: ...

    @property
    def in_transaction(self) -> bool: ...

    def fetch_all(self, sql: str) -> list[tuple[Any, ...]]: ...

    def run(self, sql: str) -> int: ...

    def close(self) -> None: ...


C = TypeVar("C")  # description of a column
K = TypeVar("K", bound=ServerConnection)
P = ParamSpec("P")
R = TypeVar("R")


class ServerSource(CursorSource[C], Generic[C, K]):
    """`edl.data.source.Source` for a server.

    `rates`: of pinning in a table. `home_kind`: what holds the tables of the source. `impatience`: a statement with
    which a connection waits for no lock.
    """

    rates: ClassVar[PinningRates]
    impatience: ClassVar[str]
    finds_syntax_errors = True
    connection: K
    _results: Staging
    home_kind = "the database"

    def __init__(self, url: ServerURL) -> None:
        self._url = url.with_password()
        super().__init__(self._open(), str(url))
        self.database = url.path
        self._used = time.monotonic()
        self._second = SecondConnection(self._connect_again)
        self._pins_tables = ("pin", "file") not in url.options

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> Self:
        """Open the source. `create` has no effect: administrators create databases of a server."""
        return cls(url)

    # Steps specific to a database ------------------------------------------------------------------------

    @abstractmethod
    def _open(self) -> K:
        """Open a connection. Raises SourceError if the server cannot be reached or denies access."""

    @abstractmethod
    def _close_if_lost(self, connection: K) -> None:
        """Close an idle connection that the server or the network has ended."""

    @abstractmethod
    def _stop(self, connection: K) -> None:
        """Stop the statement that another thread runs on the connection."""

    @abstractmethod
    def _pinning(self, columns: Sequence[C], folder: Path) -> Pinning[Any]:
        """Return the construction of a table of pinned rows."""

    @abstractmethod
    def _can_make_tables(self) -> bool:
        """Return True if the user can create tables, tested by creating one."""

    @abstractmethod
    def _row_tables(self) -> list[tuple[str, str]]:
        """Return the tables with names that begin with `PREFIX`: each as a query names it, and its comment."""

    @abstractmethod
    def _estimate(self, connection: K, query: str) -> RowEstimate:
        """Estimate the rows of a query, see `estimate_rows`."""

    @abstractmethod
    def _check_rights(self, connection: K, statements: Iterable[str]) -> None:
        """Raise MissingRightError if the account may not run one of the statements."""

    @abstractmethod
    def _is_denied(self, error: Exception) -> bool:
        """Return True if the user lacks a right."""

    # Reading ---------------------------------------------------------------------------------------------

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        columns = self._columns(query)
        if self._pins_tables and not self.live().in_transaction:  # which other connections would not see
            try:
                return self._pinning(columns, folder).pin(query, seed=seed, shuffle=shuffle, split=split)
            except DeniedError:
                self._pins_tables = False
        return super().pin(query, folder, seed=seed, shuffle=shuffle, split=split)

    def unpin(self, pinned: Pinned, folder: Path) -> None:
        if pinned.table is None:
            super().unpin(pinned, folder)
        else:
            self.execute(f"DROP TABLE IF EXISTS {pinned.table.name}")

    def unpin_abandoned(self) -> int:
        return drop_abandoned(self, self._row_tables())

    def how_rows_are_kept(self) -> str:
        if self._pins_tables and self._can_make_tables():
            return ""
        asked = ("pin", "file") in self._url.options
        why = "the URL says so" if asked else f"this user cannot create tables in {self.home_kind}"
        return f"all rows are copied into the job's folder once, over one connection: {why}"

    def pinning_rates(self) -> PinningRates:
        return IN_FILE if self.how_rows_are_kept() else self.rates

    def estimate_rows(self, query: str) -> RowEstimate | None:
        # errors: of a table or a setting that only the user's session has
        return self._second.ask(lambda second: self._estimate(second, strip_end(query)), self.errors)

    # Statements ------------------------------------------------------------------------------------------

    @property
    def has_open_transaction(self) -> bool:
        return bool(self.connection.in_transaction)

    def check_rights(self, statements: Sequence[str]) -> None:
        self._second.ask(lambda second: self._check_rights(second, statements))

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        self._results.check_may_write(target, append=append)

    def look_up(self, query: Callable[Concatenate[K, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Ask the catalog by a function of the database's `queries`.

        Raises ConflictError if the connection is lost meanwhile.
        """
        connection = self.live()
        with self._errors(""):
            return query(connection, *args, **kwargs)

    def read_few_rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a small internal query, as the driver gives them."""
        connection = self.live()
        with self._errors(""):
            return connection.fetch_all(query)

    def count(self, query: str) -> int:
        """Return the number that an internal query yields."""
        return int(self.read_few_rows(query)[0][0])

    @contextmanager
    def asking_beside(self, question: Callable[[K], R], *, is_long: bool) -> Iterator[Future[R]]:
        """Ask a question while the body runs. Its answer is there at the end of the context.

        A long one is asked on the second connection, in a thread. Without one, or if it is short, it waits for the end
        of the body, and is asked on this connection.
        """
        second = self._second.get() if is_long else None
        if second is None:
            answer: Future[R] = Future()
            yield answer
            answer.set_result(self.look_up(question))
            return
        with self._errors(""), ThreadPoolExecutor(1) as pool:
            answer = pool.submit(question, second)
            try:
                yield answer
                answer.result()
            except BaseException:
                while not wait([answer], _STOPPING_SECS).done:  # it may not have begun when it is stopped
                    self._stop(second)
                raise

    # Connections -----------------------------------------------------------------------------------------

    def live(self) -> K:
        """Return the connection with no unfinished result, replaced if it was lost outside of a transaction."""
        self._end_result()
        if self.in_transaction:
            return self.connection
        if self.connection.is_open and time.monotonic() - self._used > IDLE_SECS:
            self._close_if_lost(self.connection)
        if not self.connection.is_open:
            self._reopen()
        self._used = time.monotonic()
        return self.connection

    def close(self) -> None:
        with suppress(*self.errors):
            self._second.close()
        super().close()

    def _reopen(self) -> None:
        self.connection = self._open()

    def _connect_again(self) -> K:
        """Return a connection that waits for no lock: the user's own transaction may hold one."""
        connection = self._open()
        with suppress(*self.errors):  # then it waits as long as others
            connection.run(self.impatience)
        return connection

    def _run(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        self.live()
        return super()._run(sql, parameters)

    def _begin(self) -> None:
        self._check_no_transaction()
        super()._begin()

    def _check_no_transaction(self) -> None:
        """Raise SourceError if the user has begun a transaction: our statements would commit it."""
        if self.live().in_transaction:
            raise SourceError(
                "a transaction is open on this connection",
                hint="end the open transaction with COMMIT or ROLLBACK",
            )

    @contextmanager
    def _denials(self) -> Iterator[None]:
        """Raise DeniedError where the user lacks a right."""
        try:
            yield
        except self.errors as error:
            if self._is_denied(error):
                raise DeniedError(str(error)) from None
            raise


class SecondConnection(Generic[K]):
    """Second connection to a server, for questions that must not touch the user's session and transaction.

    It is opened when it is first asked for.
    """

    def __init__(self, connect: Callable[[], K]) -> None:
        self._connect = connect
        self._opened: K | None = None
        self._is_refused = False

    def get(self) -> K | None:
        """Return the connection, or None if the server does not give another one."""
        if self._opened is not None and self._opened.is_open:
            return self._opened
        if self._is_refused:
            return None
        try:
            self._opened = self._connect()
        except SourceError:  # as many as the server or the user may have
            self._is_refused = True
            return None
        return self._opened

    def ask(self, question: Callable[[K], R], unanswered: tuple[type[Exception], ...] = ()) -> R | None:
        """Return the answer to a question, or None without a connection or after one of the errors `unanswered`."""
        connection = self.get()
        if connection is None:
            return None
        with suppress(*unanswered):
            return question(connection)
        return None

    def close(self) -> None:
        if self._opened is not None and self._opened.is_open:
            self._opened.close()
        self._opened = None
