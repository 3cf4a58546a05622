"""The master of `edl run` on Kubernetes: `python -m edl.master.script_pod JOB_FOLDER`, in the pod of the job's Job.

Workers share no folder: what they tell each other (the address of their process group, the rows of `edl.elastic`) goes
through this master, which keeps it in a ConfigMap for the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc

from edl import exit_codes
from edl.checkpoints.master_store import Keeper
from edl.cluster import Change, Instance, NoRoomError
from edl.cluster.environment import own_address
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIUnreachableError
from edl.cluster.kubernetes.cluster import KubernetesCluster
from edl.cluster.kubernetes.status_map import StatusMap
from edl.errors import ClusterError, JobError
from edl.jobs.cluster_folder import SCRIPT, ClusterFolder
from edl.jobs.event_log import Event, EventStream
from edl.jobs.failure import Failed, to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot
from edl.logs import log
from edl.master.main_pod import GRACE, connect_master, serve
from edl.master.reporting import health
from edl.master.scripts import UNREGISTERED_SECS, ScriptMaster
from edl.master.servicer import FileService
from edl.master.servicer import serve as serve_calls
from edl.rpc import control_pb2 as pb
from edl.spec import from_json

POLL_SECS = 1.0  # interval of lists of the pods
ROOM_SECS = 5.0  # after a refusal for want of room, until pods are requested again
READY_SECS = 20.0  # time for the port to be listened on


def main(arguments: Sequence[str] | None = None) -> int:
    return serve("edl.master.script_pod", arguments, _run)


def _run(folder: ClusterFolder, stream: EventStream, lease_secs: float) -> int:
    spec = from_json((folder.job / "program" / "job.json").read_bytes())
    records = JobFolder(folder.job).relay_folder / SCRIPT
    with connect_master(folder, stream, spec.cluster.workers) as connection:
        backend, events = connection.backend, _Events(stream, connection.board)
        connection.output.restore(records)
        scripts = ScriptMaster(folder, Pods(connection.cluster, connection.board.show), events, records)
        try:
            code = exit_codes.OK
            with _serve_relay(backend.relayed, folder.token()):
                end = scripts.run()
            if end is not None:
                events.write(end)
            else:  # the workers end by themselves
                backend = dataclasses.replace(
                    backend, end_instances=None, wishes=None, register_secs=UNREGISTERED_SECS
                )
                code = scripts.train(backend, lease_secs)
        except JobError as error:
            log(error.report)
            events.write(to_failed(error, folder.shown_log("master")))
            code = exit_codes.JOB_FAILED
        if code in (exit_codes.OK, exit_codes.JOB_FAILED):
            connection.cluster.end_all(GRACE)
        return code


class _Events:
    """Events for clients that follow the log, and the end of the job also for other clients."""

    def __init__(self, stream: EventStream, board: StatusMap) -> None:
        self._stream = stream
        self._board = board

    def write(self, event: Event) -> None:
        self._stream.write(event)
        if isinstance(event, Outcome | Failed):
            self._board.end(event)


class Pods:
    """Workers that are pods, listed about once a second."""

    relaunches = 0

    def __init__(self, cluster: KubernetesCluster, show: Callable[[Snapshot], None]) -> None:
        self._cluster = cluster
        self._known: dict[str, Change] = {}  # last change of each name
        self._due = self._no_room_until = 0.0
        self._is_listed = False
        self._noted = ""
        self.show = show

    def start(self, instance: Instance) -> None:
        """Start the worker. Without room, do nothing for a while: it is requested again at once."""
        if time.monotonic() < self._no_room_until:
            return
        try:
            self._cluster.start(instance)
        except NoRoomError as error:
            self._no_room_until = time.monotonic() + ROOM_SECS
            self._note(f"{instance.name} waits for room: {error.message}")

    def stop(self, instance: Instance, grace: float) -> None:
        self._cluster.stop(instance, grace)

    def list(self) -> list[Change]:
        if time.monotonic() >= self._due:
            try:
                self._refresh()
                self._is_listed = True
            except APIUnreachableError as error:
                if not self._is_listed:
                    raise
                self._note(f"{error.message}; the workers go on")
            self._due = time.monotonic() + POLL_SECS
        return [*self._known.values()]

    def _note(self, text: str) -> None:
        """Log the text, unless it is what was logged last."""
        if text != self._noted:
            self._noted = text
            log(text)

    def _refresh(self) -> None:
        """List the pods. A missing pod counts as ended; the master's watch may already have reported it."""
        listed = {change.instance.name: change for change in self._cluster.poll()}
        for name, before in self._known.items():
            now = listed.get(name)
            if now is None or now.instance.incarnation < before.instance.incarnation:
                listed[name] = self._cluster.end_of(before.instance) or before
        self._known = listed


class _Relay(FileService):
    """Servicer before the workers train together: those that are ready for that call again."""

    async def Register(self, request: pb.RegisterRequest, context: Any) -> pb.Registration:  # noqa: N802
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the workers do not train together yet")
        raise RuntimeError  # abort has raised


@contextlib.contextmanager
def _serve_relay(files: Keeper | None, token: str) -> Iterator[None]:
    """Answer calls of workers and the liveness probe, in a thread, until the workers train together."""
    loop = asyncio.new_event_loop()
    ready, ended, failed = threading.Event(), asyncio.Event(), list[Exception]()

    async def answer() -> None:
        try:
            server, _ = await serve_calls(_Relay(None, files), own_address(names.PORT), token)
            probe = await health.serve(names.HEALTH)
        except (ClusterError, RuntimeError) as error:  # RuntimeError: gRPC cannot listen
            failed.append(error)
            return
        finally:
            ready.set()
        await ended.wait()
        probe.close()
        await server.stop(0.2)

    thread = threading.Thread(target=lambda: loop.run_until_complete(answer()), name="edl-relay", daemon=True)
    thread.start()
    if not ready.wait(READY_SECS):
        failed.append(TimeoutError(f"its port is not open after {READY_SECS:g} s"))
    if failed:
        raise ClusterError(f"the master cannot answer its workers: {failed[0]}")
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


if __name__ == "__main__":
    sys.exit(main())
