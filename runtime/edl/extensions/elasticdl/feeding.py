"""Rows for a module's `feed(dataset, mode, metadata)`: a `tf.data.Dataset` of records, and the arrays it makes of them.

A record is a text of bytes (RecordIO), or a row's columns as texts (CSV, Parquet, tables). The dataset has the rows of
a range in their order. The job permutes the rows of a training task itself, by its seed; so `shuffle` leaves the order,
and predictions stay beside their rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from edl.errors import JobError
from edl.extensions.elasticdl.names.constants import Mode
from edl.extensions.elasticdl.names.readers import Metadata

RECORD = "record"
MODES = {"train": Mode.TRAINING, "evaluate": Mode.EVALUATION, "predict": Mode.PREDICTION}
# Transformations after which a row is still a row.
_BY_ROW = ("apply", "cache", "map", "prefetch", "with_options")


class RowDataset(tf.data.Dataset):
    """Dataset of the rows of a range. What keeps the rows gives such a dataset again; `shuffle` keeps their order."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        super().__init__(inner._variant_tensor)

    @property
    def element_spec(self) -> Any:
        return self._inner.element_spec

    def _inputs(self) -> list[Any]:
        return [self._inner]

    def shuffle(self, *arguments: Any, **options: Any) -> RowDataset:
        return self


def _keep_rows(name: str) -> Callable[..., RowDataset]:
    transform = getattr(tf.data.Dataset, name)

    def call(self: RowDataset, *arguments: Any, **options: Any) -> RowDataset:
        return RowDataset(transform(self._inner, *arguments, **options))

    return call


for _name in _BY_ROW:
    setattr(RowDataset, _name, _keep_rows(_name))


class Feed:
    """Function `feed(batch, mode)` of the program's contract, by the module's `feed(dataset, mode, metadata)`.

    `label_type` is the type of the labels as the module gives them, None before the first rows with labels.

    Calling `feed` for a block of rows costs as much as some thousand rows, because TensorFlow traces its functions
    anew. So the second block of a mode is also computed by a graph of `feed`; further ones by the graph alone, if that
    has given the same bits.
    """

    def __init__(self, feed: Callable[..., Any], file: str) -> None:
        self._feed = feed
        self._file = file
        self.label_type: Any = None
        self._graphs: dict[str, FeedGraph] = {}  # by mode, from the first block on

    def __call__(self, batch: pa.RecordBatch, mode: str) -> tuple[Any, Any]:
        records, names = _records(batch)
        features, labels = self._split(self._compute(records, names, mode), mode)
        if labels is not None:
            self.label_type = tf.as_dtype(labels.dtype)
        return features, labels

    def _compute(self, records: Any, names: list[str] | None, mode: str) -> Any:
        """Return what `feed` makes of the records, as one element."""
        graph = self._graphs.get(mode)
        if graph is not None and graph.is_equal and (element := graph.run(records)) is not None:
            return element
        element = self._take_all(self._dataset(records, names, mode), len(records))
        if graph is None:
            self._graphs[mode] = FeedGraph(lambda some: self._dataset(some, names, mode))
        elif graph.is_equal is None:
            graph.compare(records, element)
        return element

    def _dataset(self, records: Any, names: list[str] | None, mode: str) -> Any:
        dataset = RowDataset(tf.data.Dataset.from_tensor_slices(records))
        result = self._feed(dataset, MODES[mode], Metadata(names))
        if not isinstance(result, tf.data.Dataset):
            raise JobError(
                f"feed in {self._file} returns a {type(result).__name__}, not a dataset",
                hint="feed(dataset, mode, metadata) returns dataset.map(…)",
            )
        return result

    def _take_all(self, dataset: Any, rows: int) -> Any:
        """Return all elements as one. Raises JobError if they are not the rows of the range."""
        elements = list(dataset.batch(rows).take(2).as_numpy_iterator())
        count = _count(elements[0]) if elements else 0
        if len(elements) != 1 or count != rows:
            more = "more" if len(elements) > 1 else str(count)
            raise JobError(
                f"feed in {self._file} makes {more} rows of {rows}",
                hint="the dataset has a row for each record: leave batch, filter and repeat out of feed",
            )
        return elements[0]

    def _split(self, element: Any, mode: str) -> tuple[Any, Any]:
        if isinstance(element, tuple) and len(element) == 2:
            features, labels = element
            return features, None if mode == "predict" else np.asarray(labels)
        if mode != "predict":
            raise JobError(
                f"feed in {self._file} gives no labels in the mode {MODES[mode]}",
                hint="return (features, label) for each record, and features alone to predict",
            )
        return element, None


