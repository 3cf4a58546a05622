"""Resumption of a training that failed, died or was interrupted: its folder is prepared for a new supervisor and a new
master. One that ran in one process (`edl.run.one_process`) continues with one worker.

The new master reads the state of the last one, and finds that all instances are gone. So it goes back to the last
checkpoint, as after any loss of all instances: weights, optimizer slots, random state and the position in the rows go
back together, and the rest is trained as it would have been. The checkpoint is read before: if it is damaged, an older
one that is sound takes its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from edl.checkpoints import factory
from edl.checkpoints.kept import KeptCheckpoint, keeps_checkpoints
from edl.data import open_reader
from edl.data.pinned import read_pinned, verify_rows
from edl.errors import ClusterError, DamagedError, SourceError, SpecError, SQLFlowError
from edl.files import replace_file
from edl.jobs import job_folder, script_run
from edl.jobs.cluster_folder import ClusterFolder, Process
from edl.jobs.event_log import forget_end
from edl.jobs.job_folder import JobFolder, Status
from edl.logs import log
from edl.master.state import Checkpoint, MasterState
from edl.master.state_store import FileStateStore
from edl.master.stored_checkpoints import stored_checkpoints
from edl.master.tasks.lease_table import repeated_steps
from edl.models.pending import destination, orders_damage, store_command, unmark_handled
from edl.spec import JobSpec, from_json
from edl.tasks import encoding

WAIT_SECONDS = 5.0  # time for the last master to end, which notices the death of its supervisor at once
POLL = 0.05


class Resumption(msgspec.Struct, frozen=True):
    """Point where a job is resumed. `checkpoint` is empty if it starts from the beginning; a search has none, and
    continues after its finished trials.

    `warnings` say what is damaged. `last` is the step of the damaged checkpoint that it would have been resumed from, 0
    if it was sound or its step is not known.
    """

    checkpoint: str = ""
    step: int = 0
    epoch: int = 0
    trials: int = 0
    last: int = 0
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self._point, *(f"warning: {warning}" for warning in self.warnings)))

    @property
    def _point(self) -> str:
        if self.trials:
            return f"the search resumes after {self.trials} finished trial{'' if self.trials == 1 else 's'}"
        again = f"; {repeated_steps(self.step, self.last)}" if self.last > self.step else ""
        if not self.checkpoint:
            which = "sound checkpoint" if self.warnings else "checkpoint"
            return f"there is no {which}: training starts from the beginning{again}"
        return f"training resumes from step {self.step:,}, in epoch {self.epoch}{again}"


def prepare(job: JobFolder) -> Resumption:
    """Prepare the job to be started again; from now on it counts as running.

    Raises ClusterError if it cannot be resumed, and SourceError if its rows are gone or damaged.
    """
    check(job)
    with _lock_job(job):
        check(job)
        _verify_rows(job)
        folder = ClusterFolder(job.path)
        with contextlib.closing(_state_store(folder)) as store:
            resumption = _reset(store, job)
        _postpone(job)
        forget_end(folder.events)
        folder.snapshot.unlink(missing_ok=True)
        unmark_handled(job.path)
        us = Process.of(os.getpid())
        job.update(state="running", ended="", error="", pid=us.pid, started_as=us.started_as)
        return resumption


def check(job: JobFolder) -> None:
    """Raise ClusterError if the job cannot be resumed, and SourceError if its rows are gone."""
    status = job.status()
    if (why := _obstacle(job, status)) is not None:
        raise ClusterError(f"job {job.id} cannot be resumed: {why[0]}", hint=why[1])
    if (lack := _missing_part(job, status)) is not None:
        raise ClusterError(f"job {job.id} cannot be resumed: {lack[0]}", hint=lack[1])
    for rows in _pinned_rows(job):
        try:
            pinned = read_pinned(rows)
            if pinned.source:
                open_reader(pinned, rows)
        except (SpecError, SourceError) as error:
            raise SourceError(
                f"job {job.id} cannot be resumed, because its rows are gone: {error.message}",
                hint="train again",
            ) from None


def _verify_rows(job: JobFolder) -> None:
    """Raise SourceError if the pinned rows are not as they were written: others would be trained on."""
    for rows in _pinned_rows(job):
        try:
            verify_rows(rows)
        except SpecError as error:
            raise SourceError(
                f"job {job.id} cannot be resumed, because its rows are damaged: {error.message}",
                hint="train again",
            ) from None


def _pinned_rows(job: JobFolder) -> Iterator[Path]:
    """Yield the folders of the job's pinned rows; a script has none."""
    if job.status().kind == "train":
        yield from filter(Path.is_dir, (job.rows, job.validation_rows))


