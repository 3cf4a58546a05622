"""Names of the columns of probabilities that PREDICT adds for a class: `guess_confidence`, and `guess_prob_CLASS` each.

The first was `guess_prob` until November 2026: queries and tables from before may have that name.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from edl.data import Source
from edl.errors import SourceError, SQLFlowError
from edl.evaluation.prediction import CONFIDENCE
from edl.spec import JobSpec
from sqlflow_edl.analysis.expressions import name
from sqlflow_edl.analysis.programs.ddl import tables_read

FORMER = "prob"  # last word of the column's name before `CONFIDENCE`
_END, _FORMER_END = f"_{CONFIDENCE}", f"_{FORMER}"


class Renamed(NamedTuple):
    """Name that a query uses for the column of the confidence, and the hint with the names that there are."""

    name: str
    hint: str


def add_hint(error: SourceError, query: str, source: Source) -> None:
    """Add the name that the column has now to a database's error, if a table of the query has it."""
    if _FORMER_END not in error.message.casefold():
        return
    tables = tables_read(query, source.dialect) or ()
    with contextlib.suppress(SQLFlowError):  # as in a transaction that has failed
        names = [".".join(name(part, source.dialect) for part in table.parts) for table in tables]
        columns = [[column for column, _ in source.column_types(table_name)] for table_name in names]
        if (renamed := find_renamed(error.message, columns)) is not None:
            error.hint = renamed.hint


def find_renamed(message: str, tables: Iterable[Sequence[str]]) -> Renamed | None:
    """Return the former name that a database does not know, if one of the tables with these columns has the new one."""
    unknown = {word.casefold() for word in re.findall(rf"\w+{_FORMER_END}\b", message, re.IGNORECASE)}
    for columns in tables:
        present = {column.casefold() for column in columns}
        for column in columns:
            base = column[: -len(_END)]
            former = base + _FORMER_END
            if column.endswith(_END) and former.casefold() in unknown - present:
                return Renamed(former, _hint(base, columns))
    return None


def former_name_notes(planned: JobSpec) -> tuple[str, ...]:
    """Return a note on a table that has the column by its former name, to which rows are added."""
    if not planned.output.confidence:
        return ()
    columns = f"…_{planned.output.confidence} of {planned.output.name}"
    return (f"{columns} gets the probability of the predicted class, which new tables have as …{_END}",)


def _hint(base: str, columns: Sequence[str]) -> str:
    of_classes = [column for column in columns if column.startswith(f"{base}{_FORMER_END}_")]
    rest = f", {' and '.join(of_classes[:2])} {'that' if len(of_classes) == 1 else 'those'} of a class"
    return f"{base}{_END} is the probability of the predicted class{rest if of_classes else ''}"
