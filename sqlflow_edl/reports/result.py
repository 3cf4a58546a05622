"""Result of a statement: rows as Arrow, or a sentence about what was done."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from edl.errors import SQLFlowError
from edl.installation import install_extras, install_packages

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from edl.data.displayed_rows import DisplayedRows
    from edl.jobs.events import EpochEnd
    from edl.jobs.trials import Trial
    from edl.models.pending import Rival
    from sqlflow_edl.syntax import Statement


# Form in which rows are shown to people; machine formats have them unchanged.
View = Literal[
    "rows",
    "figures",
    "sections",
    "models",
    "importances",
    "confusion_matrix",
    "roc_curve",
    "drift",
    "features",
]


@dataclass(frozen=True)
class Result:
    """Outcome of one statement.

    message: a sentence for people. notes: decisions of the compiler and what it left out, a sentence each.
    warnings: facts about the rows that make the figures of a training mean less than they seem, with advice.
    figures: loss and metrics of a training or evaluation, or importances of columns; a value is None if it is
    undefined. verdict: sentences about them. next_statements: what to do with the model. reader: rows that have
    not been fetched yet: read them by `to_arrow`, `to_pandas` or `to_polars`, or once batch by batch; of a
    `pa.RecordBatchReader`, `DisplayedRows` are made. view: form in which they are shown to people. computed:
    columns that a model computed.
    """

    statement: Statement
    message: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    figures: Mapping[str, float | None] | None = None
    verdict: str = ""
    measured_on: str = ""  # rows behind the figures of a training: 10 validation rows
    ending: str = ""  # reason for the end of a training that did not take all its epochs
    curve: tuple[EpochEnd, ...] = ()  # of a training
    trials: tuple[Trial, ...] = ()  # of a search
    importances: Mapping[str, float] | None = None  # shares of the columns, the largest first; of a search
    model: str = ""  # name@version of the trained model
    rival: Rival | None = None  # the version that it was compared with
    next_statements: tuple[str, ...] = ()
    stored_in: str = ""  # URL of the store that keeps the model
    job: str = ""  # id of the training
    rows: int = 0  # written to a table
    reader: DisplayedRows | None = None
    view: View = "rows"
    computed: tuple[str, ...] = ()
    _table: pa.Table | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reader is not None:
            from edl.data.displayed_rows import as_displayed_rows

            object.__setattr__(self, "reader", as_displayed_rows(self.reader))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to a reader of Arrow streams, such as `polars.DataFrame(result)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return all rows as one table; an empty one without columns if the statement has no rows.

        Later calls return the same table.
        """
        import pyarrow as pa

        if self._table is None:
            table = self.reader.read_all() if self.reader is not None else pa.table({})
            object.__setattr__(self, "_table", table)
        return self._table

    def fetch(self) -> Result:
        """Return the result with its rows in memory, which later statements leave as they are."""
        if self.reader is None:
            return self
        from edl.data.displayed_rows import DisplayedRows

        table = self.to_arrow()
        fetched = replace(self, reader=DisplayedRows(table.schema, table.to_batches()))
        object.__setattr__(fetched, "_table", table)
        return fetched

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a data frame; see `data_frame`."""
        _pandas()  # first, because the rows can be read only once
        return data_frame(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a data frame of polars; see `polars_frame`."""
        _polars()
        return polars_frame(self.to_arrow())


class Results(Iterator[Result]):
    """Results of a program's statements, each of which runs when its result is asked for.

    Warns if nothing was asked for, as Python does of a coroutine that is never awaited.
    """

    def __init__(self, results: Iterator[Result]) -> None:
        self._results = results
        self._begun = False

    def __next__(self) -> Result:
        self._begun = True
        return next(self._results)

    def __del__(self) -> None:
        if not self._begun:
            warnings.warn(
                "no statement ran: each runs when its result is asked for, as in `for result in session.stream(…)`",
                RuntimeWarning,
                stacklevel=2,
            )


def data_frame(table: pa.Table) -> pd.DataFrame:
    """Convert the rows to pandas with nullable types for integers and booleans.

    A NULL among integers or booleans is `pandas.NA`, so that the column keeps its type. Raises SQLFlowError if
    pandas is not installed; nothing else here needs it.
    """
    from pyarrow import types

    pandas = _pandas()
    frame = table.to_pandas()
    for position, column in enumerate(table.columns):
        if column.null_count and (types.is_integer(column.type) or types.is_boolean(column.type)):
            name = str(column.type).replace("bool", "boolean").replace("u", "U").replace("i", "I")
            frame.isetitem(position, pandas.api.types.pandas_dtype(name).__from_arrow__(column))
    return frame


def polars_frame(table: pa.Table) -> pl.DataFrame:
    """Convert the rows to polars, where NULL is null in columns of every type.

    Raises SQLFlowError if polars is not installed, and if two columns have one name.
    """
    polars = _polars()
    names = table.column_names
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise SQLFlowError(
            f"a data frame of polars cannot have two columns {repeated}",
            hint="name one of them differently in the query, or use to_arrow()",
        )
    return polars.DataFrame(table)


def _polars() -> ModuleType:
    try:
        import polars
    except ImportError:
        raise SQLFlowError(
            "polars is not installed", hint=f"{install_packages('polars')}, or use to_arrow()"
        ) from None
    module: ModuleType = polars
    return module


def _pandas() -> ModuleType:
    try:
        import pandas
    except ImportError:  # Arrow imports it as well, without a hint how to install it
        raise SQLFlowError(
            "pandas is not installed", hint=f"{install_extras('pandas')}, or use to_arrow()"
        ) from None
    module: ModuleType = pandas
    return module
