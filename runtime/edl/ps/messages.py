"""Calls of a parameter server, and their answers.

Every call is a header, one of the structs below, followed by arrays (`edl.ps.wire`). By caller:

    worker     Define, Load, Open, Pull, Unpin, Push, Ticket, Confirm, Flush, Export
    master     Arrange, Status, Revoke, TakeCheckpoint, Reopen, Retire
    server 0   Commit, Seal, TakeCheckpoint, to the other servers
    a server   Keep, to the next server (0 follows the last); Fetch, to the next and the previous one

All calls are idempotent. Calls of workers name their generation; a server of another one refuses them
(`GenerationError` at the client). Calls that come before the server is arranged, or before the model is defined and
open, are refused as well (`NotReadyError`). In both cases the worker asks the master for the present servers.

*Flat* parameters are one float32 vector: the parameters of one server, in the order of `partitioning.Placement.names`.

Modes. async: a push updates the parameters on arrival. sync: server 0 coordinates rounds. A worker computes gradients
on a version, requests a ticket of the following round from server 0, pushes with the ticket to every server, which
stages the push, and confirms the ticket at server 0. When `grads_to_wait` tickets are confirmed, server 0 has every
server apply their mean, weighted by rows: that is the next version. A ticket is stale when its round is over: the
gradient is computed again, on the new version.

Calls with `wait_secs` are answered at once if too many others wait already (`edl.ps.locks`). The answer is then
`crowded`, unless there was nothing to wait for: ask again, until `wait_secs` have passed.

A lease that the master revokes is void on every server before its task is given to another worker: it loses its
tickets, and later pushes under it are ignored.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edl.errors import ClusterError
from edl.jobs.snapshot import Staleness
from edl.ps.checkpoint.content import Manifest, Mode, ModelDefinition, Progress, Shard, Version

# Refusals --------------------------------------------------------------------------------------------------


class NotReadyError(ClusterError):
    """Error of a server that is not arranged, not defined, or not open yet."""


class GenerationError(ClusterError):
    """Error of a call of another generation than the server's."""


# Calls of workers ------------------------------------------------------------------------------------------


class Define(msgspec.Struct, frozen=True):
    """Define the model. Arrays: initial flat parameters; for server 0 also the initial state, flat. Answer: `Defined`.

    The first definition of a generation counts; a later one that differs in more than values is refused. A restored
    server is defined already.
    """

    generation: int
    definition: ModelDefinition


class Defined(msgspec.Struct, frozen=True):
    """Answer to `Define`. If `open`, pulls and pushes are answered; else the caller loads initial rows, if any, and
    opens.
    """

    version: Version
    open: bool


class Load(msgspec.Struct, frozen=True):
    """Load initial rows before the server is open. Arrays: int64 ids, float32 (n, dim). Answer: `Done`."""

    generation: int
    table: str


class Open(msgspec.Struct, frozen=True):
    """Open the server: its initial state is complete. Answer: `Done`."""

    generation: int


class Done(msgspec.Struct, frozen=True):
    pass


class Pull(msgspec.Struct, frozen=True):
    """Get parameters. Arrays: for each of `tables`, distinct int64 ids, all of this server. Answer: `Pulled`.

    `dense` requests the flat parameters. `state` requests the state, from server 0 only, and with it the last `private`
    pushed by `instance`, if that is not empty. `at_least` waits for this step, at most `wait_secs`; then the present
    version is returned. A row that was never pushed has its initial value. `pin` is the number of a round of
    evaluation: the answer has the parameters of its first pull, until `Unpin`; 0 for the present ones.
    """

    generation: int
    tables: tuple[str, ...] = ()
    dense: bool = False
    state: bool = False
    instance: str = ""
    at_least: int = 0
    wait_secs: float = 0.0
    pin: int = 0


class Unpin(msgspec.Struct, frozen=True):
    """Drop the parameters of a round of evaluation that is concluded. Answer: `Done`."""

    generation: int
    pin: int


class Pulled(msgspec.Struct, frozen=True):
    """Answer to `Pull`. Arrays: flat parameters if `dense`, float32 (n, dim) for each requested table, the state if
    `state`.
    """

    version: Version
    dense: bool = False
    state: bool = False
    private: bytes = b""
    crowded: bool = False


