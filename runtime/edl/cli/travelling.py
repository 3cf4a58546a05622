"""Files of a job that runs elsewhere: modules of the zoo, data that are small, and weights travel in its folder."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edl.cli import model_zoo
from edl.cli.arguments import DATA
from edl.cli.place import IN_PODS
from edl.data.files.file_ranges import FILE as INDEX
from edl.data.files.file_ranges import FileSet
from edl.data.pinned import read_pinned
from edl.errors import SemanticError
from edl.jobs.job_folder import JobFolder
from edl.models.pending import Intent, write_intent
from edl.program import Program
from edl.run.file_rows import with_rows
from edl.run.initial_weights import take
from edl.spec import JobSpec

MOST_MODULES = 2000  # files of a zoo
_SKIPPED = ("__pycache__", "node_modules", "site-packages")


def fill(job: JobFolder, program: Program, options: argparse.Namespace, most: int) -> JobSpec:
    """Write all that the job needs into its folder, and return the JobSpec of its instances.

    `most` is the limit in bytes of what travels. Raises SemanticError if something cannot, or is too large.
    """
    zoo = program.spec.zoo
    if zoo is None:
        raise TypeError("a job elsewhere needs a module of a zoo")
    source = Path(zoo.path)
    send_modules(source, job.zoo, most, package=zoo.module.partition(".")[0])
    output, weights = (
        _path_in_pods(str(getattr(options, name, None) or "")) for name in ("output", "weights")
    )
    write_intent(job.path, Intent(options.kind, "", output, weights=weights))
    if options.weights is not None and not weights:
        _check_size(options.weights, most, "weights")
        take(job, options.weights)
        model_zoo.note_changes(program.spec, options.weights)
    spec = model_zoo.with_output(program, ()).spec
    if named := _named_in_pods(program, job, options):
        job.unindexed_files.parent.mkdir(parents=True, exist_ok=True)
        job.unindexed_files.write_bytes(msgspec.json.encode(named))
    else:
        pinned = model_zoo.pinned_rows(program, options, job)
        print(f"{pinned.rows:,} rows", file=sys.stderr)
        validation_rows = read_pinned(job.validation_rows).rows if job.validation_rows.is_dir() else 0
        query = model_zoo.with_readings(program, pinned, job).spec.query
        spec = with_rows(msgspec.structs.replace(spec, query=query), pinned, validation_rows)
        for folder in (job.rows, job.validation_rows):
            if (folder / INDEX).exists():
                _send_rows(folder, most)
    model_zoo.write_program(job.program, spec, "the image of the job")
    return msgspec.structs.replace(spec, zoo=msgspec.structs.replace(zoo, path=job.zoo.name))


def _path_in_pods(text: str) -> str:
    """Return the path behind `pod:`, or an empty text for one of this machine."""
    if not text.startswith(IN_PODS):
        return ""
    path = text.removeprefix(IN_PODS)
    if not Path(path).is_absolute():
        raise SemanticError(
            f"{text} is not an absolute path in pods", hint="such as pod:/edl/volume/model.zip"
        )
    return path


def _named_in_pods(program: Program, job: JobFolder, options: argparse.Namespace) -> dict[str, str]:
    """Return the data that only pods see, by folder in the job folder; empty if they are on this machine."""
    data = {job.rows: getattr(options, DATA[options.kind])}
    if options.kind == "train" and options.validation_data is not None:
        data[job.validation_rows] = options.validation_data
    locations = {
        str(folder.relative_to(job.path)): text.removeprefix(IN_PODS)
        for folder, text in data.items()
        if text.startswith(IN_PODS)
    }
    if locations and program.has("custom_data_reader"):
        raise SemanticError(
            f"{IN_PODS} names files, and the module reads its rows by custom_data_reader",
            hint="name the data as the reader wants it; it is called on this machine and in pods",
        )
    if locations and len(locations) < len(data):
        raise SemanticError(
            f"of --training_data and --validation_data only one begins with {IN_PODS}",
            hint="keep both where pods see them, or both on this machine",
        )
    return locations


def _send_rows(folder: Path, most: int) -> None:
    """Copy the files of an index beside it, and name the copies in it."""
    files = msgspec.json.decode((folder / INDEX).read_bytes(), type=FileSet)
    size = sum(file.size for file in files.files)
    if size > most:
        raise SemanticError(
            f"the files of {read_pinned(folder).source} have {size / 1e6:,.0f} MB; "
            f"{most / 1e6:.0f} MB travel with a job",
            hint=f"put them on a volume or into the image, and name them as pods see them: {IN_PODS}/edl/volume/…",
        )
    (folder / "data").mkdir()
    sent = []
    for number, file in enumerate(files.files):
        name = f"data/{number:05d}{Path(file.path).suffix}"
        shutil.copyfile(file.path, folder / name)
        sent.append(msgspec.structs.replace(file, path=name))
    changed = msgspec.structs.replace(files, files=tuple(sent))
    (folder / INDEX).write_bytes(msgspec.json.encode(changed))


def send_modules(zoo: Path, target: Path, most: int, package: str = "") -> None:
    """Copy the Python files of a model zoo's or a script's folder, and all files of the package in it.

    Hidden files are left out, since they may hold secrets. Raises SemanticError if they are too many or too large.
    """
    files: list[Path] = []
    for path in _files(zoo):
        if path.suffix == ".py" or path.relative_to(zoo).parts[0] == package:
            files.append(path)
        if len(files) > MOST_MODULES:
            raise SemanticError(
                f"the folder {zoo} has more than {MOST_MODULES:,} Python files, which would travel with the job",
                hint="keep the script or the model zoo in a folder of its own",
            )
    size = sum(path.stat().st_size for path in files)
    if size > most:
        largest = max(files, key=lambda path: path.stat().st_size)
        raise SemanticError(
            f"the modules of {zoo} have {size / 1e6:,.0f} MB; {most / 1e6:.0f} MB travel with a job",
            hint=f"the largest file is {largest}: keep data outside of the package",
        )
    for path in files:
        copy = target / path.relative_to(zoo)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _files(zoo: Path) -> Iterator[Path]:
    """Yield the files of a zoo that are neither hidden nor links out of it, without virtual environments."""
    root = zoo.resolve()
    for place, folders, names in os.walk(zoo):
        folders[:] = [
            name
            for name in folders
            if name[0] != "." and name not in _SKIPPED and not Path(place, name, "pyvenv.cfg").exists()
        ]
        for path in (Path(place, name) for name in names if name[0] != "."):
            if path.is_file() and path.resolve().is_relative_to(root):
                yield path


def _check_size(path: Path, most: int, name: str) -> None:
    size = path.stat().st_size if path.is_file() else 0
    if size > most:
        raise SemanticError(
            f"the {name} {path} have {size / 1e6:,.0f} MB; {most / 1e6:.0f} MB travel with a job"
        )
