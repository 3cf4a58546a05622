"""Cuts: where a trainer is, between two steps, on disk; another one goes on from there as if nothing had been.

A cut is a folder:

    weights.safetensors   weights, and non-trainable state
    state.safetensors     the optimizer's slots and steps, random numbers
    best.safetensors      the weights of the best epoch, where they are kept
    position.msgpack      the step, and what the program's callbacks have heard; written last

Weights are copied between two steps and written by a thread. A folder gets its name when it is complete.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import numpy as np

from edl.errors import SpecError
from edl.models import weights as weight_files
from edl.nn.structure import Array
from edl.spec import Checkpoints

Arrays = Mapping[str, Array]
VERSION = 2
POSITION = "position.msgpack"


class Position(msgspec.Struct, frozen=True):
    """Where training stands, beside its arrays. heard: epochs with what callbacks were told of it. best: the epoch of
    the best weights, where they are kept."""

    step: int
    heard: tuple[tuple[int, dict[str, float]], ...] = ()
    best: int = 0
    version: int = VERSION


class Cut(msgspec.Struct, frozen=True):
    """All of a trainer's state."""

    position: Position
    weights: Arrays
    state: Arrays
    best: Arrays | None = None


class Checkpointer:
    """Writes cuts into `folder` when they are due, one at a time, and keeps the last ones.

    begin: told the name of a cut when its arrays are copied; written: told when it is complete.
    """

    def __init__(
        self,
        folder: Path,
        when: Checkpoints,
        *,
        begin: Callable[[str], None],
        written: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._when = when
        self._begin = begin
        self._written = written
        self._clock = clock
        self._at, self._step = clock(), 0
        self._kept = complete(folder)  # ours to remove one day, the oldest first
        self._thread: threading.Thread | None = None

    def due(self, step: int) -> bool:
        """Whether it is time for a cut, and the last one is written."""
        if self._thread is not None and self._thread.is_alive():
            return False
        by_step = self._when.steps and step - self._step >= self._when.steps
        return bool(by_step or (self._when.secs and self._clock() - self._at >= self._when.secs))

    def take(self, cut: Callable[[], Cut], step: int) -> None:
        """Copy the arrays now, and write them in the background."""
        self.wait()
        name = f"{step:012d}-{os.getpid()}"
        taken = cut()
        self._begin(name)
        self._thread = threading.Thread(target=self._write, args=(name, taken), name="edl-cut", daemon=True)
        self._thread.start()
        self._at, self._step = self._clock(), step

    def wait(self) -> None:
        """Until the last cut is written."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, name: str, cut: Cut) -> None:
        partial = self._folder / f"{name}.partial"
        try:
            self._fill(partial, cut)
            partial.replace(self._folder / name)
            _sync(self._folder)
        except Exception as error:  # training goes on, and tries again when the next one is due
            print(f"the checkpoint {name} could not be written: {error}", file=sys.stderr, flush=True)
            shutil.rmtree(partial, ignore_errors=True)
            return
        self._written(name)
        self._kept.append(name)
        self._remove_old()

    def _fill(self, partial: Path, cut: Cut) -> None:
        partial.mkdir(parents=True, exist_ok=True)
        _save(cut.weights, partial / "weights.safetensors")
        _save(cut.state, partial / "state.safetensors")
        if cut.best is not None:
            _save(cut.best, partial / "best.safetensors")
        (partial / POSITION).write_bytes(msgspec.msgpack.encode(cut.position))
        for file in partial.iterdir():
            _sync(file)

    def _remove_old(self) -> None:
        if not self._when.keep:
            return
        # One more than is asked for: a master that dies now may not have heard of the newest.
        while len(self._kept) > max(self._when.keep, 2):
            shutil.rmtree(self._folder / self._kept.pop(0), ignore_errors=True)


def complete(folder: Path) -> list[str]:
    """The names of the cuts that are complete, the oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if (path / POSITION).is_file() and path.suffix == "")


def keep_only(folder: Path, name: str) -> None:
    """Remove what earlier trainers left but the cut that this one goes on from; empty: none.

    Theirs may be of later steps than ours will be for a while, and would pass for the newest.
    """
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name != name:
                shutil.rmtree(path, ignore_errors=True)


def read_cut(folder: Path) -> Cut:
    """SpecError: it is not there, damaged, or of another version."""
    try:
        position = msgspec.msgpack.decode((folder / POSITION).read_bytes(), type=Position)
        if position.version != VERSION:
            raise SpecError(f"the checkpoint {folder.name} is of version {position.version}, not {VERSION}")
        best = folder / "best.safetensors"
        return Cut(
            position,
            weight_files.loads((folder / "weights.safetensors").read_bytes()),
            weight_files.loads((folder / "state.safetensors").read_bytes()),
            weight_files.loads(best.read_bytes()) if best.exists() else None,
        )
    except (OSError, msgspec.MsgspecError) as error:
        raise SpecError(f"the checkpoint {folder} cannot be read: {error}") from None


def _save(arrays: Arrays, path: Path) -> None:
    weight_files.save({name: np.asarray(array) for name, array in arrays.items()}, path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
