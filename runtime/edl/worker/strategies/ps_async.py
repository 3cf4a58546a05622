"""Asynchronous training: every push is a step, and no worker waits for another.

    pull rows 1 ──┐   push 0, pull rows 2 ──┐   push 1, pull rows 3 ──┐
      compute 0 ──┴──────────── compute 1 ──┴──────────── compute 2 ──┴── …

While a minibatch is computed, the gradients of the previous one and the rows of the next one are in transit. So its
parameters lack this worker's last push, and all pushes that other workers made meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from edl.worker.strategies.ps_base import CallProgress, ServerStrategy, name_rows, progress, start_step
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

    def __init__(self, parameters: ServerParameters, store: CheckpointStore) -> None:
        super().__init__(parameters, store)
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
        self._pushing = None
        self._answered = self._sent

    def _push(self, push: ModelPush, following: Mapping[str, Ids] | None) -> PushCall:
        """Start a push, with the pull of these rows for a following minibatch. The previous push must be answered."""
        self._pushing = self._parameters.push(push, following)
        self._sent += 1
        return self._pushing

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
    _pulling: PullCall | None  # first pull for a following minibatch

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        self._ready()
        self._call = CallProgress(self._adapter.tables, rows, done, rates)
        self._adapter.exchange_steps(rows, self)
        return self._call.losses

    def begin(self, number: int) -> StepStart:
        now, self._following = self._call.need(number), self._call.need(number + 1)
        assert now is not None  # noqa: S101 - a call has a minibatch
        pulling = self._parameters.pull(now.ids)
        self._pulled, self._now = pulling.result(), now
        self._pulling = self._parameters.pull(self._following.ids) if self._following else None
        self._settle()
        return start_step(self._pulled, self._now)

    def end(self, gradients: StepGradients) -> StepStart | None:
        call, pulled, following = self._call, self._pulled, self._following
        rows, done = call.count_rows(), call.add(gradients.loss)
        if self._pulling is not None:
            answer, self._pulling = self._pulling.result(), None
        else:
            answer = self._take_pulled()
        push = ModelPush(
            gradients.dense,
            name_rows(self._now, gradients.rows),
            self._rate(pulled.step, call.rates),
            rows,
            progress(done),
            pulled.versions,
            self._changed_state(gradients.buffers),
        )
        self._following = call.need(call.number + 1)
        self._push(push, self._following.ids if self._following else None)
        if following is None or answer is None:
            return None
        self._pulled, self._now = answer, following
        return start_step(answer, following)


@dataclass
class _StepGroup:
    """Minibatches of `LocalSteps` between a pull and a push: what they read together and one by one, and the sums of
    their gradients, rates and rows.
    """

    pulled: PulledModel
    ids: dict[str, Ids]
    needs: Sequence[Need]
    local: LocalRows
    number: int = 0  # of the present one
    dense: Floats | None = None
    rate: float = 0.0
    rows: int = 0

    def add(self, gradients: StepGradients, rate: float, rows: int) -> None:
        self.local.add(self.needs[self.number].ids, gradients.rows)
        self.dense = gradients.dense if self.dense is None else self.dense + gradients.dense
        self.rate += rate
        self.rows += rows
        self.number += 1

    @property
    def is_complete(self) -> bool:
        return self.number == len(self.needs)


class LocalSteps(PushStrategy):
    """Strategy that takes `group` steps on local copies for each pull and push.

    What the minibatches need is pulled once, the job's optimizer takes a step with each on local copies, and their
    gradients are pushed as one: their sum over the root of k, with the sum of their rates over the root of k. For plain
    SGD that equals all of their steps. Optimizers that use no more than the direction of a gradient take a step that is
    longer by the root of k, as with a minibatch k times as large (Krizhevsky 2014, Malladi et al. 2022). With k = 1 it
    is a plain push.
    """

    _call: CallProgress
    _group: _StepGroup

    def __init__(self, parameters: ServerParameters, store: CheckpointStore, group: int) -> None:
        super().__init__(parameters, store)
        self.group = group

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        self._ready()
        self._call = CallProgress(self._adapter.tables, rows, done, rates)
        self._adapter.exchange_steps(rows, self)
        return self._call.losses

    def begin(self, number: int) -> StepStart:
        ids, needs = self._call.need_together(number, self.group)
        pulling = self._parameters.pull(ids)
        pulled = pulling.result()
        self._settle()
        return self._start_group(pulled, ids, needs)

    def end(self, gradients: StepGradients) -> StepStart | None:
        call, group = self._call, self._group
        number = group.number
        step = group.pulled.step * self.group + number  # a push counts as `group` steps in the schedule
        rate = self._rate(step, call.rates)
        group.add(gradients, rate, call.count_rows())
        done = call.add(gradients.loss)
        if not group.is_complete:  # no forward pass follows the last step
            group.local.step(group.needs[number].ids, gradients.rows, rate)
            rows = group.local.fetch(group.needs[group.number])
            return StepStart(None, rows, steps_before=True, rate=None if call.rates is None else rate)
        ids, needs = call.need_together(call.number, self.group) if not call.is_complete else ({}, [])
        root = np.float32(group.number**-0.5)
        assert group.dense is not None  # noqa: S101 - it has a minibatch
        push = ModelPush(
            group.dense * root,
            {name: RowGradients(group.ids[name], total * root) for name, total in group.local.sums.items()},
            group.rate * float(root),
            group.rows,
            progress(done),
            group.pulled.versions,
            self._changed_state(gradients.buffers),
        )
        self._push(push, ids if needs else None)
        if not needs:
            return None
        pulled = self._take_pulled()
        assert pulled is not None  # noqa: S101 - it was asked for
        return self._start_group(pulled, ids, needs)

    def _start_group(self, pulled: PulledModel, ids: dict[str, Ids], needs: Sequence[Need]) -> StepStart:
        self._learn(pulled)
        local = LocalRows(self._parameters.definition.optimizer, pulled.blocks)
        self._group = _StepGroup(pulled, ids, needs, local)
        return StepStart(pulled.dense, local.fetch(needs[0]))
