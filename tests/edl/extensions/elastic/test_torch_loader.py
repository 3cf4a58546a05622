"""Sampler and loader with a state: which rows all ranks get, whatever number of ranks goes on."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset, get_worker_info

from edl.errors import SemanticError
from edl.extensions import elastic
from edl.extensions.elastic.torch_loader import DataLoader, DistributedSampler

SCRIPT = Path(__file__).with_name("loader_script.py")
ELASTIC_SCRIPT = Path(__file__).with_name("checkpoint_script.py")
Stretch = tuple[int, int, int]  # ranks, steps that they take, batch size
Make = Callable[[int, int, int], Any]


class Numbers(Dataset[int]):
    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> int:
        return row


class Lines(IterableDataset[int]):
    """A stream that divides its items among the processes of a loader, as many of users do."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        first, every = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        return iter(range(first, self.rows, every))


class Skipping(Lines):
    skipped = 0

    def skip(self, rows: int) -> Iterator[int]:
        Skipping.skipped += rows
        return itertools.islice(self, rows, None)


def take(make: Make, stretches: list[Stretch], state: Any = None) -> tuple[list[int], dict[str, Any]]:
    """Return the rows of all ranks, and the last state. `make` gets rank, ranks and batch size."""
    seen: list[int] = []
    for ranks, steps, size in stretches:
        loaders = [make(rank, ranks, size) for rank in range(ranks)]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        batches = [iter(loader) for loader in loaders]
        for _ in range(steps):
            step = [next(each, None) for each in batches]
            assert len({batch is None for batch in step}) == 1, "ranks take the same number of steps"
            if step[0] is None:
                break
            seen += [row for batch in step for row in batch.tolist()]
        states = [loader.state_dict() for loader in loaders]
        assert all(each == states[0] for each in states)
        state = json.loads(json.dumps(states[0]))
    return seen, state


def draw(seed: int) -> tuple[int, list[Stretch]]:
    """Return a number of rows, and stretches of which the last one ends the epoch."""
    rows, last, *numbers = np.random.default_rng(seed).integers(1, (60, 5, *(5, 6, 5) * 4)).tolist()
    stretches = [(numbers[at], numbers[at + 1] - 1, numbers[at + 2]) for at in range(0, 12, 3)]
    return rows, [*stretches, (last, 99, 2)]


@pytest.mark.parametrize("kind", [Numbers, Lines])
def test_no_row_is_lost_and_padding_alone_repeats_any(kind: type) -> None:
    for seed in range(100):
        rows, stretches = draw(seed)
        shuffles = {"shuffle": True} if kind is Numbers else {}
        seen, state = take(
            lambda rank, ranks, size, rows=rows, more=shuffles: DataLoader(
                kind(rows), size, num_replicas=ranks, rank=rank, **more
            ),
            stretches,
        )
        assert set(seen) == {*range(rows)}
        assert len(seen) - rows < max(ranks for ranks, _, _ in stretches)
        assert state["ended"]


@pytest.mark.parametrize("kind", [Numbers, Lines])
def test_drop_last_repeats_nothing_and_drops_less_than_a_step(kind: type) -> None:
    for seed in range(100):
        rows, stretches = draw(seed)
        seen, _ = take(
            lambda rank, ranks, size, rows=rows: DataLoader(
                kind(rows), size, num_replicas=ranks, rank=rank, drop_last=True
            ),
            stretches,
        )
        assert max(Counter(seen).values(), default=1) == 1
        assert rows - len(seen) < max(ranks * size for ranks, _, size in stretches)


def test_an_epoch_and_a_position_may_be_given_to_the_sampler_as_with_pytorch() -> None:
    def make() -> tuple[DistributedSampler, DataLoader]:
        sampler = DistributedSampler(Numbers(9), 1, 0)
        return sampler, DataLoader(Numbers(9), 3, sampler=sampler)

    def read(loader: DataLoader) -> list[int]:
        return [row for batch in loader for row in batch.tolist()]

    sampler, loader = make()
    orders = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert loader.epoch == epoch
        orders.append(read(loader))
    assert orders[0] != orders[1]

    sampler.set_epoch(2)
    batches = iter(loader)
    first = [*next(batches).tolist(), *next(batches).tolist()]
    assert loader.state_dict() == sampler.state_dict() | {"ended": False}
    other, resumed = make()
    other.load_state_dict(sampler.state_dict())
    assert first + read(resumed) == [*sampler]
    assert resumed.state_dict()["ended"]


