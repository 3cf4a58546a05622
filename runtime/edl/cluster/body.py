"""What every worker and server does, forked or fresh: its own session and log, the lifeline, then its work.

A fresh one is `python -P -m edl.cluster.body JOB_FOLDER INSTANCE LIFELINE`, with the instance as JSON. In a container
there is no lifeline, and the log is what it writes.
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
from edl.cluster.folder import ClusterFolder
from edl.cluster.leaving import hold_back, leave_when_told
from edl.cluster.lifeline import follow, follow_masters
from edl.cluster.logs import log_to
from edl.cluster.messages import instances

TAKE_OVER = -1  # what a worker's entry gives back that is to go on as a parameter server

Entry = Callable[[Path, Instance], int | None]


def main(arguments: list[str]) -> NoReturn:
    job, text, *lifeline = arguments
    live(Path(job), instances.decode(text), int(lifeline[0]) if lifeline else None)


def live(job: Path, instance: Instance, lifeline: int | None) -> NoReturn:
    """Be the instance; ends the process with its exit code. The process is the first of its session."""
    code = exit_codes.FAILED
    try:
        folder = ClusterFolder(job)
        if lifeline is not None:
            log_to(folder.log(instance.name))
            follow(lifeline)
        else:
            leave_when_told()
            follow_masters(folder.address())
        spec = folder.spec()
        code = _run(entry(spec.server if instance.role == "ps" else spec.worker), job, instance)
        if code == TAKE_OVER:
            _become_server(job, instance, lifeline)
    except BaseException:
        traceback.print_exc()
    finally:
        # What the zygote had registered for its own end is not ours to do, and threads of ours may never end.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def entry(name: str) -> Entry:
    """The function that is named as `module:function`."""
    module, _, function = name.partition(":")
    return cast(Entry, getattr(import_module(module), function))


def _become_server(job: Path, instance: Instance, lifeline: int | None) -> NoReturn:
    """Go on in the same process, with nothing of a framework left in it: its memory and threads do not go otherwise."""
    if lifeline is not None:
        os.set_inheritable(lifeline, True)
    else:
        hold_back()
    text = msgspec.json.encode(msgspec.structs.replace(instance, role="ps")).decode()
    sys.stdout.flush()
    sys.stderr.flush()
    last = [] if lifeline is None else [str(lifeline)]
    command = [sys.executable, "-P", "-m", "edl.cluster.body", str(job), text, *last]
    os.execv(sys.executable, command)  # noqa: S606 (our own module, in a list)


def _run(work: Entry, job: Path, instance: Instance) -> int:
    try:
        return work(job, instance) or exit_codes.OK
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else exit_codes.FAILED if end.code else exit_codes.OK


if __name__ == "__main__":
    main(sys.argv[1:])
