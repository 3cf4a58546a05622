"""Sampler and loader of PyTorch for scripts that start again: their state is valid for any number of ranks.

    order of an epoch   0 1 2 3 │ 4 5 6 7 │ 8 9 …      a function of seed and epoch, the same in all ranks
    two ranks           a b a b │ a b a b │ a b …      rank r has the rows at r, r + ranks, r + 2 · ranks, …

All ranks take a batch together, so the rows that the loop has got are a prefix of the order. The state is the length of
this prefix, and whoever loads it divides the rest. Loops of `edl.elastic` need none of it: their positions move with
the model.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.utils.data
from torch.utils.data import IterableDataset

from edl.errors import SemanticError
from edl.extensions.elastic.cursor import describe_position, read_position
from edl.extensions.elastic.rows import check_number, order
from edl.jobs.script_run import NamedRows


class DistributedSampler(torch.utils.data.Sampler[int]):
    """Rows of one rank, in the place of `torch.utils.data.DistributedSampler`.

    Ranks get as many rows each. If they cannot, `pad` repeats rows of the epoch's rest (at most one less than there are
    ranks), `drop_last` leaves as many out, and with `pad=False` some ranks have one row less. Rank and number of ranks
    come from the process group, else from the environment. An iteration yields the rest of the epoch once after
    `load_state_dict`, else all of it.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        *,
        pad: bool = True,
    ) -> None:
        self.rank, self.num_replicas = _place(rank, num_replicas)
        self.rows = NamedRows(
            check_number("the number of rows", dataset if isinstance(dataset, int) else len(dataset), 1),
            1,
            None,
            check_number("seed", seed, 0),
            bool(shuffle),
        )
        self.epoch = 0
        self._drop_last = drop_last
        self._pad = pad and not drop_last
        self._part: SamplerPart | None = None  # of the latest iteration
        self._loaded = 0  # rows done before the next iteration

    def __iter__(self) -> SamplerPart:
        self._part = SamplerPart(self, self._loaded)
        self._loaded = 0
        return self._part

    def __len__(self) -> int:
        """Return the number of this rank's rows in a whole epoch."""
        return self._count(self.rows.rows)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch. The present one goes on: what is loaded of it stays."""
        if check_number("epoch", epoch, 0) != self.epoch:
            self.epoch, self._loaded, self._part = epoch, 0, None

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the latest iteration. A loader with processes of its own is ahead of its loop, so take
        the state of the loader then.
        """
        return self.describe(self._loaded if self._part is None else self._part.done_rows)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on at a position, with any number of ranks. Raises SemanticError if it is of other rows.

        A position at the end of an earlier epoch leaves nothing to do.
        """
        epoch, done = read_position(state, self.rows)
        if epoch < self.epoch and done == self.rows.rows:
            return
        self.epoch, self._loaded, self._part = epoch, done, None

    @property
    def loaded_rows(self) -> int:
        """Number of the epoch's rows that are done before the next iteration."""
        return self._loaded

    def describe(self, done: int) -> dict[str, Any]:
        """Return the state after so many rows of the epoch."""
        return describe_position(self.rows, self.epoch, min(done, self.rows.rows))

    def rest(self, done: int) -> list[int]:
        """Return this rank's rows of the epoch after the first `done`."""
        left = order(self.rows, self.epoch)[done:]
        if not len(left):
            return []
        places = np.arange(self._count(len(left))) * self.num_replicas + self.rank
        taken: list[int] = left[places % len(left)].tolist()
        return taken

    def _count(self, rows: int) -> int:
        """Return this rank's number of so many rows."""
        if self._pad:
            return -(-rows // self.num_replicas)
        return (rows - (0 if self._drop_last else self.rank - self.num_replicas + 1)) // self.num_replicas


class SamplerPart(Iterator[int]):
    """Iteration over one rank's rest of an epoch. torchdata's StatefulDataLoader takes its state beside each batch."""

    def __init__(self, sampler: DistributedSampler, done: int) -> None:
        self._sampler = sampler
        self._begin(done)

    def _begin(self, done: int) -> None:
        self._rest, self._first, self._taken = self._sampler.rest(done), done, 0

    def __next__(self) -> int:
        if self._taken >= len(self._rest):
            raise StopIteration
        self._taken += 1
        return self._rest[self._taken - 1]

    @property
    def done_rows(self) -> int:
        """Number of the epoch's rows that all ranks have got, if each has got as many as this one."""
        return self._first + self._taken * self._sampler.num_replicas

    def state_dict(self) -> dict[str, Any]:
        return self._sampler.describe(self.done_rows)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on at the position. Raises as `DistributedSampler.load_state_dict`."""
        epoch, done = read_position(state, self._sampler.rows)
        if epoch == self._sampler.epoch:
            self._begin(done)


class DataLoader(torch.utils.data.DataLoader[Any]):
    """Batches of one rank, in the place of `torch.utils.data.DataLoader`, with a state.

    The rows of a dataset are divided by `sampler`, by default a `DistributedSampler` of the arguments. Of an
    `IterableDataset` all ranks read the same items, and each keeps its own: see `_RankItems`. `options` are further
    arguments of PyTorch's loader. The state counts the batches that the loop has got, not those read ahead, so take it
    after the step of a batch; it is the same in all ranks.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: DistributedSampler | None = None,
        *,
        num_replicas: int | None = None,
        rank: int | None = None,
        seed: int = 0,
        drop_last: bool = False,
        pad: bool = True,
        **options: Any,
    ) -> None:
        check_number("batch_size", batch_size, 1)
        if options.get("batch_sampler") is not None:
            raise SemanticError(
                "edl.elastic.data.DataLoader got a batch_sampler, and counts batches of batch_size rows itself",
                hint="give batch_size, and the sampler edl.elastic.data.DistributedSampler",
            )
        self._stream = isinstance(dataset, IterableDataset)
        rows: Any = dataset
        if self._stream:
            if shuffle or sampler is not None:
                raise SemanticError(
                    "an IterableDataset has an order of its own: it takes neither shuffle nor a sampler"
                )
            if options.get("persistent_workers"):
                raise SemanticError(
                    "persistent_workers would not learn the position in an IterableDataset",
                    hint="leave persistent_workers out",
                )
            rank, num_replicas = _place(rank, num_replicas)
            rows = _RankItems(dataset, batch_size, rank, num_replicas, drop_last=drop_last, pad=pad)
            self._rows, self._ranks = NamedRows(0, 1, None, shuffle=False), num_replicas
        else:
            sampler = sampler or DistributedSampler(
                dataset, num_replicas, rank, shuffle, seed, drop_last, pad=pad
            )
            if not isinstance(sampler, DistributedSampler):
                raise SemanticError(
                    f"the sampler is a {type(sampler).__qualname__}, whose rows depend on the number of ranks",
                    hint="give edl.elastic.data.DistributedSampler, with the same arguments as PyTorch's",
                )
            self._rows, self._ranks = sampler.rows, sampler.num_replicas
        self._epoch = self._done = 0
        self._ended = self._resumes = False
        super().__init__(rows, batch_size, sampler=sampler, drop_last=drop_last, **options)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch. The present one goes on: what is loaded of it stays."""
        if check_number("epoch", epoch, 0) != self._epoch:
            self._epoch, self._done, self._ended, self._resumes = epoch, 0, False, False
            if isinstance(self.sampler, DistributedSampler):
                self.sampler.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        """The present epoch, which the state has."""
        self._follow_sampler()
        return self._epoch

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the batches that the loop has got: numbers and truth values."""
        self._follow_sampler()
        return describe_position(self._rows, self._epoch, self._done, ended=self._ended)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on at a position, with any number of ranks and any batch size. Raises SemanticError if it is of other
        rows.
        """
        self._epoch, self._done = read_position(state, self._rows)
        self._ended, self._resumes = bool(state["ended"]), True
        if isinstance(self.sampler, DistributedSampler):
            self.sampler.set_epoch(self._epoch)

    def _follow_sampler(self) -> None:
        """Begin the epoch that the script has given to the sampler, as with PyTorch's."""
        if isinstance(self.sampler, DistributedSampler):
            self.set_epoch(self.sampler.epoch)

    def __iter__(self) -> Iterator[Any]:
        self._follow_sampler()
        loaded = self.sampler.loaded_rows if isinstance(self.sampler, DistributedSampler) else 0
        done, ended = (self._done, self._ended) if self._resumes else (loaded, False)
        self._done, self._ended, self._resumes = done, ended, False
        if ended:
            return
        if isinstance(self.sampler, DistributedSampler):
            self.sampler.load_state_dict(describe_position(self._rows, self._epoch, done))
            self.sampler.set_epoch(self._epoch)
        else:
            self.dataset.begin(self._epoch, done)
        for batch in super().__iter__():
            self._done += (self.batch_size or 1) * self._ranks
            if self._rows.rows:
                self._done = min(self._done, self._rows.rows)
            yield batch
        self._ended = True
        self._done = self._rows.rows or self._done


