"""Rows in a script's memory as the rows of a job: read by range, in every process that runs the script.

A dataset is one of

    (features, labels) or (features, labels, weights)   arrays, features an array, a dict or a tuple of them
    a pyarrow.Table                                     with `feed`
    a map-style Dataset of PyTorch                      with items (features, label) or (features, label, weight)
    a path or URL of files                              with `feed`: see `edl.data.files.file_ranges`
    an `edl.data.Reader`                                with `feed`

The first three are in memory or equivalent: a job reads the numbers of their rows, in a random order by the seed.
Files and readers are read in their own order.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.arrays import arrays, checked_features, checked_labels, checked_weights, map_arrays
from edl.data import Pinned, Reader
from edl.data.arrow_types import fields
from edl.data.files.file_ranges import pin_files
from edl.data.pinned import write_pinned
from edl.data.readers import JoinedReader
from edl.errors import JobError, SemanticError
from edl.jobs.job_folder import JobFolder
from edl.program import Mode
from edl.ragged import Ragged
from edl.spec.job import Framework
from edl.tasks.ranges import generator

Feed = Callable[[pa.RecordBatch, Mode], tuple[Any, ...]]
Numbers = npt.NDArray[np.int64]

_SAMPLE = 4096  # rows of the sample by which processes compare their data
_NUMBERED = pa.schema([("row", pa.int64())])
_KINDS = (
    "arrays (features, labels), a pyarrow.Table, a Dataset of PyTorch, a path of files, or an edl.data.Reader"
)


class Dataset(Protocol):
    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Functions of a program's contract that read rows."""
        ...

    def pin(self, job: JobFolder) -> Pinned:
        """Store the description of the job's rows in the job folder; separate validation rows come after them."""
        ...


def dataset(
    data: Any, validation: Any, framework: Framework, feed: Feed | None, *, shuffle: bool, seed: int
) -> Dataset:
    """Return the dataset with its validation rows of the same kind, or None. Raises SemanticError for other kinds."""
    if isinstance(data, str | Path):
        return _FileDataset(data, validation, _require_feed(feed, "files"))
    if all(hasattr(data, name) for name in ("rows", "schema", "read")):
        return _Readers(data, validation, _require_feed(feed, "a reader"))
    parts = [_make_part(data, "the dataset", framework, feed)]
    if validation is not None:
        parts.append(_make_part(validation, "validation", framework, feed))
    if len({type(part) for part in parts}) > 1:
        raise SemanticError(
            f"validation is {_a(validation)}, and the dataset {_a(data)}", hint="give both in the same form"
        )
    return _NumberedDataset(parts, generator(seed).permutation(len(parts[0])) if shuffle else None)


# Rows with numbers ------------------------------------------------------------------------------------------------


class _DatasetPart(Protocol):
    """Rows that can be taken by their numbers. `sample` yields bytes that distinguish them from other rows."""

    by: str  # function of the contract that takes them

    def __len__(self) -> int: ...

    def take(self, numbers: Numbers, mode: Mode) -> Any: ...

    def sample(self) -> Iterator[bytes]: ...


class _Arrays:
    by = "feed"

    def __init__(self, name: str, features: Any, labels: Any, weights: Any = None) -> None:
        self._features = map_arrays(_array, tuple(features) if isinstance(features, list) else features)
        self._labels = _array(labels)
        self._weights = None if weights is None else _array(weights)
        if self._labels.ndim == 1 and self._labels.dtype.kind in "fb":
            self._labels = self._labels.reshape(-1, 1)
        for path, array in self._all():
            if len(array) != len(self):
                hint = (
                    "a list is several arrays; numpy.asarray(features) is one"
                    if isinstance(features, list)
                    else None
                )
                raise SemanticError(f"{path} has {len(array)} rows, and labels {len(self)}", hint=hint)
        checked_weights(self._weights, len(self), name)
        some = np.arange(min(2, len(self)))
        example, classes, _ = self.take(some, "train")
        checked_features(example, len(some), name)
        checked_labels(classes, len(some), name)

    def _all(self) -> Iterator[tuple[str, Any]]:
        yield "labels", self._labels
        yield from arrays(self._features)
        if self._weights is not None:
            yield "weights", self._weights

    def __len__(self) -> int:
        return len(self._labels)

    def take(self, numbers: Numbers, mode: Mode) -> tuple[Any, Any, Any]:
        features = map_arrays(lambda array: array.take(numbers, axis=0), self._features)
        weights = None if self._weights is None else self._weights.take(numbers)
        return features, self._labels.take(numbers, axis=0), weights

    def sample(self) -> Iterator[bytes]:
        some = _sample_positions(len(self))
        for path, array in self._all():
            taken = array.take(some, axis=0)
            values = taken.values if isinstance(taken, Ragged) else taken
            yield f"{path} {values.dtype} {values.shape}".encode()
            yield np.ascontiguousarray(values).tobytes()


class _Table:
    by = "feed"

    def __init__(self, table: pa.Table, feed: Feed) -> None:
        batches = table.combine_chunks().to_batches()
        self._rows = batches[0] if len(batches) == 1 else pa.RecordBatch.from_pylist([], schema=table.schema)
        self._feed = feed

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def take(self, numbers: Numbers, mode: Mode) -> Any:
        return self._feed(self._rows.take(pa.array(numbers)), mode)

    def sample(self) -> Iterator[bytes]:
        rows = self._rows.take(pa.array(_sample_positions(len(self))))
        yield rows.serialize().to_pybytes()


class _Items:
    by = "dataset"

    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def take(self, numbers: Numbers, mode: Mode) -> Any:
        from torch.utils.data import Subset

        return Subset(self._items, numbers.tolist())

    def sample(self) -> Iterator[bytes]:
        """Yield nothing specific: items may be generated anew each time."""
        yield b""


