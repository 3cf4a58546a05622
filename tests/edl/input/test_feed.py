"""The ways in which rows become arrays: `feed`, a Dataset, and an IterableDataset over the record batches of a task."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl.data.results import ResultFolder
from edl.errors import JobError, UserCodeError
from edl.input.blocks import Blocks
from edl.program import Program, load
from edl.spec import Output, Rows
from edl.worker.inference import evaluate, predict
from tests.edl.programs import Events, loaded, rows_of, simple, trained

MODEL = """

from torch.utils.data import DataLoader, Dataset, IterableDataset


def custom_model():
    return nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))


def column(batch, name):
    return batch.column(name).to_numpy().astype("float32").reshape(-1, 1)


def arrays(batch, mode):
    return column(batch, "x"), None if mode == "predict" else column(batch, "y")
"""
FEED = """

def feed(batch, mode):
    return arrays(batch, mode)
"""
DATASET = """

del feed


class Lines(Dataset):
    def __init__(self, batches, mode):
        self.parts = [arrays(batch, mode) for batch in batches]
        self.count = sum(len(x) for x, _ in self.parts)

    def __len__(self):
        return self.count

    def __getitem__(self, row):
        [(x, y)] = self.parts
        return x[row], None if y is None else y[row]


def dataset(reader, start, end, mode):
    return Lines(reader.read(start, end), mode)
"""
STREAM = """

del feed


class Lines(IterableDataset):
    def __init__(self, batches, mode):
        self.batches, self.mode = batches, mode

    def __iter__(self):
        for batch in self.batches:
            x, y = arrays(batch, self.mode)
            yield from zip(x, x if y is None else y)


def stream(batches, mode):
    return Lines(batches, mode)
