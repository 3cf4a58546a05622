"""Transform of a model by itself: what it makes of rows, without its weights and without a framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from edl.data.arrow_types import columns_and_batches
from edl.errors import SemanticError, did_you_mean
from edl.models.archive import read_archive
from edl.models.registry.base import Registry
from edl.spec import JobSpec
from sqlflow_edl.analysis.inference.used_model import renamed_inputs
from sqlflow_edl.reports import features


@dataclass(frozen=True)
class Transform:
    """Fitted features of a model, which any number of threads may apply.

    reference: name@version, or the file of the archive. spec: the model's JobSpec.
    """

    reference: str
    spec: JobSpec

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the features read."""
        return tuple(self.spec.columns)

    def transform(self, rows: Any) -> pa.Table:
        """Return the other columns of the rows, and behind them the features, as SHOW FEATURES gives them.

        rows: an Arrow table, batch or reader, or a data frame of pandas or polars. Names of columns match exactly, else
        without case. Raises SemanticError for a missing column, or a value that does not suit its feature.
        """
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        names = _names(self.columns, table.column_names, self.reference)
        model = msgspec.structs.replace(self.spec, inputs=renamed_inputs(self.spec, names))
        _, batches = columns_and_batches(table.to_reader())
        others = [name for name in table.column_names if name not in names.values()]
        return features.reader(model, batches, table.schema, others).read_all()


def load_transform(model: str | Path, registry: Registry | None) -> Transform:
    """Load the features of a model from a registry, or of an archive file; see `sqlflow_edl.load_transform`."""
    if registry is None:
        transform = Transform(str(model), read_archive(Path(model)).spec)
    else:
        with registry.fetch(str(model)) as (version, file):
            transform = Transform(version.reference, read_archive(file).spec)
    if transform.spec.forecast is not None or not transform.spec.features:
        kind = "a forecast" if transform.spec.forecast is not None else "an ensemble"
        raise SemanticError(f"{transform.reference} is {kind}, which has no features of single rows")
    return transform


def _names(columns: tuple[str, ...], names: list[str], reference: str) -> Mapping[str, str]:
    """Map the model's columns to the columns of the rows."""
    folded = {name.casefold(): name for name in reversed(names)}
    by_column = {
        column: column if column in names else folded.get(column.casefold(), "") for column in columns
    }
    missing = [column for column, name in by_column.items() if not name]
    if missing:
        raise SemanticError(
            f"the rows lack {', '.join(missing)}, which {reference} reads",
            hint=did_you_mean(missing[0], names, list_up_to=12),
        )
    return by_column
