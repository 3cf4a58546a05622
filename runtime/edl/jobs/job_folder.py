"""Job folders: program, pinned rows, results, logs and status of each job.

They are in the user's state folder (`$XDG_STATE_HOME`, else `~/.local/state`) under `sqlflow-edl/jobs`, readable by the
user alone. Ids sort by creation time. Pinned rows, checkpoints and results are removed when a job ends, or by `sweep`
if the job's process died before it could. A training that failed, died or was interrupted (by SIGTERM) keeps what it
needs to resume for KEPT: rows, checkpoints, and the state of its master. One that was paused keeps it until it is
resumed or cancelled. If its result could not be stored, a job is `failed` and keeps the result: a model for good, with
its checkpoints and rows of predictions for KEPT.

A job that runs apart from its client is `finished` when its result is in its folder, and `done` when that is in the
data source. A process of a detached job, or a session with its source, stores it: see `find_unclaimed_jobs` and
`claim`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from edl.errors import JobError, LaterVersionError, SemanticError, SpecError, did_you_mean
from edl.files import make_folders, replace_file, sync
from edl.jobs import script_run
from edl.jobs.cluster_folder import RELAYED_FILES, ClusterFolder
from edl.jobs.event_log import read_end
from edl.jobs.outcome import Outcome
from edl.jobs.process import start_time
from edl.jobs.retention import KEEPING, Removal, removal_at_end, removal_later
from edl.jobs.trials import RECORD, SCREENING_RECORD

Kind = Literal["train", "predict", "evaluate", "explain", "optimize", "run"]
State = Literal[
    "running", "finished", "done", "failed", "cancelled", "died", "paused", "interrupted", "unknown"
]

LONGEST = timedelta(days=30)  # maximum duration of a job
KEPT = timedelta(days=7)  # time in which a training that failed, died or was interrupted can be resumed
STARTING = "kubernetes"  # `place` of a job that is being deployed
_ENDS_EARLY = "ends-early"  # file in the folder of a search


class Status(msgspec.Struct, frozen=True):
    """Status of a job. Times are UTC in ISO 8601. `started_as` distinguishes the process from a later one with its pid.
    Fields of later versions change the meaning of none of these: they are ignored, and kept.

    `place` describes where the job runs without a process of this machine, else it is empty.
    """

    kind: Kind
    state: State
    pid: int
    started_as: str
    started: str
    ended: str = ""
    statement: str = ""
    error: str = ""
    place: str = ""

    @property
    def is_alive(self) -> bool:
        """True if the job's process exists; for a job elsewhere, if it was running or paused when it was last
        checked.
        """
        if self.place:
            return self.state in ("running", "paused")
        return self.state == "running" and self.is_attended

    @property
    def is_unclaimed(self) -> bool:
        """True if the job's result is in its folder, and the process that was to store it is gone."""
        return self.state == "finished" and not self.is_attended

    @property
    def is_attended(self) -> bool:
        """True if the process that runs or started the job exists."""
        return start_time(self.pid) == self.started_as

    @property
    def kept_until(self) -> datetime:
        """Time until which a job that can be resumed is kept; of one that is just found dead, from now on."""
        return (datetime.fromisoformat(self.ended) if self.ended else datetime.now(UTC)) + KEPT


