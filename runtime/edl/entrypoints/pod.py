"""Entry point of every container of a job: `python -P -m edl.entrypoints.pod master|instance|program`.

It builds the job folder from the mounted files, and becomes the master, the process of a user's program, or the worker
or server described by EDL_INSTANCE. It does so with an exec, because an interpreter and its libraries read their
environment at the start.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from edl import exit_codes
from edl.cluster.environment import environment
from edl.cluster.local.signals import block_sigterm
from edl.data.server_url import SECRETS
from edl.entrypoints.pod_folder import make_folder
from edl.errors import SpecError, SQLFlowError
from edl.installation import VERSION
from edl.jobs.cluster_folder import SCRIPT_WORKER, ClusterFolder, RunSpec
from edl.jobs.event_log import EventStream
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.spec import from_json, runnable

INSTANCE = "EDL_INSTANCE"  # the `edl.cluster.Instance` of a worker or server, as JSON


def main(role: str) -> NoReturn:
    """Become the master, or the instance."""
    block_sigterm()
    try:
        folder, passwords = make_folder(os.environ)
        spec = read_spec(folder)
        if (job := JobFolder(folder.job)).unindexed_files.exists():
            from edl.entrypoints.pod_rows import place_rows  # loads more than other jobs need

            place_rows(job, role)
        module, *last = _command(role, spec)
    except SQLFlowError as error:
        print(error.report, file=sys.stderr)
        if role == "master":  # clients follow its output
            EventStream(sys.stdout.buffer).write(to_failed(error, ""))
        sys.exit(exit_codes.USAGE)
    variables = environment(spec.threads, {**spec.environment, SECRETS: passwords})
    command = [sys.executable, "-P", "-m", module, str(folder.job), *last]
    os.execve(sys.executable, command, variables)  # noqa: S606 (our own modules, in a list)


def read_spec(folder: ClusterFolder) -> RunSpec:
    """Return the specification of the run, after a check of the job's specification.

    Raises SpecError if this version cannot read one of them, and names the version that made them if it is another.
    """
    try:
        if (job := folder.job / "program" / "job.json").exists():
            from_json(job.read_bytes())
        if (folder.job / runnable.FILE).exists():
            runnable.read(folder.job)
        return folder.run_spec()
    except SpecError as error:
        client = folder.made_by()
        if client in (VERSION, None):
            raise
        origin = f"sqlflow-edl {client}" if client else "another version of sqlflow-edl"
        raise SpecError(
            f"the job was made by {origin}, and its image has {VERSION}, which cannot read it: {error.message}",
            hint=f"let kubernetes.image name an image of version {client or 'of the client'}, or install "
            f"sqlflow-edl=={VERSION} where the job is submitted",
        ) from None


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


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
