"""Rows that a script has in its hands, read by range."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import edl
from edl.data import Reader
from edl.data.files.file_ranges import RangeReader, open_files, pin_files
from edl.data.pinned import read_pinned
from edl.data.readers import JoinedReader
from edl.errors import JobError, SemanticError
from edl.jobs import job_folder
from edl.scripting.datasets import Dataset, dataset
from edl.spec.job import Framework

X = np.arange(20, dtype=np.float32).reshape(10, 2)
Y = np.arange(10, dtype=np.float32)


def made(
    given: Any,
    validation: Any = None,
    *,
    framework: Framework = "torch",
    feed: Any = None,
    shuffle: bool = False,
    seed: int = 0,
) -> Dataset:
    return dataset(given, validation, framework, feed, shuffle=shuffle, seed=seed)


def reader_of(rows: Dataset, other: Dataset | None = None) -> Reader:
    """As another process opens the rows that were pinned. other: what that process has."""
    job = job_folder.create("train")
    rows.pin(job)
    found: Reader = (other or rows).functions["custom_data_reader"](read_pinned(job.rows), job.rows)
    return found


def fed(rows: Dataset, start: int, end: int) -> tuple[Any, ...]:
    """Features, labels and weights of a range."""
    [batch] = reader_of(rows).read(start, end)
    given: tuple[Any, ...] = rows.functions["feed"](batch, "train")
    return given


def feed(batch: pa.RecordBatch, mode: str) -> tuple[Any, Any]:
    return batch.column("x").to_numpy(), batch.column("y").to_numpy()


def test_arrays_are_read_by_range() -> None:
    features, labels, weights = fed(made((X, Y)), 3, 6)
    np.testing.assert_array_equal(features, X[3:6])
    np.testing.assert_array_equal(labels, Y[3:6].reshape(-1, 1))
    assert weights is None


def test_features_may_be_a_dict_with_lists_of_ids_and_rows_may_have_weights() -> None:
    tags = edl.Ragged(np.arange(10), np.arange(11))
    features, labels, weights = fed(made(({"x": X, "tags": tags}, Y.astype(int), Y)), 8, 10)
    np.testing.assert_array_equal(features["x"], X[8:])
    np.testing.assert_array_equal(features["tags"].values, [8, 9])
    np.testing.assert_array_equal(labels, [8, 9])
    np.testing.assert_array_equal(weights, [8.0, 9.0])


def test_held_out_rows_stand_behind_the_others() -> None:
    rows = made((X, Y), (X[:3] + 100, Y[:3]))
    assert reader_of(rows).rows == 13
    np.testing.assert_array_equal(fed(rows, 10, 13)[0], X[:3] + 100)


def test_rows_in_memory_stand_in_a_random_order_of_the_seed() -> None:
    first, again, other = (
        fed(made((X, Y), (X, Y), shuffle=True, seed=seed), 0, 10)[1].ravel() for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(np.sort(first), Y)
    assert (first != other).any()
    assert (first != Y).any()
    np.testing.assert_array_equal(
        fed(made((X, Y), (X, Y), shuffle=True), 10, 20)[0], X
    )  # held out: as they are


def test_a_table_is_read_by_its_feed() -> None:
    table = pa.concat_tables([pa.table({"x": X[:4, 0], "y": Y[:4]}), pa.table({"x": X[4:, 0], "y": Y[4:]})])
    features, labels = fed(made(table, feed=feed), 3, 6)
    np.testing.assert_array_equal(features, X[3:6, 0])
    np.testing.assert_array_equal(labels, Y[3:6])


def test_a_dataset_of_pytorch_gives_its_items() -> None:
    import torch
    from torch.utils.data import TensorDataset

    items = TensorDataset(torch.tensor(X), torch.tensor(Y))
    rows = made(items, items, shuffle=True, seed=3)
    part = rows.functions["dataset"](reader_of(rows), 10, 12, "train")
    assert [float(label) for _, label in part] == [0.0, 1.0]
    whole = rows.functions["dataset"](reader_of(rows), 0, 10, "train")
    assert sorted(float(label) for _, label in whole) == list(Y)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{n},{n}\n" for n in range(5)))
    return tmp_path / "a.csv"


def test_files_are_read_where_they_lie(files: Path) -> None:
    rows, job = made(files, str(files), feed=feed), job_folder.create("train")
    assert rows.pin(job).rows == 5
    assert open_files(read_pinned(job.rows), job.rows).rows == 5
    assert open_files(read_pinned(job.validation_rows), job.validation_rows).rows == 5


def test_a_reader_is_read_by_range(files: Path) -> None:
    job = job_folder.create("train")
    reader: RangeReader = open_files(pin_files(str(files), job.rows), job.rows)
    assert reader_of(made(reader, feed=feed)) is reader
    assert isinstance(reader_of(made(reader, reader, feed=feed)), JoinedReader)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: (X, Y), lambda: (X + 1, Y)),
        (lambda: (X, Y), lambda: (X, Y, Y)),
        (lambda: (X, Y), lambda: (X[:9], Y[:9])),
        (lambda: pa.table({"x": Y}), lambda: pa.table({"x": Y + 1})),
    ],
)
def test_a_process_that_has_other_rows_is_told_so(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    feeds = {"feed": feed} if isinstance(ours(), pa.Table) else {}
    assert reader_of(made(ours(), **feeds), made(ours(), **feeds)).rows == 10
    with pytest.raises(JobError, match="other rows in a worker"):
        reader_of(made(ours(), **feeds), made(theirs(), **feeds))


@pytest.mark.parametrize(
    ("given", "more", "words"),
    [
        (3, {}, "is a int, whose rows cannot be read by range"),
        ((X, Y, Y, Y), {}, "is a tuple"),
        (None, {}, "the dataset is a NoneType"),
        ((X, Y), {"validation": 1j}, "validation is a complex"),
        ((X, Y[:5]), {}, "features has 10 rows, and labels 5"),
        ((X, Y), {"feed": feed}, "arrays need no feed"),
        (pa.table({"x": Y}), {}, r"a pyarrow\.Table yields record batches, and there is no feed"),
        ("rows.csv", {}, "files yields record batches"),
        ((X, Y), {"validation": pa.table({"x": Y}), "feed": None}, "no feed"),
    ],
)
def test_what_is_no_dataset_is_named(given: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(SemanticError, match=words):
        made(given, **more)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((X, Y.astype(str)), "the dataset gives labels of type"),
        ((X.astype(object), Y), "the dataset gives features of type object"),
        ((X, Y, -Y), "weights that are negative"),
        ((X, Y.astype(int).reshape(-1, 1)), "classes must be int64 of shape"),
    ],
)
def test_arrays_that_nothing_can_be_trained_on_are_named_at_once(given: Any, words: str) -> None:
    with pytest.raises(JobError, match=words):
        made(given)


def test_a_list_of_rows_is_told_from_a_list_of_arrays() -> None:
    with pytest.raises(SemanticError, match="has 2 rows, and labels 10") as caught:
        made((X.tolist(), Y))
    assert "numpy.asarray" in str(caught.value.hint)


def test_loaders_and_datasets_of_the_other_framework_are_named() -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    items = TensorDataset(torch.tensor(X), torch.tensor(Y))
    with pytest.raises(SemanticError, match="in its own order") as caught:
        made(DataLoader(items))
    assert "loader.dataset" in str(caught.value.hint)
    with pytest.raises(SemanticError, match="trains models of PyTorch"):
        made(items, framework="keras")
    with pytest.raises(SemanticError, match="and the dataset a"):
        made((X, Y), items)
