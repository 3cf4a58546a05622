"""Rows through a module's feed: records or texts, all of them, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import tensorflow as tf

from edl.errors import JobError
from edl.extensions.elasticdl.feeding import Feed, TorchFeed
from edl.extensions.elasticdl.names.constants import Mode

RECORDS = pa.record_batch({"record": pa.array([b"%d" % row for row in range(50)], pa.binary())})
TABLE = pa.record_batch({"name": ["ann", None], "size": [1.5, 2.0], "rich": [True, False]})


def parse(record: Any) -> tuple[dict[str, Any], Any]:
    number = tf.strings.to_number(record, tf.int64)
    return {"x": tf.cast(number, tf.float32), "text": record}, tf.cast([number], tf.int32)


def feed(change: Callable[[Any], Any]) -> Feed:
    return Feed(lambda dataset, mode, metadata: change(dataset.map(parse)), "net.py")


def test_shuffling_keeps_the_order_of_the_rows() -> None:
    features, labels = feed(lambda rows: rows.shuffle(100).prefetch(5).shuffle(7))(RECORDS, "train")
    assert features["x"].tolist() == list(range(50))
    assert features["text"][:2].tolist() == [b"0", b"1"]
    assert labels.tolist() == [[row] for row in range(50)]


def test_the_type_of_the_labels_is_known_after_the_first_rows() -> None:
    made = feed(lambda rows: rows)
    assert made.label_type is None
    made(RECORDS, "evaluate")
    assert made.label_type == tf.int32


def test_a_prediction_leaves_out_labels_that_the_feed_gives_always() -> None:
    features, labels = feed(lambda rows: rows)(RECORDS, "predict")
    assert labels is None
    assert set(features) == {"text", "x"}


def test_the_feed_gets_elasticdl_s_modes_and_the_names_of_columns() -> None:
    seen: list[Any] = []

    def note(dataset: Any, mode: str, metadata: Any) -> Any:
        seen.append((mode, metadata.column_names))
        return dataset.map(lambda row: (row, row[0]))

    for mode in ("train", "evaluate", "predict"):
        features, _ = Feed(note, "net.py")(TABLE, mode)
    assert seen == [
        (mode, ["name", "size", "rich"]) for mode in (Mode.TRAINING, Mode.EVALUATION, Mode.PREDICTION)
    ]
    assert features.tolist() == [[b"ann", b"1.5", b"true"], [b"", b"2", b"false"]]


@pytest.mark.parametrize(
    ("change", "made"),
    [
        (lambda rows: rows.filter(lambda features, label: features["x"] > 9), "40"),
        (lambda rows: rows.batch(10), "5"),
        (lambda rows: rows.repeat(2), "more"),
        (lambda rows: rows.take(0), "0"),
    ],
    ids=["filter", "batch", "repeat", "take"],
)
def test_another_number_of_rows_is_an_error(change: Callable[[Any], Any], made: str) -> None:
    with pytest.raises(JobError, match=f"^feed in net.py makes {made} rows of 50$"):
        feed(change)(RECORDS, "train")


def test_rows_without_a_label_cannot_be_trained_on() -> None:
    made = Feed(lambda dataset, mode, metadata: dataset.map(lambda record: {"x": record}), "net.py")
    with pytest.raises(JobError, match="gives no labels in the mode training"):
        made(RECORDS, "train")
    with pytest.raises(JobError, match="returns a list, not a dataset"):
        Feed(lambda *_: [], "net.py")(RECORDS, "train")


def test_labels_of_a_model_of_pytorch_are_classes_or_columns_of_numbers() -> None:
    def labels(kind: Any, *shape: int) -> Any:
        made = TorchFeed(lambda rows, *_: rows.map(lambda r: (r, tf.zeros(shape, kind))), "net.py")(
            RECORDS, "train"
        )[1]
        return made.shape

    assert labels(tf.int32, 1) == labels(tf.int64) == (50,)
    assert labels(tf.float32) == labels(tf.float64, 1) == (50, 1)
    assert labels(tf.float32, 3) == (50, 3)
    features, nothing = TorchFeed(lambda rows, *_: rows.map(lambda r: ({"x": r}, 1)), "net.py")(
        RECORDS, "predict"
    )
    assert (list(features), nothing) == (["x"], None)


def blocks(made: Feed, mode: str = "train") -> list[list[Any]]:
    """The results of four blocks of different sizes."""
    sizes = (20, 10, 15, 1)
    found = []
    for size in sizes:
        features, labels = made(RECORDS.slice(0, size), mode)
        found.append([features["x"].tolist(), features["text"].tolist(), labels.tolist(), labels.dtype.name])
    return found


def test_a_feed_is_called_for_two_blocks_of_a_mode_and_then_its_graph_gives_the_same() -> None:
    calls: list[str] = []

    def count(dataset: Any, mode: str, metadata: Any) -> Any:
        calls.append(mode)
        return dataset.map(parse)

    made = Feed(count, "net.py")
    assert blocks(made) == [blocks(Feed(count, "net.py"))[0], *blocks(made)[1:]]
    calls.clear()
    made = Feed(count, "net.py")
    expected = [
        [[float(row) for row in range(size)], [b"%d" % row for row in range(size)],
         [[row] for row in range(size)], "int32"]
        for size in (20, 10, 15, 1)
    ]  # fmt: skip
    assert blocks(made) == expected
    assert calls == [Mode.TRAINING] * 3  # of two blocks, and of the graph
    blocks(made, "evaluate")
    assert calls[3:] == [Mode.EVALUATION] * 3


def test_a_feed_that_python_alone_computes_or_that_draws_numbers_is_called_for_each_block() -> None:
    calls: list[int] = []

    def python(dataset: Any, mode: str, metadata: Any) -> Any:
        rows = [int(record) for record in dataset.as_numpy_iterator()]  # not in a graph
        calls.append(len(rows))
        return tf.data.Dataset.from_tensor_slices(({"x": rows, "text": rows}, [[row] for row in rows]))

    made = Feed(python, "net.py")
    assert [found[0] for found in blocks(made)] == [[*range(size)] for size in (20, 10, 15, 1)]
    assert calls == [20, 10, 15, 1]

    numbers = iter(range(100))

    def draw(dataset: Any, mode: str, metadata: Any) -> Any:
        drawn = float(next(numbers))  # by Python, so a graph would have the first number for ever
        return dataset.map(lambda record: ({"x": tf.constant(drawn)}, tf.constant([0])))

    made = Feed(draw, "net.py")
    found = [made(RECORDS, "train")[0]["x"][0] for _ in range(4)]
    assert found == [0.0, 1.0, 3.0, 4.0]  # the graph has drawn the 2


def test_a_wrong_number_of_rows_in_a_later_block_is_an_error_too() -> None:
    def drop(dataset: Any) -> Any:
        return dataset.filter(lambda features, label: features["x"] < 12)

    made = feed(drop)
    for size in (10, 11, 12):
        made(RECORDS.slice(0, size), "train")
    with pytest.raises(JobError, match="makes 12 rows of 15"):
        made(RECORDS.slice(0, 15), "train")