def _obstacle(job: JobFolder, status: Status) -> tuple[str, str | None] | None:
    """Return what excludes that a job in this state is resumed, with a hint, or None."""
    again = "run its statement again"
    if status.is_alive:
        return "it runs", f"follow it with `sqlflow attach {job.id}`"
    if status.place and status.kind == "train" and not ClusterFolder(job.path).is_kept:
        return f"it ran on {status.place}, and no checkpoint of it was kept", again
    if status.state in ("done", "finished"):
        return "it has succeeded", None
    if status.state == "cancelled":
        return "it was cancelled, which removes its checkpoints", again
    if status.kind != "train" and not script_run.keeps_state(job.path):
        return f"it is not a training, but of the kind {status.kind}", again
    if not status.place and not ClusterFolder(job.path).has_run_spec:
        return "it ran in one process, which wrote no checkpoints", again
    return None


def _missing_part(job: JobFolder, status: Status) -> tuple[str, str | None] | None:
    """Return what a training or a script lacks to be resumed, with a hint, or None."""
    again = "run its statement again"
    if job.archive.exists():
        why = f"it has trained its model, which could not be stored: {status.error}"
        return why, f"it is {job.archive}, and {store_command(job.path)} stores it"
    if (damage := orders_damage(job.path)) is not None:
        return damage, job.export_hint
    if not status.place and not Path(folder := ClusterFolder(job.path).run_spec().folder).is_dir():
        return f"the folder in which it was started is gone: {folder}", None
    if not job.can_resume:
        days = job_folder.KEPT.days
        return f"its rows and checkpoints were removed, {days} days after its end or by --clean", again
    return None


def point(job: JobFolder) -> Resumption:
    """Return where an ended job would continue, without reading its checkpoint.

    Raises ClusterError if its last master has not ended.
    """
    with contextlib.closing(_state_store(ClusterFolder(job.path))) as store:
        data = store.read()
    if data is None:
        return Resumption()
    state = encoding.decode(data, MasterState)
    checkpoint = state.checkpoint
    # Those in memory are gone.
    is_complete = (
        checkpoint is not None
        and checkpoint.manifest is None
        and stored_checkpoints(_spec(job), factory.for_master(job.path)).is_there(checkpoint.folder)
    )
    return _point(state, checkpoint if is_complete else None)


def _reset(store: FileStateStore, job: JobFolder) -> Resumption:
    """Remove the end of the job from the state of its master; return where the job continues.

    That is the newest sound checkpoint, which becomes the one of the state. A damaged state is replaced by the
    checkpoint's.
    """
    spec = _spec(job)
    checkpoints = stored_checkpoints(spec, factory.for_master(job.path))
    try:
        data = store.read()
    except DamagedError as error:
        state, wrong = checkpoints.newest_state()
        warnings = (error.message, *wrong)
        store.set_aside()
        last, sound = 0, state.checkpoint
    else:
        if data is None and spec.cluster.workers:
            return Resumption()
        state = encoding.decode(data, MasterState) if data is not None else MasterState()
        last = state.checkpoint_step
        recorded = state.checkpoint if state.checkpoint is None or state.checkpoint.manifest is None else None
        sound, wrong = checkpoints.newest_sound(recorded) if recorded is not None else (recorded, [])
        warnings = (*wrong,)
        if recorded is not None:
            state.checkpoint = sound
    reopen_job(state, spec)
    store.write(encoding.encode(state))
    resumption = _point(state, sound)
    if spec.search is not None:
        resumption = Resumption(trials=max(resumption.trials, job.ended_trials))
    return msgspec.structs.replace(resumption, last=last if warnings else 0, warnings=warnings)


