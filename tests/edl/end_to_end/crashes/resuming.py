"""Resumption from what a crash has left: what has to be there, and whether it is."""

from __future__ import annotations

import contextlib
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from edl.checkpoints import STATE
from edl.checkpoints.trainer import PARTIAL
from edl.cluster.local.client import SupervisedJob
from edl.errors import SpecError, SQLFlowError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import decode_event
from edl.jobs.events import TrialEnd
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.master import resume
from edl.master.state import MasterState
from edl.master.state_store import unpack
from edl.models.archive import read_archive
from edl.models.commit import kept_outcome
from edl.models.pending import destination
from edl.program import load, unload
from edl.ps import wire
from edl.ps.update_log import UPDATES, replay
from edl.run.search.judge import Judge
from edl.tasks import encoding
from tests.edl.end_to_end.crashes.disk import CRASHES, Disk, Folder, Tree, digest, read_tree, tree, write
from tests.edl.end_to_end.crashes.recording import JOBS, MODEL, Operation

Weights = Mapping[str, np.ndarray]
End = Literal["stored", "model", "resumed", "beginning", "nothing"]
NO_PART = (STATE, PARTIAL)  # names, or their ends, that a checkpoint has besides


class LostError(AssertionError):
    """Something that was promised is lost."""


class Resumed(NamedTuple):
    """End of a state: the model `stored`, or in the folder of the job (`model`); `resumed` from a checkpoint or
    behind ended trials, or from the `beginning`; or there is `nothing` to resume, where nothing was promised.

    `point` distinguishes what the job goes on from.
    """

    end: End
    point: str = ""


@dataclass
class Promised:
    """Facts that others were told by a moment of the run, which must be there after a crash.

    `checkpoint` is the one that the state store refers to, of the step `step`; `trials` is the number of ended trials
    that were shown. `updates` are, by server, the checksums of acknowledged pushes, and the names of checkpoints where
    those begin that follow them. `model`: the outcome is announced; `stored`: the command says that it is stored.
    """

    checkpoint: str = ""
    step: int = 0
    trials: int = 0
    updates: dict[str, list[int | str]] = field(default_factory=dict)
    model: bool = False
    stored: bool = False

    def add(self, operation: Operation) -> None:
        if operation.what != "ack":
            return
        if operation.path == "stored":
            self.stored = True
            return
        [data] = operation.more
        assert isinstance(data, bytes)
        if operation.path == "state":
            state = encoding.decode(data, MasterState)
            self.checkpoint, self.step = state.checkpoint_name, state.checkpoint_step
        elif operation.path == "event":
            event = decode_event(data)
            self.trials += isinstance(event, TrialEnd)
            self.model |= isinstance(event, Outcome)
        else:
            server, _, what = data.decode().partition(" ")
            self.updates.setdefault(server, []).append(int(what) if operation.path == "push" else what)

    @property
    def key(self) -> tuple[object, ...]:
        pushes = sum(map(len, self.updates.values()))
        return self.checkpoint, self.trials, pushes, self.model, self.stored

    def updates_since(self, checkpoint: str, server: str) -> list[int]:
        """Return the checksums of the acknowledged pushes to a server since a checkpoint."""
        found = self.updates.get(server, [])
        since = found[found.index(checkpoint) :] if checkpoint in found else found
        return [each for each in since if isinstance(each, int)]


