"""Row tables alone: gather and push of 40,000 rows of 16 numbers, against a dict and against NumPy.

The table, the dict and the arrays hold a million rows. The ids of a minibatch are distinct, as a worker sends
them. The dict maps an id to its row, like a parameter server written in Python. NumPy has positions instead of
ids, so it is not a growing table: it shows the cost of fancy indexing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.table import Row
from edl.embeddings import Optimizer, RowTable, TableSpec
from edl.spec import RowLimits

Array = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

TABLE, MINIBATCH, DIM, RATE, EPSILON = 1_000_000, 40_000, 16, 0.01, 1e-7
OPTIMIZERS = {
    "Adagrad": Optimizer("keras", "adagrad", {"initial_accumulator_value": 0.1, "epsilon": EPSILON}),
    "Adam": Optimizer("keras", "adam", {"beta_1": 0.9, "beta_2": 0.999, "epsilon": EPSILON, "amsgrad": 0.0}),
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    rng = np.random.default_rng(0)
    minibatches = [rng.choice(TABLE, MINIBATCH, replace=False) for _ in range(8)]
    gradients = rng.normal(size=(MINIBATCH, DIM)).astype(np.float32)
    start = RowTable(TableSpec("t", DIM), 0).read(np.arange(TABLE))
    lines: list[Row] = []
    for name, optimizer in OPTIMIZERS.items():
        table = RowTable(TableSpec("t", DIM), 0, optimizer)
        table.gather(np.arange(TABLE))
        arrays, rows_of = _Arrays(start, name), _Dict(start, name)
        if name == "Adagrad":  # a gather does not depend on the optimizer
            lines += _compared("gather", rounds, minibatches, table.gather, rows_of.gather, arrays.gather)
        lines += _compared(
            f"push, {name}",
            rounds,
            minibatches,
            partial(table.update, gradients=gradients, rate=RATE, distinct=True),
            partial(rows_of.push, gradients=gradients),
            partial(arrays.push, gradients=gradients),
        )
    return lines + _limited(rounds, gradients)


def _limited(rounds: int, gradients: Array) -> list[Row]:
    """Compare processor times of pushes to tables with limits and without: of known ids, and of 1 % new ones."""
    rng, fresh = np.random.default_rng(1), TABLE
    limits = {
        "no limits": RowLimits(),
        "ids counted": RowLimits(2),
        "rows bounded": RowLimits(0, TABLE, 1_000),
    }
    tables = {
        name: RowTable(TableSpec("t", DIM), 0, OPTIMIZERS["Adam"], each) for name, each in limits.items()
    }
    for table in tables.values():
        table.put(np.arange(TABLE), table.read(np.arange(TABLE)))
    lines: list[Row] = []
    for kind, new in (("known ids", 0), ("1 % new ids", MINIBATCH // 100)):
        seconds: dict[str, list[float]] = {name: [] for name in tables}
        for _ in range(8 * max(rounds, 3)):
            ids = rng.choice(TABLE, MINIBATCH, replace=False)
            ids[:new], fresh = np.arange(fresh, fresh + new), fresh + new
            for name in rng.permutation([*tables]):
                began = time.thread_time()
                tables[name].update(ids, gradients, RATE, distinct=True)
                seconds[name].append(time.thread_time() - began)
        base = seconds["no limits"]
        for name, found in seconds.items():
            ratios = [] if found is base else [np.median(base) / np.median(found)]
            lines.append(
                Row(f"rows: push, {kind}, {name}", f"{1000 * np.median(found):.1f} ms of a core", ratios)
            )
    return lines


def _compared(
    name: str,
    rounds: int,
    minibatches: Sequence[Ids],
    ours: Callable[[Ids], object],
    by_dict: Callable[[Ids], object],
    by_numpy: Callable[[Ids], object],
) -> list[Row]:
    seconds = [[_seconds(do, minibatches) for do in (ours, by_dict, by_numpy)] for _ in range(max(rounds, 3))]
    rates = [MINIBATCH / np.median(each) for each in zip(*seconds, strict=True)]
    rest = [
        Row(
            f"… against {peer}",
            f"{rates[place]:,.0f} rows/s",
            [one[place] / one[0] for one in seconds],
            least=aim,
        )
        for place, peer, aim in ((1, "a dict of rows", 4.0), (2, "NumPy by position", None))
    ]
    return [Row(f"rows: {name}", f"{rates[0]:,.0f} rows/s"), *rest]


def _seconds(do: Callable[[Ids], object], minibatches: Sequence[Ids]) -> float:
    """Return the median seconds of a minibatch."""
    found = []
    for ids in minibatches:
        began = time.perf_counter()
        do(ids)
        found.append(time.perf_counter() - began)
    return float(np.median(found))


class _Steps:
    """The two optimizers over whole blocks: (rows, slots, gradients) -> updated in place."""

    def __init__(self, optimizer: str) -> None:
        self.slots = 1 if optimizer == "Adagrad" else 2
        self.step = 0
        self.move = self._adagrad if optimizer == "Adagrad" else self._adam

    def _adagrad(self, rows: Array, slots: list[Array], gradients: Array) -> None:
        slots[0] += gradients * gradients
        rows -= RATE * gradients / np.sqrt(slots[0] + EPSILON)

    def _adam(self, rows: Array, slots: list[Array], gradients: Array) -> None:
        self.step += 1
        rate = RATE * np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        slots[0] += (gradients - slots[0]) * np.float32(0.1)
        slots[1] += (gradients * gradients - slots[1]) * np.float32(0.001)
        rows -= np.float32(rate) * slots[0] / (np.sqrt(slots[1]) + EPSILON)


class _Arrays(_Steps):
    """Rows and slots as whole arrays, read and written by position."""

    def __init__(self, start: Array, optimizer: str) -> None:
        super().__init__(optimizer)
        self.rows = start.copy()
        self.state = [np.full_like(start, 0.1) for _ in range(self.slots)]

    def gather(self, ids: Ids) -> Array:
        return self.rows[ids]

    def push(self, ids: Ids, gradients: Array) -> None:
        rows, slots = self.rows[ids], [slot[ids] for slot in self.state]
        self.move(rows, slots, gradients)
        self.rows[ids] = rows
        for slot, moved in zip(self.state, slots, strict=True):
            slot[ids] = moved


class _Dict(_Steps):
    """Dict from id to row, and one for each slot; a push stacks, updates and stores the rows."""

    def __init__(self, start: Array, optimizer: str) -> None:
        super().__init__(optimizer)
        self.rows = dict(enumerate(start.copy()))
        self.state = [dict(enumerate(np.full_like(start, 0.1))) for _ in range(self.slots)]

    def gather(self, ids: Ids) -> Array:
        return np.stack([self.rows[one] for one in ids.tolist()])

    def push(self, ids: Ids, gradients: Array) -> None:
        names = ids.tolist()
        rows = np.stack([self.rows[one] for one in names])
        slots = [np.stack([slot[one] for one in names]) for slot in self.state]
        self.move(rows, slots, gradients)
        self.rows.update(zip(names, rows, strict=True))
        for slot, moved in zip(self.state, slots, strict=True):
            slot.update(zip(names, moved, strict=True))
