"""Content of parameter servers at one moment: its version, the model it is of, and the files that have it."""

from __future__ import annotations

from typing import Literal

import msgspec

from edl.checkpoints.integrity import Part
from edl.embeddings import Optimizer, TableSpec
from edl.spec.job import DurableUpdates, RowLimits
from edl.tasks.task import Task


class Version(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Version of the parameters of one server; it never decreases for any client.

    `generation` is the job's generation; it grows when parameters and tasks are rolled back to a checkpoint together.
    `epoch` counts the processes that had this server's index, so that a server that was restored alone does not seem to
    go back. `step` counts applied pushes (async) or rounds (sync).
    """

    generation: int = 0
    epoch: int = 0
    step: int = 0


class Mode(msgspec.Struct, frozen=True):
    """Rule that turns pushes into steps. `grads_to_wait` is the number of pushes of a round, in sync.

    `durable_updates` and `max_staleness`, in async: see `edl.spec.Cluster`.
    """

    kind: Literal["async", "sync"] = "async"
    grads_to_wait: int = 1
    durable_updates: DurableUpdates = "none"
    max_staleness: int = 0

    @property
    def logs_updates(self) -> bool:
        return self.durable_updates != "none"


class Dense(msgspec.Struct, frozen=True, array_like=True):
    """Parameter, float32."""

    name: str
    shape: tuple[int, ...]


class ModelDefinition(msgspec.Struct, frozen=True):
    """Description of a model for its servers; all workers of a job send the same.

    `dense` are trainable parameters, `tables` the tables of rows. `state` are non-trainable numbers (BatchNorm): server
    0 keeps those that each worker pushed last, and returns their mean, weighted by each worker's pushed rows. `seed`
    determines the initial values of rows. `limits` are each table's limits over all servers.
    """

    optimizer: Optimizer
    dense: tuple[Dense, ...] = ()
    tables: tuple[TableSpec, ...] = ()
    state: tuple[Dense, ...] = ()
    seed: int = 0
    limits: RowLimits = RowLimits()


class Progress(msgspec.Struct, frozen=True):
    """Progress of a leased task that is in the parameters: sums over its rows that were pushed under this lease, as in
    `edl.tasks.task.Report`.

    A later one of the same lease (`task.attempt`) replaces it.
    """

    task: Task
    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    weight: float = 0.0


class Shard(msgspec.Struct, frozen=True):
    """File of one server in a checkpoint. `crc` is the CRC-32 of its bytes. `error` is the reason if it could not be
    written. `earlier` are files that it adds to, a whole one and others with what changed after the one before; then
    this one has the rows that changed after the last of them.
    """

    index: int
    file: str
    bytes: int = 0
    crc: int = 0
    error: str = ""
    earlier: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """All files, the oldest first."""
        return (*self.earlier, Part(self.file, self.bytes, self.crc))


class Manifest(msgspec.Struct, frozen=True):
    """Description of a complete checkpoint. `at` is the version of server 0."""

    at: Version
    mode: Mode
    shards: tuple[Shard, ...]
    version: int = 1
