"""Evaluation in all workers: each measures its share of the rows, and the sums cover all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edl.arrays import Array
from edl.errors import SemanticError
from edl.extensions.elastic.collective import EVALUATION
from edl.extensions.elastic.rows import read
from edl.jobs.script_run import NamedRows
from edl.tasks.ranges import partition

if TYPE_CHECKING:
    from edl.extensions.elastic.session import ElasticSession

Measure = Callable[[Any], Mapping[str, Any]]
Sums = dict[str, Any]


class Evaluation:
    """Rows that all workers evaluate together. The sums of the last evaluation are a part of the workers' state."""

    def __init__(self, session: ElasticSession, described: NamedRows, rows: Any) -> None:
        self.rows = described
        self._session = session
        self._data = rows
        self._done: tuple[int, Sums] | None = None  # after so many training steps

    def sums(self, measure: Measure) -> Sums:
        """Return the sums over all rows of the numbers and arrays that `measure` returns for some rows, by name.

        `measure` gets row numbers, int64, or a table, of at most `batch_size` rows. It is not called again until the
        next training step. If the group changes meanwhile, the next one evaluates all rows anew.
        """
        steps = self._session.steps
        if self._done is None or self._done[0] != steps.positions.trained:
            local_sums = self._measure_share(measure, steps.strategy.rank, steps.strategy.size)
            flat = np.concatenate([np.zeros(1), *(array.reshape(-1) for array in local_sums.values())])

            def keep() -> None:
                self._done = steps.positions.trained, _unflatten_sums(flat[1:], local_sums)

            with self._session.leaving():
                steps.sum(EVALUATION, flat, keep)
        assert self._done is not None  # noqa: S101
        return dict(self._done[1])

    def position(self) -> Any:
        return self._done

    def load(self, position: Any) -> None:
        self._done = position

    def _measure_share(self, measure: Measure, rank: int, size: int) -> dict[str, Array]:
        """Return the sums over this worker's share of the rows; without a row, zeros of the same shapes."""
        start, end = (self.rows.rows * end_rank // size for end_rank in (rank, rank + 1))
        sums: dict[str, Array] = {}
        for first, last in partition(start, end, self.rows.batch_size):
            part_sums = self._call(measure, first, last)
            sums = {name: sums[name] + part_sums[name] for name in sums} if sums else part_sums
        return sums or {name: 0 * value for name, value in self._call(measure, 0, 1).items()}

    def _call(self, measure: Measure, first: int, last: int) -> dict[str, Array]:
        result = measure(read(self._data, np.arange(first, last)))
        if not isinstance(result, Mapping) or not result:
            raise SemanticError(
                f"the function of an evaluation has returned {result!r}",
                hint='return sums over the given rows by name, such as {"correct": 12, "rows": 16}',
            )
        return {name: np.asarray(result[name], np.float64) for name in sorted(result)}


def _unflatten_sums(flat: Array, like: Mapping[str, Array]) -> Sums:
    ends = np.cumsum([shape_like.size for shape_like in like.values()])
    parts = np.split(flat, ends[:-1])
    return {
        name: part.reshape(shape_like.shape) if shape_like.ndim else float(part[0])
        for (name, shape_like), part in zip(like.items(), parts, strict=True)
    }