class _NumberedDataset:
    """Rows of one or two parts, the second one the validation rows. `order` permutes the rows of the first."""

    def __init__(self, parts: Sequence[_DatasetPart], order: Numbers | None) -> None:
        self._parts = parts
        self._order = order
        take = self._fed if parts[0].by == "feed" else self._items
        self.functions = {"custom_data_reader": self._reader, parts[0].by: take}

    def pin(self, job: JobFolder) -> Pinned:
        pinned = Pinned("", "", "", len(self._parts[0]), fields(_NUMBERED), self._digest(), 0, shuffled=False)
        write_pinned(job.rows, pinned)
        return pinned

    def _reader(self, pinned: Pinned, folder: Path) -> Reader:
        if pinned.digest != self._digest():
            raise _other_rows()
        return _NumberReader(sum(map(len, self._parts)))

    def _digest(self) -> str:
        checksum = hashlib.blake2b(digest_size=32)
        for part in self._parts:
            checksum.update(f"{part.by} {len(part)}".encode())
            for piece in part.sample():
                checksum.update(piece)
        return checksum.hexdigest()

    def _fed(self, batch: pa.RecordBatch, mode: Mode) -> Any:
        return self._take(batch.column("row").to_numpy(), mode)

    def _items(self, reader: Reader, start: int, end: int, mode: Mode) -> Any:
        return self._take(np.arange(start, end), mode)

    def _take(self, rows: Numbers, mode: Mode) -> Any:
        first = len(self._parts[0])
        if len(rows) and rows[0] >= first:
            return self._parts[1].take(rows - first, mode)
        return self._parts[0].take(rows if self._order is None else self._order[rows], mode)


class _NumberReader:
    """Reader of rows that are only their numbers."""

    schema = _NUMBERED

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array(np.arange(start, end))], schema=self.schema)


# Rows of files and readers --------------------------------------------------------------------------------------


class _FileDataset:
    """Files read in place; the job folder holds their index."""

    def __init__(self, files: str | Path, validation: Any, feed: Feed) -> None:
        if validation is not None and not isinstance(validation, str | Path):
            raise SemanticError(
                f"validation is {_a(validation)}, and the dataset files", hint="give both in the same form"
            )
        self._files = str(files)
        self._validation = None if validation is None else str(validation)
        self.functions = {"feed": feed}

    def pin(self, job: JobFolder) -> Pinned:
        pinned = pin_files(self._files, job.rows)
        write_pinned(job.rows, pinned)
        if self._validation is not None:
            write_pinned(job.validation_rows, pin_files(self._validation, job.validation_rows))
        return pinned


class _Readers:
    """Readers defined by the script."""

    def __init__(self, rows: Reader, validation: Any, feed: Feed) -> None:
        self._rows = rows
        self._reader: Reader = rows if validation is None else JoinedReader(rows, validation)
        self.functions: Mapping[str, Callable[..., Any]] = {"feed": feed, "custom_data_reader": self._open}

    def pin(self, job: JobFolder) -> Pinned:
        pinned = Pinned(
            "", "", "", self._rows.rows, fields(self._rows.schema), self._digest(), 0, shuffled=False
        )
        write_pinned(job.rows, pinned)
        return pinned

    def _open(self, pinned: Pinned, folder: Path) -> Reader:
        if pinned.digest != self._digest():
            raise _other_rows()
        return self._reader

    def _digest(self) -> str:
        content = (self._reader.rows, fields(self._rows.schema), getattr(self._rows, "digest", ""))
        return hashlib.blake2b(msgspec.json.encode(content), digest_size=32).hexdigest()


# What is given -------------------------------------------------------------------------------------------------


def _make_part(data_given: Any, name: str, framework: Framework, feed: Feed | None) -> _DatasetPart:
    if isinstance(data_given, tuple | list) and len(data_given) in (2, 3):
        if feed is not None:
            raise SemanticError(
                "arrays need no feed", hint="feed converts record batches to arrays: leave it out"
            )
        return _Arrays(name, *data_given)
    if isinstance(data_given, pa.RecordBatch):
        data_given = pa.Table.from_batches([data_given])
    if isinstance(data_given, pa.Table):
        return _Table(data_given, _require_feed(feed, "a pyarrow.Table"))
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(data_given, data.DataLoader):
        raise SemanticError(
            "a DataLoader reads rows in its own order, but a job reads them by range",
            hint="give its dataset: edl.train(model, loader.dataset, batch_size=loader.batch_size, …)",
        )
    if data is not None and isinstance(data_given, data.Dataset) and hasattr(data_given, "__len__"):
        if framework != "torch":
            raise SemanticError("a Dataset of PyTorch trains models of PyTorch", hint=f"give {_KINDS}")
        return _Items(data_given)
    raise SemanticError(
        f"{name} is {_a(data_given)}, whose rows cannot be read by range", hint=f"give {_KINDS}"
    )


def _require_feed(feed: Feed | None, what: str) -> Feed:
    if feed is None:
        raise SemanticError(
            f"{what} yields record batches, and there is no feed to convert them to arrays",
            hint="give feed=feed, with def feed(batch, mode): ... return features, labels",
        )
    return feed


def _array(value: Any) -> Any:
    return value if isinstance(value, Ragged) else np.asarray(value)


def _sample_positions(rows: int) -> Numbers:
    return np.unique(np.linspace(0, max(rows - 1, 0), min(rows, _SAMPLE)).astype(np.int64))


def _a(value: object) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def _other_rows() -> JobError:
    return JobError(
        "the script has other rows in a worker than in the process that started the job",
        hint="every worker runs the script: seed random choices before edl.train, such as a split of the rows",
    )
