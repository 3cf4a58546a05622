"""Entry point of a worker of `edl run`: it runs the script as `python` does, with the variables that torchrun sets.

A script that calls `edl.elastic` becomes a worker of a training job at that point, in this process.
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from edl import exit_codes
from edl.cluster import Instance
from edl.cluster.environment import own_host
from edl.errors import JobError, SQLFlowError
from edl.extension_loader import load_or
from edl.jobs import script_run
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.script_run import Attempt, ScriptRun


def _do_nothing(*_: object) -> None:
    """Stand in for an absent extension: a script that does not call it needs none."""


# what `edl.elastic` does at the beginning and at the end of a worker
_enter_worker: Callable[[Path, Instance], None] = load_or(
    "edl.extensions.elastic.connection", "enter_worker", _do_nothing
)
_leave_worker: Callable[[int, SQLFlowError | None], None] = load_or(
    "edl.extensions.elastic.connection", "leave_worker", _do_nothing
)


def main(job: Path, instance: Instance) -> int:
    """Run the script and return its exit code."""
    script = script_run.read(job, ScriptRun)
    if script is None:
        raise JobError(f"job {job.name} has no script to run")
    if ClusterFolder(job).is_spread:
        from edl.entrypoints.script_group import meet  # imports gRPC

        attempt = meet(job, instance)
    else:
        record = script_run.read(job, Attempt)
        if record is None:
            raise JobError(f"job {job.name} has not started its script")
        attempt = record
    in_pods = ClusterFolder(job).is_deployed
    os.environ.update(variables(job.name, script, attempt, instance, in_pods=in_pods))
    _enter_worker(job, instance)
    code, error = _run(script_run.place_script(script, job))
    _leave_worker(code, error)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    return code


def variables(
    run: str, script: ScriptRun, attempt: Attempt, instance: Instance, *, in_pods: bool = False
) -> dict[str, str]:
    """Return the variables of torchrun for one of its workers; rank 0 has the store of the process group.

    `in_pods`: each worker is alone on its machine. On several machines each has so many workers as the script says.
    After a restart, one more variable says why: a worker's name, and how it ended.
    """
    rank, size = int(instance.name.rpartition("-")[2]), attempt.workers or script.workers
    per_node = 1 if in_pods else (script.per_node or size)
    node = rank // per_node
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % per_node),
        "ROLE_RANK": str(rank),
        "GROUP_RANK": str(node),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(min(per_node, size - node * per_node)),
        "ROLE_WORLD_SIZE": str(size),
        "GROUP_WORLD_SIZE": str(-(-size // per_node)),
        "ROLE_NAME": "default",
        "MASTER_ADDR": attempt.host or own_host(),
        "MASTER_PORT": str(attempt.port),
        "TORCHELASTIC_RUN_ID": run,
        "TORCHELASTIC_RESTART_COUNT": str(instance.incarnation),
        "TORCHELASTIC_MAX_RESTARTS": str(script.max_restarts),
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        **({"EDL_RESTART_REASON": attempt.reason} if attempt.reason else {}),
    }


def _run(script: ScriptRun) -> tuple[int, SQLFlowError | None]:
    """Run the script; return its exit code, and our error that has ended it."""
    os.chdir(script.folder)
    sys.argv = [script.module or script.path, *script.arguments]
    sys.path.insert(0, script.folder if script.module else str(Path(script.path).parent))
    try:
        if script.module:
            runpy.run_module(script.module, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script.path, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or exit_codes.OK, None
        print(end.code, file=sys.stderr)
        return exit_codes.FAILED, None
    except BaseException as error:
        traceback.print_exception(type(error), error, _trim_traceback(error.__traceback__, script))
        if not isinstance(error, SQLFlowError):
            return exit_codes.FAILED, None
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return exit_codes.FAILED, error
    return exit_codes.OK, None


def _trim_traceback(frames: TracebackType | None, script: ScriptRun) -> TracebackType | None:
    """Return the traceback from the script's first frame on, or all of it."""
    at = frames
    while at is not None and at.tb_frame.f_code.co_filename != script.path:
        at = at.tb_next
    return at or frames
