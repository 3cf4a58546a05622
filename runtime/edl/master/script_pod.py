"""The master of `edl run` on Kubernetes: `python -m edl.master.script_pod JOB_FOLDER`, in the pod of the job's Job.

Workers share no folder: what they tell each other (the address of their process group, the rows of `edl.elastic`) goes
through this master, which keeps it in a ConfigMap for the next one.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Sequence

from edl import exit_codes
from edl.cluster import Change, Instance, NoRoomError
from edl.cluster.environment import own_address
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIUnreachableError
from edl.cluster.kubernetes.cluster import KubernetesCluster
from edl.cluster.kubernetes.status_map import StatusMap
from edl.errors import JobError
from edl.jobs.cluster_folder import SCRIPT, ClusterFolder
from edl.jobs.event_log import Event, EventStream
from edl.jobs.failure import Failed, to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot
from edl.logs import log
from edl.master.main_pod import GRACE, connect_master, serve
from edl.master.script_relay import serve_relay
from edl.master.scripts import UNREGISTERED_SECS, ScriptMaster
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
            address = own_address(names.PORT)
            with serve_relay(backend.relayed, folder.token(), address, probe_port=names.HEALTH):
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
    room: int | None = None

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


if __name__ == "__main__":
    sys.exit(main())
