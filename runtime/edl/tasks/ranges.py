"""Division of rows into tasks, and their order in an epoch. All of it is a function of the job alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edl.spec import TREES, Explanation, JobSpec, Training

LEAST_ROWS = 8192  # of a block that `feed` is called on, where there are as many
STREAMED_ROWS = 65_536  # of a task that is streamed in blocks
SAMPLES_OF_PASS = 32  # of expected gradients
ENOUGH_TASKS = 4096  # some for each of as many workers as a job may have


def generator(*seeds: int) -> np.random.Generator:
    """Return a random generator that is a function of `seeds` alone, in every process."""
    return np.random.default_rng([seed % 2**64 for seed in seeds])


def task_rows(batch_size: int, minibatches: int = 0) -> int:
    """Return the rows of a training task: `minibatches`, or as many as `LEAST_ROWS` need."""
    return (minibatches or -(-LEAST_ROWS // batch_size)) * batch_size


def explained_rows(spec: JobSpec) -> int:
    """Return the rows of a block to explain.

    A forward pass takes all stations of a walk at once, so a block has fewer rows if walks are many; a pass of expected
    gradients takes some samples of each row. Cancelling or preempting a worker waits for one block.
    """
    explanation = spec.explanation or Explanation()
    if explanation.method:
        return max(1, spec.batch_size // SAMPLES_OF_PASS)
    samples = explanation.samples
    stations = max(1, len(spec.columns) - 1)
    return max(1, spec.batch_size // (stations * -(-samples // Explanation().samples)))


def streamed_rows(spec: JobSpec, rows: int) -> int:
    """Return the rows of an evaluation or prediction task.

    Explaining a row of a network takes hundreds of predictions: such a task is one block, or as many as keep the number
    of tasks small.
    """
    if spec.kind != "explain" or spec.framework in TREES:
        return STREAMED_ROWS
    block = explained_rows(spec)
    return min(STREAMED_ROWS, -(-rows // (block * ENOUGH_TASKS)) * block or block)


def partition(start: int, end: int, rows: int) -> list[tuple[int, int]]:
    """Split [start, end) into ranges of `rows`; the last may be shorter."""
    return [(first, min(first + rows, end)) for first in range(start, end, rows)]


@dataclass(frozen=True)
class Ranges:
    """Lazy split of [start, end) into ranges of `rows`, taken in `order`.

    `order` are the positions of the ranges, or None for their own order. `last_rows` limits the last range taken, if a
    limit of steps falls into it.
    """

    start: int
    end: int
    rows: int
    order: npt.NDArray[np.int64] | None = None
    last_rows: int = 0

    def __len__(self) -> int:
        return len(self.order) if self.order is not None else max(1, -(-(self.end - self.start) // self.rows))

    def __getitem__(self, position: int) -> tuple[int, int]:
        index = position if self.order is None else int(self.order[position])
        first = self.start + index * self.rows
        last = min(first + self.rows, self.end)
        if self.last_rows and position == len(self) - 1:
            last = min(last, first + self.last_rows)
        return first, last


def epoch_ranges(training: Training, rows: int, epoch: int) -> Ranges:
    """Return the ranges of an epoch, shuffled by (seed, epoch), up to the limit of steps."""
    size = task_rows(training.batch_size, training.minibatches_per_task)
    if not (training.shuffle or training.max_steps):
        return Ranges(0, rows, size)
    count = max(1, -(-rows // size))
    order = generator(training.seed, epoch).permutation(count) if training.shuffle else np.arange(count)
    if not training.max_steps:
        return Ranges(0, rows, size, order)
    steps = np.full(count, size // training.batch_size)
    steps[order == count - 1] = -(-(rows - (count - 1) * size) // training.batch_size)
    before = np.cumsum(steps) - steps  # steps of this epoch before each of its ranges
    left = training.max_steps - (epoch - 1) * epoch_steps(training, rows)  # earlier epochs were whole
    kept = int((before < left).sum())
    last_steps = min(left - int(before[kept - 1]), int(steps[kept - 1])) if kept else 0
    return Ranges(0, rows, size, order[:kept], last_steps * training.batch_size)


def epoch_steps(training: Training, rows: int) -> int:
    """Optimizer steps of an epoch that no limit cuts short."""
    return -(-rows // training.batch_size)
