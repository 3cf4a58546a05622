"""Coordinator of rounds on server 0 of a synchronous job: workers wait for tickets, a thread commits on every server.

The others commit first, server 0 last: a worker with server 0's version has at least the version of all others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edl.errors import SQLFlowError
from edl.logs import log
from edl.ps import messages as msg
from edl.ps.checkpoint.content import Progress
from edl.ps.messages import GenerationError
from edl.ps.peers import Peers
from edl.ps.replica import LONGEST_WAIT, Replica
from edl.ps.round_tickets import Refusal, Rounds
from edl.rpc.channel import AwayError

_SECONDS = 10.0  # timeout of a call to another server
_PAUSE = 0.1  # seconds before a retry


class RoundCoordinator:
    """Coordinator of the rounds of a replica. `peers` returns connections to the other servers at their present
    addresses.
    """

    def __init__(self, replica: Replica, peers: Callable[[], Peers]) -> None:
        self._replica = replica
        self._peers = peers
        self._rounds = Rounds(replica.arranged.mode.grads_to_wait, replica.version.step)
        self._changed = threading.Condition()
        self._pauses = 0
        self.sealed = ""  # the last checkpoint that no round is committed after
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="edl-rounds", daemon=True).start()

    @property
    def stale(self) -> int:
        """Number of gradients that were computed in vain."""
        return self._rounds.stale

    def close(self) -> None:
        with self._changed:
            self._closed.set()
            self._changed.notify_all()

    def ticket(self, asked: msg.Ticket, seconds: float) -> msg.Ticketed:
        if self._replica.is_void(asked.lease):  # of an earlier generation, which its worker does not know yet
            return msg.Ticketed("revoked", self._replica.version)
        answer: int | Refusal = "wait"

        def answered() -> bool:
            nonlocal answer
            answer = self._rounds.ask(asked.instance, asked.incarnation, asked.lease, asked.version.step)
            return answer != "wait"

        with self._changed:
            if not answered():
                self._changed.notify_all()  # tickets of an earlier incarnation may have been dropped
                self._wait(answered, seconds)
        version = self._replica.version
        if isinstance(answer, int):
            return msg.Ticketed("granted", version, answer)
        return msg.Ticketed(answer, version)

    def confirm(self, ticket: int) -> msg.Confirmed:
        with self._changed:
            taken = self._rounds.confirm(ticket)
            self._changed.notify_all()
        return msg.Confirmed(self._replica.version, stale=not taken)

    def flush(self, seconds: float) -> msg.Confirmed:
        with self._changed:
            step = self._rounds.step
            self._rounds.flush()
            self._changed.notify_all()
            self._wait(lambda: self._rounds.is_idle or self._rounds.step > step, seconds)
            return msg.Confirmed(self._replica.version, idle=self._rounds.is_idle)

    def revoke(self, leases: tuple[int, ...]) -> tuple[Progress, ...]:
        """Void the leases after the round in progress, if any: its pushes stay."""
        with self._changed:
            self._rounds.revoke(leases)
            self._changed.notify_all()
            self._still()
        return self._replica.revoke(leases)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hold back the next commit within this context, which is entered between two rounds."""
        with self._changed:
            self._pauses += 1
        try:
            with self._changed:
                self._still()
            yield
        finally:
            with self._changed:
                self._pauses -= 1
                self._changed.notify_all()

    def seal(self, checkpoint: str) -> None:
        """Hold back all further commits, after the round in progress, until `reopen`."""
        with self._changed:
            self.sealed = max(self.sealed, checkpoint)
            self._still()

    def reopen(self, checkpoint: str) -> None:
        with self._changed:
            if self.sealed <= checkpoint:
                self.sealed = ""
                self._changed.notify_all()

    # With the condition held -------------------------------------------------------------------------------

    def _wait(self, ready: Callable[[], bool], seconds: float) -> None:
        self._changed.wait_for(lambda: self._closed.is_set() or ready(), min(seconds, LONGEST_WAIT))
        if self._closed.is_set():
            raise GenerationError("the servers are rolled back to an earlier checkpoint")

    def _still(self) -> None:
        self._wait(lambda: not self._rounds.committing, LONGEST_WAIT)
        if self._rounds.committing:
            raise AwayError("a parameter server does not commit the round")

    # Committing thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closed.is_set() and (self._pauses or self.sealed or not self._rounds.begin()):
                    self._changed.wait()
                if self._closed.is_set():
                    return
                step, tickets = self._rounds.step + 1, self._rounds.committing
            self._commit(msg.Commit(self._replica.arranged.generation, step, tickets))

    def _commit(self, commit: msg.Commit) -> None:
        """Commit on every server, and retry until the coordinator is closed, since the loss of a server ends the
        replica.
        """
        said = ""
        while not self._closed.is_set():
            try:
                self._peers().ask(commit, msg.Done, _SECONDS)
                self._replica.commit(commit.step, commit.tickets)
            except SQLFlowError as error:
                if error.message != said:
                    said = error.message
                    log(f"round {commit.step} waits: {said}")
                self._closed.wait(_PAUSE)
                continue
            with self._changed:
                self._rounds.on_commit()
                self._changed.notify_all()
            return
