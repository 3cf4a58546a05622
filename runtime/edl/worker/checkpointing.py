"""Writer of a trainer's checkpoints (`edl.checkpoints.trainer`) while the training goes on.

Weights are copied between two steps, and written, read back and published by a thread. Rows of tables are not
copied: the thread reads them while the training goes on, and those that change before are copied first
(`edl.embeddings.cut`). A folder gets its final name once it is complete.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable

from edl.checkpoints import FIRST_SECS, STATE, CheckpointStore
from edl.checkpoints.trainer import PARTIAL, TrainerCheckpoint, complete, write_checkpoint
from edl.errors import SQLFlowError
from edl.files import sync
from edl.jobs.retention import superseded_checkpoints
from edl.logs import log
from edl.spec import Checkpoints
from edl.tasks.task import Report


class Checkpointer:
    """Writer of checkpoints into `store`, one at a time; removes old ones once a newer one was read back.

    It begins when it is first called, since another worker may have written the ones before, and takes the first one
    after FIRST_SECS if the setting in seconds is longer. `writer` distinguishes the
    names from other trainers' names. `disk` returns a number that changes when earlier checkpoints may have been lost
    with their disk; a checkpoint is then due. `begin` is called with the name of a checkpoint and the progress of the
    open task once its arrays are copied, `written` once it is readable by others; it may raise an error if that cannot
    be recorded.
    """

    def __init__(
        self,
        store: CheckpointStore,
        when: Checkpoints,
        *,
        writer: str,
        disk: Callable[[], int] = lambda: 0,
        begin: Callable[[str, Report], None],
        on_written: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._when = when
        self._writer = writer
        self._disk = disk
        self._begin = begin
        self._written = on_written
        self._clock = clock
        self._at, self._step, self._on = 0.0, 0, 0
        self._has_begun = False  # a checkpoint
        self._kept: list[str] = []  # written by this trainer, oldest first; to be removed
        self._thread: threading.Thread | None = None

    def is_due(self, step: int) -> bool:
        """Return True if a checkpoint is due and the previous one is written."""
        if self._start_thread().is_alive():
            return False
        if self._on != self._disk():
            return True
        by_step = self._when.steps and step - self._step >= self._when.steps
        secs = self._when.secs if self._has_begun else min(self._when.secs, FIRST_SECS)
        return bool(by_step or (secs and self._clock() - self._at >= secs))

    def take(
        self, checkpoint: Callable[[], Callable[[], TrainerCheckpoint]], step: int, done: Report
    ) -> None:
        """Call `checkpoint` now; write in the background what the function reads that it returns."""
        self._start_thread().join()
        name = self._name(step)
        disk = self._disk()
        taken = checkpoint()
        self._begin(name, done)
        self._thread = self._start(lambda: self._write(name, taken))
        self._at, self._step, self._on = self._clock(), step, disk
        self._has_begun = True

    def _name(self, step: int) -> str:
        """Return a name that no checkpoint of this trainer has.

        One may be due after a step and taken again before leaving, when the end of the epoch was concluded meanwhile.
        """
        name = f"{step:012d}-{self._writer}"
        count = sum(kept == name or kept.startswith(f"{name}.") for kept in self._kept)
        return f"{name}.{count}" if count else name

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the last checkpoint is written, at most `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _start_thread(self) -> threading.Thread:
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
        partial = folder / f"{name}{PARTIAL}"
        named = False
        try:
            files = write_checkpoint(partial, read())
            partial.replace(folder / name)
            named = True
            sync(folder)
            self._store.publish(name, *files)
            self._written(name)
        except Exception as error:  # training continues; the next checkpoint tries again
            log(f"the checkpoint {name} could not be written: {error}")
            shutil.rmtree(partial, ignore_errors=True)
            if named:
                shutil.rmtree(folder / name, ignore_errors=True)
                self._remove(name)
            return
        self._kept.append(name)
        self._remove_old()

    def _remove_old(self) -> None:
        if not self._when.keep:
            return
        try:
            resumable = self._store.names(STATE)
        except (OSError, SQLFlowError) as error:  # the next checkpoint tries again
            log(f"checkpoints to go back to could not be listed: {error}")
            return
        for name in superseded_checkpoints(self._kept, self._when.keep, resumable=resumable):
            self._kept.remove(name)
            self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            self._store.remove(name)
        except (OSError, SQLFlowError) as error:  # costs no more than disk space
            log(f"the checkpoint {name} could not be removed: {error}")
