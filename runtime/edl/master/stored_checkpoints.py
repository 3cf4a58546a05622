"""Checkpoints of a job as its master, and a command that resumes it, see them: complete, damaged, and with the state
that the master had when each was complete.

That state is the content of the state store at that moment. It makes every checkpoint one that the job can be resumed
from: when a newer one is damaged, and when the state store itself is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from edl.arrays import Array
from edl.checkpoints import (
    DAMAGED,
    POSITION,
    STATE,
    CheckpointStore,
    Facts,
    GoneError,
    mark_damaged,
    sound_names,
)
from edl.checkpoints.kept import KeptCheckpoint
from edl.checkpoints.trainer import PARTIAL, read_checkpoint, read_position, verify_checkpoint
from edl.errors import DamagedError, SpecError, SQLFlowError
from edl.files import replace_file
from edl.logs import log
from edl.master.state import Checkpoint, MasterState
from edl.master.state_store import pack, unpack
from edl.ps.checkpoint import manifests
from edl.spec import JobSpec
from edl.tasks import encoding

LEAP = 100  # more masters, and generations, than can have followed the checkpoint that a job resumes from


def stored_checkpoints(spec: JobSpec, store: CheckpointStore) -> StoredCheckpoints:
    """Return the checkpoints of a job in its store."""
    return StoredCheckpoints(store, manifests.MANIFEST if spec.cluster.parameter_servers else POSITION)


class ListedCheckpoint(NamedTuple):
    """Checkpoint in a list; `step` and `epoch` are None if they are not known. `damage` is known damage, or empty."""

    name: str
    step: int | None
    epoch: int | None
    facts: Facts
    damage: str


class StoredCheckpoints:
    """Checkpoints in `store`, each completed by its file `last`."""

    def __init__(self, store: CheckpointStore, last: str) -> None:
        self._store = store
        self._last = last
        self._damaged: set[str] = set()  # their marks may not have been written

    def is_there(self, name: str) -> bool:
        """Return True if the checkpoint exists and is not known to be damaged."""
        return name in self._sound()

    def bring_back(self, name: str, kept: KeptCheckpoint) -> None:
        """Fetch a kept checkpoint, unless it is here, or log that it is gone."""
        if self.is_there(name):
            return
        try:
            kept.fetch(name, self.folder_of(name))
        except GoneError as error:
            log(f"{error}, and was kept in the data source")

    def folder_of(self, name: str) -> Path:
        """Return the folder of a checkpoint on this disk."""
        return self._store.folder / name

    def size(self, name: str) -> int:
        """Return the bytes of a checkpoint on this disk."""
        return sum(path.stat().st_size for path in self.folder_of(name).iterdir())

    def is_damaged(self, name: str) -> bool:
        """Return True if the checkpoint is known to be damaged."""
        return name in self._damaged or name in self._store.names(DAMAGED)

    def verify(self, name: str) -> str:
        """Read the whole checkpoint. Return what is wrong with it, or an empty text; a damaged one is marked.

        Raises SpecError if it was written by another version.
        """
        verify = manifests.verify_checkpoint if self._last == manifests.MANIFEST else verify_checkpoint
        try:
            verify(self._store.fetch(name))
        except GoneError:
            return f"the checkpoint {name} is gone"
        except DamagedError as error:
            self.mark(name, error.message)
            return error.message
        if name in self._store.names(DAMAGED):
            return f"the checkpoint {name} is sound now; remove its file {DAMAGED} to resume from it"
        return ""

    @property
    def known_damage(self) -> list[str]:
        """Why checkpoints were found damaged earlier, the newest first."""
        return [self._damage(name) for name in reversed(self._store.names(DAMAGED))]

    def _damage(self, name: str) -> str:
        return (self._store.fetch(name, DAMAGED) / DAMAGED).read_text(encoding="utf-8").strip()

    def mark(self, name: str, why: str) -> None:
        """Mark a checkpoint as damaged."""
        self._damaged.add(name)
        try:
            mark_damaged(self._store, name, why)
        except (OSError, SQLFlowError) as error:
            log(f"the checkpoint {name} could not be marked as damaged: {error}")

    def older(self, name: str) -> Checkpoint | None:
        """Return the newest checkpoint that has a state and is not known to be damaged, apart from this one."""
        return next((state.checkpoint for folder, state in self._states() if folder != name), None)

    def newest_sound(self, checkpoint: Checkpoint | None) -> tuple[Checkpoint | None, list[str]]:
        """Return the known checkpoint if it is sound, else the newest sound one; and what is wrong with others."""
        wrong = self.known_damage
        while checkpoint is not None and (why := self.verify(checkpoint.folder)):
            wrong += [why] if why not in wrong else []
            checkpoint = self.older(checkpoint.folder)
        return checkpoint, wrong

    def newest_state(self) -> tuple[MasterState, list[str]]:
        """Return the state of the newest sound checkpoint, or one without a checkpoint, for a state store that is
        damaged; and what is wrong with newer checkpoints.
        """
        wrong = self.known_damage
        for name, state in self._states():
            if why := self.verify(name):
                wrong.append(why)
                continue
            state.epoch += LEAP
            state.generation += LEAP
            return state, wrong
        return MasterState(epoch=LEAP, generation=1 + LEAP), wrong

    def list_checkpoints(self) -> list[ListedCheckpoint]:
        """Return the checkpoints of the job, the newest last, without reading their arrays."""
        names = {*self._store.names(self._last), *self._store.names(DAMAGED)}
        finished = (
            name for name in names if not name.endswith(PARTIAL) and not name.startswith(manifests.BEST)
        )
        return [self._describe(name) for name in sorted(finished)]

    def _describe(self, name: str) -> ListedCheckpoint:
        state = ""
        if name in self._store.names(DAMAGED):
            state = self._damage(name)
        step: int | None = None
        epoch: int | None = None
        try:
            if name in self._store.names(STATE) and (checkpoint := self._state(name).checkpoint) is not None:
                step, epoch = checkpoint.job.step, checkpoint.job.current_epoch
            elif self._last == POSITION:
                step = read_position(self._store.fetch(name, POSITION)).step
        except (OSError, SQLFlowError) as error:
            state = state or str(error)
        return ListedCheckpoint(name, step, epoch, self._store.facts(name), state)

    def weights(self, name: str) -> Mapping[str, Array]:
        """Return the weights of a checkpoint. Raises DamagedError if it is not as it was written, SpecError if it was
        written by another version.
        """
        folder = self._store.fetch(name)
        if self._last == manifests.MANIFEST:
            return manifests.read_weights(folder)
        return read_checkpoint(folder).weights

    def add_state(self, name: str, data: bytes) -> None:
        """Add the content of the state store to a complete checkpoint, or log why that fails."""
        folder = self._store.folder / name
        try:
            if not self._store.shared:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(folder / STATE, pack(data), durable=True)
            self._store.publish(name, STATE)
        except FileNotFoundError:
            """It was removed meanwhile."""
        except (OSError, SQLFlowError) as error:
            log(f"the checkpoint {name} has no state of the job: {error}")

    def _states(self) -> Iterator[tuple[str, MasterState]]:
        """Yield the sound checkpoints with their states, the newest first."""
        having = {*self._store.names(STATE)}
        for name in reversed(self._sound()):
            if name in having and not name.startswith(manifests.BEST):
                try:
                    state = self._state(name)
                except (OSError, SQLFlowError) as error:
                    log(f"the state in the checkpoint {name} cannot be used: {error}")
                    continue
                if state.checkpoint_name == name:
                    yield name, state

    def _state(self, name: str) -> MasterState:
        path = self._store.fetch(name, STATE) / STATE
        try:
            return encoding.decode(unpack(path.read_bytes(), str(path)), MasterState)
        except msgspec.MsgspecError as error:
            raise SpecError(f"{path} is of another version: {error}") from None

    def _sound(self) -> list[str]:
        names = sound_names(self._store, self._last)
        return [name for name in names if name not in self._damaged and not name.endswith(PARTIAL)]