def test_without_padding_each_row_is_given_once() -> None:
    for ranks in range(1, 5):
        parts = [[*DistributedSampler(10, ranks, rank, pad=False)] for rank in range(ranks)]
        assert sorted(itertools.chain(*parts)) == [*range(10)]
        assert [len(part) for part in parts] == [
            len(DistributedSampler(10, ranks, rank, pad=False)) for rank in range(ranks)
        ]


@pytest.mark.parametrize("kind", [Numbers, Lines])
def test_rows_read_ahead_by_processes_are_not_counted(kind: type) -> None:
    def make(rank: int, ranks: int, size: int) -> DataLoader:
        return DataLoader(kind(50), size, num_replicas=ranks, rank=rank, num_workers=2)

    first, state = take(make, [(2, 3, 4)])
    assert (len(first), state["done"]) == (24, 24)
    rest, _ = take(make, [(1, 99, 5)], state)
    assert sorted(first + rest) == [*range(50)]


def test_a_stream_that_can_skip_is_not_read_from_its_beginning() -> None:
    loader = DataLoader(Skipping(20), 4)
    loader.load_state_dict(DataLoader(Skipping(20)).state_dict() | {"done": 12})
    assert [batch.tolist() for batch in loader] == [[12, 13, 14, 15], [16, 17, 18, 19]]
    assert Skipping.skipped == 12


def test_a_second_resume_in_an_epoch_goes_on_from_the_first_one() -> None:
    """As of KempnerForge#57, where the count began anew with each resume."""

    def make(rank: int, ranks: int, size: int) -> DataLoader:
        return DataLoader(Numbers(30), size, num_replicas=ranks, rank=rank)

    _, state = take(make, [(1, 3, 2), (1, 1, 2), (1, 1, 2)])
    assert state["done"] == 10


def test_a_loader_begins_each_epoch_whole_after_the_one_that_was_resumed() -> None:
    loader = DataLoader(Numbers(10), 2, shuffle=True)
    loader.load_state_dict(loader.state_dict() | {"epoch": 1, "done": 6})
    epochs = []
    for epoch in range(loader.epoch, 3):
        loader.set_epoch(epoch)
        epochs.append([row for batch in loader for row in batch.tolist()])
    assert [len(rows) for rows in epochs] == [4, 10]
    assert epochs[1] != [*DistributedSampler(10, 1, 0)], "each epoch has an order of its own"
    assert len([*loader]) == 5, "an epoch may be iterated again, as with PyTorch's sampler"


def test_a_state_of_an_epochs_end_leaves_nothing_of_it() -> None:
    loader = DataLoader(Numbers(6), 2)
    assert len([*loader]) == 3
    again = DataLoader(Numbers(6), 2)
    again.load_state_dict(loader.state_dict())
    assert [*again] == []
    again.set_epoch(1)
    assert len([*again]) == 3


