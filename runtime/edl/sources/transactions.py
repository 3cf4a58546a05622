"""Nested transactions: the outermost commits or rolls back, inner ones join it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class Transactional:
    """Mixin that implements `transaction` on the source's own begin, commit and rollback."""

    begin = "BEGIN"
    _transactions = 0

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        raise NotImplementedError

    def _begin(self) -> None:
        self.execute(self.begin)

    def _roll_back(self) -> None:
        """Undo uncommitted changes; a no-op if the database has already rolled back."""
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._transactions == 0:
            self._begin()
        self._transactions += 1
        try:
            yield
        except BaseException:
            self._transactions -= 1
            if self._transactions == 0:
                self._roll_back()
            raise
        self._transactions -= 1
        if self._transactions == 0:
            self._commit()

    @property
    def in_transaction(self) -> bool:
        return self._transactions > 0

    def _commit(self) -> None:
        try:
            self.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
