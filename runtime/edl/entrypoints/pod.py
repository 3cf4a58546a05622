"""Entry point of every container of a job: `python -P -m edl.entrypoints.pod master|instance|program`.

It builds the job folder from the mounted files, and becomes the master, the process of a user's program, or the worker
or server described by EDL_INSTANCE. It does so with an exec, because an interpreter and its libraries read their
environment at the start.

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
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from edl import exit_codes
from edl.build import ADVICE, Build, present_build
from edl.cluster.environment import environment
from edl.cluster.local.signals import block_sigterm
from edl.data.server_url import MOUNTED, PASSWORDS
from edl.errors import SpecError, SQLFlowError
from edl.files import replace_file
from edl.jobs.cluster_folder import SCRIPT_WORKER, ClusterFolder, RunSpec
from edl.jobs.event_log import EventStream
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.script_run import FILE as SCRIPT
from edl.logs import log
from edl.spec import from_json, runnable

INSTANCE = "EDL_INSTANCE"  # the `edl.cluster.Instance` of a worker or server, as JSON


def main(role: str) -> NoReturn:
    """Become the master, or the instance."""
    block_sigterm()
    try:
        folder = make_folder(os.environ)
        spec = read_spec(folder)
        if (job := JobFolder(folder.job)).unindexed_files.exists():
            from edl.entrypoints.pod_rows import place_rows  # loads more than other jobs need

            place_rows(job, role)
        module, *last = _command(role, spec)
    except SQLFlowError as error:
        print(error.report, file=sys.stderr)
        if role in ("master", "program"):  # clients follow its output
            EventStream(sys.stdout.buffer).write(to_failed(error, ""))
        sys.exit(exit_codes.USAGE)
    variables = environment(spec.threads, spec.environment)
    command = [sys.executable, "-P", "-m", module, str(folder.job), *last]
    os.execve(sys.executable, command, variables)  # noqa: S606 (our own modules, in a list)


def read_spec(folder: ClusterFolder) -> RunSpec:
    """Return the specification of the run, after a check of the job's specification and of the client's build.

    Another build that made the job is told. Raises SpecError, which names both builds, if this one does not run its
    jobs, or cannot read one of the specifications.
    """
    client, image = folder.made_by(), present_build()
    if client is not None and not client.is_compatible(image):
        raise _incompatibility(
            client,
            f"which does not run it: the protocol of jobs is {client.protocol} there, {image.protocol} here",
        )
    try:
        if (job := folder.job / "program" / "job.json").exists():
            from_json(job.read_bytes())
        if (folder.job / runnable.FILE).exists():
            runnable.read(folder.job)
        spec = folder.run_spec()
    except SpecError as error:
        if client is None or client == image:
            raise
        raise _incompatibility(client, f"which cannot read it: {error.message}") from None
    if client is not None and client != image:
        log(f"the job was made by {client}, and its image has {image}, which runs it too")
    return spec


def _incompatibility(client: Build, why: str) -> SpecError:
    """Return the error of a job of another build."""
    return SpecError(
        f"the job was made by {client}, and its image has {present_build()}, {why}",
        hint=ADVICE,
    )


def _command(role: str, spec: RunSpec) -> list[str]:
    """Return module and arguments; the job's folder is inserted between them."""
    if role == "master":
        module = "edl.master.script_pod" if spec.worker == SCRIPT_WORKER else "edl.master.main_pod"
        return [module, *spec.master_arguments]
    if role == "instance":
        if not os.environ.get(INSTANCE):
            raise SpecError(f"a container of a worker or server needs {INSTANCE} in its environment")
        return ["edl.cluster.local.instance_process", os.environ[INSTANCE]]
    if role == "program":
        return ["edl.entrypoints.runnable_pod"]
    raise SpecError(f"{role} is neither master nor instance nor program")


_PART = re.compile(r"(.+)\.part-(\d+)")


def make_folder(environment: Mapping[str, str]) -> ClusterFolder:
    """Build the folder and return it. Passwords stay in the mounted files, where `edl.data.server_url` reads them.

    Idempotent. Raises SpecError if something is missing.
    """
    files, secrets = (
        Path(_read_variable(environment, "EDL_FILES")),
        Path(_read_variable(environment, MOUNTED)),
    )
    job, master = Path(_read_variable(environment, "EDL_JOB")), _read_variable(environment, "EDL_MASTER")
    _copy(files, job)
    folder = ClusterFolder(job)
    folder.write_token(_secret(secrets / "token"))
    folder.write_master_address(master)
    if (secrets / SCRIPT).exists():
        replace_file(job / SCRIPT, (secrets / SCRIPT).read_bytes())
    _secret(secrets / PASSWORDS)
    return folder


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


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