class BatchesOfTorchdata:
    """Torchdata's StatefulDataLoader asks for the states of the sampler and of its iterator with each batch."""

    def __init__(self, sampler: DistributedSampler, size: int) -> None:
        self.sampler, self.size = sampler, size
        self.part = iter(sampler)

    def next(self) -> tuple[list[int], dict[str, Any]]:
        batch = [*itertools.islice(self.part, self.size)]
        return batch, {"sampler": self.sampler.state_dict(), "iterator": self.part.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        self.sampler.load_state_dict(state["sampler"])
        self.part = iter(self.sampler)
        self.part.load_state_dict(state["iterator"])


def test_the_sampler_goes_on_in_a_loader_that_keeps_its_state() -> None:
    seen: list[int] = []
    state: Any = None
    for ranks, steps in ((3, 2), (2, 2), (1, 30)):
        loaders = [
            BatchesOfTorchdata(DistributedSampler(40, ranks, rank, seed=4), 3) for rank in range(ranks)
        ]
        for loader in loaders:
            if state is not None:
                loader.load(state)
        for _ in range(steps):
            for loader in loaders:
                batch, state = loader.next()
                seen += batch
    assert sorted(seen) == [*range(40)]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("processes", [0, 2])
def test_torchdata_goes_on_with_another_number_of_ranks(processes: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def make(rank: int, ranks: int, size: int) -> Any:
        sampler = DistributedSampler(50, ranks, rank, seed=3)
        return stateful(Numbers(50), size, sampler=sampler, num_workers=processes)

    def rows(stretches: list[Stretch], state: Any) -> tuple[list[int], Any]:
        seen: list[int] = []
        for ranks, steps, size in stretches:
            loaders = [make(rank, ranks, size) for rank in range(ranks)]
            for loader in loaders:
                if state is not None:
                    loader.load_state_dict(state)
            for loader in loaders:
                seen += [row for batch in itertools.islice(loader, steps) for row in batch.tolist()]
            state = loaders[0].state_dict()
        return seen, state

    seen, _ = rows([(3, 3, 2), (2, 2, 4), (1, 99, 5)], None)
    assert sorted(seen) == [*range(50)]


def test_the_state_of_a_loader_is_one_of_an_elastic_loop_too() -> None:
    data = TensorDataset(torch.arange(10))
    loader = DataLoader(data, 4, shuffle=True)
    first = next(iter(loader))[0].tolist()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = elastic.sampler(len(data), batch_size=3, epochs=2)
    elastic.checkpoint(model, optimizer)
    sampler.load_state_dict(loader.state_dict())
    seen: list[list[int]] = []

    @elastic.run
    def train() -> None:
        for _ in sampler.epochs():
            seen.append([])
            for rows in sampler:
                model(torch.ones(len(rows), 1)).mean().backward()
                optimizer.step()
                seen[-1] += rows

    train()
    assert sorted(first + seen[0]) == sorted(seen[1]) == [*range(10)]
    assert sampler.state_dict() == {**loader.state_dict(), "epoch": 2, "done": 0, "ended": False}
    with pytest.raises(SemanticError, match="after the loop has begun"):
        sampler.load_state_dict(loader.state_dict())


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: DataLoader(Numbers(4), 0), "batch_size is 0"),
        (lambda: DataLoader(Numbers(4), batch_sampler=[[0]]), "batch_sampler"),
        (lambda: DataLoader(Lines(4), shuffle=True), "order of its own"),
        (lambda: DataLoader(Lines(4), num_workers=1, persistent_workers=True), "persistent_workers"),
        (lambda: DataLoader(Numbers(4), sampler=[0]), "a list, whose rows"),
        (lambda: DistributedSampler(4, 2, 2), "rank is 2; expected a number below num_replicas, 2"),
        (lambda: DistributedSampler(0), "number of rows is 0"),
        (lambda: DistributedSampler(4).load_state_dict({"yielded": 3}), "result of state_dict"),
        (
            lambda: DistributedSampler(4).load_state_dict(DistributedSampler(5).state_dict()),
            "rows = 5, and here it is 4",
        ),
        (
            lambda: DataLoader(Numbers(4)).load_state_dict(DataLoader(Numbers(4), seed=2).state_dict()),
            "seed = 2, and here it is 0",
        ),
        (
            lambda: DistributedSampler(4).load_state_dict(DistributedSampler(4).state_dict() | {"done": "x"}),
            "expected whole numbers",
        ),
    ],
)
def test_a_wrong_use_is_an_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        make()


@pytest.mark.soak
def test_a_script_for_torchrun_goes_on_with_fewer_and_with_more_workers(tmp_path: Path) -> None:
    for workers, last, code in ((3, 4, 1), (2, 9, 1), (4, 99, 0)):
        command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", str(workers)]
        command += ["--max_restarts", "0", str(SCRIPT), str(tmp_path), str(last)]
        assert subprocess.run(command, capture_output=True, timeout=120).returncode == code
    counts = [Counter[int](), Counter[int]()]
    for line in (tmp_path / "rows").read_text().splitlines():
        epoch, rows = json.loads(line)
        counts[epoch].update(rows)
    pages, images = range(40), range(100, 137)
    for epoch in counts:
        assert set(epoch) == {*pages, *images}
        assert epoch.total() - len(epoch) < 4  # fewer than workers: the padding of the last step


@pytest.mark.soak
@pytest.mark.parametrize("fail_at", [5, 17])  # in the first epoch, and in a later one
def test_an_elastic_loop_goes_on_from_its_own_checkpoint_if_all_workers_are_lost(
    tmp_path: Path, fail_at: int
) -> None:
    command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", "2"]
    subprocess.run(
        [*command, str(ELASTIC_SCRIPT), str(tmp_path), str(fail_at)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    lines = (json.loads(line) for file in tmp_path.glob("rows-*") for line in file.read_text().splitlines())
    counts = Counter((epoch, row) for epoch, rows in lines for row in rows)
    assert counts == {(epoch, row): 1 for epoch in range(3) for row in range(100)}
