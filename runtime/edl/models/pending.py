"""The destination of what a job makes, kept in its folder for the process that commits it.

That is a master on Kubernetes; of a detached job, the process of `edl.master.commit` or a session with its data source.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from edl.data.source import Source
from edl.errors import SpecError
from edl.models.registry.base import Registry
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord
from edl.spec.job import Kind

FILE = "intent.json"  # in a job folder
_HANDLED = "intent.told.json"  # the same of a job that failed, once that is reported


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """source: the URL of where it goes. name: of a model, or of a table; empty: nothing is stored.

    store: the URL of where models are found and kept; empty: in the source.
    """

    kind: Kind
    source: str
    name: str
    record: ModelRecord | None = None  # of a model
    store: str = ""


def write_intent(job: Path, intent: Intent) -> None:
    """Note in the job folder what is to become of the job."""
    (job / FILE).write_bytes(msgspec.json.encode(intent))


def read_intent(job: Path) -> Intent | None:
    """None: nobody noted any. SpecError: damaged."""
    try:
        return msgspec.json.decode((job / FILE).read_bytes(), type=Intent)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise SpecError(f"what is to become of job {job.name} cannot be read: {error}") from None


def forget_intent(job: Path) -> None:
    """Whoever waits for the job sees to what becomes of it."""
    (job / FILE).unlink(missing_ok=True)


def handled(job: Path) -> None:
    """Note that the failure of the job is reported. FileNotFoundError: another process has done so."""
    (job / FILE).rename(job / _HANDLED)


def registry_of(intent: Intent, source: Source) -> Registry:
    """Where the job finds models and keeps its own. source: the intent's. SourceError: it cannot be opened."""
    return open_registry(source, intent.store)
