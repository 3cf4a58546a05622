"""State machine of synchronous rounds: tickets for gradients, and the completion of a round. No clock, no threads.

    granted ── confirm ──▶ confirmed ── full or flushed ──▶ committing ── committed ──▶ in the parameters
       │                      │
       └────── revoked ◀──────┘     its lease is void, or its worker restarted before it confirmed

A round has `size` tickets, given to gradients that were computed on the present step. They belong to leases, not to
workers, so nothing waits for a worker that left: revoking its leases frees its tickets. A ticket in a round that is
being committed cannot be revoked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Refusal = Literal["stale", "revoked", "wait"]


@dataclass(slots=True)
class _Ticket:
    number: int
    instance: str
    incarnation: int
    lease: int
    confirmed: bool = False


class Rounds:
    """Rounds and their tickets. `step` counts committed rounds, including those before this start."""

    def __init__(self, size: int, step: int = 0) -> None:
        self.size = size
        self.step = step
        self.stale = 0  # number of gradients that were computed in vain
        self.committing: tuple[int, ...] = ()
        self._last = 0  # last granted ticket
        # Tickets of the round that follows `step`, unless it is committing.
        self._open: dict[int, _Ticket] = {}
        self._revoked: set[int] = set()  # tickets; few, since workers rarely die
        self._void: set[int] = set()
        self._starts: dict[str, int] = {}  # the latest incarnation of each instance
        self._flushed = False

    def ask(self, instance: str, incarnation: int, lease: int, step: int) -> int | Refusal:
        """Return a ticket for a gradient computed on `step`, the same on repeated requests, or the reason for a
        refusal.
        """
        if lease in self._void or incarnation < self._starts.get(instance, incarnation):
            return "revoked"
        self._begin(instance, incarnation)
        if step != self.step:
            self.stale += 1
            return "stale"
        for ticket in self._open.values():
            if ticket.instance == instance and not ticket.confirmed:
                ticket.lease = lease
                return ticket.number
        if len(self._open) == self.size or self.committing:
            return "wait"
        self._last += 1
        self._open[self._last] = _Ticket(self._last, instance, incarnation, lease)
        return self._last

    def confirm(self, number: int) -> bool:
        """Confirm that the gradient is on every server. Return False if it is not taken."""
        if number in self._open:
            self._open[number].confirmed = True
        elif number in self._revoked or not 0 < number <= self._last:
            self.stale += 1
            return False
        return True

    def flush(self) -> None:
        """Commit the round with the confirmed tickets, once all granted ones are confirmed or revoked."""
        self._flushed = any(ticket.confirmed for ticket in self._open.values())

    @property
    def is_idle(self) -> bool:
        """True if no confirmed gradient waits for its commit."""
        return not self.committing and not any(ticket.confirmed for ticket in self._open.values())

    def revoke(self, leases: Collection[int]) -> None:
        """Void these leases and free their tickets."""
        self._void.update(leases)
        self._drop([ticket for ticket in self._open.values() if ticket.lease in self._void])

    def begin(self) -> tuple[int, ...]:
        """Return the tickets of the round if it is complete, else nothing; they cannot be revoked from then on."""
        tickets = self._open.values()
        due = len(tickets) == self.size or self._flushed
        if self.committing or not tickets or not due or not all(ticket.confirmed for ticket in tickets):
            return ()
        self.committing = tuple(sorted(self._open))
        self._open = {}
        self._flushed = False
        return self.committing

    def on_commit(self) -> None:
        """Count the round after every server has applied it."""
        self.step += 1
        self.committing = ()

    def _begin(self, instance: str, incarnation: int) -> None:
        """Drop unconfirmed tickets of earlier incarnations: nothing will confirm them."""
        self._starts[instance] = incarnation
        self._drop([
            ticket
            for ticket in self._open.values()
            if ticket.instance == instance and ticket.incarnation < incarnation and not ticket.confirmed
        ])  # fmt: skip

    def _drop(self, tickets: list[_Ticket]) -> None:
        for ticket in tickets:
            del self._open[ticket.number]
            self._revoked.add(ticket.number)
        self._flushed = self._flushed and any(ticket.confirmed for ticket in self._open.values())
