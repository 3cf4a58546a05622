"""Row weights by a column, in training and in every metric."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import SemanticError, did_you_mean
from edl.features.arrays import numbers, valid_mask
from edl.features.labels import Mode
from edl.spec import Weights


class RowWeights:
    """Weights of rows: the column, divided by its mean over the training rows, where the mean weight is then 1."""

    def __init__(self, spec: Weights) -> None:
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> npt.NDArray[np.float32] | None:
        """Return weights as float32 (n,), or None in prediction.

        Raises SemanticError if the column is missing, or a weight is NULL, negative or not finite.
        """
        if mode == "predict":
            return None
        column = self.spec.column
        if column not in batch.schema.names:
            hint = did_you_mean(column, batch.schema.names)
            raise SemanticError(f"the data has no column {column}, the weights", hint=hint)
        array = batch.column(column)
        values = numbers(array, column)
        usable = valid_mask(array) & np.isfinite(values)
        if not usable.all():
            raise unusable_error(column, "NULL or not finite", int((~usable).sum()), len(values))
        if (values < 0).any():
            raise unusable_error(column, "negative", int((values < 0).sum()), len(values))
        return (values / self.spec.mean).astype(np.float32)


def weights(column: str, mean: float = 1.0) -> RowWeights:
    """Weight rows by `column`; `mean` is its mean over the training rows."""
    return RowWeights(Weights(column, mean))


def unusable_error(column: str, what: str, count: int, rows: int) -> SemanticError:
    """Return the error for invalid weights."""
    return SemanticError(
        f"the weight {column} is {what} in {count:,} of {rows:,} rows",
        hint="a weight must be 0 or more; 0 leaves a row out",
    )
