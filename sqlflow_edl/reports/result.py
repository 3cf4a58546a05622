"""What a statement gives back: rows as Arrow, or a sentence that says what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from edl.errors import SQLFlowError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from edl.jobs.events import EpochEnd
    from sqlflow_edl.syntax import Statement


# The form in which people are shown rows; machine formats have them as they are.
View = Literal["rows", "figures", "sections", "models", "importances", "confusion_matrix", "roc_curve"]


@dataclass(frozen=True)
class Result:
    """The outcome of one statement.

    message: a sentence for people. notes: what the compiler decided or left out, a sentence each. warnings: what in
    the rows makes the figures of a training mean less than they seem, and what to do. figures: the loss and metrics
    of a training or evaluation, or the importances of columns; None where one is not defined. reader: rows that have
    not been fetched yet; read them once, by `to_arrow` or `to_pandas`, or batch by batch. view: the form in which
    people are shown them. computed: the columns of them that a model computed, and no table has.
    """

    statement: Statement
    message: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    figures: Mapping[str, float | None] | None = None
    measured_on: str = ""  # the rows of a training's figures: 10 validation rows
    ending: str = ""  # how a training ended, where it did not take all its epochs
    curve: tuple[EpochEnd, ...] = ()  # of a training
    model: str = ""  # name@version of what was trained
    stored_in: str = ""  # URL of what keeps the model
    rows: int = 0  # written to a table
    reader: pa.RecordBatchReader | None = None
    view: View = "rows"
    computed: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """All rows as one table; an empty one without columns when the statement has no rows."""
        import pyarrow as pa

        return self.reader.read_all() if self.reader is not None else pa.table({})

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a data frame; see `data_frame`."""
        _pandas()  # before the rows are read, which they can be once
        return data_frame(self.to_arrow())


def data_frame(table: pa.Table) -> pd.DataFrame:
    """The rows as pandas has them; a NULL among integers or booleans is `pandas.NA`, so that these stay what they are.

    SQLFlowError: pandas is not installed, nor does anything else here need it.
    """
    from pyarrow import types

    pandas = _pandas()
    frame = table.to_pandas()
    for position, column in enumerate(table.columns):
        if column.null_count and (types.is_integer(column.type) or types.is_boolean(column.type)):
            name = str(column.type).replace("bool", "boolean").replace("u", "U").replace("i", "I")
            frame.isetitem(position, pandas.api.types.pandas_dtype(name).__from_arrow__(column))
    return frame


def _pandas() -> ModuleType:
    try:
        import pandas
    except ImportError:  # Arrow imports it, and would not say how to install it
        raise SQLFlowError("pandas is not installed", hint="pip install pandas, or use to_arrow()") from None
    module: ModuleType = pandas
    return module
