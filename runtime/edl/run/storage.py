"""Storage in which a worker finds its job's model and stores the job's output.

For processes of one machine it is the job folder, which the client shares. Pods have no folder that outlives the job:
a worker reads from the data source itself, and stages its output there until the master commits it; or it sends the
output to the master, from which the client gets it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from edl.cluster.kubernetes.deployment import read_deployment
from edl.cluster.kubernetes.output_maps import ROOM
from edl.data import Source, connect
from edl.data.results import ResultFolder, ResultSink, ResultTable
from edl.data.retry import insisting
from edl.errors import JobError, SpecError
from edl.jobs.cluster_folder import OUTPUT, ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.pending import Intent, read_intent, registry_of
from edl.models.registry.base import Registry
from edl.run import initial_weights
from edl.spec import JobSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.checkpoints.master_client import Relay


class Storage(Protocol):
    @property
    def most(self) -> int:
        """Limit of a model in bytes, or 0."""
        ...

    def model(self) -> Path | None:
        """Return the archive or weights that the job uses or starts from, or None if it needs none."""
        ...

    def results(self) -> ResultSink:
        """Return the destination of results of PREDICT, EVALUATE and EXPLAIN."""
        ...

    def keep(self, outcome: Outcome) -> Outcome:
        """Move the written archive to its final storage. Return the outcome with its location."""
        ...


class InFolder:
    """Storage in the job folder."""

    most = 0

    def __init__(self, job: JobFolder) -> None:
        self._job = job

    def model(self) -> Path | None:
        return initial_weights.find_copied_weights(self._job)

    def results(self) -> ResultSink:
        return ResultFolder(self._job.results)

    def keep(self, outcome: Outcome) -> Outcome:
        return outcome


class InSource:
    """Storage in the job's data source, over one connection that is opened on demand."""

    most = 0

    def __init__(self, job: JobFolder, spec: JobSpec, intent: Intent) -> None:
        self._job = job
        self._spec = spec
        self._intent = intent

    def model(self) -> Path | None:
        reference, path = self._spec.trained_model, self._job.model
        if reference and not path.exists():
            insisting(lambda _: self._registry.load(reference, path))
        return path if reference else None

    def results(self) -> ResultSink:
        folder = ResultFolder(self._job.results)
        if not self._intent.name:  # metrics of EVALUATE, which the outcome holds too
            return folder
        return ResultTable(
            folder, lambda: self._source, self._intent.name, self._job.id, append=self._intent.append
        )

    def keep(self, outcome: Outcome) -> Outcome:
        name, archive = self._intent.name, self._job.archive
        if self._intent.record is None:
            raise SpecError(f"job {self._job.id} stores no model")
        record = msgspec.structs.replace(self._intent.record, metrics=outcome.figures)
        current = self._intent.activates(outcome.figures)
        version = insisting(
            lambda _: self._registry.save(name, archive, record, once=self._job.id, current=current),
            keeps=True,
        )
        if facts := self._intent.facts:
            insisting(lambda _: self._registry.describe(name, facts), keeps=True)
        archive.unlink()
        return msgspec.structs.replace(outcome, archive="", stored=f"{name}@{version}")

    @cached_property
    def _source(self) -> Source:
        return insisting(lambda _: connect(self._intent.source))

    @cached_property
    def _registry(self) -> Registry:
        return registry_of(self._intent, self._source)


class ThroughMaster(InFolder):
    """Storage of a pod with output that its client gets through the master, unless the intent names paths of pods.

    `most` is the limit of a model in bytes.
    """

    def __init__(self, job: JobFolder, intent: Intent, most: int) -> None:
        super().__init__(job)
        self._path = Path(intent.name) if intent.name else None
        self._weights = intent.weights
        self.most = most

    def model(self) -> Path | None:
        return Path(self._weights) if self._weights else super().model()

    def results(self) -> ResultSink:
        if self._path is not None:
            return ResultFolder(self._path)
        return _RelayedResults(relay_of(self._job))

    def keep(self, outcome: Outcome) -> Outcome:
        archive = self._job.archive
        if self._path is not None:
            partial = self._path.with_name(f"{self._path.name}.partial")
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(archive, partial)
                partial.replace(self._path)
            except OSError as error:
                raise JobError(f"the model cannot be written to {self._path}: {error.strerror}") from None
            return msgspec.structs.replace(outcome, archive="", stored=str(self._path))
        relay = relay_of(self._job)
        sent = relay.folder / OUTPUT / archive.name
        sent.parent.mkdir(parents=True, exist_ok=True)
        archive.replace(sent)
        relay.publish(OUTPUT, archive.name)
        return outcome


class _RelayedResults:
    """Sink that sends the rows of each task to the master."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._folder = ResultFolder(relay.folder / OUTPUT)

    def stage(self, task: int, attempt: int, batches: Iterable[pa.RecordBatch]) -> int:
        rows = self._folder.stage(task, attempt, batches)
        self._relay.publish(OUTPUT, self._folder.staged_files()[task].name)
        return rows


def relay_of(job: JobFolder) -> Relay:
    """Return the connection that an instance sends and fetches the job's files over if it shares no folder."""
    from edl.checkpoints.master_client import Relay  # imports gRPC

    folder = ClusterFolder(job.path)
    alone = folder.is_deployed  # a pod shares its disk with no other instance
    copies = job.relay_folder if alone else job.own / f"relayed-{os.getpid()}"
    return Relay(copies, folder.address(), folder.token())


def storage_of(job: JobFolder, spec: JobSpec) -> Storage:
    """Return the job's storage.

    Raises SpecError if the job runs in pods without a stored destination of its output.
    """
    if (deployment := read_deployment(job.path)) is None:
        return InFolder(job)
    intent = read_intent(job.path)
    if intent is None:
        raise SpecError(f"there is no output destination for job {job.id}")
    if intent.source:
        return InSource(job, spec, intent)
    return ThroughMaster(job, intent, deployment.outputs * ROOM)
