"""Main function of every worker and parameter server process, forked or new: session, log, parent watch, then its
work.

A new process is `python -P -m edl.cluster.local.instance_process JOB_FOLDER INSTANCE LIFELINE`, with the instance
as JSON. In a container there is no parent pipe, and output goes to the container's log.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NoReturn, cast

import msgspec

from edl import exit_codes
from edl.cluster import Instance
from edl.cluster.local.messages import instance_decoder
from edl.cluster.local.parent_watch import continue_at_end_of, follow, follow_masters
from edl.cluster.local.signals import block_sigterm, dump_stacks_on_signal, end_on_sigterm
from edl.cluster.logs import log_to
from edl.jobs.cluster_folder import ClusterFolder

TAKE_OVER = -1  # result of a worker's entry point that has to become a parameter server

Entry = Callable[[Path, Instance], int | None]


def main(arguments: list[str]) -> NoReturn:
    job, text, *lifeline = arguments
    live(Path(job), instance_decoder.decode(text), int(lifeline[0]) if lifeline else None)


def live(job: Path, instance: Instance, lifeline: int | None) -> NoReturn:
    """Run the instance and exit with its exit code. The process leads its own session."""
    code = exit_codes.FAILED
    try:
        folder = ClusterFolder(job)
        if lifeline is not None:
            log_to(folder.log(instance.name))
            follow(lifeline)
            if (supervisor := folder.process("supervisor")) is not None:
                continue_at_end_of(supervisor.pid)
        else:
            end_on_sigterm()
            follow_masters(folder.address())
        dump_stacks_on_signal()
        spec = folder.run_spec()
        code = _run(entry(spec.server if instance.role == "ps" else spec.worker), job, instance)
        if code == TAKE_OVER:
            _become_server(job, instance, lifeline)
    except BaseException:
        traceback.print_exc()
    finally:
        # Skip the exit handlers of the forkserver, and don't wait for threads that may never end.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def entry(name: str) -> Entry:
    """Return the function named `module:function`."""
    module, _, function = name.partition(":")
    return cast(Entry, getattr(import_module(module), function))


def _become_server(job: Path, instance: Instance, lifeline: int | None) -> NoReturn:
    """Replace this process by a parameter server. Only an exec frees the memory and threads of a framework."""
    if lifeline is not None:
        os.set_inheritable(lifeline, True)
    else:
        block_sigterm()
    text = msgspec.json.encode(msgspec.structs.replace(instance, role="ps")).decode()
    sys.stdout.flush()
    sys.stderr.flush()
    last = [] if lifeline is None else [str(lifeline)]
    command = [sys.executable, "-P", "-m", "edl.cluster.local.instance_process", str(job), text, *last]
    os.execv(sys.executable, command)  # noqa: S606 (our own module, in a list)


def _run(work: Entry, job: Path, instance: Instance) -> int:
    try:
        return work(job, instance) or exit_codes.OK
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else exit_codes.FAILED if end.code else exit_codes.OK


if __name__ == "__main__":
    main(sys.argv[1:])
