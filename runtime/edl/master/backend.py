"""What a master works with that differs between the places where it runs: under a supervisor, and in a pod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edl.cluster import Cluster
from edl.cluster.events import Event
from edl.cluster.snapshot import Snapshot
from edl.master.ledger import Ledger
from edl.tasks.failed import Failed
from edl.tasks.outcome import Outcome

End = Outcome | Failed


class Events(Protocol):
    """Where clients read what they are told."""

    def write(self, event: Event) -> None: ...


class ResultStore(Protocol):
    """What is done with what the job made."""

    def end(self, end: End) -> End:
        """Store it, and clean up behind the job; how it has ended then. Blocks."""
        ...


class ClientResultStore:
    """The client stores it: it lies in the job folder."""

    def end(self, end: End) -> End:
        return end


@dataclass(frozen=True, slots=True)
class Backend:
    """supervised: a supervisor ends instances when the job is over, and a master that is told to leave ends the job as
    cancelled. Without one, the master ends them by `end_instances`, and who tells it to leave wants another master.

    show, show_end: keep snapshots and the end where those find them who do not follow; they hold nobody up. address:
    that the master listens on. metrics_port: of /metrics, 0: one that is free. interval: seconds between two events of
    progress.
    """

    cluster: Cluster
    ledger: Ledger
    events: Events
    result_store: ResultStore
    show: Callable[[Snapshot], None]
    address: str
    metrics_port: int = 0
    interval: float = 0.2
    supervised: bool = True
    end_instances: Callable[[], None] = lambda: None
    show_end: Callable[[End], None] = lambda end: None
