"""Supervisor of a job, comparable to a kubelet: `python -P -m edl.cluster.local.supervisor [JOB_FOLDER]`.

It owns every process of the job: it starts the master, and restarts it when it dies; it starts, stops and reaps the
workers that the master requests; and when the job ends, no process of it remains. It reserves the master's port for
the whole job, so that workers find the next master at the same address.

Its input is a pipe from the client that started it. When the pipe ends, the client is gone and the job ends, unless the
client wrote `detach` before, or the job was started detached. Without an argument, the folder of the job comes through
it (`edl.cluster.local.standby`). SIGTERM interrupts the job; the job is kept with a
checkpoint if it can be resumed; after a request to cancel (`ClusterFolder.request_cancel`) it cancels it, a second one
at once.

The job's status records its end. A detached job that is done is `finished`: its result is not in the data source
yet, and a process that the supervisor starts at last commits it (`edl.master.commit`). A job that is done and not
detached is left to the client to commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from edl import exit_codes
from edl.cluster.environment import HOST
from edl.cluster.local.children import Children, kill_orphans
from edl.cluster.local.instances import Instances
from edl.cluster.local.launcher import Launcher, LaunchSettings, launcher
from edl.cluster.local.master_connection import MasterConnection
from edl.cluster.local.master_process import CANCEL_SECONDS, INTERRUPTED, End, Masters
from edl.cluster.local.messages import DETACH
from edl.cluster.local.parent_watch import adopt_orphans
from edl.cluster.local.prepared import Prepared
from edl.cluster.local.standby import wait_for_job
from edl.cluster.logs import open_log
from edl.cluster.quota.share import sharing
from edl.errors import ClusterError, SQLFlowError
from edl.jobs.cluster_folder import ClusterFolder, Process, RunSpec
from edl.jobs.event_log import EventLog, read_end
from edl.jobs.failure import Failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, JobInterruptedError
from edl.jobs.spot_notice import watching_for_spot_notice
from edl.logs import add_time

if TYPE_CHECKING:
    from edl.cluster.nodes.server import NodeServer

COMMIT = "edl.master.commit"  # the module; it may import this package, not the other way round
GRACE = 2.0  # seconds for instances to leave when the job has ended

_CODES = {
    "finished": exit_codes.OK,
    "failed": exit_codes.JOB_FAILED,
    "cancelled": exit_codes.INTERRUPTED,
    "died": exit_codes.ABANDONED,
    "paused": exit_codes.PAUSED,
    "interrupted": exit_codes.TERMINATED,
}
_ERRORS = {"cancelled": JobCancelledError, "interrupted": JobInterruptedError}


def main(arguments: list[str]) -> int:
    if arguments:
        return supervise(Path(arguments[0]), None)
    handed_over = wait_for_job()
    return exit_codes.OK if handed_over is None else supervise(*handed_over)


def supervise(path: Path, prepared: Prepared | None) -> int:
    """Run the job in the folder and return the exit code. prepared: processes that were started before."""
    job = JobFolder(path.absolute())
    folder = ClusterFolder(job.path)
    client = Process.of(os.getppid())
    try:
        with _lock_job(folder):
            spec = folder.run_spec()
            with _port(folder, spec.environment.get(HOST, "127.0.0.1")) as port:
                folder.make_token()
                folder.write_process("supervisor", Process.of(os.getpid()))
                job.owned_by(os.getpid())
                supervisor = Supervisor(job, spec, client, prepared)
                with watching_for_spot_notice(say):
                    return _CODES[asyncio.run(supervisor.run(port)).state]
    except SQLFlowError as error:
        say(error.message)
        return exit_codes.FAILED


class Supervisor:
    """Supervisor of a job, from its first process to its last. `client` is the process that started it."""

    def __init__(
        self, job: JobFolder, spec: RunSpec, client: Process, prepared: Prepared | None = None
    ) -> None:
        self._job = job
        self._spec = spec
        self._client = client
        self._prepared = prepared
        self._folder = ClusterFolder(job.path)
        self._detached = spec.detached
        self._cancelled = False

    async def run(self, port: int) -> End:
        """Run the job and return its end, when no process of it is left. `port` is reserved for the master."""
        # Parent pipe: no other process has its write end.
        reading, writing = self._prepared.lifeline if self._prepared else os.pipe()
        loop = asyncio.get_running_loop()
        children, connection = Children(), MasterConnection()
        setting = LaunchSettings(self._job.path, self._spec, reading, children, say, self._prepared)
        instances = Instances(children, connection.notify, self._spec.slots or None)
        loop.add_signal_handler(signal.SIGCHLD, children.reap)
        local = launcher(setting, instances, adopting=adopt_orphans())
        nodes = self._nodes(instances, connection, local)
        instances.launcher = nodes or local
        self._masters = Masters(setting, connection, instances, port)
        loop.add_signal_handler(signal.SIGTERM, self._terminate)
        if not self._detached:
            loop.add_reader(0, self._watch_client)
        async with contextlib.AsyncExitStack() as slots:
            try:
                if nodes is not None:
                    await slots.enter_async_context(await nodes.start())
                await slots.enter_async_context(
                    sharing(self._spec.quota, self._job.id, instances, connection.notify, say)
                )
                end = await self._masters.serve()
            except ClusterError as error:
                end = End("failed", error.message)
            except Exception as error:
                traceback.print_exc()
                end = End("failed", f"the supervisor failed: {type(error).__name__}: {error}")
            await instances.end_all(GRACE if end.state == "finished" else 0.0)
            if nodes is not None:
                await nodes.end(end.state, end.error)
        loop.remove_signal_handler(signal.SIGCHLD)
        kill_orphans()
        os.close(writing)
        self._record(end)
        return end

    def _nodes(
        self, instances: Instances, connection: MasterConnection, local: Launcher
    ) -> NodeServer | None:
        """Return the server of a job's other machines, if it has some."""
        if not self._spec.nodes:
            return None
        from edl.cluster.nodes.server import NodeServer

        nodes = NodeServer(self._folder, self._spec, self._spec.nodes, instances, connection.notify, say)
        nodes.local = local
        return nodes

    def _terminate(self) -> None:
        if self._folder.cancel_is_requested:
            self._cancel()
        elif self._job.is_resumable:
            say("terminated: the job is interrupted after a checkpoint")
            self._masters.interrupt()
        else:
            self._masters.end(End("interrupted", INTERRUPTED), 0.0)

    def _cancel(self) -> None:
        self._masters.end(End("cancelled"), 0.0 if self._cancelled else CANCEL_SECONDS)
        self._cancelled = True

    def _watch_client(self) -> None:
        """Watch the client's pipe for its detachment or end."""
        words = os.read(0, 4096)
        if words and not words.endswith(DETACH):
            return
        asyncio.get_running_loop().remove_reader(0)
        if words:
            say("detached")
            self._detached = True
        else:
            self._masters.end(End("died", "the process that started the job has ended"), 0.0)

    def _record(self, end: End) -> None:
        """Record the end of the job in its events and its status."""
        say(f"the job has ended: {end.state}{end.error and ': '}{end.error}")
        if end.state == "finished":
            owner = Process.of(os.getpid()) if self._detached else self._client
            self._job.finish(owner.pid, owner.started_as)
            if self._detached:
                start_commit(self._folder)
            return
        if read_end(self._folder.events) is None:
            error = _ERRORS[end.state]() if end.state in _ERRORS else ClusterError(end.error)
            with EventLog(self._folder.events) as events:
                events.write(Failed(error.code, error.message))
        self._job.end(end.state, end.error)


