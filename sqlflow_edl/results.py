"""What a statement gives back: rows as Arrow, or a sentence that says what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from sqlflow_edl.syntax import Statement


@dataclass(frozen=True)
class Result:
    """The outcome of one statement.

    message: a sentence for people. notes: what the compiler decided or left out, a sentence each. figures: the loss and
    metrics of a training or evaluation, None where one is not defined. reader: rows that have not been fetched yet;
    read them once, by `to_arrow` or `to_pandas`, or batch by batch.
    """

    statement: Statement
    message: str = ""
    notes: tuple[str, ...] = ()
    figures: Mapping[str, float | None] | None = None
    measured_on: str = ""  # a training's figures: which rows
    model: str = ""  # name@version of what was trained
    stored_in: str = ""  # URL of what keeps the model
    rows: int = 0  # written to a table
    reader: pa.RecordBatchReader | None = None

    def to_arrow(self) -> pa.Table:
        """All rows as one table; an empty one without columns when the statement has no rows."""
        import pyarrow as pa

        return self.reader.read_all() if self.reader is not None else pa.table({})

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a data frame. SQLFlowError: pandas is not installed, nor does anything else here need it."""
        try:
            import pandas  # noqa: F401 - Arrow imports it, and would not say how to install it
        except ImportError:
            raise SQLFlowError(
                "pandas is not installed", hint="pip install pandas, or use to_arrow()"
            ) from None
        return self.to_arrow().to_pandas()
