"""Common part of the embedding layers of the frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edl.embeddings.combiners import Combiner, check_combiner
from edl.embeddings.initializers import EMBEDDING_SCALE, Initial
from edl.embeddings.lookup import LookedUp, look_up
from edl.embeddings.table import TableSpec


class EmbeddingLayer:
    """Rows of a row table, for ids that are features: an array of them, or several.

    Called with ids int64 (n,) it gives (n, dim); with (n, k), or k arrays (n,), it gives (n, k, dim), or with a
    combiner (sum, mean, sqrtn) their rows combined, (n, dim), as with lists of ids (`edl.Ragged`). Ids are any int64. A
    step costs as much as the rows of its minibatch, whatever the size of the table. The job's optimizer moves them
    lazily: see `edl.embeddings.optimizers`.

    table: its name; layers that name one table share its rows. initial: zeros, uniform in [-scale, scale), or normal
    of deviation scale. num_ids: ids lie in [0, num_ids), which an exported model must know. first: what is added to
    the ids of each of several arrays, so that categories share a table without sharing rows. options: arguments of
    the framework's own layer.
    """

    def __init__(
        self,
        table: str,
        dim: int,
        combiner: Combiner | None = None,
        *,
        initial: Initial = "uniform",
        scale: float = EMBEDDING_SCALE,
        num_ids: int = 0,
        first: Sequence[int] = (),
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_combiner(combiner)
        self.spec = TableSpec(table, dim, initial, scale, num_ids)
        self.combiner = combiner
        self.first = tuple(first)

    def look_up(self, ids: Sequence[Any]) -> LookedUp:
        """Return the rows that the arrays of ids read."""
        return look_up(self.spec, ids, self.first or (0,) * len(ids))
