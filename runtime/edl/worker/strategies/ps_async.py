"""Asynchronous training: every push is a step, and no worker waits for another.

    pull rows 1 ──┐   push 0, pull rows 2 ──┐   push 1, pull rows 3 ──┐
      compute 0 ──┴──────────── compute 1 ──┴──────────── compute 2 ──┴── …

While a minibatch is computed, the gradients of the previous one and the rows of the next one are in transit. So its
parameters lack this worker's last push, and all pushes that other workers made meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from edl.checkpoints import CheckpointStore
from edl.embeddings import StoredTable, sum_parts
from edl.embeddings.model_tables import Need, RowGradients
from edl.embeddings.table import Ids
from edl.frameworks.adapter import Floats, Minibatches
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.base import VoidError, add_minibatch
from edl.worker.strategies.ps_base import ServerStrategy, progress
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

    def _push(self, push: ModelPush, following: Need | None) -> PushCall:
        """Start a push together with the pull for a following minibatch. The previous push must have been answered."""
        self._pushing = self._parameters.push(push, following.ids if following else None)
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
    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        self._ready()
        tables = self._adapter.tables
        keys = tables.keys(rows.features)

        def need(number: int) -> Need | None:
            start = number * rows.size
            return tables.need(keys, start, start + rows.size) if number < rows.steps else None

        losses = []
        now, following = need(0), need(1)
        pulled: PulledModel | None = self._parameters.pull(now.ids if now else {}).result()
        pulling: PullCall | None = self._parameters.pull(following.ids) if following else None
        self._settle()
        for number in range(rows.steps):
            assert now is not None and pulled is not None  # noqa: S101 - there is another minibatch
            some, step, versions = rows.minibatch(number), pulled.step, pulled.versions
            gradients = self._gradients(pulled, now, some)
            losses.append(gradients.loss)
            done = add_minibatch(done, some, gradients.loss)
            if pulling is not None:
                pulled, pulling = pulling.result(), None
            else:
                pulled = self._take_pulled()
            now, following = following, need(number + 2)
            state = self._state()
            rate = self._rate(step, rates)
            push = ModelPush(gradients.values, rate, len(some.labels), progress(done), versions, state)
            self._push(push, following)
        return np.array(losses, np.float32)


class LocalSteps(PushStrategy):
    """Strategy that takes `group` steps on local copies for each pull and push.

    What the minibatches need is pulled once, the job's optimizer takes a step with each on local copies, and their
    gradients are pushed as one: their sum over the root of k, with the sum of their rates over the root of k. For plain
    SGD that equals all of their steps. Optimizers that use no more than the direction of a gradient take a step that is
    longer by the root of k, as with a minibatch k times as large (Krizhevsky 2014, Malladi et al. 2022). With k = 1 it
    is a plain push. Rows are updated in the model's own tables, which are refilled for each group.
    """

    def __init__(self, parameters: ServerParameters, store: CheckpointStore, group: int) -> None:
        super().__init__(parameters, store)
        self.group = group

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        self._ready()
        tables = self._adapter.tables
        keys = tables.keys(rows.features)
        size = self.group * rows.size

        def need(first: int) -> Need | None:
            start = first * rows.size
            return tables.need(keys, start, start + size) if first < rows.steps else None

        losses: list[float] = []
        now = need(0)
        pulled: PulledModel | None = self._parameters.pull(now.ids if now else {}).result()
        self._settle()
        for first in range(0, rows.steps, self.group):
            assert now is not None and pulled is not None  # noqa: S101 - there is another group
            step = pulled.step * self.group  # a push counts as `group` steps in the schedule
            self._begin(pulled, now)
            sums = _Sums()
            rate, before = 0.0, done.rows
            last = min(first + self.group, rows.steps) - 1
            for number in range(first, last + 1):
                some = rows.minibatch(number)
                gradients = self._adapter.gradients(some.features, some.labels, some.weights)
                sums.add(gradients.values)
                losses.append(gradients.loss)
                done = add_minibatch(done, some, gradients.loss)
                own_rate = self._rate(step + number - first, rates)
                rate += own_rate
                if rates is not None:
                    self._adapter.set_learning_rate(own_rate)
                if number < last:  # no forward pass follows the last step
                    self._adapter.apply(gradients.values)
            now = need(first + self.group)
            root = sums.count**0.5
            rows_done = done.rows - before
            push = ModelPush(
                sums.over(root), rate / root, rows_done, progress(done), pulled.versions, self._state()
            )
            self._push(push, now)
            pulled = self._take_pulled() if now is not None else None
        return np.array(losses, np.float32)

    def _begin(self, pulled: PulledModel, need: Need) -> None:
        """Copy the pulled parameters into the model."""
        self._take(pulled)
        orders = {id(ids): np.argsort(ids) for ids in need.ids.values()}
        for name, ids in need.ids.items():
            order, table = orders[id(ids)], self._adapter.tables.tables[name]
            slots = np.empty((len(ids), 0, table.spec.dim), np.float32)
            table.load(StoredTable(ids[order], pulled.blocks[name][order], slots, 0))


class _Sums:
    """Sum of the gradients of several minibatches."""

    def __init__(self) -> None:
        self.count = 0
        self._dense: dict[str, Floats] = {}
        self._rows: dict[str, list[tuple[Ids, Floats]]] = {}

    def add(self, values: Mapping[str, Any]) -> None:
        self.count += 1
        for name, value in values.items():
            if isinstance(value, RowGradients):
                self._rows.setdefault(name, []).append((value.ids, np.asarray(value.values)))
            elif name in self._dense:
                self._dense[name] += np.asarray(value)
            else:
                self._dense[name] = np.asarray(value).copy()

    def over(self, divisor: float) -> dict[str, Any]:
        share = np.float32(1 / divisor)
        rows = {name: sum_parts(parts) for name, parts in self._rows.items()}
        return {
            **{name: total * share for name, total in self._dense.items()},
            **{name: RowGradients(ids, total * share) for name, (ids, total) in rows.items()},
        }
