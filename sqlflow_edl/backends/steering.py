"""Pause of a job, and its numbers of workers and parameter servers: the same steps wherever it runs.

The master carries a change out, and keeps it: it starts further workers, or asks the last ones to leave, which give
back their tasks first. For servers see `edl.master.ps.ps_manager`. `SteeredJob` is what the steps ask of a place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from edl.data.cells import format_count
from edl.errors import ClusterError
from edl.jobs.job_folder import JobFolder
from edl.models.pending import resume_command
from edl.spec import Checkpoints, JobSpec, from_json
from sqlflow_edl.backends.base import Numbers


class PauseObstacle(NamedTuple):
    """Reason why a job could not be resumed after a pause, and a hint."""

    why: str
    hint: str


class SteeredJob(Protocol):
    """Job with a master at one place."""

    folder: JobFolder

    def is_paused(self) -> bool:
        """Return True if the job is paused. Raises ClusterError if it has ended."""
        ...

    def explain_obstacle(self) -> PauseObstacle | None:
        """Return why the job keeps no state, or None."""
        ...

    def checkpoint_settings(self, spec: JobSpec) -> Checkpoints:
        """Return the settings with which a pause keeps the checkpoints of the job."""
        ...

    def advise_on_checkpoints(self, spec: JobSpec) -> str:
        """Return what gives the next training checkpoints outside of the memory of its servers."""
        ...

    def pause(self) -> str:
        """Let the master pause the job, wait until its instances have ended, and return what to say of it.

        Raises ClusterError if the job ends before.
        """
        ...

    def check_workers(self, numbers: Numbers) -> None:
        """Raise ClusterError if the job does not run, or has no workers."""
        ...

    def is_of_script(self) -> bool: ...

    def request_numbers(self, spec: JobSpec, numbers: Numbers) -> Numbers:
        """Ask the master for the numbers, and return those until now."""
        ...

    def wait_for(self, numbers: Numbers) -> str:
        """Wait until the master has taken up the numbers. Return what to say if it has not, or an empty text."""
        ...

    def list_limits(self, before: Numbers, numbers: Numbers) -> Iterable[str]:
        """Return what limits the use of more workers at this place."""
        ...


def pause(job: SteeredJob) -> str:
    """Pause the job, wait until its instances have ended, and return a message. An interrupt ends the wait only.

    Raises ClusterError if the job does not run, or could not be resumed afterwards.
    """
    folder = job.folder
    if job.is_paused():
        raise ClusterError(
            f"job {folder.id} is paused already", hint=f"{resume_command(folder.path)} continues it"
        )
    if (obstacle := job.explain_obstacle() or _find_volatile_checkpoints(job)) is not None:
        raise ClusterError(f"job {folder.id} cannot be paused: {obstacle.why}", hint=obstacle.hint)
    return f"job {folder.id} is paused{job.pause()}"


def _find_volatile_checkpoints(job: SteeredJob) -> PauseObstacle | None:
    spec = _read_spec(job)
    if not spec.cluster.parameter_servers or job.checkpoint_settings(spec).copies != "neighbours":
        return None
    return PauseObstacle(
        "its checkpoints are in the memory of its parameter servers",
        hint=f"{ending(job.folder)}; {job.advise_on_checkpoints(spec)}",
    )


def ending(folder: JobFolder) -> str:
    """Return the hint for a job that can only be ended."""
    return f"`sqlflow cancel {folder.id}` ends it"


def scale(job: SteeredJob, numbers: Numbers) -> str:
    """Set the numbers and return a message. Raises ClusterError if one of them is fixed."""
    job.check_workers(numbers)
    if job.is_of_script():
        raise _fixed_size_error(job, numbers)
    spec = _read_spec(job)
    _check_strategy(job, spec, numbers)
    before = job.request_numbers(spec, numbers)
    changed = before.describe_change(numbers)
    if not changed:
        return f"job {job.folder.id} has {numbers} already: there is nothing to do"
    text = f"job {job.folder.id}: {changed}"
    if late := job.wait_for(numbers):
        return f"{text}, {late}"
    notes = [*job.list_limits(before, numbers), *_limits_of_strategy(spec, before, numbers)]
    return text + "".join(f"\n  note: {note}" for note in notes)


def _read_spec(job: SteeredJob) -> JobSpec:
    return from_json((job.folder.program / "job.json").read_bytes())


def _fixed_size_error(job: SteeredJob, numbers: Numbers) -> ClusterError:
    return ClusterError(
        f"job {job.folder.id} runs a script of `edl run`: its number of workers is fixed, because each knows it from "
        "its start (WORLD_SIZE), and it has no servers",
        hint=f"cancel it, and run the script again with `edl run --workers {numbers.workers or 2}`",
    )


def _check_strategy(job: SteeredJob, spec: JobSpec, numbers: Numbers) -> None:
    """Raise ClusterError if the strategy of the job has no use for these numbers."""
    cluster, trains = spec.cluster, spec.work == "train"
    if trains and cluster.strategy == "local" and (numbers.workers or 1) > 1:
        raise ClusterError(
            f"job {job.folder.id} trains with the strategy local: its only worker holds the parameters and shares them "
            "with no other",
            hint=f"cancel it, and train again WITH train.num_workers = {numbers.workers}",
        )
    if numbers.servers is not None and not (trains and cluster.parameter_servers):
        what = (
            f"it trains with the strategy {cluster.strategy}" if trains else f"it is of the kind {spec.kind}"
        )
        raise ClusterError(
            f"job {job.folder.id} has no parameter servers: {what}",
            hint=f"cancel it, and train again WITH train.num_ps = {numbers.servers}" if trains else None,
        )


def _limits_of_strategy(spec: JobSpec, before: Numbers, numbers: Numbers) -> list[str]:
    """Return what in the JobSpec limits the use of more workers."""
    cluster = spec.cluster
    used = max(before.workers or 0, cluster.grads_to_wait)
    if (numbers.workers or 0) <= used or cluster.strategy != "sync":
        return []
    size = format_count(cluster.grads_to_wait, "gradient")
    return [f"a step is still the mean of {size} (train.grads_to_wait), so not all workers are of use"]
