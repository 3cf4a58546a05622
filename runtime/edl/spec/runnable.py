"""Specification of a job that runs a program of a user in a pod."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from edl.errors import SpecError
from edl.spec.job import Query

FILE = "cluster/runnable.json"  # in the job folder


class RunnableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Program over the pinned rows of a query, without secrets.

    `file` is relative to the job's folder `program` if it is `sent` with the job, else to a folder of the model path of
    the image. `tables` are the names in INTO. `deadline` is the seconds after which the program is ended; 0 means none.
    """

    statement: str
    query: Query
    file: str
    sent: bool
    arguments: tuple[str, ...]
    tables: tuple[str, ...]
    kind: Literal["run"] = "run"
    deadline: float = 0.0
    validation: None = None  # its only rows are the query's


def read(job: Path) -> RunnableSpec:
    """Return the specification in a job's folder. Raises SpecError if it cannot be read."""
    try:
        return msgspec.json.decode((job / FILE).read_bytes(), type=RunnableSpec)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"the specification of job {job.name} cannot be read: {error}") from None