class Push(msgspec.Struct, frozen=True):
    """Push gradients. Arrays: flat gradients, of size 0 for none; ids and gradients (n, dim) for each of `tables`, with
    distinct ids; for server 0, the worker's flat state if `state`. Answer: `Pushed`.

    `sequence` grows with the pushes of this incarnation to this server; a push is sent when the previous one was
    answered. One that was applied, or belongs to an earlier incarnation, is answered and not applied again. `rate` is
    the learning rate of the step. `tables` are all that were read, without ids if none is of this server: a table
    counts the steps that name it. `rows` is the number of rows that the gradients are the mean of; 0 pushes the state
    alone. `ticket` is set in sync only. `progress` is the task's progress including this push. `private` is data of the
    worker alone (random numbers) that server 0 keeps with its checkpoints. `pull` is answered in the same call, after
    the push was applied (in sync, staged for its round); its arrays follow. `earlier` and `earlier_rows` count the
    valid pushes of this incarnation in this generation before this one, and their rows. `computed_on` is the step of
    this server that was pulled for the gradients, -1 if that is not known. `confirm`: no other server gets a part of
    the push, so its ticket is confirmed with it; see `Confirm`.
    """

    generation: int
    instance: str
    incarnation: int
    sequence: int
    rate: float
    rows: int
    tables: tuple[str, ...] = ()
    state: bool = False
    ticket: int = 0
    progress: Progress | None = None
    private: bytes = b""
    pull: Pull | None = None
    earlier: int = 0
    earlier_rows: int = 0
    computed_on: int = -1
    confirm: bool = False


class Pushed(msgspec.Struct, frozen=True):
    """Answer to `Push`. Arrays: the arrays of `pulled`. If `revoked`, the lease is void, and nothing was applied. If
    `stale`, a confirmed ticket's gradient was not taken, as in `Confirmed`; nothing is pulled.
    """

    version: Version
    revoked: bool = False
    pulled: Pulled | None = None
    stale: bool = False


class Ticket(msgspec.Struct, frozen=True):
    """Request a ticket for a gradient of the lease `lease` that was computed on `version`; server 0, sync. Answer:
    `Ticketed`.

    `version` is the least of those that were pulled for it: servers reach a version one after another, server 0 last.
    An instance has at most one unconfirmed ticket; a repeated request returns the same. The call waits at most
    `wait_secs` while all tickets of the round are given out, until the round is committed or a ticket is revoked.
    """

    generation: int
    instance: str
    incarnation: int
    lease: int
    version: Version
    wait_secs: float = 0.0


class Ticketed(msgspec.Struct, frozen=True):
    """Answer to `Ticket`. granted: `ticket`, above 0. stale: pull and compute again. revoked: the lease is void. wait:
    retry.
    """

    outcome: Literal["granted", "stale", "revoked", "wait"]
    version: Version
    ticket: int = 0
    crowded: bool = False


class Confirm(msgspec.Struct, frozen=True):
    """Confirm that the push of `ticket` has reached every server; server 0, sync. Answer: `Confirmed`."""

    generation: int
    ticket: int


class Flush(msgspec.Struct, frozen=True):
    """Commit the round with the confirmed tickets, because no push follows for now; server 0, sync. Answer:
    `Confirmed`.

    It waits at most `wait_secs` for the other tickets to be confirmed or revoked.
    """

    generation: int
    wait_secs: float = 0.0


class Confirmed(msgspec.Struct, frozen=True):
    """Version of the last committed round. `stale`: the ticket's gradient was not taken, compute again. `idle`: no
    confirmed gradient waits for its round.

    A confirmed gradient is in the parameters as soon as a version with a greater step than its ticket's is committed.
    """

    version: Version
    stale: bool = False
    idle: bool = False
    crowded: bool = False


class Export(msgspec.Struct, frozen=True):
    """Get rows of a table by ascending id, after `after`, at most `limit`. Answer: `Exported`; arrays: ids, rows."""

    generation: int
    table: str
    after: int | None = None
    limit: int = 65536


class Exported(msgspec.Struct, frozen=True):
    """more: there are rows behind these. total: rows of the table on this server."""

    more: bool
    total: int


# Calls of the master, and of server 0 to the others --------------------------------------------------------


class Arrange(msgspec.Struct, frozen=True):
    """Become server `index` of those at `addresses`. A greater generation or epoch drops everything and restores.

    `restore` names a complete checkpoint in the store, of any number of servers (`edl.ps.checkpoint.manifests`); empty
    for a new model. `manifest` is set if the checkpoint is in the memory of as many servers
    (`edl.ps.checkpoint.replication`), and not in the store. With the same generation and epoch, only the addresses are
    new. `leased` is the last lease that was given out by then, `valid` are those still in use. The others up to it are
    void, which a restored server cannot know. Answer: `Arranged`.
    """

    index: int
    generation: int
    epoch: int
    addresses: tuple[str, ...]
    mode: Mode
    restore: str = ""
    manifest: Manifest | None = None
    leased: int = 0
    valid: tuple[int, ...] = ()


class Arranged(msgspec.Struct, frozen=True):
    version: Version
    defined: bool
    open: bool


class TakeCheckpoint(msgspec.Struct, frozen=True):
    """Take the present content, and write it in the background: `server-INDEX.safetensors` in `folder` of the store.

    Server 0 lets the others do the same (`alone`) at the same version, in sync between two rounds. A failed checkpoint
    is repeated in another folder. `wait` answers when it is complete, with its shards. `memory` keeps it in the memory
    of this server and the next one; names of folders sort by time, and `kept` are earlier ones to keep in memory.
    `last`: nothing is applied after it in this generation, unless the servers are reopened, because others follow.
    Answer: `CheckpointTaken`.
    """

    generation: int
    folder: str
    alone: bool = False
    wait: bool = False
    memory: bool = False
    kept: tuple[str, ...] = ()
    last: bool = False


