"""Job folder inside a container, built from mounted files.

EDL_FILES    the job's files, at their paths in the folder; a large one as PATH.part-00, PATH.part-01 …
EDL_SECRETS  token, the token of RPCs; secrets.json, the passwords of data sources by their URLs; script.json, of
             `edl run`: the script and its arguments
EDL_JOB      path of the folder; its name is the job's id
EDL_MASTER   host:port of the master
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from edl.errors import SpecError
from edl.files import replace_file
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.script_run import FILE as SCRIPT

_PART = re.compile(r"(.+)\.part-(\d+)")


def make_folder(environment: Mapping[str, str]) -> tuple[ClusterFolder, str]:
    """Build the folder. Return it and the passwords, for SQLFLOW_EDL_SECRETS in the job's processes.

    Idempotent. Raises SpecError if something is missing.
    """
    files, secrets = (
        Path(_read_variable(environment, "EDL_FILES")),
        Path(_read_variable(environment, "EDL_SECRETS")),
    )
    job, master = Path(_read_variable(environment, "EDL_JOB")), _read_variable(environment, "EDL_MASTER")
    _copy(files, job)
    folder = ClusterFolder(job)
    folder.write_token(_secret(secrets / "token"))
    folder.write_master_address(master)
    if (secrets / SCRIPT).exists():
        replace_file(job / SCRIPT, (secrets / SCRIPT).read_bytes())
    return folder, _secret(secrets / "secrets.json")


def _read_variable(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise SpecError(f"a container of a job needs {name} in its environment")
    return environment[name]


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from None


def _copy(files: Path, job: Path) -> None:
    """Copy the mounted files, and join those split into parts."""
    job.mkdir(mode=0o700, parents=True, exist_ok=True)
    parts: dict[str, dict[int, Path]] = {}
    for path in _find_mounted_files(files):
        name = str(path.relative_to(files))
        if match := _PART.fullmatch(name):
            parts.setdefault(match[1], {})[int(match[2])] = path
        else:
            _write(job / name, [path])
    for name, numbered_parts in parts.items():
        if sorted(numbered_parts) != list(range(len(numbered_parts))):
            raise SpecError(f"a part of {name} is not mounted: there are {sorted(numbered_parts)}")
        _write(job / name, [numbered_parts[number] for number in range(len(numbered_parts))])


def _find_mounted_files(folder: Path) -> Iterator[Path]:
    """Yield the mounted files. Kubernetes mounts links to `..data`, and replaces that as a whole."""
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith("..")]
        yield from (Path(place, name) for name in names if not name.startswith(".."))


def _write(path: Path, sources: list[Path]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        for source in sources:
            with source.open("rb") as mounted:
                shutil.copyfileobj(mounted, file)
    partial.replace(path)
