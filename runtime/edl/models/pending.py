"""Destination of a job's output, stored in its folder for the process that commits the output.

That process is a master on Kubernetes; for a detached job, the process of `edl.master.commit` or a session with its
data source.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from edl.data.source import Source
from edl.errors import SpecError
from edl.files import replace_file
from edl.jobs import script_run
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.models.registry.base import Registry
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord
from edl.spec.job import Kind

FILE = "intent.json"  # in a job folder
_ROUNDING = 1e-6  # share of a figure by which two ways to add up the same rows may differ
_HANDLED = "intent.told.json"  # the same for a failed job, once the failure is reported


class Rival(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Current version that is compared with a new one, and with `decides` is replaced only if that is at least as good.

    `figure` is the figure of `metric` over the `rows` that measure the new version; None if it is undefined. `figures`
    are all metrics of these rows. `seen`: how many of them the current version was trained on; None if that is not
    known.
    """

    reference: str
    metric: str
    figure: float | None
    rows: int
    higher_is_better: bool
    figures: dict[str, float | None] = {}
    seen: int | None = None
    decides: bool = True

    def stays(self, figures: Mapping[str, float | None]) -> bool:
        """Return True if a version with these figures is worse, and that decides."""
        if not self.decides:
            return False
        new = figures.get(self.metric)
        if self.figure is None or new is None:
            return new is None
        ahead = self.figure - new if self.higher_is_better else new - self.figure
        return ahead > _ROUNDING * abs(self.figure)

    def verdict(self, figures: Mapping[str, float | None], version: str) -> str:
        """Compare both versions in a sentence: `m@2 stays current, because …`."""
        new, old = (_format_figure(figure) for figure in (figures.get(self.metric), self.figure))
        on = f"on the same {self.rows:,} row{'' if self.rows == 1 else 's'}{self._doubt()}"
        if self.stays(figures):
            return (
                f"{self.reference} stays current: its {self.metric} is {old}, that of {version} {new}, {on}"
            )
        return f"{version} is current: its {self.metric} is {new}, that of {self.reference} {old}, {on}"

    def _doubt(self) -> str:
        """Say that the current version may know the rows; empty if it does not."""
        if self.seen is None:
            return f", some of which {self.reference} may have been trained on"
        if not self.seen:
            return ""
        which = "all" if self.seen == self.rows else f"{self.seen:,}"
        return f", {which} of which trained {self.reference}, so its figures are better than on new rows"


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Destination of a job's output.

    `source` is the URL of the data source, `name` the model or table (empty if nothing is stored), and `store` the
    URL of the model store (empty for the registry in the source). Without a source, the client of a job on Kubernetes
    fetches the output, unless `name` is a path of pods to which they write it; `weights` is one from which they read
    the model, in place of the job folder. The client of a job on this machine without a source writes the output to
    `file`, an absolute path, or to standard output if that is empty. With a `rival` a model becomes current only if it
    is not worse. `append`: the rows are added to the table. `facts` for people are kept with the model.
    """

    kind: Kind
    source: str
    name: str
    record: ModelRecord | None = None  # of a model
    store: str = ""
    rival: Rival | None = None
    weights: str = ""
    append: bool = False
    file: str | msgspec.UnsetType = msgspec.UNSET
    facts: dict[str, str] | msgspec.UnsetType = msgspec.UNSET

    def activates(self, figures: Mapping[str, float | None]) -> bool:
        """Return True if a model with these figures becomes the current version."""
        return self.rival is None or not self.rival.stays(figures)


def write_intent(job: Path, intent: Intent) -> None:
    """Store the destination of the job's output in the job folder."""
    replace_file(job / FILE, msgspec.json.encode(intent), durable=True)


def read_intent(job: Path) -> Intent | None:
    """Return the stored destination, or None if there is none. Raises SpecError if it is damaged."""
    try:
        return msgspec.json.decode((job / FILE).read_bytes(), type=Intent)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damage(job, error) from None


def destination(job: Path) -> Intent | None:
    """Return the destination like `read_intent`, also of a failed job with a reported failure."""
    try:
        return read_intent(job) or msgspec.json.decode((job / _HANDLED).read_bytes(), type=Intent)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damage(job, error) from None


def _damage(job: Path, error: Exception) -> SpecError:
    folder = JobFolder(job)
    hint = (
        f"`edl fetch {job.name} --output FILE` writes its result to a file"
        if folder.has_result
        else folder.export_hint
    )
    return SpecError(f"the output destination of job {job.name} cannot be read: {error}", hint=hint)


def is_of_statement(job: Path) -> bool:
    """Return True for a job of a statement: its result goes into its data source. False if that is damaged."""
    try:
        intent = destination(job)
    except SpecError:
        return False
    return intent is not None and bool(intent.source)


def orders_damage(job: Path) -> str | None:
    """Return why a job with a damaged run specification or destination of its output cannot be resumed, else None."""
    try:
        destination(job)
        if (cluster := ClusterFolder(job)).has_run_spec:
            cluster.run_spec()
    except SpecError as error:
        return error.message
    return None


def resume_command(job: Path) -> str:
    """Return the command that continues the job, in backquotes.

    On this machine, `sqlflow` does so for jobs of statements alone.
    """
    if script_run.keeps_state(job):
        return f"`edl run --resume {job.name}`"
    statement = is_of_statement(job) or ClusterFolder(job).is_deployed
    return f"`sqlflow resume {job.name}`" if statement else f"`edl train --resume {job.name}`"


def store_command(job: Path) -> str:
    """Return the command that stores the result in the job's folder, in backquotes."""
    return f"`sqlflow resume {job.name}`" if is_of_statement(job) else f"`edl fetch {job.name}`"


def forget_intent(job: Path) -> None:
    """Delete the stored destination: the process that waits for the job handles its output."""
    (job / FILE).unlink(missing_ok=True)


def mark_handled(job: Path) -> None:
    """Record that the failure of the job is reported. Raises FileNotFoundError if another process has done so."""
    (job / FILE).rename(job / _HANDLED)


def folder_of(job: JobFolder) -> Path:
    """Return the folder of the job's relative paths: the current one, if the job has no readable record of it."""
    with contextlib.suppress(SpecError, FileNotFoundError):
        return Path(ClusterFolder(job.path).run_spec().folder)
    return Path.cwd()


def registry_of(intent: Intent, source: Source) -> Registry:
    """Open the registry for the job's models, to find and to store.

    `source` is the intent's. Raises SourceError if the registry cannot be opened.
    """
    return open_registry(source, intent.store)


def _format_figure(figure: float | None) -> str:
    return "undefined" if figure is None else f"{figure:.4g}"


def unmark_handled(job: Path) -> None:
    """Undo `mark_handled`, because the failed job continues."""
    with contextlib.suppress(FileNotFoundError):
        (job / _HANDLED).rename(job / FILE)
