"""Base classes of all data sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Self

from edl.sources.pinning_cost import IN_FILE

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.data.source import Pinned, PinningRates, Results, RowEstimate
    from edl.errors import SourceError
    from edl.spec import Split


def pin_file(
    url: str,
    query: str,
    reader: pa.RecordBatchReader,
    folder: Path,
    *,
    seed: int,
    shuffle: bool,
    split: Split | None = None,
) -> Pinned:
    """Pin the rows of a query's reader in a file of the folder, see `Source.pin`."""
    from edl.sources.row_order.keyed_rows import OrderedRows, shuffled_rows

    shuffle = shuffle or split is not None
    with shuffled_rows(reader, seed, folder, split) if shuffle else nullcontext(OrderedRows(reader)) as rows:
        return rows.pin(folder, source=url, select=query, seed=seed, shuffled=shuffle)


class BaseSource(ABC):
    """Source that is closed at the end of a `with` and has a separate object for its results."""

    _results: Results
    temporary_tables = False
    temporary_tables_are_private = True
    model_store = ""
    kept_in = ""
    finds_syntax_errors = False

    @property
    def has_open_transaction(self) -> bool:
        return False

    @abstractmethod
    def close(self) -> None: ...

    def check_rights(self, statements: Sequence[str]) -> None:
        return None

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        return None

    def syntax_error(self, sql: str) -> SourceError | None:
        return None

    def estimate_rows(self, query: str) -> RowEstimate | None:
        return None

    def pinning_rates(self) -> PinningRates | None:
        return IN_FILE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def check_target(self, target: str, appended: pa.Schema | None = None) -> None:
        self._results.check_target(target, appended)

    def stage(
        self,
        target: str,
        job: str,
        task: int,
        attempt: int,
        batches: Iterable[pa.RecordBatch],
        *,
        append: bool = False,
    ) -> int:
        return self._results.stage(target, job, task, attempt, batches, append=append)

    def commit(self, target: str, job: str, tasks: int, *, append: bool = False) -> int:
        return self._results.commit(target, job, tasks, append=append)

    def commit_rows(
        self, target: str, job: str, attempt: int, batches: Iterable[pa.RecordBatch], *, append: bool = False
    ) -> int:
        self.stage(target, job, 0, attempt, batches, append=append)
        return self.commit(target, job, 1, append=append)

    def committed_rows(self, target: str, job: str) -> int | None:
        return self._results.committed_rows(target, job)

    def abort(self, target: str, job: str) -> None:
        self._results.abort(target, job)

    def sweep(self, is_over: Callable[[str], bool]) -> int:
        return self._results.sweep(is_over)

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        raise NotImplementedError(name)

    def drop_temporary(self, name: str) -> None:
        raise NotImplementedError(name)


class EmbeddedSource(BaseSource):
    """Database that one process opens. Pinned rows are in the folders of jobs."""

    def unpin(self, pinned: Pinned, folder: Path) -> None:
        from edl.data.pinned import remove_rows  # imports Arrow

        remove_rows(pinned, folder)

    def how_rows_are_kept(self) -> str:
        return ""

    def unpin_abandoned(self) -> int:
        return 0
