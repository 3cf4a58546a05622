"""Entry point of a parameter server: it registers its address with the master, and serves calls until it is stopped.

The cluster runs `main` in a process of its own; neither a framework nor the user's program is loaded in it. Slow
imports happen before the server registers: while workers build their models, and while the servers of before go on.
"""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from edl import exit_codes
from edl.checkpoints import factory
from edl.cluster import Instance
from edl.cluster.environment import own_address
from edl.jobs.cluster_folder import ClusterFolder
from edl.logs import log
from edl.ps.server import Server
from edl.ps.servicer import serve
from edl.ps.store import warm_up
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import AwayError, MasterChannel, channel_of_instance

CALL_SECS = 10.0
RETRY_SECS = 0.1  # between attempts to reach a master
WARM_SECS = 60.0  # to load or compile the code of steps, before a server registers without it
SILENCE = 20.0  # seconds without a master after which a server that is to end does so
NOTICE = 2.0  # seconds for a master to learn that the whole job is interrupted, before a server is replaced
GRACE = 0.5  # seconds for pending calls when the server ends


def main(job: Path, instance: Instance) -> int:
    """Run a server of the job. Return the exit code."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    warming = threading.Thread(target=warm_up, name="edl-warm-up", daemon=True)
    warming.start()
    folder = ClusterFolder(job)
    token = folder.token()
    server = Server(token, factory.for_instance(job, instance))
    served, port = serve(server, own_address(), token)
    warming.join(WARM_SECS)
    with channel_of_instance(folder.address(), token) as channel:
        is_wanted = _register(channel, instance, own_address(port), ended)
    if not is_wanted:
        log("stopping: the master has refused this server")
        return exit_codes.PREEMPTED
    ended.wait()
    # Its node is drained, or its pod replaced. On a machine that is taken away, all processes are asked to end: servers
    # stay until their job has a checkpoint.
    server.wait_for_another(SILENCE, 0.0 if folder.is_deployed else NOTICE)
    server.close()
    served.stop(GRACE).wait()
    return exit_codes.OK


def _register(channel: MasterChannel, instance: Instance, address: str, ended: threading.Event) -> bool:
    """Register with the master. Return True if it accepts, or if this server is stopped before it replies."""
    request = pb.RegisterRequest(
        instance=instance.name, incarnation=instance.incarnation, role=instance.role, address=address
    )
    while not ended.is_set():
        try:
            return not channel.call(channel.stub.Register, request, CALL_SECS).refused
        except AwayError:
            ended.wait(RETRY_SECS)
    return True
