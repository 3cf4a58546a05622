"""Training loops in one process, without a master: rows, steps and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from edl.errors import JobError, SemanticError, SQLFlowError
from edl.extensions import elastic
from edl.extensions.elastic.rows import Sampler

X = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
Y = X.sum(1, keepdim=True)
DATA = TensorDataset(X, Y, torch.arange(50))


class Loop:
    """A model, and its loop with a sampler. `seen` has the rows of each part."""

    def __init__(self, **options: Any) -> None:
        self.model = nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1))
        for parameter in self.model.parameters():
            nn.init.constant_(parameter, 0.2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.5)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.9)
        self.options = {"batch_size": 16, "epochs": 2, **options}
        self.seen: list[list[int]] = []
        self.epochs: list[int] = []

    def elastic(self) -> Loop:
        sampler = elastic.sampler(len(DATA), **self.options)
        elastic.checkpoint(self.model, self.optimizer, self.scheduler)

        @elastic.run
        def train() -> None:
            for epoch in sampler.epochs():
                self.epochs.append(epoch)
                self.train(sampler)

        train()
        return self

    def plain(self, batches: Sequence[list[int]]) -> Loop:
        self.train(batches)
        return self

    def train(self, batches: Any) -> None:
        for x, y, rows in DataLoader(DATA, batch_sampler=batches):
            self.seen.append(rows.tolist())
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.scheduler.step()

    @property
    def weights(self) -> list[float]:
        return torch.cat([each.reshape(-1) for each in self.model.state_dict().values()]).tolist()


def test_every_row_comes_once_in_each_epoch_in_another_order() -> None:
    loop = Loop().elastic()
    assert loop.epochs == [0, 1]
    assert [len(part) for part in loop.seen] == [16, 16, 16, 2] * 2
    first, second = ([*chain(*parts)] for parts in (loop.seen[:4], loop.seen[4:]))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert Loop().elastic().seen == loop.seen


@pytest.mark.soak
def test_the_loop_computes_what_a_plain_one_computes() -> None:
    loop = Loop().elastic()
    assert loop.weights == Loop().plain(loop.seen).weights
    assert loop.scheduler.last_epoch == 8


def test_accumulated_micro_batches_give_the_same_gradients() -> None:
    loop, halves = (Loop(micro_batch=size, epochs=1) for size in (0, 5))
    for each in (loop, halves):
        each.model = nn.Sequential(nn.Linear(3, 1))  # statistics of a batch depend on its rows
        nn.init.zeros_(each.model[0].weight)
        nn.init.zeros_(each.model[0].bias)
        each.optimizer = torch.optim.SGD(each.model.parameters(), lr=0.1)
        each.scheduler = torch.optim.lr_scheduler.StepLR(each.optimizer, 1, 0.9)
    assert halves.elastic().weights == pytest.approx(loop.elastic().weights, abs=1e-6)
    assert max(map(len, halves.seen)) == 5
    assert halves.scheduler.get_last_lr() == loop.scheduler.get_last_lr()


def test_a_loop_that_breaks_gets_the_steps_that_were_not_taken_again() -> None:
    dataset = elastic.dataset(10, batch_size=4, shuffle=False)
    for rows in dataset:
        assert rows.tolist() == [0, 1, 2, 3]
        break
    assert [rows.tolist() for rows in dataset] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [*dataset.epochs()] == []


class Reader:
    rows = 10
    schema = pa.schema({"a": pa.int64()})

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": np.arange(start, end)})


@pytest.mark.parametrize("rows", [Reader(), pa.table({"a": np.arange(10)})], ids=["reader", "table"])
def test_a_table_and_a_reader_give_the_rows_of_the_same_steps(rows: Any) -> None:
    numbers = [part.tolist() for part in elastic.dataset(10, batch_size=4, seed=3)]
    found = [part["a"].to_pylist() for part in elastic.dataset(rows, batch_size=4, seed=3)]
    assert found == numbers
    assert sorted(chain(*found)) == list(range(10))


def endlessly(sampler: Sampler) -> Iterator[Any]:
    for _ in sampler.epochs():
        yield from DataLoader(DATA, batch_sampler=cast(Any, sampler))


def test_datasets_that_alternate_have_epochs_of_their_own() -> None:
    loop = Loop()
    samplers = [
        elastic.sampler(50, batch_size=size, epochs=None, name=name)
        for name, size in {"a": 20, "b": 25}.items()
    ]
    elastic.checkpoint(loop.model, loop.optimizer, loop.scheduler)
    endless = [*map(endlessly, samplers)]
    seen: list[list[int]] = [[], []]
    while elastic.step() < 12:
        number = elastic.step() % 2
        x, y, rows = next(endless[number])
        loop.optimizer.zero_grad()
        nn.functional.mse_loss(loop.model(x), y).backward()
        loop.optimizer.step()
        seen[number] += rows.tolist()
    a, b = seen
    assert [sorted(a[start : start + 50]) for start in (0, 50)] == [[*range(50)]] * 2
    assert [sorted(b[start : start + 50]) for start in (0, 50, 100)] == [[*range(50)]] * 3
    assert len({tuple(b[start : start + 50]) for start in (0, 50, 100)}) == 3


def test_a_dataset_that_was_left_goes_on_where_it_was() -> None:
    pretrain = elastic.dataset(8, batch_size=3, shuffle=False, name="pretrain", epochs=2)
    train = elastic.dataset(4, batch_size=2, shuffle=False)
    found: list[list[int]] = []
    for epoch in pretrain.epochs():
        for rows in pretrain:
            found.append([epoch, *rows])
            if len(found) == 3:
                break
        else:
            found.append([])
        if epoch == 0 and len(found) == 3:
            found += [[*rows] for rows in train]
    assert found == [
        [0, 0, 1, 2],
        [0, 3, 4, 5],
        [0, 6, 7],
        [0, 1],
        [2, 3],
        [0, 6, 7],
        [],
        *([[1, 0, 1, 2], [1, 3, 4, 5], [1, 6, 7], []]),
    ]


@pytest.mark.parametrize("rows", [Reader(), 10], ids=["reader", "number"])
def test_an_evaluation_sums_over_all_rows_once_for_each_state_of_the_model(rows: Any) -> None:
    calls: list[int] = []

    def measure(part: Any) -> dict[str, Any]:
        values = part if isinstance(part, np.ndarray) else np.array(part["a"])
        calls.append(len(values))
        return {"rows": len(values), "sum": values.sum(), "odd": np.bincount(values % 2)}

    dataset = elastic.dataset(4, batch_size=2)
    evaluation = elastic.evaluation(rows, batch_size=4)
    for _ in dataset:
        for _ in range(2):
            found = evaluation.sums(measure)
            assert (found["rows"], found["sum"], found["odd"].tolist()) == (10, 45, [5, 5])
    assert calls == [4, 4, 2] * 2
    assert elastic.broadcast("here") == "here"


class Folder(Dataset[tuple[torch.Tensor, int]]):
    """Images in a folder for each class, as torchvision's ImageFolder."""

    def __init__(self, root: Path) -> None:
        self.files = sorted(root.glob("*/*.npy"))
        self.classes = sorted({path.parent.name for path in self.files})
        self.opened: list[Path] = []

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.files[index]
        self.opened.append(path)
        return torch.from_numpy(np.load(path)), self.classes.index(path.parent.name)


