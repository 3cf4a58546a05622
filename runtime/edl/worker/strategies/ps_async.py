"""Asynchronous training: every push is a step, and no worker waits for another.

    pull rows 1 ──┐   push 0, pull rows 2 ──┐   push 1, pull rows 3 ──┐
      compute 0 ──┴──────────── compute 1 ──┴──────────── compute 2 ──┴── …

While a minibatch is computed, the gradients of the previous one and the rows of the next one are in transit. So its
parameters lack this worker's last push, and all pushes that other workers made meanwhile. With local steps it is the
same for groups of minibatches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edl.checkpoints import CheckpointStore
from edl.embeddings.local_rows import LocalRows
from edl.embeddings.model_tables import Need, RowGradients
from edl.embeddings.table import Ids
from edl.frameworks.adapter import Floats, Minibatches
from edl.frameworks.exchange import StepGradients, StepStart
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.base import VoidError
from edl.worker.strategies.call_progress import CallProgress
from edl.worker.strategies.ps_base import ServerStrategy, name_rows, progress, start_step
from edl.worker.strategies.ps_model import (
    ModelPush,
    PullCall,
    PulledModel,
    PushCall,
    PushResult,
    ServerParameters,
)


class PushStrategy(ServerStrategy):
    """Strategy with one push in flight; a push is settled once it is answered."""

    measures_between_steps = _pins_rounds = True

    def __init__(self, parameters: ServerParameters, store: CheckpointStore) -> None:
        super().__init__(parameters, store)
        self._pulling: PullCall | None = None  # the first pull for a following minibatch
        self._pushing: PushCall | None = None
        self._sent = self._answered = 0

    def mark(self) -> int:
        return self._sent

    def is_durable(self, mark: int) -> bool:
        if mark > self._answered and self._pushing is not None and self._pushing.is_answered:
            with contextlib.suppress(VoidError):  # the caller knows which tasks are void
                self._settle()
        return mark <= self._answered

    def flush(self) -> None:
        self._settle()

    def _forget(self) -> None:
        self._pulling = self._pushing = None
        self._answered = self._sent

    def _pull_first(self, ids: Mapping[str, Ids], following: Mapping[str, Ids] | None) -> PulledModel:
        """Pull the parameters of the first minibatch of a call, and start to pull the following one's."""
        pulling = self._parameters.pull(ids)
        pulled = pulling.result()
        self._pulling = self._parameters.pull(following) if following is not None else None
        self._settle()
        return pulled

    def _push(self, push: ModelPush, ids: Mapping[str, Ids] | None) -> PulledModel | None:
        """Start a push with a pull of the rows for the minibatch after the following one. Return the parameters of the
        following one, which came with the answer to the push before, or None if there is none.
        """
        pulling, self._pulling = self._pulling, None
        pulled = pulling.result() if pulling is not None else self._take_pulled()
        self._pushing = self._parameters.push(push, ids)
        self._sent += 1
        return pulled

    def _settle(self) -> PushResult | None:
        """Wait for the push in flight and return its answer, or None if there is none."""
        if self._pushing is None:
            return None
        result = self._pushing.result()
        self._pushing = None
        self._answered = self._sent
        self.step = max(self.step, result.step)
        return result

    def _take_pulled(self) -> PulledModel | None:
        """Return what was pulled with the last push. Raises VoidError if its lease is void."""
        result = self._settle()
        if result is not None and not result.counts:
            raise VoidError
        return result.pulled if result is not None else None


class Asynchronous(PushStrategy):
    """Strategy that pushes a minibatch once the push before it is answered: with the answer come the parameters of the
    following minibatch.
    """

    _call: CallProgress
    _pulled: PulledModel  # parameters of the present minibatch
    _now: Need
    _following: Need | None

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        self._ready()
        self._call = CallProgress(self._adapter.tables, rows, done, rates)
        if not self._call.is_complete:
            self._adapter.exchange_steps(rows, self)
        return self._call.losses

    def begin(self, number: int) -> StepStart:
        now, following = self._call.need(number), self._call.need(number + 1)
        assert now is not None  # noqa: S101 - a call has a minibatch
        pulled = self._pull_first(now.ids, _ids(following))
        self._pulled, self._now, self._following = pulled, now, following
        return start_step(pulled, now)

    def end(self, gradients: StepGradients) -> StepStart | None:
        call, following = self._call, self._following
        rows, done = call.count_rows(), call.add(gradients.loss)
        push = ModelPush(
            gradients.dense,
            name_rows(self._now, gradients.rows),
            self._rate(self._pulled.step, call.rates),
            rows,
            progress(done),
            self._pulled.versions,
            self._changed_state(gradients.buffers),
        )
        self._following = call.need(call.number + 1)
        pulled = self._push(push, _ids(self._following))
        if following is None or pulled is None:
            return None
        self._pulled, self._now = pulled, following
        return start_step(pulled, following)


