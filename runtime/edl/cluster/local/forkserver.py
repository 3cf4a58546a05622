"""Forkserver: a process that has imported the framework and forks workers on request.

    python -P -m edl.cluster.local.forkserver SOCKET LIFELINE PARENT

A framework takes seconds to import, a fork hundredths of one. Forked processes keep locks that other threads held,
so this process has no Python threads, makes no tensor, and opens no framework session: it imports, waits and forks.
(The remaining threads, of OpenBLAS and jemalloc, have fork handlers.)

It forks twice, and the process in between ends at once. So the supervisor, which adopts orphans, becomes the
workers' parent: it alone reaps them, and the end of the forkserver does not affect them.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import msgspec

from edl import exit_codes
from edl.cluster import Instance
from edl.cluster.local.instance_process import live
from edl.cluster.local.messages import (
    Forked,
    FromForkserver,
    Ready,
    Refused,
    Warm,
    to_forkserver_decoder,
)
from edl.cluster.local.parent_watch import die_with_parent
from edl.cluster.local.signals import dump_stacks_on_signal
from edl.cluster.logs import log_to
from edl.jobs.cluster_folder import ClusterFolder

LONGEST = 1 << 16  # maximum bytes of a packet


def main(arguments: list[str]) -> int:
    descriptor, lifeline, parent = map(int, arguments)
    die_with_parent(parent)
    dump_stacks_on_signal()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it holds nothing, and ends with its supervisor
    supervisor = socket.socket(fileno=descriptor)
    began = time.monotonic()
    job = Path()
    while packet := supervisor.recv(LONGEST):
        request = to_forkserver_decoder.decode(packet)
        if isinstance(request, Warm):
            warm_up(request)
            _send(supervisor, Ready(time.monotonic() - began))
            continue
        if job != Path(request.job):  # before its job is known, it may write to a log of no job
            job = Path(request.job)
            log_to(ClusterFolder(job).log("forkserver"))
        _fork(supervisor, request.instance, job, lifeline)
    return exit_codes.OK


def warm_up(warm: Warm) -> None:
    """Import what workers need. Workers report failed imports themselves."""
    spec = warm.spec
    from edl import frameworks
    from edl.data import pandas_later

    for load in (
        lambda: frameworks.prepare(spec.framework, spec.threads),
        lambda: import_module(spec.worker.partition(":")[0]),
        pandas_later.postpone,
        lambda: _prepare_collectives(warm),
    ):
        try:
            load()
        except Exception:
            traceback.print_exc()
    gc.collect()
    gc.freeze()  # unused by the collector, pages stay shared


def _prepare_collectives(warm: Warm) -> None:
    """Import PyTorch, which all-reduces gradients for models of either framework."""
    if warm.collectives:
        import_module("edl.collectives.gloo")


def _fork(supervisor: socket.socket, instance: Instance, job: Path, lifeline: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        between = os.fork()
    except OSError as error:
        _send(supervisor, Refused(instance.key, f"the system cannot fork: {error.strerror}"))
        return
    if between:
        os.waitpid(between, 0)
        return
    try:
        if os.fork() == 0:
            _be(supervisor, instance, job, lifeline)
    except OSError as error:
        _send(supervisor, Refused(instance.key, f"the system cannot fork: {error.strerror}"))
    finally:
        os._exit(exit_codes.OK)


def _be(supervisor: socket.socket, instance: Instance, job: Path, lifeline: int) -> NoReturn:
    """Become the instance. The process itself reports its start, so no worker is unknown when the forkserver dies."""
    try:
        os.setsid()
        _send(supervisor, Forked(instance.key, os.getpid()))
        supervisor.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    except BaseException:
        os._exit(exit_codes.ABANDONED)
    live(job, instance, lifeline)


def _send(supervisor: socket.socket, message: FromForkserver) -> None:
    supervisor.send(msgspec.json.encode(message))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
