"""Result tables of a job that has no master: staged, then swapped in when all are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from edl.data.retry import insisting
from edl.data.source import ConflictError, UnreachableError
from edl.errors import SourceError
from edl.sources.transactions import Transactional

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.data import Source


def store(
    source: Source, job: str, tables: Mapping[str, Callable[[], Iterable[pa.RecordBatch]]]
) -> list[int]:
    """Make each table of the batches that its function returns. Return their numbers of rows.

    Any failure before the first swap leaves nothing. The swaps are one transaction where the database can define all
    tables in one. MySQL and MaxCompute cannot, nor DuckDB for tables of several files; they swap one after another.
    """

    def stored(attempt: int) -> list[int]:
        for target, batches in tables.items():
            source.stage(target, job, 0, attempt, batches())
        if len(tables) > 1 and isinstance(source, Transactional):
            try:
                with source.transaction():
                    return swapped()
            except (ConflictError, UnreachableError):
                raise
            except SourceError:
                pass
        return swapped()

    def swapped() -> list[int]:
        return [source.commit(target, job, 1) for target in tables]

    try:
        return insisting(stored)
    except BaseException:
        for target in tables:
            with contextlib.suppress(Exception):
                source.abort(target, job)
        raise