def start_commit(folder: ClusterFolder) -> None:
    """Start the process that stores what the detached job made; it begins when this one has ended."""
    log = open_log(folder.log("commit"))
    try:
        process = subprocess.Popen(  # noqa: S603 (our own module, in a list)
            [sys.executable, "-P", "-m", COMMIT, str(folder.job)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        folder.write_process("commit", Process.of(process.pid))
    except OSError as error:  # a session commits it
        say(f"no process can be started to store the job's result: {error}")
    finally:
        os.close(log)


@contextlib.contextmanager
def _lock_job(folder: ClusterFolder) -> Iterator[None]:
    """Lock the job. Raises ClusterError if it has a supervisor."""
    folder.path.mkdir(mode=0o700, exist_ok=True)
    with folder.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = folder.process("supervisor")
            place = f": pid {other.pid}" if other else ""
            raise ClusterError(f"job {folder.job.name} already has a supervisor{place}") from None
        yield


@contextlib.contextmanager
def _port(folder: ClusterFolder, host: str) -> Iterator[int]:
    """Reserve a port of this machine's address for the masters. They listen on it one after another."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, 0))
        host, port = reserved.getsockname()
        folder.write_master_address(f"{host}:{port}")
        yield port


def say(text: str) -> None:
    """Write a line to the supervisor's log. A full disk must not stop the job."""
    with contextlib.suppress(OSError):
        print(add_time(text), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
