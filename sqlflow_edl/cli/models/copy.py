"""`sqlflow copy MODEL --to URL`: the archive of a model, byte for byte, to another place or a file, and back.

An archive from somebody else is untrusted: it is checked as every reading of one does, and nothing in it is run.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edl.data.url import DATABASES, OBJECT_STORES, TABLE_FILES, SourceURL, parse, redacted
from edl.errors import SourceError, SpecError, SQLFlowError
from edl.files import replacing
from edl.models.archive import Archive, read_archive
from edl.models.registry.records import ModelRecord, check_name
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.source import no_source
from sqlflow_edl.display.files import name_write_errors, path_of
from sqlflow_edl.reports import text

if TYPE_CHECKING:
    from edl.models.registry.base import Registry

FILE = ".zip"  # suffix of a model in one file


class CopiedModel(NamedTuple):
    """A model to copy: its name, or the file, and its archive in a temporary file, which was checked."""

    reference: str
    name: str
    archive: Path
    record: ModelRecord
    tags: tuple[str, ...] = ()


@report_errors
def copy(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not (_names_file(options.model) or options.source or options.model_store):
        return no_source(options)
    with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
        copied = _read_model(options, Path(folder) / "model.zip")
        place = _write(copied, options) if _names_file(options.to) else _save(copied, options)
    next_step = f"; `sqlflow copy {place} --to URL` stores it elsewhere" if _names_file(options.to) else ""
    print(f"copied {copied.reference} to {place}{next_step}", file=sys.stderr)
    return exit_codes.OK


def _names_file(target: str) -> bool:
    return target.lower().endswith(FILE)


# Reading -----------------------------------------------------------------------------------------------------


def _read_model(options: argparse.Namespace, to: Path) -> CopiedModel:
    """Copy the archive to a temporary file and check it there, where nobody can change it afterwards."""
    from edl.models.registry.model_store import ModelStore

    if _names_file(options.model):
        file = path_of(options.model)
        try:
            shutil.copyfile(file, to)
        except OSError as error:
            hint = "a name that ends in .zip names a file; m.zip@1 is a version of a model"
            raise SQLFlowError(f"cannot read {file}: {error.strerror}", hint=hint) from None
        return CopiedModel(str(file), file.name[: -len(FILE)], to, _record(_check_archive(to, str(file))))
    with ModelStore(options.source or "", options.model_store).open() as registry:
        version = registry.load(options.model, to)
    _check_archive(to, f"the archive of {version.reference}")
    return CopiedModel(version.reference, version.name, to, version.record, version.tags)


def _check_archive(file: Path, shown: str) -> Archive:
    """Read all of an archive. Raises SpecError if it is damaged or has what no archive has."""
    try:
        archive = read_archive(file)
        archive.weights()
        archive.background()
    except SpecError as error:
        raise SpecError(f"{shown} cannot be copied: {error.message}", hint=error.hint) from None
    return archive


def _record(archive: Archive) -> ModelRecord:
    """Describe a model by its archive alone."""
    rows, metrics, statement = archive.learned_rows, archive.metrics, archive.lineage.statement
    return ModelRecord(text.model(archive.spec), archive.spec.framework, rows, metrics, statement)


# Writing -----------------------------------------------------------------------------------------------------


def _write(copied: CopiedModel, options: argparse.Namespace) -> str:
    """Write the archive to a new file, and return its path."""
    store_options = {"--as": options.name, "--keep-current": options.keep_current, "--create": options.create}
    if lost := [option for option, value in store_options.items() if value]:
        raise SQLFlowError(
            f"{lost[0]} is of no use with a file", hint="it is for copies to a data source or a model store"
        )
    path = path_of(options.to)
    if path.exists():
        raise SQLFlowError(f"{path} is there already", hint="remove it, or choose another name")
    with name_write_errors(path), replacing(path) as partial:
        shutil.copyfile(copied.archive, partial)
    return str(path)


def _save(copied: CopiedModel, options: argparse.Namespace) -> str:
    """Store the archive as a new version, and return its place in words."""
    name = options.name or copied.name
    check_name(name)
    with _open_models(options.to, options.model, create=options.create) as registry:
        by_number = {stored.version: stored for stored in registry.list() if stored.name == name}
        before = next((stored for stored in by_number.values() if stored.current), None)
        becomes_current = before is None or not options.keep_current
        version = registry.save(name, copied.archive, copied.record, current=becomes_current)
        taken = {tag for other in by_number.values() for tag in other.tags}
        for tag in (tag for tag in copied.tags if tag not in taken):
            registry.tag(f"{name}@{version}", tag)
        place = f"{name}@{version} in {registry.url}{_describe_tags(copied.tags, taken)}"
    if before is None:
        return place
    if becomes_current:
        return f"{place}, which is current now; {before.reference} was"
    return f"{place}; {before.reference} stays current"


def _describe_tags(tags: Sequence[str], taken: Collection[str]) -> str:
    """Name the tags of the copied version. taken: tags that another version of the model has there already."""
    parts = [
        f"{'tags' if len(some) > 1 else 'tag'} {', '.join(some)} {what}"
        for some, what in (
            ([tag for tag in tags if tag not in taken], "copied"),
            ([tag for tag in tags if tag in taken], "left with another version"),
        )
        if some
    ]
    return f" ({'; '.join(parts)})" if parts else ""


@contextmanager
def _open_models(url: str, model: str, *, create: bool) -> Iterator[Registry]:
    """Open the models of a data source or a model store. model: that is to be copied, as it is written."""
    from edl.data import connect
    from edl.models.registry.factory import open_registry
    from edl.models.registry.object_store import open_store

    if _names_store(url, model):
        yield open_store(url)
        return
    with connect(url, create=create) as source:
        yield open_registry(source)


def _command_for_file(url: SourceURL, model: str) -> str:
    """Return the command that copies to the database beside a file of rows; empty for other places."""
    from edl.sources.files import store_of

    if url.scheme not in TABLE_FILES:
        return ""
    command = ["sqlflow", "copy", model, "--to", f"duckdb:///{store_of(url.location)}", "--create"]
    return f"models of a file are in the database beside it: {shlex.join(command)}"


def _names_store(url: str, model: str) -> bool:
    """Return True for the URL of an object store or the path of a folder. Raises SourceError for one of neither kind
    that keeps no models, such as a file of rows.
    """
    if Path(url).expanduser().is_dir() or url.partition("://")[0] in (*OBJECT_STORES, "file"):
        return True
    try:
        parsed_url = parse(url)
    except SourceError:
        if "://" in url or "/" in url:
            return True
        raise
    if isinstance(parsed_url, SourceURL) and (parsed_url.scheme not in DATABASES or parsed_url.in_memory):
        raise SourceError(
            f"{redacted(url)} keeps no models",
            hint=_command_for_file(parsed_url, model)
            or "copy to a database, to a folder such as ./models, or to a file such as m.zip",
        )
    return False
