"""Rows of a training loop: this worker's part of each step, as indices or as tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edl.errors import SemanticError
from edl.extensions.elastic.cursor import Cursor, describe_position, read_position
from edl.jobs.script_run import NamedRows
from edl.tasks.ranges import generator

if TYPE_CHECKING:
    from edl.extensions.elastic.session import ElasticSession

Indices = npt.NDArray[np.int64]


def describe_rows(rows: Any, batch_size: Any, epochs: Any, seed: Any, shuffle: bool) -> NamedRows:
    """Return the checked description of rows to train on. Raises SemanticError for an invalid number."""
    return NamedRows(
        check_number("rows", count_of(rows), 1),
        check_number("batch_size", batch_size, 1),
        None if epochs is None else check_number("epochs", epochs, 1),
        check_number("seed", seed, 0),
        bool(shuffle),
    )


def count_of(rows: Any) -> Any:
    """Return the number of rows of a number, a table or a reader; anything else unchanged."""
    return rows if isinstance(rows, int) else getattr(rows, "num_rows", getattr(rows, "rows", rows))


def check_number(name: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SemanticError(f"{name} is {value!r}; expected a whole number, at least {least}")
    return value


@lru_cache(maxsize=4)
def order(rows: NamedRows, epoch: int) -> Indices:
    """Return the row numbers in the order of an epoch, int64 (rows,): a function of seed and epoch alone."""
    if not rows.shuffle:
        return np.arange(rows.rows)
    return generator(rows.seed, epoch + 1).permutation(rows.rows)


class TrainedRows:
    """Rows that the workers train on together, with a position that all of them have."""

    def __init__(self, session: ElasticSession, cursor: Cursor) -> None:
        self._session = session
        self._cursor = cursor

    def epochs(self) -> Iterator[int]:
        """Yield the number of each epoch that is not over, from 0; the present one again in another group."""
        return self._session.steps.epochs(self._cursor)

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last step, for a checkpoint that the script itself writes."""
        return describe_position(self._cursor.rows, self._cursor.epoch, self._cursor.row)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Begin at a position of an earlier job or of `edl.elastic.data`, with any number of workers.

        Call it before the function of `run`. Workers that join later get the position from the others instead. Raises
        SemanticError if it is of other rows.
        """
        epoch, done = read_position(state, self._cursor.rows)
        self._session.begin_at(self._cursor, [epoch, done, False, True])


class Sampler(TrainedRows):
    """Batch sampler of one worker. An iteration yields the rest of an epoch."""

    def __iter__(self) -> Iterator[list[int]]:
        if not self._session.has_optimizer:
            raise SemanticError(
                "edl.elastic.sampler is read without an optimizer, whose steps count the rows",
                hint="call edl.elastic.checkpoint(model, optimizer) before, or use edl.elastic.dataset",
            )
        for epoch, first, last in self._session.steps.parts(self._cursor):
            yield order(self._cursor.rows, epoch)[first:last].tolist()

    def __len__(self) -> int:
        """Return the number of steps of an epoch."""
        return -(-self._cursor.rows.rows // self._cursor.rows.batch_size)


class Dataset(TrainedRows):
    """Rows of one worker. An iteration yields the rest of an epoch."""

    def __init__(self, session: ElasticSession, cursor: Cursor, rows: Any) -> None:
        super().__init__(session, cursor)
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        steps = self._session.steps
        for epoch, first, last in steps.parts(self._cursor):
            yield read(self._rows, order(self._cursor.rows, epoch)[first:last])
            if not self._session.has_optimizer:
                steps.commit()


def read(rows: Any, indices: Indices) -> Any:
    """Return these rows of a table or a reader; of a number of rows, their numbers."""
    if isinstance(rows, int):
        return indices
    return rows.take(indices) if hasattr(rows, "take") else _read(rows, indices)


def _read(reader: Any, indices: Indices) -> Any:
    """Return these rows of a reader as a table: runs of neighbours are read together."""
    import pyarrow as pa

    by_row = np.argsort(indices)
    ascending = indices[by_row]
    breaks = np.flatnonzero(np.diff(ascending) != 1) + 1
    runs = np.split(ascending, breaks) if len(ascending) else []
    batches = itertools.chain.from_iterable(reader.read(int(run[0]), int(run[-1]) + 1) for run in runs)
    return pa.Table.from_batches(batches, reader.schema).take(np.argsort(by_row))