def _ids(need: Need | None) -> dict[str, Ids] | None:
    return None if need is None else need.ids


class _Needs(NamedTuple):
    """Distinct ids that some minibatches read, by table, and the needs of each minibatch among them."""

    ids: dict[str, Ids]
    needs: Sequence[Need]


@dataclass
class _StepGroup:
    """Minibatches of `LocalSteps` between a pull and a push, and the sums of their gradients, rates and rows.

    `pushes` is the number of pushes of all workers before them, as far as known.
    """

    pulled: PulledModel
    pushes: int
    needs: Sequence[Need]
    number: int = 0  # of the present minibatch
    dense: Floats | None = None
    rate: float = 0.0
    rows: int = 0

    @property
    def need(self) -> Need:
        """Need of the present minibatch."""
        return self.needs[self.number]

    def add(self, gradients: StepGradients, rate: float, rows: int) -> None:
        self.dense = gradients.dense if self.dense is None else self.dense + gradients.dense
        self.rate += rate
        self.rows += rows


class LocalSteps(PushStrategy):
    """Strategy that takes `group` steps on local copies for each pull and push.

    What the minibatches need is pulled once, the job's optimizer takes a step with each on local copies, and their
    gradients are pushed as one: their sum over the root of k, with the sum of their rates over the root of k. For plain
    SGD that equals all of their steps. Optimizers that use no more than the direction of a gradient take a step that is
    longer by the root of k, as with a minibatch k times as large (Krizhevsky 2014, Malladi et al. 2022). With k = 1 it
    is a plain push.

    The parameters of a group are pulled while the one before is computed, so the local steps of that one are added to
    them (Zhou et al. 2021, delayed averaging).
    """

    _call: CallProgress
    _group: _StepGroup
    _following: _Needs | None

    def __init__(self, parameters: ServerParameters, store: CheckpointStore, group: int) -> None:
        super().__init__(parameters, store)
        self.group = group
        self._local = LocalRows(parameters.definition.optimizer)

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        self._ready()
        self._call = CallProgress(self._adapter.tables, rows, done, rates)
        if not self._call.is_complete:
            self._adapter.exchange_steps(rows, self)
        return self._call.losses

    def begin(self, number: int) -> StepStart:
        now, following = self._needs(number), self._needs(number + self.group)
        assert now is not None  # noqa: S101 - a call has a minibatch
        pulled = self._pull_first(now.ids, following.ids if following else None)
        self._following = following
        return self._start_group(pulled, now, adds_own=False)

    def end(self, gradients: StepGradients) -> StepStart | None:
        call, group = self._call, self._group
        step = group.pushes * self.group + group.number  # a push counts as `group` steps in the schedule
        rate = self._rate(step, call.rates)
        group.add(gradients, rate, call.count_rows())
        self._local.add(group.need.ids, gradients.rows)
        call.add(gradients.loss)
        is_last = group.number + 1 == len(group.needs)
        following = self._following
        pulled = self._push_group(gradients.buffers) if is_last else None
        if is_last and (following is None or pulled is None):  # no forward pass follows
            return None
        self._local.step(group.need.ids, gradients.rows, rate)
        if following is not None and pulled is not None:
            start = self._start_group(pulled, following, adds_own=True)
        else:
            group.number += 1
            start = StepStart(None, self._local.fetch(group.need))
        return start._replace(steps_before=True, rate=None if call.rates is None else rate)

    def _needs(self, number: int) -> _Needs | None:
        """Return what the group that begins with this minibatch reads, or None behind the last one."""
        ids, needs = self._call.need_together(number, self.group)
        return _Needs(ids, needs) if needs else None

    def _push_group(self, buffers: Floats) -> PulledModel | None:
        """Push the gradients of the group; return the parameters of the following one, if there is one."""
        group = self._group
        root = np.float32(len(group.needs) ** -0.5)
        assert group.dense is not None  # noqa: S101 - it has a minibatch
        sums = self._local.sums().items()
        push = ModelPush(
            group.dense * root,
            {name: RowGradients(self._local.ids[name], total * root) for name, total in sums},
            group.rate * float(root),
            group.rows,
            progress(self._call.done),
            group.pulled.versions,
            self._changed_state(buffers),
        )
        self._following = None if self._following is None else self._needs(self._call.number + self.group)
        return self._push(push, self._following.ids if self._following else None)

    def _start_group(self, pulled: PulledModel, needs: _Needs, *, adds_own: bool) -> StepStart:
        self._learn(pulled)
        pushes = pulled.step + adds_own  # the push of the group before is under way
        self._local.replace(needs.ids, pulled.blocks, adds_own=adds_own)
        self._group = _StepGroup(pulled, pushes, needs.needs)
        return StepStart(pulled.dense, self._local.fetch(needs.needs[0]), adds_own=adds_own)