class Seal(msgspec.Struct, frozen=True):
    """Apply no push from now on, for the last checkpoint of that name, except those that `applied` has.

    `applied` are pushes that any server has applied: by instance, the incarnation and the sequence of the last one. A
    worker that lives repeats such a push where it is missing; the answer waits for that, at most `wait_secs`. Answer:
    `Sealed`, with what this server has applied.
    """

    generation: int
    checkpoint: str
    applied: dict[str, tuple[int, int]] = {}
    wait_secs: float = 0.0


class Sealed(msgspec.Struct, frozen=True):
    """Pushes that a server has applied, as in `Seal`. `heard` are the instances that have pushed to it, if it has
    followed a process that lost its last pushes; else None.
    """

    applied: dict[str, tuple[int, int]] = {}
    heard: tuple[str, ...] | None = None

    def lacks(self, instance: str, last: tuple[int, int]) -> bool:
        """Return True if this push is missing here, and not among the lost ones."""
        may_know = self.heard is None or instance in self.heard
        return may_know and self.applied.get(instance, (-1, 0)) != last


class Reopen(msgspec.Struct, frozen=True):
    """Apply pushes again, if this server is sealed for the checkpoint of that name or an earlier one, which came to
    nothing. Answer: `Done`.
    """

    generation: int
    checkpoint: str


class Retire(msgspec.Struct, frozen=True):
    """Leave, if this server is to end: others have followed, and begin with its last checkpoint. Answer: `Done`."""


class CheckpointTaken(msgspec.Struct, frozen=True):
    """Answer to `TakeCheckpoint`. `progress` has at least each lease that was unfinished at the previous checkpoint.

    It is the greatest of any server, so that none gets a gradient twice if all go back to a checkpoint of `async`.
    `shards` are the shards of all servers, with `wait`. `unfinished` are instances, with their incarnations: only some
    servers have their last push in a `last` checkpoint.
    """

    version: Version
    progress: tuple[Progress, ...] = ()
    shards: tuple[Shard, ...] = ()
    unfinished: dict[str, int] = {}


class Keep(msgspec.Struct, frozen=True):
    """Keep a piece of a shard, from the byte `start`. Array: uint8. Answer: `Done`.

    Pieces arrive in order, and the last one completes the shard if its checksum is right.
    """

    checkpoint: str
    shard: Shard
    start: int


class Fetch(msgspec.Struct, frozen=True):
    """Get a piece of a shard in memory, from the byte `start`. Answer: `Done`; array: uint8."""

    checkpoint: str
    index: int
    start: int


class Commit(msgspec.Struct, frozen=True):
    """Apply the pushes with these tickets as the round `step`, and drop earlier ones; from server 0 to another."""

    generation: int
    step: int
    tickets: tuple[int, ...]


class Revoke(msgspec.Struct, frozen=True):
    """Void these leases. Answer: `Revoked`, with their progress that is in the parameters permanently.

    In async, a worker that dies between its pushes leaves one on some servers only. Rows that are on any of them are
    not computed again, so that no gradient counts twice anywhere.
    """

    generation: int
    leases: tuple[int, ...]


class Revoked(msgspec.Struct, frozen=True):
    progress: tuple[Progress, ...] = ()


class Status(msgspec.Struct, frozen=True):
    """Request the figures of a server. Answer: `Figures`.

    `checkpoint` is the last complete one; the update log needs none of the updates before it.
    """

    checkpoint: str = ""


class Figures(msgspec.Struct, frozen=True):
    """Content of a server, and counters since its start.

    `rows` are counted by table. `evicted` are rows that were evicted, `refused` gradients of ids that had no row yet.
    `bytes` is the size of parameters, rows and slots. `busy` is the time in seconds spent in calls of workers.
    `written` are the shards of the last checkpoints, on disk or replicated, by folder. `lost` and `lost_rows` are the
    pushes that workers had made to the process before this one, and that are not in the checkpoint which this one has
    restored, and their rows. `staleness` is the staleness of asynchronous gradients, `logged` the size of the update
    log since the last checkpoint. `sealed` is the last checkpoint that the server is sealed for, or empty. `leaving`:
    the server is to end, and another one may follow it.
    """

    index: int = -1
    generation: int = 0
    version: Version = Version()
    defined: bool = False
    open: bool = False
    rows: dict[str, int] = {}
    evicted: int = 0
    refused: int = 0
    bytes: int = 0
    pulls: int = 0
    pushes: int = 0
    rows_pulled: int = 0
    rows_pushed: int = 0
    stale: int = 0
    busy: float = 0.0
    written: dict[str, Shard] = {}
    lost: int = 0
    lost_rows: int = 0
    logged: int = 0
    staleness: Staleness = Staleness()
    sealed: str = ""
    leaving: bool = False
