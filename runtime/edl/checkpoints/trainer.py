"""Checkpoints of a trainer that holds the weights: its whole state between two steps, from which another trainer
resumes.

A checkpoint is a folder:

    weights.safetensors   weights and non-trainable state
    state.safetensors     optimizer slots and steps, random generator state
    best.safetensors      weights of the best epoch, if they are kept
    position.msgpack      step, the epoch logs passed to callbacks, and the checksums of the files; written last

`edl.worker.checkpointing` writes them while the training goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from edl.arrays import Array
from edl.checkpoints import DAMAGED, POSITION, STATE, CheckpointStore, sound_names
from edl.checkpoints.integrity import (
    Part,
    check_data,
    check_file,
    check_msgpack,
    checkpoint_error,
    read_error,
    seal_msgpack,
    write_file,
)
from edl.errors import DamagedError, SpecError
from edl.files import make_folders
from edl.models import weights as weight_files

Arrays = Mapping[str, Array]
VERSION = 3
PARTIAL = ".partial"
_REQUIRED = ("weights.safetensors", "state.safetensors")
_BEST = "best.safetensors"


class TrainerPosition(msgspec.Struct, frozen=True):
    """Training position that is stored beside the arrays.

    `notified` has the epochs with the logs that the callbacks received. `best` is the epoch of the best weights, if
    they are kept. `unconcluded` is the epoch that has just ended and is not concluded, or 0: an all-reduce group keeps
    the weights of such an epoch until it is concluded, and the checkpoint has them.

    On disk only: `files` are the other files, `crc` is the checksum of all that precedes it. Earlier versions wrote
    neither.
    """

    step: int
    notified: tuple[tuple[int, dict[str, float]], ...] = ()
    best: int = 0
    unconcluded: int = 0
    version: int = VERSION
    files: tuple[Part, ...] | msgspec.UnsetType = msgspec.UNSET
    crc: bytes | msgspec.UnsetType = msgspec.UNSET


class TrainerCheckpoint(msgspec.Struct, frozen=True):
    """Complete state of a trainer."""

    position: TrainerPosition
    weights: Arrays
    state: Arrays
    best: Arrays | None = None


def write_checkpoint(folder: Path, checkpoint: TrainerCheckpoint) -> list[str]:
    """Write the files durably, each read back, and return their names. The last one completes the checkpoint.

    Raises OSError if one cannot be written, DamagedError if it is read back differently.
    """
    make_folders(folder)
    parts = dict(zip(_REQUIRED, (checkpoint.weights, checkpoint.state), strict=True))
    if checkpoint.best is not None:
        parts[_BEST] = checkpoint.best
    files = tuple(
        write_file(
            folder / file,
            weight_files.contents({name: np.asarray(array) for name, array in arrays.items()}),
        )
        for file, arrays in parts.items()
    )
    position = msgspec.structs.replace(checkpoint.position, files=files, crc=bytes(4))
    last = write_file(folder / POSITION, [(0, memoryview(seal_msgpack(msgspec.msgpack.encode(position))))])
    return [*parts, last.file]


def read_checkpoint(folder: Path) -> TrainerCheckpoint:
    """Return the checkpoint in this folder.

    Raises DamagedError if it is not as it was written, SpecError if it was written by another version.
    """
    position = read_position(folder)
    parts = {part.file: part for part in position.files or ()}
    try:
        weights, state = (_arrays(folder, file, parts) for file in _REQUIRED)
        best = _arrays(folder, _BEST, parts) if _BEST in parts or _has_best(folder, parts) else None
    except DamagedError as error:
        raise checkpoint_error(folder, error) from None
    record = msgspec.structs.replace(position, files=msgspec.UNSET, crc=msgspec.UNSET)
    return TrainerCheckpoint(record, weights, state, best)


def read_position(folder: Path) -> TrainerPosition:
    """Return the position of a checkpoint. Raises DamagedError, or SpecError if it is of another version."""
    try:
        data = (folder / POSITION).read_bytes()
        position = msgspec.msgpack.decode(data, type=TrainerPosition)
        if position.crc is not msgspec.UNSET or position.files is not msgspec.UNSET:
            check_msgpack(data, POSITION)
    except OSError as error:
        raise checkpoint_error(folder, read_error(POSITION, error)) from None
    except DamagedError as error:
        raise checkpoint_error(folder, error) from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise checkpoint_error(folder, f"{POSITION} is not readable") from None
    if position.version != VERSION:
        raise SpecError(f"the checkpoint {folder.name} is of version {position.version}, not {VERSION}")
    return position


def verify_checkpoint(folder: Path) -> int:
    """Read all files, in pieces if they have checksums; return the step.

    Raises DamagedError if one is not as it was written, SpecError if it was written by another version.
    """
    position = read_position(folder)
    if position.files is msgspec.UNSET:
        return read_checkpoint(folder).position.step
    try:
        for part in position.files:
            check_file(folder / part.file, part)
    except DamagedError as error:
        raise checkpoint_error(folder, error) from None
    return position.step


def complete(store: CheckpointStore) -> list[str]:
    """Return the names of the complete checkpoints that are not known to be damaged, the first step first."""
    return [name for name in sound_names(store, POSITION) if not name.endswith(PARTIAL)]


def checkpoint_to_resume(store: CheckpointStore, name: str) -> TrainerCheckpoint | None:
    """Return the checkpoint to resume from, None if `name` is "".

    Removes incomplete checkpoints of earlier trainers. The complete ones stay until this trainer has written others.
    """
    checkpoint = read_checkpoint(store.fetch(name)) if name else None
    for incomplete in {*store.names()}.difference(complete(store), store.names(STATE), store.names(DAMAGED)):
        store.remove(incomplete)
    return checkpoint


def _arrays(folder: Path, file: str, parts: Mapping[str, Part]) -> dict[str, np.ndarray]:
    try:
        data = (folder / file).read_bytes()
    except OSError as error:
        raise read_error(file, error) from None
    if file in parts:
        check_data(data, parts[file])
    try:
        return weight_files.loads(data)
    except SpecError as error:  # of an earlier version, without a checksum
        raise DamagedError(f"{file}: {error.message}") from None


def _has_best(folder: Path, parts: Mapping[str, Part]) -> bool:
    """Return True if a checkpoint of an earlier version has the weights of the best epoch."""
    return not parts and (folder / _BEST).exists()
