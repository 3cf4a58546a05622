"""Decisions by which the statement of a search ends within its time limit: what is left out, and what is said of it.

They follow from what small parts of the work have taken on this machine now: the plan of one candidate, and the
reading of some rows. So a busy machine leaves out more than an idle one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from edl.errors import SemanticError, Span

SECONDS = ((1_000, 30.0), (10_000, 60.0), (100_000, 180.0))  # rows, and the time limit up to as many
MOST_SECONDS = 300.0
# of the limit, from the beginning of the statement, after which no other candidate is planned and fitted
PLANNED, FITTED = 0.1, 0.3
LEAST_PLANS, LEAST_FITS = 4, 2
WORDS = 50_000  # categories in the programs of all candidates, for each second of the limit
FEW_COLUMNS = 200  # as many are never left out
NARROW = 200  # columns up to which a row counts as one
# all work for a column, as a multiple of its part of counting the rows and planning a candidate
COLUMN_COST = 65.0
TEXT_COST = 4.0  # a column of texts, as a multiple of one of numbers
COLUMN_SHARE = 0.4  # of the time that is left, for work that grows with the columns
SCREENED_ROWS, SCREENED_VALUES = 2_000, 4_000_000  # read to choose columns
SCREENED_COLUMNS = 5  # for each one that is chosen; of more, every second or third, … is read
FEW_VALUES = 1_000_000  # of a table whose rows all fit
PROBED_ROWS, PROBED_VALUES = 20_000, 200_000  # read to estimate the time of a row
PROBED_PARTS = 10  # the first part of them is read before all
LEAST_COST = 0.2  # of the time of the query, for the rows alone
ROW_COST = 20.0  # pinning, statistics and what a trial does with a row, as a multiple of its reading
ROW_SHARE = 0.4  # of the time that is left, for work that grows with the rows
LEAST_ROWS = 10_000
# what follows the pinning until there is a model, as a multiple of it; looked at if it took so much of the limit
AFTER_PINNING, LONG_PINNING = 6.0, 0.2
AFTER_SHARE = 0.6  # of the time that is left, for that
FOLDED = 0.4  # of the limit, after which candidates are not trained in folds
NOTICED = 0.5  # seconds of reading below which no limit is too short
STARTING = 5.0  # seconds of the shortest search without reading


class Table(Protocol):
    """Rows of a statement's query, before they are pinned."""

    def count_rows(self) -> int | None:
        """Return the number of rows, or None if the database has no cheap way to choose a share of them."""

    def read_rows(self, most: int, total: int | None, columns: Sequence[str] = ()) -> pa.Table:
        """Return at most about so many rows: of a known `total` a random share, else the first ones.

        columns: those that are read; all without any.
        """

    def condition(self, parts: int) -> str:
        """Return the SQL condition of one of so many parts of the rows, which are random."""


class Clock:
    """Clock that begins with a statement."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return self._now() - self._began


class TimeLimit:
    """Time limit of a search, in seconds of its statement."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self.seconds = seconds
        self._clock = clock

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.seconds - self._clock.seconds)

    def allows_plan(self, planned: int) -> bool:
        """Return True if another candidate may be planned."""
        return planned < LEAST_PLANS or self._clock.seconds < PLANNED * self.seconds

    def allows_fit(self, fitted: int, words: int = 0) -> bool:
        """Return True if another candidate may be fitted. words: categories that the programs of all so far list."""
        in_time = self._clock.seconds < FITTED * self.seconds and words < WORDS * self.seconds
        return fitted < LEAST_FITS or in_time

    @property
    def allows_folds(self) -> bool:
        """True if there is time to train each candidate several times."""
        return self._clock.seconds < FOLDED * self.seconds

    def columns_that_fit(self, columns: int, planning: float, texts: float = 0.0) -> int:
        """Return the number of columns that there is time for.

        planning: seconds of counting the rows and of one candidate's plan of all columns. texts: share of the columns
        of texts.
        """
        cost = COLUMN_COST * planning / max(columns, 1) * (1 + (TEXT_COST - 1) * texts)
        return max(FEW_COLUMNS, int(COLUMN_SHARE * self.seconds_left / max(cost, 1e-9)))

    def parts_of_rows(self, rows: int, cost: float) -> int:
        """Return the power of two into whose number of parts the rows are divided, if there is time for one of them.

        cost: seconds of reading a row.
        """
        return _parts(rows, ROW_SHARE * self.seconds_left / max(ROW_COST * cost, 1e-12))

    def parts_of_pinned(self, rows: int, pinning: float) -> int:
        """Return the same for rows that were pinned. pinning: seconds that took."""
        if self._clock.seconds < LONG_PINNING * self.seconds:
            return 1
        return _parts(rows, rows * AFTER_SHARE * self.seconds_left / max(AFTER_PINNING * pinning, 1e-12))

    def check_reading(self, rows: int, reading: float, span: Span | None) -> None:
        """Raise SemanticError if the limit is below the time to read the smallest sample of a query.

        reading: seconds that the database took to find the rows.
        """
        passed = self._clock.seconds
        if reading < NOTICED or passed + reading < self.seconds:
            return
        least = math.ceil(passed + reading + STARTING)
        raise SemanticError(
            f"a time limit of {self.seconds:g} s is too short for this table",
            span=span,
            hint=f"about {least} s here: {passed + reading:.0f} s to read {rows:,} rows once and a sample of them, "
            f"and {STARTING:.0f} s for the smallest model",
        )


def _parts(rows: int, fitting: float) -> int:
    """Return the least power of two into whose number of parts the rows are divided so that one has `fitting` rows."""
    return 1 << max(0, math.ceil(math.log2(max(rows, 1) / max(fitting, LEAST_ROWS))))


def default_seconds(rows: int, columns: int) -> float:
    """Return the time limit of a search by the number of its rows: one of 1,000 columns counts five times."""
    rows = rows * max(columns, NARROW) // NARROW
    return next((seconds for most, seconds in SECONDS if rows <= most), MOST_SECONDS)


def note_on_candidates(candidates: int, of: int) -> str:
    """Return the note that only some candidates are planned."""
    return f"{candidates} of {of} candidates are planned: there is no time for the plans of the others"


def estimate_row_cost(table: Table, columns: int, now: Callable[[], float] = time.monotonic) -> float:
    """Return the seconds of reading a row, by the first rows. A part of them shows what a query takes by itself."""
    most = max(PROBED_PARTS, min(PROBED_ROWS, PROBED_VALUES // max(columns, 1)))
    began = now()
    few = table.read_rows(most // PROBED_PARTS, None).num_rows
    middle = now()
    many = table.read_rows(most, None).num_rows
    seconds = now() - middle
    without_query = (seconds - (middle - began)) / max(many - few, 1)
    return float(max(without_query, LEAST_COST * seconds / max(many, 1)))