def test_files_are_read_in_the_order_of_leased_indices(tmp_path: Path) -> None:
    for number in range(10):
        path = tmp_path / ("cat", "dog")[number % 2] / f"{number}.npy"
        path.parent.mkdir(exist_ok=True)
        np.save(path, np.full((2, 3), number, np.uint8))
    folder, loop = Folder(tmp_path), Loop()
    sampler = elastic.sampler(len(folder), batch_size=4)
    elastic.checkpoint(loop.model, loop.optimizer)
    batches = []
    for images, classes in DataLoader(folder, batch_sampler=cast(Any, sampler)):
        assert images.shape[1:] == (2, 3)
        assert (images[:, 0, 0] % 2).tolist() == classes.tolist()
        assert len(folder.opened) == sum(batches) + len(images)  # the images of this part alone
        batches.append(len(images))
        loop.optimizer.step()
    assert batches == [4, 4, 2]
    assert sorted(folder.opened) == folder.files != folder.opened


def test_one_process_is_a_group_of_its_own() -> None:
    assert (elastic.rank(), elastic.world_size()) == (0, 1)
    elastic.sampler(3, batch_size=1)
    assert (elastic.rank(), elastic.world_size()) == (0, 1)


def step_without_rows() -> None:
    loop = Loop()
    elastic.sampler(3, batch_size=1)
    elastic.checkpoint(loop.model, loop.optimizer)
    loop.optimizer.step()


