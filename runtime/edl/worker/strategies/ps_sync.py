"""Synchronous training: a step is the mean of `grads_to_wait` gradients that were computed on the same parameters.

    pull ─▶ compute ─▶ ticket ─▶ push to all servers ─▶ confirm, and pull the next version

A worker alone asks for the ticket before it computes, since it takes it from nobody. Others ask when their gradient is
there: so a round takes the first ones.

A gradient that comes too late for its round is computed again, with the random numbers and buffers of the first
attempt. A worker that has confirmed a gradient waits for the others to complete the round, about as long as it would
take to compute another one, and then adds one itself: so a round never depends on a worker that has left.
"""

from __future__ import annotations

import time
from collections import deque

from edl.checkpoints import CheckpointStore
from edl.embeddings.model_tables import Need
from edl.frameworks.adapter import Floats, Minibatches
from edl.frameworks.exchange import StepGradients, StepStart
from edl.ps import messages as msg
from edl.ps.checkpoint.content import Version
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.base import VoidError
from edl.worker.strategies.call_progress import CallProgress
from edl.worker.strategies.ps_base import ServerStrategy, name_rows, progress, start_step
from edl.worker.strategies.ps_client import CALL_SECS, PendingCalls, ServerRequest
from edl.worker.strategies.ps_model import ModelPush, PulledModel, ServerParameters

WAIT_SECS = 2.0  # for a call that waits for other workers, before it is repeated