class FeedGraph:
    """Graph of a module's `feed` in one mode. `make` returns the dataset of some records.

    `is_equal` is None until it was compared with a call of `feed`, and then True if the results were equal in all bits.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._function: Any = None
        self.is_equal: bool | None = None

    def compare(self, records: Any, element: Any) -> None:
        """Compute the records, and compare the result with the element that `feed` has made of them."""
        shape = [None, *records.shape[1:]]
        signature = [tf.TensorSpec(shape, tf.string), tf.TensorSpec([], tf.int64)]
        self._function = tf.function(self._take_all, input_signature=signature, autograph=False)
        self.is_equal = True
        result = self.run(records)
        self.is_equal = result is not None and _are_equal(result, element)

    def run(self, records: Any) -> Any:
        """Return all elements as one, or None if that is not possible: then `feed` says why, or does it."""
        try:
            result = self._function(records, len(records))
            element = tf.nest.map_structure(lambda tensor: tensor.numpy(), result)
        except Exception:  # whatever the module does in Python alone, such as a loop over the dataset
            self.is_equal = False
            return None
        return element if _count(element) == len(records) else None

    def _take_all(self, records: Any, rows: Any) -> Any:
        return self._make(records).batch(rows + 1).get_single_element()


def _are_equal(one: Any, other: Any) -> bool:
    try:
        tf.nest.assert_same_structure(one, other)
    except (TypeError, ValueError):
        return False
    pairs = zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True)
    return all(
        left.dtype == right.dtype and left.shape == right.shape and _bits(left) == _bits(right)
        for left, right in pairs
    )


def _bits(array: Any) -> Any:
    """Return what is equal for arrays that are equal in all bits."""
    return array.tolist() if array.dtype == object else array.tobytes()


class TorchFeed(Feed):
    """Feed of a model of PyTorch: labels are int64 classes (rows,), or float32 numbers (rows, columns)."""

    def __call__(self, batch: pa.RecordBatch, mode: str) -> tuple[Any, Any]:
        features, labels = super().__call__(batch, mode)
        if labels is not None:
            is_class = labels.dtype.kind in "iu"
            labels = labels.reshape(len(labels), *(() if is_class and labels.size == len(labels) else (-1,)))
        return features, labels


def _count(element: Any) -> int:
    return len(next(iter(tf.nest.flatten(element))))


def _records(batch: pa.RecordBatch) -> tuple[Any, list[str] | None]:
    """Return the records as an array of bytes, (rows,) or (rows, columns), and the names of the columns."""
    names = batch.schema.names
    if names == [RECORD] and pa.types.is_binary(batch.schema.field(RECORD).type):
        return np.array(batch.column(0).to_pylist(), dtype=object), None
    texts = [_texts(batch.column(number)) for number in range(batch.num_columns)]
    return np.stack(texts, axis=1), names


def _texts(column: pa.Array) -> Any:
    """Return the values as texts; NULL is an empty one, as in the files that ElasticDL reads."""
    if pa.types.is_binary(column.type):
        return np.array(column.fill_null(b"").to_pylist(), dtype=object)
    texts = column.cast(pa.string()).fill_null("")
    return np.array([text.encode() for text in texts.to_pylist()], dtype=object)
