"""Features of a model with several inputs: `fc.Inputs(wide=fc.Features(…), deep=fc.Features(…))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from edl.errors import SemanticError, did_you_mean
from edl.features.transform import Entry, Features


class Inputs:
    """Features by the name of the model's input; used like `Features`, and each input by `inputs["deep"]`.

    The names of an input's arrays begin with its name (`deep_dense`, `wide_f0`), so the arrays of all inputs form one
    dict. The ids of a category that two inputs use are computed once.
    """

    def __init__(self, **inputs: Features) -> None:
        if not inputs:
            raise SemanticError("a model needs at least one input")
        self._inputs = {
            name: Features(*features.columns, prefix=f"{name}_") for name, features in inputs.items()
        }
        self.entries: tuple[Entry, ...] = tuple(
            entry for features in self._inputs.values() for entry in features.entries
        )
        self.source_columns: tuple[str, ...] = tuple(
            dict.fromkeys(column for features in self._inputs.values() for column in features.source_columns)
        )

    def __getitem__(self, name: str) -> Features:
        if name not in self._inputs:
            raise SemanticError(f"the model has no input {name}", hint=did_you_mean(name, self._inputs))
        return self._inputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._inputs)

    def __repr__(self) -> str:
        return f"Inputs({', '.join(f'{name}={features!r}' for name, features in self._inputs.items())})"

    def transform(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """Return the arrays of all inputs by name, see `Features.transform`."""
        arrays: dict[str, Any] = {}
        ids: dict[Any, Any] = {}
        for features in self._inputs.values():
            arrays |= features.transform(batch, ids)
        return arrays
