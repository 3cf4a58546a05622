"""Training a model that all members of a ring hold: what the ring's log has each of them do with it."""

from __future__ import annotations

from typing import cast

from edl.checkpoints import CheckpointStore
from edl.nn import Minibatches
from edl.worker.allreduce import AllReduce
from edl.worker.checkpoints import keep_only, read_cut
from edl.worker.training import Trainer

EXAMPLES = 2  # rows of the step that has everything compiled, where there are so many


class RingParameters:
    """The parameters of a trainer whose strategy is `AllReduce`.

    store: of the cuts. resume: the one that this generation of the job goes on from; empty: it begins with what the
    trainer has.
    """

    def __init__(self, trainer: Trainer, store: CheckpointStore, resume: str) -> None:
        self._trainer = trainer
        self._strategy = cast(AllReduce, trainer.worker.strategy)
        self._store = store
        self._resume = resume

    def warm_up(self) -> None:
        """Compile what a step needs: the others of a ring do not wait for that."""
        blocks = self._trainer.worker.blocks
        examples = blocks.read(0, min(EXAMPLES, blocks.reader.rows), "train").arrays
        self._strategy.warm_up(Minibatches(examples.features, examples.labels, EXAMPLES, examples.weights))

    def begin(self) -> int:
        keep_only(self._store, self._resume)
        if not self._resume:
            return 0
        cut = read_cut(self._store.fetch(self._resume))
        self._trainer.resume(cut)
        return cut.position.unconcluded

    def keep(self, epoch: int) -> None:
        self._strategy.keep(epoch)

    def keep_best(self, epoch: int) -> None:
        self._strategy.keep_best(epoch)