def loop_without_optimizer() -> None:
    [*elastic.sampler(3, batch_size=1)]


def loop_without_steps() -> None:
    loop, sampler = Loop(), elastic.sampler(3, batch_size=1)
    elastic.checkpoint(loop.model, loop.optimizer)
    for _ in sampler.epochs():
        for _ in sampler:
            pass


def closure() -> None:
    loop = Loop()
    elastic.checkpoint(loop.model, loop.optimizer)
    loop.optimizer.step(lambda: 0.0)


def declared_twice() -> None:
    loop = Loop()
    for _ in range(2):
        elastic.checkpoint(loop.model, loop.optimizer)


def step_of_two_datasets() -> None:
    loop = Loop()
    datasets = [elastic.dataset(8, batch_size=2, name=name) for name in ("a", "b")]
    elastic.checkpoint(loop.model, loop.optimizer)
    found = [iter(each) for each in datasets]
    for each in found:
        next(each)
    loop.optimizer.step()


def dataset_in_the_loop() -> None:
    for _ in elastic.dataset(8, batch_size=2):
        elastic.evaluation(8, batch_size=2)


def decision_of_a_bounded_loop() -> None:
    elastic.dataset(8, batch_size=2)
    elastic.broadcast(True)


def broadcast_of_a_tensor() -> None:
    elastic.dataset(8, batch_size=2, epochs=None)
    elastic.broadcast(torch.ones(1))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: elastic.sampler(0, batch_size=4),
            SemanticError,
            "rows is 0; expected a whole number, at least 1",
        ),
        (lambda: elastic.sampler(4, batch_size=2.5), SemanticError, "batch_size is 2.5"),  # type: ignore[arg-type]
        (lambda: elastic.dataset([1], batch_size=1), SemanticError, r"rows is \[1\]"),
        (elastic.run(lambda: None), SemanticError, "before edl.elastic.sampler or edl.elastic.dataset"),
        (step_without_rows, JobError, "without a part of a step"),
        (loop_without_optimizer, SemanticError, "without an optimizer"),
        (loop_without_steps, JobError, "no step in a whole epoch"),
        (closure, SemanticError, "closure"),
        (declared_twice, SemanticError, "twice"),
        (step_of_two_datasets, JobError, "rows of the datasets a and b"),
        (dataset_in_the_loop, SemanticError, "'evaluate' comes after the loop has begun"),
        (broadcast_of_a_tensor, SemanticError, "edl.elastic.broadcast: Encoding objects of type"),
        (decision_of_a_bounded_loop, SemanticError, "trains all of its rows"),
        (
            lambda: elastic.evaluation(8, batch_size=2).sums(lambda rows: len(rows)),  # type: ignore[arg-type,return-value]
            SemanticError,
            "has returned 2",
        ),
        (lambda: elastic.dataset(8, batch_size=2, name=""), SemanticError, "name is ''"),
    ],
)
def test_misuse_is_named(call: Any, error: type[SQLFlowError], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_workers_of_another_launcher_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SemanticError) as raised:
        elastic.sampler(3, batch_size=1)
    assert raised.value.hint == "start the script with edl run"


def test_hooks_know_of_a_process_alone_once() -> None:
    told: list[Any] = []
    elastic.on_change(lambda before, now: told.append((before, now)))
    for _ in range(2):
        told.clear()
        Loop().elastic()
        assert told == [(None, elastic.World(0, 1, ("worker-0",)))]
