"""Rows of files that only pods see: the master's pod makes their index, and instances fetch it from there.

rows/written.json    client: paths of the files in pods, by folder of the job
rows.msgpack         master: the index and the JobSpec with the number of rows, relayed to instances
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from edl.data.files.file_ranges import FILE as INDEX
from edl.data.files.file_ranges import found_readings, pin_files
from edl.data.pinned import RECORD, write_pinned
from edl.errors import SpecError
from edl.jobs.cluster_folder import ROWS
from edl.jobs.job_folder import JobFolder
from edl.models.pending import read_intent
from edl.run.file_rows import trained_readings, with_columns, with_rows
from edl.run.initial_weights import find_copied_weights
from edl.run.storage import relay_of
from edl.spec import from_json, to_json

BUNDLE = "rows.msgpack"
SPEC = "program/job.json"


def place_rows(job: JobFolder, role: str) -> None:
    """Complete the job folder of a pod by the rows that the client could not see.

    Raises SourceError if they cannot be read.
    """
    if role == "master":
        _index(job)
        return
    bundle = relay_of(job).fetch(ROWS, BUNDLE) / BUNDLE
    for name, content in msgspec.msgpack.decode(bundle.read_bytes(), type=dict[str, bytes]).items():
        path = job.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _model(job: JobFolder) -> Path | None:
    """Return the model that the job uses or starts from, sent with it or in pods; None without one."""
    intent = read_intent(job.path)
    return Path(intent.weights) if intent is not None and intent.weights else find_copied_weights(job)


def _index(job: JobFolder) -> None:
    try:
        locations = msgspec.json.decode(job.unindexed_files.read_bytes(), type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise SpecError(f"the names of this job's files cannot be read: {error}") from None
    pinned = {}
    readings = trained_readings(_model(job))
    for name, data in locations.items():
        pinned[name] = pin_files(data, job.path / name, readings=readings)
        readings = readings or found_readings(job.path / name)
        write_pinned(job.path / name, pinned[name])
    first, *others = pinned.values()
    spec = with_columns(from_json((job.path / SPEC).read_bytes()), first, job.path / next(iter(locations)))
    (job.path / SPEC).write_bytes(to_json(with_rows(spec, first, sum(other.rows for other in others))))
    names = [SPEC, *(f"{name}/{file}" for name in locations for file in (INDEX, RECORD))]
    bundle = msgspec.msgpack.encode({name: (job.path / name).read_bytes() for name in names})
    target: Path = job.relay_folder / ROWS / BUNDLE
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(bundle)
