"""How much each row counts, by a column: in training, and in every figure that is measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import SemanticError, did_you_mean
from edl.features.arrays import numbers, valid
from edl.features.labels import Mode
from edl.spec import Weights


class RowWeights:
    """The weights of rows: the column, divided by its mean over the training rows, where a row then counts 1."""

    def __init__(self, spec: Weights) -> None:
        self.spec = spec

    def transform(self, batch: pa.RecordBatch, mode: Mode) -> npt.NDArray[np.float32] | None:
        """float32 (n,); None to predict.

        SemanticError: the column is not there, or a weight is NULL, negative or not finite.
        """
        if mode == "predict":
            return None
        column = self.spec.column
        if column not in batch.schema.names:
            hint = did_you_mean(column, batch.schema.names)
            raise SemanticError(f"the data has no column {column}, the weights", hint=hint)
        array = batch.column(column)
        values = numbers(array, column)
        usable = valid(array) & np.isfinite(values)
        if not usable.all():
            raise unusable(column, "NULL or not finite", int((~usable).sum()), len(values))
        if (values < 0).any():
            raise unusable(column, "negative", int((values < 0).sum()), len(values))
        return (values / self.spec.mean).astype(np.float32)


def weights(column: str, mean: float = 1.0) -> RowWeights:
    """Rows count as `column` says; mean: of the column over the training rows."""
    return RowWeights(Weights(column, mean))


def unusable(column: str, what: str, count: int, rows: int) -> SemanticError:
    """Weights of some rows mean nothing."""
    return SemanticError(
        f"the weight {column} is {what} in {count:,} of {rows:,} rows",
        hint="a weight is a number from 0, and 0 leaves a row out",
    )
