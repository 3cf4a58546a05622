"""What is said to a parameter server, and what it answers.

Every call is a header, one of the structs below, and arrays behind it (`edl.ps.wire`). Who calls:

    worker     Define, Load, Open, Pull, Push, Ticket, Land, Flush, Export
    master     Arrange, Status, Revoke, Cut
    server 0   Commit, Cut, to the other servers
    a server   Keep, to its neighbour: the one after it, or 0 after the last; Fetch, to those on both sides

Every call may be repeated. Calls of workers name the generation that they belong to; a server of another one refuses
them (`GenerationError` at the client), as it refuses what comes too early (`NotReadyError`): before it was arranged,
before the model is defined and open. Both are answered by asking the master where the servers are now.

*Flat* parameters are one float32 vector: those that are placed on a server, in the order of `place.Placement.names`.

Modes. async: a push moves the parameters when it comes. sync: server 0 keeps rounds. A worker computes gradients on
a version, asks server 0 for a ticket of the round that follows it, pushes with the ticket to every server, which keep
what was pushed, and tells server 0 that it landed everywhere. When `grads_to_wait` tickets have landed, server 0 has
every server apply their mean, weighted by rows: that is the next version. A ticket whose round is over is stale: the
gradient is computed again, on the new version.

A lease that the master revokes is void on every server before its task is given to another worker: it loses its
tickets, and nothing that is pushed under it is taken any more.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edl.embeddings import Optimizer, TableSpec
from edl.tasks.task import Task


class Version(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Of the parameters of one server: grows for every client. step: pushes (async) or rounds (sync) applied.

    generation: of the job; grows when parameters and tasks go back to a cut together. life: counts the processes that
    had this server's place, so that a server that was restored alone does not seem to go back.
    """

    generation: int = 0
    epoch: int = 0
    step: int = 0


class Mode(msgspec.Struct, frozen=True):
    """How pushes become steps. grads_to_wait: pushes that make a round, in sync."""

    kind: Literal["async", "sync"] = "async"
    grads_to_wait: int = 1


class Dense(msgspec.Struct, frozen=True, array_like=True):
    """A parameter, float32."""

    name: str
    shape: tuple[int, ...]


class Definition(msgspec.Struct, frozen=True):
    """What the model is to its servers; every worker of a job says the same.

    dense: trainable parameters. tables: of rows. state: non-trainable numbers (BatchNorm), which server 0 keeps: of
    each worker what it pushed last, and gives out as their mean, weighted by the rows that each pushed. seed: of first
    values of rows.
    """

    optimizer: Optimizer
    dense: tuple[Dense, ...] = ()
    tables: tuple[TableSpec, ...] = ()
    state: tuple[Dense, ...] = ()
    seed: int = 0


class Progress(msgspec.Struct, frozen=True):
    """What of a leased task is in the parameters: sums over its rows that were pushed under this lease, as in
    `edl.tasks.task.Report`. A later one of the same lease (`task.attempt`) replaces it."""

    task: Task
    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0


# Calls of workers ------------------------------------------------------------------------------------------


class Define(msgspec.Struct, frozen=True):
    """Say what the model is. Arrays: first values, flat; to server 0 also the state, flat.

    The first definition of a generation counts; a later one that differs in more than values is refused. A server that
    was restored is defined already. Answer: `Defined`.
    """

    generation: int
    definition: Definition


class Defined(msgspec.Struct, frozen=True):
    """open: pulls and pushes are answered. Else the caller loads rows to start from, if there are any, and opens."""

    version: Version
    open: bool


class Load(msgspec.Struct, frozen=True):
    """Rows to start from, before the server is open. Arrays: int64 ids, float32 (n, dim). Answer: `Done`."""

    generation: int
    table: str


class Open(msgspec.Struct, frozen=True):
    """Everything that training starts from is there. Answer: `Done`."""

    generation: int


class Done(msgspec.Struct, frozen=True):
    pass


