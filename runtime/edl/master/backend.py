"""Parts of a master that differ between its environments: under a local supervisor, and in a pod."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edl.checkpoints.kept import KeptCheckpoint
from edl.checkpoints.master_store import Keeper
from edl.cluster import Cluster, Wishes
from edl.jobs.event_log import Event
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot
from edl.logs import log
from edl.master.instances.instance_manager import REGISTER_SECS
from edl.master.state_store import StateStore

End = Outcome | Failed


class Events(Protocol):
    """Sink of the events that clients follow."""

    def write(self, event: Event) -> None: ...


class ResultStore(Protocol):
    """Storage of the job's result."""

    def end(self, end: End) -> End:
        """Store the result, clean up after the job, and return its final outcome. Blocks."""
        ...


class ClientResultStore:
    """Result store of a job with a client that fetches the result from the job folder."""

    def end(self, end: End) -> End:
        return end


@dataclass(frozen=True, slots=True)
class Backend:
    """Environment of one master.

    `supervised`: a supervisor ends the instances when the job is over, and orders the end of one that is interrupted or
    cancelled. Without a supervisor the master ends the instances with `end_instances`, unless they end by themselves
    (None). SIGTERM asks for a replacement of the master.

    `show` and `show_end` publish snapshots and the outcome for readers that do not follow the events. The event loop
    calls `beat` about once a second. None of these may block. `wishes` reads users' wishes, if no call brings them, and
    `want` asks the quota, if any, for so many slots; both may block. `address` is the address to listen on,
    `metrics_port` the port of /metrics (0: any free port, None: none), `health_port` the port of the liveness probe
    (0: none), `clock` returns seconds that never go back, `interval` is the number of seconds between two progress
    events, `register_secs` the time for a running process to register, and `wait_secs` the time that the job may wait
    for instances without which it does not go on. It begins when `least_workers` are ready. `relayed` holds the output
    and other files of a job if its client sees no folder of the instances. `kept` keeps a checkpoint that outlives
    them. `log` takes the notes for users.
    """

    cluster: Cluster
    state_store: StateStore
    events: Events
    result_store: ResultStore
    show: Callable[[Snapshot], None]
    address: str
    metrics_port: int | None = 0
    health_port: int = 0
    wishes: Callable[[], Wishes] | None = None
    beat: Callable[[], None] = lambda: None
    want: Callable[[int, int], None] = lambda least, most: None
    clock: Callable[[], float] = time.monotonic
    interval: float = 0.2
    register_secs: float = REGISTER_SECS
    wait_secs: float = math.inf
    least_workers: int = 1
    supervised: bool = True
    end_instances: Callable[[], None] | None = None
    show_end: Callable[[End], None] = lambda end: None
    relayed: Keeper | None = None
    kept: KeptCheckpoint | None = None
    log: Callable[[str], None] = log