class Synchronous(ServerStrategy):
    """Strategy with `size` gradients per round. `alone` is True if no other worker contributes."""

    _call: CallProgress
    # Buffers and random numbers after the last confirmed minibatch, from which the next one is computed again.
    _confirmed_state: Floats
    _confirmed_random: bytes
    _need: Need  # of the present minibatch, with its parameters and the moment at which they were there
    _pulled: PulledModel
    _began: float
    _ticketing: PendingCalls[msg.Ticketed] | None = (
        None  # request that was made before the gradient was computed
    )

    def __init__(
        self, parameters: ServerParameters, store: CheckpointStore, size: int, *, alone: bool
    ) -> None:
        super().__init__(parameters, store)
        self._size = size
        self._alone = alone
        self._mark = 0
        # Marks, with the step that their gradients were computed on.
        self._confirmed: deque[tuple[int, int]] = deque()
        self._own = 0  # confirmed gradients of this worker in the open round
        self._took = 0.0  # seconds for the last gradient

    def mark(self) -> int:
        return self._mark

    def is_durable(self, mark: int) -> bool:
        while self._confirmed and self._confirmed[0][1] < self.step:
            self._confirmed.popleft()
        return not self._confirmed or self._confirmed[0][0] > mark

    def flush(self) -> None:
        while not self.is_durable(self._mark):
            self._ready()
            header = msg.Flush(self._servers.generation, WAIT_SECS)
            answer = self._servers.ask(header, msg.Confirmed, CALL_SECS + WAIT_SECS)
            self._saw_version(answer.version)
            if answer.idle:  # the gradients are applied, or their lease is void
                self._confirmed.clear()

    def _forget(self) -> None:
        self._confirmed.clear()
        self._own = 0

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        self._ready()
        self._call = call = CallProgress(self._adapter.tables, rows, done, rates)
        self._confirmed_state = self._parameters.state.flat(self._adapter.get_buffers())
        self._confirmed_random = self._adapter.get_random()
        while not call.is_complete:
            try:
                self._adapter.exchange_steps(rows, self, call.number)
            finally:
                if not call.is_complete:  # the last gradient is void, or computed again
                    self._adapter.set_buffers(self._parameters.state.unflat(self._confirmed_state))
                    self._adapter.set_random(self._confirmed_random)
                    self._pushed_state = None
        return call.losses

    def begin(self, number: int) -> StepStart:
        need = self._call.need(number)
        assert need is not None  # noqa: S101 - there is such a minibatch
        return self._start(need, self._pull(need))

    def end(self, gradients: StepGradients) -> StepStart | None:
        """Confirm the gradient; end the loop if its round is over, so that it is computed again."""
        call = self._call
        self._took = time.monotonic() - self._began
        random, following = gradients.random(), call.need(call.number + 1)
        confirmed, pulled = self._confirm(gradients, call.with_present(gradients.loss), random, following)
        if not confirmed:
            return None
        call.add(gradients.loss)
        self._confirmed_state, self._confirmed_random = gradients.buffers, random
        if following is None:
            return None
        return self._start(following, pulled or self._pull(following))

    def _start(self, need: Need, pulled: PulledModel) -> StepStart:
        self._need, self._pulled = need, pulled
        self._ticketing = self._ask_for_ticket() if self._alone else None
        self._began = time.monotonic()
        return start_step(pulled, need)

    def _pull(self, need: Need) -> PulledModel:
        """Pull the rows on a version to which this worker may still contribute."""
        full = self._own >= self._size
        least_version, patience = self._patience(self._own)
        pulled = self._parameters.pull(need.ids, at_least=least_version, wait_secs=patience).result()
        self._learn(pulled)
        if full and self._own:  # the round has not completed: a gradient may be revoked, which server 0 knows
            self._own = 0
        return pulled

    def _patience(self, gradients: int) -> tuple[int, float]:
        """Return the step to wait for, and how long, with so many gradients of this worker in the open round."""
        patience = (
            WAIT_SECS if gradients >= self._size else 0.0 if self._alone or not gradients else self._took
        )
        return (self.step + 1 if patience else self.step), patience

    def _confirm(
        self, gradients: StepGradients, done: Report, random: bytes, following: Need | None
    ) -> tuple[bool, PulledModel | None]:
        """Push the gradient with a ticket and confirm it. Return False if its round is over: it has to be computed
        again. Return also the following minibatch's parameters, unless another worker is waited for.

        The parameters are pulled with the confirmation: one server gets both with the push, several after it.
        """
        ticket = self._ticket()
        if not ticket:
            return False, None
        push = ModelPush(
            gradients.dense,
            name_rows(self._need, gradients.rows),
            self._rate(self._pulled.least.step, self._call.rates),
            self._call.count_rows(),
            progress(done),
            self._pulled.versions,
            self._changed_state(gradients.buffers),
            ticket,
            random if self._size == 1 else b"",
        )
        at_least, patience = self._patience(self._own + 1)
        ids = None if following is None else following.ids
        if len(self._servers) == 1:
            pushing = self._parameters.push(push, ids, at_least=at_least, wait_secs=patience, confirm=True)
            result = pushing.result()
            version, stale, pulled = result.version, result.stale, result.pulled
        else:
            self._parameters.push(push).result()
            confirm = {0: ServerRequest(msg.Confirm(self._servers.generation, ticket))}
            confirming = self._servers.begin(confirm, msg.Confirmed)
            pulling = (
                None if ids is None else self._parameters.pull(ids, at_least=at_least, wait_secs=patience)
            )
            answer, _ = confirming.results()[0]
            version, stale = answer.version, answer.stale
            pulled = None if pulling is None else pulling.result()
        if stale:
            self._saw_version(version)
            return False, None
        self._mark += 1
        self._confirmed.append((self._mark, self._pulled.least.step))
        self._own += 1
        self._saw_version(version)
        # A full round needs its commit. To an open one this worker adds: the others have not come in time.
        needed = at_least if self._own >= self._size else self.step
        if pulled is None or pulled.least.step < needed:
            return True, None
        self._learn(pulled)
        return True, pulled

    def _ask_for_ticket(self) -> PendingCalls[msg.Ticketed]:
        lease = self._call.done.task.attempt
        return self._parameters.ask_for_ticket(lease, self._pulled.least, WAIT_SECS)

    def _ticket(self) -> int:
        """Return a ticket, or 0 if the version is not the present one. Raises VoidError if the lease is void."""
        while True:
            asking, self._ticketing = self._ticketing or self._ask_for_ticket(), None
            answer, _ = asking.results()[0]
            if answer.outcome == "granted":
                return answer.ticket
            if answer.outcome == "revoked":
                self._own = 0
                raise VoidError
            if answer.outcome == "stale":
                self._saw_version(answer.version)
                return 0

    def _learn(self, pulled: PulledModel) -> None:
        self._saw_version(pulled.least)

    def _saw_version(self, version: Version) -> None:
        """Record that a version of the parameters was committed."""
        if version.step > self.step:
            self.step = version.step
            self._own = 0