class Pull(msgspec.Struct, frozen=True):
    """Get parameters. Arrays: int64 ids for each of `tables`, all of this server, each id once.

    dense: wanted, unless the version is still `known`. state: wanted; server 0 only, and with it what `instance` pushed
    as its `private` last, if it names one. at_least: wait for this step, up to `wait_secs`; then what there is. A row
    that was never pushed is its first value. Answer: `Pulled`.
    """

    generation: int
    tables: tuple[str, ...] = ()
    dense: bool = False
    known: Version | None = None
    state: bool = False
    instance: str = ""
    at_least: int = 0
    wait_secs: float = 0.0


class Pulled(msgspec.Struct, frozen=True):
    """Arrays: flat parameters if `dense`, float32 (n, dim) for each table asked for, the flat state if `state`."""

    version: Version
    dense: bool = False
    state: bool = False
    private: bytes = b""


class Push(msgspec.Struct, frozen=True):
    """Gradients. Arrays: flat gradients (of size 0: none), then ids and gradients (n, dim) for each of `tables`, each
    id once; to server 0 then the worker's state, flat, if `state`.

    sequence: of this start of the instance at this server, growing, each sent when the one before was answered; one
    that was applied is answered and not applied again, as is one of an earlier start. rate: the learning rate of the
    step. tables: all that were read, with no ids if none is of this server: a table counts the steps that name it.
    rows: how many the gradients are the mean over; 0 pushes state alone. ticket: sync only. progress: what of the task
    is in with this push. private: of the worker alone (random numbers), kept by server 0 with the
    cut. pull: answered in the same call, after the push was applied (in sync, kept for its round); its
    arrays follow. Answer: `Pushed`.
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


class Pushed(msgspec.Struct, frozen=True):
    """Arrays: those of `pulled`. revoked: the lease of the push's progress is void, and nothing was applied here."""

    version: Version
    revoked: bool = False
    pulled: Pulled | None = None


class Ticket(msgspec.Struct, frozen=True):
    """Server 0, sync: may a gradient that was computed on `version`, of the lease `lease`, join the round?

    version: the least of those that were pulled for it: servers come to a version one after another, server 0 last. An
    instance has one ticket that did not land; asking again gives the same. Waits up to `wait_secs` while all tickets of
    the round are given out: then it commits, or one is revoked.
    """

    generation: int
    instance: str
    incarnation: int
    lease: int
    version: Version
    wait_secs: float = 0.0


class Ticketed(msgspec.Struct, frozen=True):
    """granted: `ticket`, above 0. stale: pull and compute again. revoked: the lease is void. wait: ask again."""

    outcome: Literal["granted", "stale", "revoked", "wait"]
    version: Version
    ticket: int = 0


class Confirm(msgspec.Struct, frozen=True):
    """Server 0, sync: what was pushed with `ticket` is on every server. Answer: `Landed`."""

    generation: int
    ticket: int


class Flush(msgspec.Struct, frozen=True):
    """Server 0, sync: there is nothing more to push for now: commit the round with the tickets that landed, once those
    that were given out have landed or are revoked; wait for that up to `wait_secs`. Answer: `Landed`.
    """

    generation: int
    wait_secs: float = 0.0


class Confirmed(msgspec.Struct, frozen=True):
    """The version of the last round that was committed; `stale`: the ticket's gradient was not taken, compute again;
    `idle`: no gradient that landed waits for its round.

    A gradient that landed is in the parameters as soon as a version with a greater step than the one that its ticket
    was asked for is committed.
    """

    version: Version
    stale: bool = False
    idle: bool = False


class Export(msgspec.Struct, frozen=True):
    """Rows of a table by ascending id, after `after`, `limit` at most. Answer: `Exported`; arrays: ids, rows."""

    generation: int
    table: str
    after: int | None = None
    limit: int = 65536


