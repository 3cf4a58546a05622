"""Operations of the task log on a model that all members of an all-reduce group hold."""

from __future__ import annotations

from typing import cast

from edl.checkpoints import CheckpointStore
from edl.checkpoints.trainer import checkpoint_to_resume
from edl.frameworks import Minibatches
from edl.worker.strategies.allreduce.member import GroupMember
from edl.worker.trainer import Trainer

EXAMPLES = 2  # rows of the step that triggers compilation


class GroupParameters:
    """Parameters of a trainer with a `GroupMember` as its strategy.

    `store` has the checkpoints. `resume` is the one that this generation of the job starts from, "" to keep the
    trainer's initial weights.
    """

    def __init__(self, trainer: Trainer, store: CheckpointStore, resume: str) -> None:
        self._trainer = trainer
        self._strategy = cast(GroupMember, trainer.worker.strategy)
        self._store = store
        self._resume = resume

    def warm_up(self) -> None:
        """Compile the training step before joining, so that the group does not wait for it."""
        blocks = self._trainer.worker.blocks
        examples = blocks.read(0, min(EXAMPLES, blocks.reader.rows), "train").arrays
        self._strategy.warm_up(Minibatches(examples.features, examples.labels, EXAMPLES, examples.weights))

    def begin(self) -> int:
        checkpoint = checkpoint_to_resume(self._store, self._resume)
        if checkpoint is None:
            return 0
        self._trainer.resume(checkpoint)
        return checkpoint.position.unconcluded

    def keep(self, epoch: int) -> None:
        self._strategy.keep(epoch)

    def postpone(self, epoch: int) -> None:
        self._strategy.postpone(epoch)

    def keep_best(self, best: int, epoch: int) -> None:
        self._strategy.keep_best(best, epoch)