def reopen_job(state: MasterState, spec: JobSpec) -> None:
    """Remove the end of the job from its state, or what keeps it paused; the time until now does not count."""
    state.failed, state.cancelled, state.failures = None, "", {}
    state.rendezvous.vain = 0
    state.began = state.seconds
    state.held, state.resumed, state.written = "", "", 0.0
    if not spec.cluster.workers:  # it ran in one process
        state.workers = state.workers or 1


def _postpone(job: JobFolder) -> None:
    """Count the time of a search as if it had begun later by the time in which it did not run."""
    ended = job.read_end_time(job.status())
    with contextlib.suppress(FileNotFoundError, ValueError):
        began = float(job.search_began.read_text(encoding="ascii"))
        since = datetime.now(UTC) - datetime.fromisoformat(ended)
        replace_file(job.search_began, repr(began + since.total_seconds()).encode())


def read_state(job: JobFolder) -> MasterState:
    """Return the state of a job of this machine that `prepare` has prepared."""
    with contextlib.closing(_state_store(ClusterFolder(job.path))) as store:
        data = store.read()
    return encoding.decode(data, MasterState) if data is not None else MasterState()


def write_state(job: JobFolder, state: MasterState) -> None:
    """Make this the state from which a job of this machine continues."""
    with contextlib.closing(_state_store(ClusterFolder(job.path))) as store:
        store.write(encoding.encode(state))


def point_of(state: MasterState) -> Resumption:
    """Return where a job with this state continues, if its checkpoint is there."""
    return _point(state, state.checkpoint)


def _point(state: MasterState, checkpoint: Checkpoint | None) -> Resumption:
    if trials := state.done.get("predict", 0):
        return Resumption(trials=trials)
    if checkpoint is None:
        return Resumption()
    return Resumption(checkpoint.folder, checkpoint.job.step, checkpoint.job.current_epoch)


def _spec(job: JobFolder) -> JobSpec:
    return from_json((job.program / "job.json").read_bytes())


def remove_kept_files() -> list[JobFolder]:
    """Remove what jobs have kept to be resumed, wherever their checkpoints are; return these jobs."""
    cleaned = []
    for job in job_folder.jobs():
        with contextlib.suppress(SpecError):
            if job.can_resume and job.status().state != "paused":
                remove_checkpoints(job)
                job.remove_data()
                cleaned.append(job)
    return cleaned


def remove_older(age: timedelta) -> list[JobFolder]:
    """Remove jobs that ended so long ago, with their logs and checkpoints; return them. One that is paused stays."""
    removed = []
    for job in job_folder.jobs():
        with contextlib.suppress(SpecError):
            status = job.status()
            over = status.state not in ("running", "finished", "paused") and bool(status.ended)
            if over and datetime.now(UTC) - datetime.fromisoformat(status.ended) >= age:
                if job.can_resume:
                    remove_checkpoints(job)
                job.remove()
                removed.append(job)
    return removed


def remove_checkpoints(job: JobFolder) -> None:
    """Remove checkpoints that are not in the job's folder, or log why that fails."""
    try:
        intent = destination(job.path)
        if ClusterFolder(job.path).is_kept and intent is not None and keeps_checkpoints(intent.source):
            KeptCheckpoint(intent.source, job.id, insists=False).remove()
        factory.for_master(job.path).clear()
    except (OSError, SQLFlowError) as error:
        log(f"checkpoints of job {job.id} remain: {error}")


@contextlib.contextmanager
def _lock_job(job: JobFolder) -> Iterator[None]:
    """Lock the job as its supervisor does, so that it is resumed once."""
    with ClusterFolder(job.path).lock.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError(f"job {job.id} cannot be resumed: it runs") from None
        yield


def _state_store(folder: ClusterFolder) -> FileStateStore:
    """Open the state store, as soon as the last master, or training process, has ended. Raises ClusterError if it does
    not end.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return FileStateStore(folder.state)
        except ClusterError:
            master = folder.process("master")
            if time.monotonic() > deadline:
                hint = f"end process {master.pid}" if master else "wait until it has written its checkpoint"
                raise ClusterError("a process of the job's last run has not ended", hint=hint) from None
        time.sleep(POLL)