class Exported(msgspec.Struct, frozen=True):
    """more: there are rows behind these. total: rows of the table on this server."""

    more: bool
    total: int


# Calls of the master, and of server 0 to the others --------------------------------------------------------


class Shard(msgspec.Struct, frozen=True):
    """A file of a cut. crc: CRC-32 of its bytes. error: why it could not be written, then it is not there."""

    index: int
    file: str
    bytes: int = 0
    crc: int = 0
    error: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """What makes shards a cut. at: the version of server 0. consistent: all servers were cut at the same one."""

    at: Version
    mode: Mode
    shards: tuple[Shard, ...]
    consistent: bool
    version: int = 1


class Arrange(msgspec.Struct, frozen=True):
    """Be server `index` of those at `addresses`. A greater generation or life: forget everything, and restore.

    restore: a complete cut in the store, of however many servers (`edl.ps.checkpoint.manifests`); empty: nothing
    is known yet. manifest: of the cut `restore` that as many servers hold in memory
    (`edl.ps.checkpoint.replication`); it is not in the store. The same generation and life again: only the
    addresses are new. Answer: `Arranged`. leased: the last lease that was given out by then; valid: those that are
    out. The others up to it are void, which a server that restored a cut cannot know.
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
    """Copy everything now, and write it in the background: `server-INDEX.safetensors` in `folder` of the store.

    To server 0: it has the others do the same (alone=True) at the same version, in sync between two rounds. A cut that
    failed is begun again in another folder. wait: answer when it is complete, with its manifest. Answer: `CutTaken`.
    memory: keep it in memory, and have the neighbour keep it too; the names of folders sort by time. kept: earlier
    ones that stay in memory.
    """

    generation: int
    folder: str
    alone: bool = False
    wait: bool = False
    memory: bool = False
    kept: tuple[str, ...] = ()


class CheckpointTaken(msgspec.Struct, frozen=True):
    """progress: of leases, at least of each that was not finished at the cut before. shards: with `wait`, of all."""

    version: Version
    progress: tuple[Progress, ...] = ()
    shards: tuple[Shard, ...] = ()


class Keep(msgspec.Struct, frozen=True):
    """Keep a piece of a shard, from the byte `start`. Array: uint8; pieces come in order, and the last one makes it
    complete, if the shard is what its sender says. Answer: `Done`."""

    checkpoint: str
    shard: Shard
    start: int


class Fetch(msgspec.Struct, frozen=True):
    """Get a piece of a shard in memory, from the byte `start`. Answer: `Done`; array: uint8."""

    checkpoint: str
    index: int
    start: int


class Commit(msgspec.Struct, frozen=True):
    """Server 0 to another: apply what was pushed with these tickets as the round `step`, forget the earlier ones."""

    generation: int
    step: int
    tickets: tuple[int, ...]


class Revoke(msgspec.Struct, frozen=True):
    """These leases are void. Answer: `Revoked`, with what of them is in the parameters for good.

    In async a worker that dies between its pushes leaves one on some servers only: what is on any of them is not
    computed again, so that no gradient counts twice anywhere.
    """

    generation: int
    leases: tuple[int, ...]


class Revoked(msgspec.Struct, frozen=True):
    progress: tuple[Progress, ...] = ()


class Status(msgspec.Struct, frozen=True):
    """Answer: `Figures`."""


class Figures(msgspec.Struct, frozen=True):
    """What a server has and did since it started. rows: by table. bytes: of parameters, rows and slots. busy: seconds
    spent in calls of workers. written: shards of cuts that are on disk, or with the neighbour, by folder; the last few.
    """

    index: int = -1
    generation: int = 0
    version: Version = Version()
    defined: bool = False
    open: bool = False
    rows: dict[str, int] = {}
    bytes: int = 0
    pulls: int = 0
    pushes: int = 0
    rows_pulled: int = 0
    rows_pushed: int = 0
    stale: int = 0
    busy: float = 0.0
    written: dict[str, Shard] = {}
