"""Parameters of one server as they were when a round of evaluation began, for as long as it is measured.

    first pull of round 7 ─▶ pin 7: dense parameters and state are copied, tables are cut ─▶ further pulls of round 7
    pushes ─▶ a row that changes is copied first ─▶ the round is concluded: the pin is dropped

In async, training goes on while the rows of a round are measured, by several workers. All of them read the pin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edl.arrays import Array
from edl.embeddings import TableCut
from edl.embeddings.table import Floats, Ids
from edl.ps.checkpoint.content import Version
from edl.ps.store import ParameterStore

MOST_PINS = 3  # rounds that are measured at once; an earlier one then reads the present parameters
LONGEST_SECS = 600.0  # since the last pull of a round, after which its pin is dropped: nobody concludes it


@dataclass
class Pin:
    """Content of a store at one moment."""

    version: Version
    flat: Floats
    state: Floats
    tables: dict[str, TableCut]
    used: float = field(default_factory=time.monotonic)

    def read(
        self, store: ParameterStore, tables: Sequence[str], ids: Sequence[Ids], *, dense: bool, state: bool
    ) -> list[Array]:
        """Return the arrays of a pull."""
        self.used = time.monotonic()
        arrays: list[Array] = [self.flat] if dense else []
        arrays += [
            store.table(name).read_at(self.tables[name], wanted_ids)
            for name, wanted_ids in zip(tables, ids, strict=True)
        ]
        return [*arrays, self.state] if state else arrays

    def close(self) -> None:
        for cut in self.tables.values():
            cut.close()


class Pins:
    """Pins of one server by the number of their round. The caller holds a lock between all calls."""

    def __init__(self) -> None:
        self._by_round: dict[int, Pin] = {}
        self._over: set[int] = set()  # rounds that were pinned: nobody would drop another pin of one

    def has(self, number: int) -> bool:
        return number in self._by_round

    def find(self, number: int, make: Callable[[], Pin]) -> Pin | None:
        """Return the pin of a round; make it for its first pull. None for a round that is over, or before those that
        are pinned.
        """
        if number in self._over:
            return None
        if number not in self._by_round:
            if self._by_round and number < min(self._by_round):
                return None
            self._by_round[number] = make()
            while len(self._by_round) > MOST_PINS:
                self.drop(min(self._by_round))
        return self._by_round.get(number)

    def drop(self, number: int) -> None:
        """Drop the pin of a round that is concluded, and pins that nobody reads."""
        now = time.monotonic()
        self._over.add(number)
        for one, pin in [*self._by_round.items()]:
            if one == number or now - pin.used > LONGEST_SECS:
                self._over.add(one)
                self._by_round.pop(one).close()
