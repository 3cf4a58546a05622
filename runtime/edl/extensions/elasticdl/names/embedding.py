"""ElasticDL's embedding layer: a row table, which grows with its ids and which parameter servers share."""

from __future__ import annotations

from typing import Any

import keras
import msgspec

from edl.frameworks.keras.embeddings import let_input_be_ids
from edl.frameworks.keras.layers import Embedding as RowEmbedding

_INITIAL = ("uniform", "normal", "zeros")


class Embedding(RowEmbedding):
    """Vectors of ids that are an input of the model: (rows, length) -> (rows, length, output_dim), or combined.

    Any int64 is an id. An input of floats becomes one of int64: modules of ElasticDL name no type, since its layer
    casts.
    """

    def __init__(
        self,
        output_dim: int,
        input_dim: int | None = None,
        embeddings_initializer: str = "uniform",
        mask_zero: bool = False,
        input_length: int | None = None,
        combiner: Any = None,
        **options: Any,
    ) -> None:
        if embeddings_initializer not in _INITIAL:
            raise ValueError(
                f"embeddings_initializer of this layer is one of {', '.join(_INITIAL)}, "
                f"not {embeddings_initializer!r}"
            )
        super().__init__(
            options.get("name") or "",
            output_dim,
            combiner,
            initial=embeddings_initializer,
            num_ids=input_dim or 0,
            mask_zero=mask_zero,
            **options,
        )

    def __call__(self, inputs: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(inputs, keras.KerasTensor) and keras.backend.is_float_dtype(inputs.dtype):
            let_input_be_ids(inputs)
        return super().__call__(inputs, *arguments, **options)

    def name_table(self, name: str) -> None:
        """Name the table, unless the layer has a name."""
        if not self.spec.name:
            self.spec = msgspec.structs.replace(self.spec, name=name)