"""
WAYS = {"feed": FEED, "dataset": DATASET, "stream": STREAM}


def table(rows: int) -> pa.Table:
    x = np.random.default_rng(1).normal(size=rows)
    return pa.table({"id": np.arange(rows), "x": x, "y": 3 * x + 1})


def program(folder: Path, way: str, rows: int = 500, **changes: Any) -> Program:
    written = simple(
        folder, rows=Rows(False, rows, rows - 100, 100), append=MODEL + way, epochs=3, batch_size=16
    )
    (written / "model.py.sha256").unlink()  # an edited program, which reads what it likes
    found = loaded(written)
    return load(written, msgspec.structs.replace(found.spec, **changes)) if changes else found


def read(folder: Path, way: str, mode: Any = "train", rows: int = 10) -> Any:
    return Blocks(program(folder / "p", way), rows_of(folder / "rows", table(500))).read(0, rows, mode)


def changed(way: str, old: str, new: str) -> str:
    assert old in way
    return way.replace(old, new)


@pytest.mark.soak
def test_a_model_becomes_the_same_whichever_way_its_rows_come(tmp_path: Path) -> None:
    found = {}
    for name, way in WAYS.items():
        outcome, adapter = trained(
            program(tmp_path / name, way), rows_of(tmp_path / f"{name}-rows", table(500))
        )
        found[name] = outcome.figures, adapter.get_weights()
    figures, weights = found["feed"]
    for other_figures, other in (found["dataset"], found["stream"]):
        assert other_figures == figures
        assert all(np.array_equal(weights[name], other[name]) for name in weights)


@pytest.mark.variants(1)
@pytest.mark.parametrize("name", WAYS)
def test_rows_are_measured_and_predicted_in_their_order(name: str, tmp_path: Path) -> None:
    training = program(tmp_path / "p", WAYS[name])
    _, adapter = trained(training, rows_of(tmp_path / "rows", table(500)))
    measured = run(evaluate, training, "evaluate", tmp_path / "evaluated", adapter)
    assert measured.column("rmse")[0].as_py() < 4
    predicted = run(predict, training, "predict", tmp_path / "predicted", adapter)
    assert predicted.column("id").to_pylist() == list(range(20_000))
    expected = adapter.predict(table(20_000).column("x").to_numpy().astype("float32").reshape(-1, 1))
    assert predicted.column("p").to_numpy() == pytest.approx(expected.reshape(-1), abs=1e-6)


def run(do: Any, training: Program, kind: Any, folder: Path, adapter: Any) -> pa.Table:
    spec = msgspec.structs.replace(training.spec, kind=kind, output=Output(column="p", keep=("id",)))
    results = ResultFolder(folder / "results")
    outcome = do(
        load(training.folder, spec),
        rows_of(folder / "rows", table(20_000)),
        adapter.get_weights(),
        results,
        observer=Events(),
        cancelled=threading.Event(),
    )
    return pa.Table.from_batches(results.read(outcome.tasks))


def test_a_loader_of_the_programs_own_takes_as_many_rows_at_a_time_as_it_likes(tmp_path: Path) -> None:
    block = read(
        tmp_path, changed(STREAM, "return Lines(batches, mode)", "return DataLoader(Lines(batches, mode), 3)")
    )
    assert block.arrays.features.reshape(-1) == pytest.approx(table(500).column("x").to_numpy()[:10])
    assert block.arrays.labels.shape == (10, 1)


def test_items_may_be_dicts_with_weights(tmp_path: Path) -> None:
    way = changed(
        DATASET,
        "return x[row], None if y is None else y[row]",
        "return {'a': x[row], 'b': (row, x[row])}, y[row], row / 10",
    )
    features, labels, weights = read(tmp_path, way).arrays
    assert features["a"].dtype == np.float32
    assert features["b"][0].tolist() == list(range(10))
    assert labels.shape == features["b"][1].shape == (10, 1)
    assert weights.tolist() == pytest.approx([row / 10 for row in range(10)])


def test_lists_of_ids_come_by_a_loader_that_takes_many_rows_at_a_time(tmp_path: Path) -> None:
    lists = "__import__('edl').Ragged(range(2 * len(x)), range(0, 2 * len(x) + 1, 2))"
    way = changed(
        STREAM, "yield from zip(x, x if y is None else y)", f"yield {lists}, y\n            yield {lists}, y"
    )
    way = changed(
        way,
        "return Lines(batches, mode)",
        "return DataLoader(Lines(list(batches)[:1], mode), batch_size=None)",
    )
    way = changed(way, "arrays(batch, self.mode)", "arrays(batch.slice(0, 5), self.mode)")
    assert read(tmp_path, way).arrays.features.values.tolist() == [*range(10), *range(10)]


@pytest.mark.parametrize(
    ("way", "old", "new", "message"),
    [
        (DATASET, "return self.count", "return self.count - 1", "gives 9 rows of the 10 of its range"),
        (STREAM, "for batch in self.batches:", "for batch in [*self.batches] * 2:", "gives more than the 10 rows"),
        (DATASET, "return Lines(reader.read(start, end), mode)", "return [1, 2]", "gives a list"),
        (STREAM, "return Lines(batches, mode)", "return DataLoader(list(batches), shuffle=True)", "that shuffles"),
        (STREAM, "yield from zip(x, x if y is None else y)", "yield from x", "an item is"),
        (DATASET, "None if y is None else y[row]", "y[row], 1.0, 2.0", "gives 4 things a row"),
        (DATASET, "None if y is None else y[row]", "float(y[row, 0])", r"dataset gives labels of shape \(10,\)"),
        (DATASET, "return x[row]", "return 'text'", r"gives a str as features\[0\]"),
    ],
)  # fmt: skip
def test_what_is_no_row_for_a_row_is_named(
    way: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(JobError, match=message):
        read(tmp_path, changed(way, old, new))


def test_what_an_item_raises_is_its_own_line(tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"in __getitem__: ZeroDivisionError"):
        read(tmp_path, changed(DATASET, "return x[row]", "return x[row] / (1 // 0)"))


def test_an_endless_stream_is_ended(tmp_path: Path) -> None:
    endless = changed(
        STREAM, "yield from zip(x, x if y is None else y)", "while True:\n                yield x[0], y[0]"
    )
    with pytest.raises(JobError, match="gives more than the 10 rows of its range"):
        read(tmp_path, endless)