class Run:
    """Recorded run: the weights of its model, which `is_model` recognizes, and the contents of its checkpoints when the
    state store referred to them for the first time.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        weights: Weights,
        is_model: Callable[[Weights], bool] | None = None,
    ) -> None:
        self.operations = operations
        self.weights = weights
        self._is_model = is_model or (lambda found: same(found, weights))
        self.checkpoints: dict[str, bytes] = {}
        disk = new_disk()
        for operation in operations:
            disk.apply(operation)
            if operation.what == "ack" and operation.path == "state":
                [data] = operation.more
                assert isinstance(data, bytes)
                self._learn(encoding.decode(data, MasterState).checkpoint_name, disk)
        for job in at(
            disk.root, *JOBS.parts
        ).names.values():  # killed before the master could say that it refers to it
            if isinstance(job, Folder) and isinstance(found := job.names.get("checkpoints"), Folder):
                for name in found.names:
                    self._learn(name, disk)

    def _learn(self, name: str, disk: Disk) -> None:
        if name and name not in self.checkpoints:
            [job] = at(disk.root, *JOBS.parts).names
            found = at(disk.root, *JOBS.parts, job, "checkpoints", name)
            self.checkpoints[name] = digest(tree(found, *CRASHES["processes"]), without=NO_PART)

    def check(self, content: Tree, promised: Promised, folder: Path) -> Resumed:
        """Resume from what a crash has left; `folder` is free. Raises LostError if something is lost."""
        write(content, folder)
        try:
            return self.check_folder(folder, promised)
        finally:
            shutil.rmtree(folder)

    def check_damaged(self, content: Tree, folder: Path) -> Resumed:
        """Resume a job of which a checkpoint or the state is damaged, and which has no model yet. Raises LostError if
        that is not noticed, or if it does not go on from the newest sound checkpoint with a state.
        """
        write(content, folder)
        try:
            job = job_in(folder)
            assert job is not None
            has_state = {path.parent.name for path in job.checkpoints.glob(f"*/{STATE}")}
            sound = {
                name
                for name in has_state & self.checkpoints.keys()
                if digest(read_tree(job.checkpoints / name), without=NO_PART) == self.checkpoints[name]
            }
            found = resume.prepare(job)
            if not found.warnings:
                raise LostError("the damage, which is not noticed")
            if found.checkpoint != max(sound, default=""):
                raise LostError(f"{max(sound)}, not {found.checkpoint}")
            return Resumed("resumed", found.checkpoint)
        finally:
            shutil.rmtree(folder)

    def check_folder(self, folder: Path, promised: Promised) -> Resumed:
        """Resume from what there is in the folder, which is ready to be gone on with then."""
        if (folder / MODEL).exists():  # which appears only when it is complete
            self._is_the_model(folder / MODEL)
            return Resumed("stored")
        if promised.stored:
            raise LostError("the stored model")
        job = job_in(folder)
        try:
            if job is None:
                raise SpecError("there is no job folder")
            found = resume.prepare(job)
        except SQLFlowError as error:
            return self._unresumed(job, promised, error)
        if promised.model:
            raise LostError("the model")
        if found.warnings:
            raise LostError(f"what is damaged: {found.warnings}")
        if found.step < promised.step:
            raise LostError(f"{promised.checkpoint}: {found}")
        return self._checked(job, found, promised)

    def _unresumed(self, job: JobFolder | None, promised: Promised, error: SQLFlowError) -> Resumed:
        """Check a job that is not to be resumed, because its model is there, or nothing was promised yet."""
        if job is not None and job.archive.exists():
            self._is_the_model(job.archive)
            intent = destination(job.path)
            if not (job.status() and intent is not None and intent.file and kept_outcome(job)):
                raise LostError("what stores the model") from error
            return Resumed("model")
        if promised.checkpoint or promised.trials or promised.model or any(promised.updates.values()):
            raise LostError(f"the job: {error}") from error
        return Resumed("nothing")

    def _checked(self, job: JobFolder, found: resume.Resumption, promised: Promised) -> Resumed:
        """Check what the processes of the job will read."""
        path = ClusterFolder(job.path).state
        state = MasterState()
        if path.exists():
            state = encoding.decode(unpack(path.read_bytes(), str(path)), MasterState)
        if state.checkpoint_name != found.checkpoint:
            raise LostError(f"the state has {state.checkpoint_name}, not {found.checkpoint}")
        if found.checkpoint:
            there = read_tree(job.checkpoints / found.checkpoint)
            if digest(there, without=NO_PART) != self.checkpoints.get(found.checkpoint):
                raise LostError(f"{found.checkpoint} is not as it was")
        trials = self._check_trials(job, promised)
        for server in promised.updates:
            updates = replay(job.checkpoints / UPDATES / server, state.generation, found.checkpoint)
            replayed = {zlib.crc32(wire.encode(push, arrays)) for push, arrays in updates}
            if missing := {*promised.updates_since(found.checkpoint, server)} - replayed:
                raise LostError(f"{len(missing)} updates of {server} since {found.checkpoint!r}")
        end: End = "resumed" if found.checkpoint or trials else "beginning"
        return Resumed(end, f"{found.checkpoint} {trials}")

    def _check_trials(self, job: JobFolder, promised: Promised) -> int:
        if not job.search.is_dir():
            if promised.trials:
                raise LostError("all trials")
            return 0
        with judge(job) as judged:
            judged.drop_damaged()
            ended = [trial for trial in judged.trials().values() if trial.value is not None]
        if len(ended) < promised.trials:
            raise LostError(f"{promised.trials - len(ended)} of {promised.trials} trials")
        if (began := job.search_began).exists():
            float(began.read_text(encoding="ascii"))
        return len(ended)

    def _is_the_model(self, file: Path) -> None:
        found = dict(read_archive(file).weights())
        if not self._is_model(found):
            raise LostError(f"the weights in {file.name}")


def finish(job: JobFolder) -> Weights:
    """Run a job that was prepared to its end, in processes of its own; return the weights of its model."""
    with SupervisedJob.start(job, ClusterFolder(job.path).run_spec()) as running:
        running.follow(lambda event: None)
    return dict(read_archive(job.archive).weights())


def same(found: Weights, expected: Weights) -> bool:
    return found.keys() == expected.keys() and all(
        np.array_equal(found[name], expected[name], equal_nan=True) for name in expected
    )


@contextlib.contextmanager
def judge(job: JobFolder) -> Iterator[Judge]:
    program = load(job.program)
    try:
        yield Judge(program, job)
    finally:
        unload(program.module)


def job_in(folder: Path) -> JobFolder | None:
    """Return the only job of a state folder, or None if it is gone."""
    return next((JobFolder(path) for path in (folder / JOBS).iterdir()), None)


def new_disk() -> Disk:
    """Return the disk before the client of the job starts."""
    return Disk(JOBS, MODEL.parent)


def at(folder: Folder, *names: str) -> Folder:
    for name in names:
        found = folder.names[name]
        assert isinstance(found, Folder)
        folder = found
    return folder
