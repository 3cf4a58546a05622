"""Records of a job of `edl run`, in its job folder.

script.json    client: the script and its arguments; removed at the end of the job, since they may hold a secret,
               unless it can be resumed. In pods it comes from the Secret
attempt.json   master: the present start of all workers
workload.json  first worker that begins a loop of `edl.elastic`: the rows that the workers train on together
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TypeVar

import msgspec

from edl.errors import JobError, SpecError
from edl.files import replace_file
from edl.jobs.cluster_folder import RELAYED_FILES, SCRIPT, ClusterFolder


class ScriptRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Python program that every worker runs: a file, or a module by its name, with arguments, in a folder.

    Relative paths start from the job folder. All `workers` are started again at most `max_restarts` times, unless the
    script uses `edl.elastic`. On several machines there are `per_node` on each, and at `least` so many in all.
    """

    path: str
    module: str
    arguments: tuple[str, ...]
    folder: str
    workers: int
    max_restarts: int
    least: int | msgspec.UnsetType = msgspec.UNSET
    per_node: int | msgspec.UnsetType = msgspec.UNSET


class Attempt(msgspec.Struct, frozen=True):
    """One start of all workers. `restarts` counts those before; `port` is for the script's own process group, at
    `host`, or the worker's own if that is empty. `workers` are all, if there may be fewer than the script's. `reason`
    says which worker ended before a restart, and how.
    """

    restarts: int
    port: int
    host: str = ""
    workers: int | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET


class NamedRows(msgspec.Struct, frozen=True):
    """Rows that the workers take together, in minibatches of `batch_size` rows of all workers.

    They are trained on for so many `epochs`, None for no end, or they are evaluated (`trained` is False). A stream has
    0 rows.
    """

    rows: int
    batch_size: int
    epochs: int | None = 1
    seed: int = 0
    shuffle: bool = True
    trained: bool = True


class Workload(msgspec.Struct, frozen=True):
    """Datasets of a script by name."""

    datasets: dict[str, NamedRows]

    @property
    def bounded_dataset(self) -> NamedRows | None:
        """The only dataset, if it is trained on for a number of epochs: the master then knows every step in advance."""
        datasets = [*self.datasets.values()]
        return (
            datasets[0]
            if len(datasets) == 1 and datasets[0].trained and datasets[0].epochs is not None
            else None
        )


Record = TypeVar("Record", ScriptRun, Attempt, Workload)
FILE, WORKLOAD = "script.json", "workload.json"
_FILES: dict[type, str] = {ScriptRun: FILE, Attempt: "attempt.json", Workload: WORKLOAD}


def place_script(script: ScriptRun, job: Path) -> ScriptRun:
    """Return the script with its place in the job folder that it has travelled in, unless that is absolute."""
    return msgspec.structs.replace(script, path=str(job / script.path), folder=str(job / script.folder))


def write(job: Path, record: ScriptRun | Attempt) -> None:
    replace_file(job / _FILES[type(record)], msgspec.json.encode(record))


def read(job: Path, kind: type[Record]) -> Record | None:
    """Return the record, or None if it is not written. Raises SpecError if it is damaged."""
    path = job / _FILES[kind]
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is damaged: {error}") from None


def announce(folder: Path, attempt: Attempt) -> None:
    """Write the attempt for workers that share no folder with the master, into the folder of its relayed files."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / attempt_file(attempt.restarts), msgspec.json.encode(attempt))


def attempt_file(restarts: int) -> str:
    return f"attempt-{restarts}.json"


def keeps_state(job: Path) -> bool:
    """Return True if the job is a script that has trained with `edl.elastic`, so that it can be resumed."""
    places = (
        job / WORKLOAD,
        job / RELAYED_FILES / SCRIPT / WORKLOAD,
    )  # the latter if workers share no folder
    has_trained = any(place.exists() for place in places)
    return (job / FILE).exists() and has_trained and ClusterFolder(job).state.exists()


def forget(job: Path) -> None:
    """Delete the record of an ended job's script."""
    (job / _FILES[ScriptRun]).unlink(missing_ok=True)


def agree(job: Path, workload: Workload) -> None:
    """Record the workload unless another worker has. Raises JobError if that has another one."""
    path = job / _FILES[Workload]
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    partial.write_bytes(msgspec.json.encode(workload))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
    finally:
        partial.unlink()
    check(read(job, Workload), workload)


def check(first_workload: Workload | None, workload: Workload) -> None:
    """Raise JobError unless this worker has the workload that all workers have agreed on."""
    agreed = first_workload.datasets if first_workload is not None else {}
    for name in {**workload.datasets, **agreed}:
        here, other_rows = workload.datasets.get(name), agreed.get(name)
        if here != other_rows:
            raise JobError(
                f"of the dataset {name!r} this worker has {_describe_rows(here)}, "
                f"another one {_describe_rows(other_rows)}",
                hint="every worker runs the whole script: call edl.elastic with the same rows in each",
            )


def _describe_rows(rows: NamedRows | None) -> str:
    if rows is None:
        return "nothing"
    if not rows.rows:
        return f"a stream in minibatches of {rows.batch_size:,}"
    how = f"{rows.rows:,} rows in minibatches of {rows.batch_size:,}"
    if not rows.trained:
        return f"{how}, evaluated"
    order = f"shuffled by seed {rows.seed}" if rows.shuffle else "in order"
    epochs = f"{rows.epochs:,} epochs" if rows.epochs is not None else "epochs without an end"
    return f"{how}, {epochs}, {order}"