class _RankItems(IterableDataset[Any]):
    """Items of one rank of an `IterableDataset`, in batches of `batch_size` for each rank.

    Every process reads all items, in the same order. The last batch of all ranks may lack items. Then all ranks get as
    many of them: `pad` repeats some, and `drop_last` leaves the batch out; with `pad=False` some ranks have one less.
    """

    def __init__(
        self, dataset: Any, batch_size: int, rank: int, ranks: int, *, drop_last: bool, pad: bool
    ) -> None:
        self._dataset = dataset
        self._batch_size = batch_size
        self._rank = rank
        self._ranks = ranks
        self._drop_last = drop_last
        self._pad = pad
        self._first = 0  # items that are done

    def begin(self, epoch: int, done: int) -> None:
        """Let the next iteration begin after the first `done` items of an epoch."""
        self._first = done
        if hasattr(self._dataset, "set_epoch"):
            self._dataset.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        if worker is not None:  # a dataset that divides its items by this would lose most of them here
            torch.utils.data._utils.worker._worker_info = None
        size = self._batch_size * self._ranks
        items = self._skip_to_first()
        for batch in itertools.count():
            rows = list(itertools.islice(items, size))
            if len(rows) < size and self._drop_last:
                return
            if batch % workers == number:
                yield from self._own_items(rows)
            if len(rows) < size:
                return

    def _skip_to_first(self) -> Iterator[Any]:
        """Return the items that are not done. A dataset with `skip`, as in Hugging Face's `datasets`, skips itself."""
        if self._first and hasattr(self._dataset, "skip"):
            return iter(self._dataset.skip(self._first))
        return itertools.islice(self._dataset, self._first, None)

    def _own_items(self, rows: list[Any]) -> list[Any]:
        """Return this rank's items of a batch of all ranks."""
        part = rows[self._rank :: self._ranks]
        if self._pad and rows and len(part) < -(-len(rows) // self._ranks):
            part.append(rows[self._rank % len(rows)])
        return part


def _place(rank: int | None, ranks: int | None) -> tuple[int, int]:
    """Return the rank and the number of ranks. Raises SemanticError for impossible ones."""
    group = torch.distributed
    has_group = group.is_available() and group.is_initialized()
    if ranks is None:
        ranks = group.get_world_size() if has_group else int(os.environ.get("WORLD_SIZE", "1"))
    if rank is None:
        rank = group.get_rank() if has_group else int(os.environ.get("RANK", "0"))
    check_number("num_replicas", ranks, 1)
    if check_number("rank", rank, 0) >= ranks:
        raise SemanticError(f"rank is {rank}; expected a number below num_replicas, {ranks}")
    return rank, ranks
