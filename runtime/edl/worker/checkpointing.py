"""Checkpoints of a trainer that holds the weights: its whole state between two steps, from which another trainer
resumes.

A checkpoint is a folder:

    weights.safetensors   weights and non-trainable state
    state.safetensors     optimizer slots and steps, random generator state
    best.safetensors      weights of the best epoch, if they are kept
    position.msgpack      step and the epoch logs passed to callbacks; written last

Weights are copied between two steps, and written and published by a thread (`edl.checkpoints`). Rows of tables are not
copied: the thread reads them while the training goes on, and those that change before are copied first
(`edl.embeddings.cut`). A folder gets its final name once it is complete.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import numpy as np

from edl.arrays import Array
from edl.checkpoints import POSITION, CheckpointStore
from edl.errors import SpecError, SQLFlowError
from edl.files import sync
from edl.logs import log
from edl.models import weights as weight_files
from edl.spec import Checkpoints
from edl.tasks.task import Report

Arrays = Mapping[str, Array]
VERSION = 3
_PARTIAL = ".partial"


class Position(msgspec.Struct, frozen=True):
    """Training position that is stored beside the arrays.

    `notified` has the epochs with the logs that the callbacks received. `best` is the epoch of the best weights, if
    they are kept. `unconcluded` is the epoch that has just ended and is not concluded, or 0: an all-reduce group keeps
    the weights of such an epoch until it is concluded, and they are those of the checkpoint.
    """

    step: int
    notified: tuple[tuple[int, dict[str, float]], ...] = ()
    best: int = 0
    unconcluded: int = 0
    version: int = VERSION


class TrainerCheckpoint(msgspec.Struct, frozen=True):
    """Complete state of a trainer."""

    position: Position
    weights: Arrays
    state: Arrays
    best: Arrays | None = None


class Checkpointer:
    """Writer of checkpoints into `store`, one at a time; removes old ones.

    It begins when it is first called, since another worker may have written those before. `writer` distinguishes the
    names from those of other trainers. `disk` returns a number that changes when earlier checkpoints may have been lost
    with their disk; a checkpoint is then due. `begin` is called with the name of a checkpoint and the progress of the
    open task once its arrays are copied, `written` once it is readable by others.
    """

    def __init__(
        self,
        store: CheckpointStore,
        when: Checkpoints,
        *,
        writer: str,
        disk: Callable[[], int] = lambda: 0,
        begin: Callable[[str, Report], None],
        written: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._when = when
        self._writer = writer
        self._disk = disk
        self._begin = begin
        self._written = written
        self._clock = clock
        self._at, self._step, self._on = 0.0, 0, 0
        self._kept: list[str] = []  # written by this trainer, oldest first; to be removed
        self._thread: threading.Thread | None = None

    def due(self, step: int) -> bool:
        """Return True if a checkpoint is due and the previous one is written."""
        if self._begun().is_alive():
            return False
        if self._on != self._disk():
            return True
        by_step = self._when.steps and step - self._step >= self._when.steps
        return bool(by_step or (self._when.secs and self._clock() - self._at >= self._when.secs))

    def take(
        self, checkpoint: Callable[[], Callable[[], TrainerCheckpoint]], step: int, done: Report
    ) -> None:
        """Call `checkpoint` now; write in the background what the function reads that it returns."""
        self._begun().join()
        name = f"{step:012d}-{self._writer}"
        disk = self._disk()
        taken = checkpoint()
        self._begin(name, done)
        self._thread = self._start(lambda: self._write(name, taken))
        self._at, self._step, self._on = self._clock(), step, disk

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the last checkpoint is written, at most `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _begun(self) -> threading.Thread:
        """Return the present thread, which at first looks for earlier checkpoints."""
        if self._thread is None:
            self._at, self._on = self._clock(), self._disk()
            self._thread = self._start(self._look)
        return self._thread

    def _start(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name="edl-checkpoint", daemon=True)
        thread.start()
        return thread

    def _look(self) -> None:
        try:
            self._kept = complete(self._store)
        except (OSError, SQLFlowError) as error:  # they stay until the job ends
            log(f"earlier checkpoints could not be listed: {error}")

    def _write(self, name: str, read: Callable[[], TrainerCheckpoint]) -> None:
        folder = self._store.folder
        partial = folder / f"{name}{_PARTIAL}"
        try:
            files = self._fill(partial, read())
            partial.replace(folder / name)
            sync(folder)
            self._store.publish(name, *files)
        except Exception as error:  # training continues; the next checkpoint tries again
            log(f"the checkpoint {name} could not be written: {error}")
            for path in (partial, folder / name):  # the partial folder, and the published one if it exists
                shutil.rmtree(path, ignore_errors=True)
            self._remove(name)
            return
        self._written(name)
        self._kept.append(name)
        self._remove_old()

    def _fill(self, partial: Path, checkpoint: TrainerCheckpoint) -> list[str]:
        """Write the files and return their names. The last one completes the checkpoint."""
        partial.mkdir(parents=True, exist_ok=True)
        parts = {"weights": checkpoint.weights, "state": checkpoint.state}
        if checkpoint.best is not None:
            parts["best"] = checkpoint.best
        for name, arrays in parts.items():
            _save(arrays, partial / f"{name}.safetensors")
        (partial / POSITION).write_bytes(msgspec.msgpack.encode(checkpoint.position))
        files = [*(f"{name}.safetensors" for name in parts), POSITION]
        for path in (*(partial / file for file in files), partial):
            sync(path)
        return files

    def _remove_old(self) -> None:
        if not self._when.keep:
            return
        # Keep one more than requested: if the master dies now, the next one may not know of the newest.
        while len(self._kept) > max(self._when.keep, 2):
            self._remove(self._kept.pop(0))

    def _remove(self, name: str) -> None:
        try:
            self._store.remove(name)
        except (OSError, SQLFlowError) as error:  # costs no more than disk space
            log(f"the checkpoint {name} could not be removed: {error}")


def complete(store: CheckpointStore) -> list[str]:
    """Return the names of the complete checkpoints, oldest first."""
    return [name for name in store.names(POSITION) if not name.endswith(_PARTIAL)]


def resumed(store: CheckpointStore, name: str) -> TrainerCheckpoint | None:
    """Return the checkpoint to resume from, None if `name` is "", and remove the others of earlier trainers.

    They may be of later steps than this trainer's first checkpoints, and would be taken for the newest.
    """
    for found in store.names():
        if found != name:
            store.remove(found)
    return read_checkpoint(store.fetch(name)) if name else None


def read_checkpoint(folder: Path) -> TrainerCheckpoint:
    """Return the checkpoint in this folder. Raises SpecError if it is missing, damaged, or of another version."""
    try:
        position = msgspec.msgpack.decode((folder / POSITION).read_bytes(), type=Position)
        if position.version != VERSION:
            raise SpecError(f"the checkpoint {folder.name} is of version {position.version}, not {VERSION}")
        best = folder / "best.safetensors"
        return TrainerCheckpoint(
            position,
            weight_files.loads((folder / "weights.safetensors").read_bytes()),
            weight_files.loads((folder / "state.safetensors").read_bytes()),
            weight_files.loads(best.read_bytes()) if best.exists() else None,
        )
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"the checkpoint {folder} cannot be read: {error}") from None


def _save(arrays: Arrays, path: Path) -> None:
    weight_files.save({name: np.asarray(array) for name, array in arrays.items()}, path)