@dataclass(frozen=True, slots=True)
class JobFolder:
    """Folder of one job."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def program(self) -> Path:
        return self.path / "program"

    @property
    def rows(self) -> Path:
        return self.path / "rows"

    @property
    def validation_rows(self) -> Path:
        """Folder of validation rows pinned from a query of their own."""
        return self.rows / "held-out"

    @property
    def unindexed_files(self) -> Path:
        """Names of files that only pods see, which they index themselves (`edl.entrypoints.pod_rows`)."""
        return self.rows / "written.json"

    @property
    def zoo(self) -> Path:
        """Copy of a model zoo that travels with the job."""
        return self.path / "zoo"

    @property
    def model(self) -> Path:
        """Archive with the weights that the job uses or starts from, if it needs one."""
        return self.path / "model.zip"

    @property
    def weights(self) -> Path:
        """Weights without an archive, in place of `model`."""
        return self.path / "weights.safetensors"

    @property
    def results(self) -> Path:
        return self.path / "results"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints of a training."""
        return self.path / "checkpoints"

    @property
    def search(self) -> Path:
        """Folder with a folder for each trial of a search."""
        return self.path / "search"

    @property
    def search_began(self) -> Path:
        """File with the second at which a search began; the time in which it did not run does not count."""
        return self.search / "began"

    def begin_search(self, second: float) -> float:
        """Record the second at which the search began, as of `time.time`, unless one is recorded; return that."""
        path = self.search_began
        make_folders(path.parent)
        partial = path.with_name(f"{path.name}.{time.time_ns()}")
        partial.write_text(repr(second), encoding="ascii")
        sync(partial)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(partial)
        partial.unlink()
        return float(path.read_text(encoding="ascii"))

    @property
    def ended_trials(self) -> int:
        """Number of the trials of a search that have ended, on all rows or on some."""
        return len(
            {path.parent for name in (RECORD, SCREENING_RECORD) for path in self.search.glob(f"*/{name}")}
        )

    @property
    def ends_early(self) -> bool:
        """True if a search is to end with the trials that have ended."""
        return (self.search / _ENDS_EARLY).exists()

    def end_early(self) -> None:
        """Ask the workers of a search to end it with the trials that have ended."""
        self.search.mkdir(parents=True, exist_ok=True)
        (self.search / _ENDS_EARLY).touch()

    @property
    def own(self) -> Path:
        """Folder with a folder for each instance, of files to be sent elsewhere."""
        return self.path / "own"

    @property
    def relay_folder(self) -> Path:
        """Folder of files that pods send to each other, or to the client, through the master."""
        return self.path / RELAYED_FILES

    @property
    def archive(self) -> Path:
        """Archive of the model that the job trained."""
        return self.path / "archive.zip"

    @property
    def tensorboard(self) -> Path:
        """Event files with the curves of a job that has a master."""
        return self.path / "tensorboard"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def status(self) -> Status:
        """Return the status. Raises SpecError if it is missing or damaged, LaterVersionError if its state is new."""
        try:
            return msgspec.json.decode(self._status.read_bytes(), type=Status)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            state = self._stored_fields().get("state")
            if isinstance(state, str) and state not in get_args(State):
                message = f"the state of job {self.id} is {state}, which a later version has written"
                raise LaterVersionError(message, what=state) from None
            raise SpecError(
                f"the status of job {self.id} cannot be read: {error}", hint=self.export_hint
            ) from None

    @property
    def export_hint(self) -> str | None:
        """Command that saves what was trained in a job that cannot be resumed, if there is such a thing."""
        if not self.checkpoints.is_dir():
            return None
        return f"`edl checkpoints {self.id} --export newest m.safetensors` writes its newest weights"

    def _stored_fields(self) -> dict[str, object]:
        """Return the fields of the status as they are stored, none if it is damaged."""
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return msgspec.json.decode(self._status.read_bytes(), type=dict[str, object])
        return {}

    def update(self, **changes: Any) -> Status:
        """Change fields of the status atomically."""
        return self._write(msgspec.structs.replace(self.status(), **changes))

    def owned_by(self, pid: int) -> Status:
        """Record that this process runs the job from now on, for example because it was detached."""
        return self.update(pid=pid, started_as=start_time(pid) or "")

    @contextlib.contextmanager
    def claim(self) -> Iterator[bool]:
        """Claim the job within this context; yield True if it was unclaimed. The claimant ends the job there."""
        with (self.path / "claim.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield self.status().is_unclaimed

    def is_claimed(self) -> bool:
        """Return True while a process holds the claim, to commit the job's result."""
        with (self.path / "claim.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def finish(self, pid: int, started_as: str) -> Status:
        """Record that the job is done and this process has to store its result.

        If the process is gone, others may `claim` the job.
        """
        return self.update(state="finished", ended=_now(), pid=pid, started_as=started_as)

    def end(self, state: State, error: str = "") -> Status:
        """Record the end of the job, and then remove what it does not need any more.

        A training that can be resumed keeps it, and so does a job without a stored result.
        """
        removal = removal_at_end(state, is_needed=self._is_resumable_as(state) or self.has_result)
        ended = msgspec.structs.replace(
            self.status(), state=state, ended=self.status().ended or _now(), error=error
        )
        try:  # a crash must not leave a job without its data that seems to run
            self._write(ended, durable=True)
        except OSError:  # the disk is full: the removal makes room
            self._remove(removal)
            return self._write(ended, durable=True)
        self._remove(removal)
        return ended

    def read_end_time(self, status: Status) -> str:
        """Return the time of the end, empty for a job that has not ended.

        A job that died did so at its last sign of life, however late that is noticed.
        """
        if status.state != "died" and not (status.state == "running" and not status.is_alive):
            return status.ended
        cluster = ClusterFolder(self.path)
        files = (self.program, self.rows, *self.logs.glob("*"), cluster.events, cluster.snapshot)
        times = [file.stat().st_mtime for file in files if file.exists()]
        began = datetime.fromisoformat(status.started)
        return _iso(max([began, *(datetime.fromtimestamp(time, UTC) for time in times)]))

    @property
    def can_resume(self) -> bool:
        """True if the job ended without a model, and has what it needs to continue: see `edl.master.resume`."""
        if not self.rows.is_dir():
            return False
        status = self.status()
        ended = status.state in KEEPING or (status.state == "running" and not status.is_alive)
        return ended and self.is_resumable

    @property
    def has_result(self) -> bool:
        """True if the result of the job is complete in its folder: the model of a training, or rows of predictions."""
        if self.archive.exists():
            return True
        end = read_end(ClusterFolder(self.path).events) if self.results.is_dir() else None
        return isinstance(end, Outcome) and end.kind == "predict"

    @property
    def is_resumable(self) -> bool:
        """True for a training that has made no model and left what it needs, and for a script with `edl.elastic`."""
        return self._is_resumable_as(self.status().state)

    def _is_resumable_as(self, state: State) -> bool:
        """Return True if a job in this state can be resumed. One that failed in one process needs a checkpoint, because
        it would fail again from the beginning; one in pods needs a checkpoint in its data source.
        """
        status, cluster = self.status(), ClusterFolder(self.path)
        if status.kind == "run":
            return not status.place and script_run.keeps_state(self.path)
        if status.kind != "train" or self.archive.exists():
            return False
        if status.place:
            return cluster.is_kept
        if not cluster.has_run_spec:
            return False
        return state != "failed" or cluster.state.exists() or cluster.process("supervisor") is not None

    @contextlib.contextmanager
    def disk_errors(self) -> Iterator[None]:
        """Raise JobError for an OSError in the job's folder inside the context, such as a full disk."""
        try:
            yield
        except OSError as error:
            named = str(error.filename or "")
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) and not named.startswith(str(self.path)):
                raise
            raise JobError(
                f"cannot write into the folder of job {self.id}: {error.strerror}",
                hint=f"make room on the disk of {self.path}, or set XDG_STATE_HOME to a folder on another disk",
            ) from error

    def remove_rows(self) -> None:
        shutil.rmtree(self.rows, ignore_errors=True)

    def remove_data(self) -> None:
        """Remove rows, checkpoints, trials and results."""
        for folder in (self.rows, self.checkpoints, self.search, self.own, self.results):
            if folder.exists():
                shutil.rmtree(folder, ignore_errors=True)
        script_run.forget(self.path)

    def forget_processes(self) -> None:
        """Remove the checkpoints of a training that has moved to pods, and the files of its processes here."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        ClusterFolder(self.path).forget_processes()

    def _remove(self, removal: Removal) -> None:
        if removal is Removal.ROWS:
            self.remove_rows()
        elif removal is not Removal.NOTHING:
            self.remove_data()
        if removal is Removal.ALL_BUT_LOG:
            self._keep_log()
        elif removal is Removal.DATA_AND_MODEL:
            for path in (self.model, self.weights, self.archive):
                path.unlink(missing_ok=True)

    def _keep_log(self) -> None:
        for path in self.path.iterdir():
            if path not in (self._status, self.logs):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the job with its log."""
        shutil.rmtree(self.path, ignore_errors=True)

    @property
    def _status(self) -> Path:
        return self.path / "status.json"

    def _write(self, status: Status, *, durable: bool = False) -> Status:
        """Write the status. It has to survive a crash of the machine if the job can be resumed after one."""
        durable = durable or ClusterFolder(self.path).has_run_spec
        fields = {**self._stored_fields(), **msgspec.structs.asdict(status)}
        replace_file(self._status, msgspec.json.encode(fields), durable=durable)
        return status


def state_folder() -> Path:
    """Return the user's state folder of this program; XDG requires that a relative path is ignored."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "sqlflow-edl"


def state_id() -> str:
    """Return a unique id of this state folder, to distinguish it from others at the same path."""
    path = state_folder() / "id"
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f"id.{secrets.token_hex(4)}.partial")
        fresh.write_text(secrets.token_hex(8), encoding="ascii")
        with contextlib.suppress(FileExistsError):  # another process created it first
            os.link(fresh, path)
        fresh.unlink()
        return path.read_text(encoding="ascii")


def new_id() -> str:
    """Return a new job id. It begins with the time, which `is_over` uses to recognize old jobs."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(3)}"


def create(kind: Kind, statement: str = "") -> JobFolder:
    """Create a job that this process runs, with its empty folders."""
    job = JobFolder(state_folder() / "jobs" / new_id())
    try:  # a full disk may have room for folders and none for the status
        job.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (job.path, job.program, job.rows, job.results, job.logs):
            folder.mkdir(mode=0o700)
        pid = os.getpid()
        job._write(Status(kind, "running", pid, start_time(pid) or "", _now(), statement=statement))
    except OSError as error:
        job.remove()
        raise JobError(
            f"cannot create a job folder: {error.strerror}: {error.filename or job.path}",
            hint="set XDG_STATE_HOME to a writable folder",
        ) from None
    return job


def jobs() -> list[JobFolder]:
    """Return all jobs, the oldest first."""
    folder = state_folder() / "jobs"
    listed = (JobFolder(folder / job_id) for job_id in _list_ids(folder))
    return [job for job in listed if job._status.is_file()]


def _list_ids(folder: Path) -> list[str]:
    """Return the ids of the jobs, the oldest first; some may have no status yet. Paths would sort ten times slower."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - as above
    except FileNotFoundError:
        return []


_settled: set[tuple[Path, str]] = set()  # jobs that this process has seen at their end, which is final


def list_changing() -> Iterator[tuple[JobFolder, Status]]:
    """Yield the jobs that may change or have just ended, the oldest first, without jobs that have a damaged status.

    A user may have thousands of jobs: a done or cancelled job is yielded, and read, once in a process.
    """
    folder = state_folder() / "jobs"
    for job_id in _list_ids(folder):
        if (folder, job_id) in _settled:
            continue
        job = JobFolder(folder / job_id)
        try:
            status = job.status()
        except SpecError:
            continue
        if status.state in ("done", "cancelled"):
            _settled.add((folder, job_id))
        yield job, status


def find(job_id: str) -> JobFolder:
    """Return the job with an id, or with a unique beginning or end of one. Raises SemanticError if none or several
    match.
    """
    by_id = {job.id: job for job in jobs()}
    if job_id in by_id:
        return by_id[job_id]
    matches = [name for name in by_id if job_id and (name.startswith(job_id) or name.endswith(job_id))]
    if len(matches) == 1:
        return by_id[matches[0]]
    if matches:
        raise SemanticError(
            f"{len(matches)} jobs are named {job_id}…", hint=f"known: {', '.join(matches[:12])}"
        )
    raise SemanticError(f"there is no job {job_id}", hint=did_you_mean(job_id, by_id))


def find_unclaimed_jobs() -> list[JobFolder]:
    """Return jobs that finished after their client had left, the oldest first; `claim` one before changing it."""
    return [job for job, status in list_changing() if status.is_unclaimed]


def find_unstarted_jobs() -> list[JobFolder]:
    """Return jobs with a client that died while it deployed them; some of their objects may exist."""
    return [
        job
        for job, status in list_changing()
        if status.place == STARTING and status.is_alive and not status.is_attended
    ]


def is_over(job_id: str) -> bool:
    """Return True if a job has no effect any more: it has ended on this machine, or is older than any job may get.

    Remains in a data source may be of another machine or user; their jobs are not known here.
    """
    folder = JobFolder(state_folder() / "jobs" / job_id)
    if re.fullmatch(r"[\w-]+", job_id) and folder.path.is_dir():
        try:
            status = folder.status()
        except SpecError:
            return False
        return status.state not in ("running", "finished", "paused")
    try:
        began = datetime.strptime(job_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return False
    return datetime.now(UTC) - began > LONGEST


def is_given_up(job_id: str) -> bool:
    """Return True if a job is over and cannot be resumed either."""
    return is_over(job_id) and not (
        (folder := JobFolder(state_folder() / "jobs" / job_id)).path.is_dir() and folder.can_resume
    )


def sweep() -> list[JobFolder]:
    """Mark jobs without a living process as died and return them; remove rows left by these and by ended jobs.

    A training that can be resumed keeps its rows and checkpoints for KEPT, and so does a job with its result.
    """
    died = []
    for job, status in list_changing():
        if status.is_alive:
            continue
        is_needed = job.can_resume or job.has_result
        has_expired = datetime.now(UTC) > status.kept_until
        job._remove(removal_later(status.state, is_needed=is_needed, has_expired=has_expired))
        if status.state == "running":
            with contextlib.suppress(OSError):  # a full disk: it counts as died all the same
                job.update(state="died", ended=_now(), error="the job's process ended unexpectedly")
            died.append(job)
    return died


def _now() -> str:
    return _iso(datetime.now(UTC))


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")
