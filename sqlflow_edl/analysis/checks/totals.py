"""Detection of a row with the sums of all others, as spreadsheets and reports have at their end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types

from edl.data.cells import format_count
from edl.features.arrays import numbers, plain_array
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.warning import FEWEST_SUMMANDS, MOST_SUMMED, SUM_ROUNDING, DataWarning
from sqlflow_edl.analysis.schema import Schema

_LARGEST = 1e300  # number that is added up
_NAMES = re.compile(
    r"\b(grand |sub)?tot(al|als|ale|aux)\b|\bsums?\b|\bsumme\b|\bgesamt|\binsgesamt\b|\bsomme\b|\bsuma\b|\boverall\b",
    re.IGNORECASE,
)


class Totals:
    """Sums of the numbers of all rows, and the row with the largest value of each column.

    columns: of the rows. Of more than `MOST_SUMMED` rows nothing is kept: those are no spreadsheet.
    """

    def __init__(self, columns: Sequence[str], schema: Schema) -> None:
        self._texts: list[str] = []
        self._sums: dict[str, float] = {}
        for name in columns:
            kind = schema.arrow.field(name).type
            if types.is_string(kind):
                self._texts.append(name)
            elif types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
                self._sums[name] = 0.0
        self._dialect = schema.dialect
        self._rows = 0
        self._summands = Counter[str]()  # numbers other than 0
        self._largest: dict[str, tuple[float, int]] = {}  # value, number of its row
        self._texts_of: dict[int, dict[str, str]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        first, self._rows = self._rows, self._rows + batch.num_rows
        if self._rows > MOST_SUMMED or not batch.num_rows:
            return
        for name in list(self._sums):
            values = numbers(plain_array(batch.column(name)), name).astype(np.float64)
            values = np.where(np.isnan(values), 0.0, values)
            # Differences may have any sum, and the sum of the largest numbers is infinite.
            if values.min() < 0 or values.max() > _LARGEST:
                del self._sums[name]
                continue
            self._sums[name] += float(values.sum())
            self._summands[name] += int(np.count_nonzero(values))
            place = int(values.argmax())
            if values[place] > self._largest.get(name, (0.0, 0))[0]:
                self._largest[name] = float(values[place]), first + place
                self._texts_of[first + place] = {
                    text: str(value)
                    for text in self._texts
                    if (value := batch.column(text)[place].as_py()) is not None
                }

    def warnings(self) -> Iterator[DataWarning]:
        """Yield a warning of a row with the sums of the others: in two columns, or with the name of a sum."""
        if self._rows > MOST_SUMMED:
            return
        columns_of_row: dict[int, list[str]] = {}
        for name, total in self._sums.items():
            value, row = self._largest.get(name, (0.0, 0))
            is_sum = abs(total - 2 * value) <= SUM_ROUNDING * value
            if value and is_sum and self._summands[name] > FEWEST_SUMMANDS:
                columns_of_row.setdefault(row, []).append(name)
        for row, columns in columns_of_row.items():
            named = [(name, text) for name, text in self._texts_of[row].items() if _NAMES.search(text)]
            if not named and len(columns) < 2:
                continue
            yield self._describe(row, columns, named)

    def _describe(self, row: int, columns: Sequence[str], named: Sequence[tuple[str, str]]) -> DataWarning:
        write = expressions.name
        what, condition = (
            "one row",
            f"{write(columns[0], self._dialect)} < {self._largest[columns[0]][0]:.15g}",
        )
        if named:
            column, text = named[0]
            literal = text.replace("'", "''")
            what = f"the row with {column} = {text!r}"
            condition = f"{write(column, self._dialect)} <> '{literal}'"
        listed = ", ".join(columns[:3]) + (f" and {len(columns) - 3:,} more" if len(columns) > 3 else "")
        return DataWarning(
            "a row of sums",
            f"{what} has the sums of the other {format_count(self._rows - 1)} in {listed}",
            f"leave it out of the SELECT: WHERE {condition}",
        )
