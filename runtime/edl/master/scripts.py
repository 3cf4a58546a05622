"""Master of a script's workers: `python -m edl.master.scripts JOB_FOLDER --port PORT --cluster-fd N`.

    start all ─▶ one fails ─▶ stop all ─▶ start all again …         as torchrun does
    start all ─▶ the script calls edl.elastic ─▶ train in groups ─▶ serve until the scripts have ended

At first it keeps no state: what it must know after a restart is in the list of instances: their incarnation is the
number of restarts. When a worker has recorded a workload, the master of training jobs takes over in this process, with
the workers that run (`edl.master.master`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import sys
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from edl import exit_codes, tls
from edl.checkpoints.master_store import Keeper
from edl.cluster import Change, Instance, NoRoomError
from edl.cluster.environment import own_address
from edl.cluster.local.cluster import ProcessCluster
from edl.errors import ClusterError, JobError, SQLFlowError
from edl.jobs import script_run
from edl.jobs.cluster_folder import SCRIPT, ClusterFolder
from edl.jobs.event_log import EventLog
from edl.jobs.events import Tally
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.script_run import Attempt, ScriptRun, Workload
from edl.jobs.snapshot import Row, Snapshot
from edl.logs import log
from edl.master.backend import Backend, ClientResultStore, End, Events, ResultStore
from edl.master.main import begin, flush_job
from edl.master.master import run
from edl.master.script_relay import serve_relay
from edl.master.state import MasterState
from edl.master.state_store import FileStateStore, StateStore
from edl.spec import JobSpec, Rows, from_json
from edl.tasks import encoding
from edl.tasks.job_state import MOST_STEPS, STEPWISE

LOOK_SECS = 0.05  # between two looks at the instances
SHOW_SECS = 1.0  # between two snapshots
# Ends that another one may have caused: who loses a peer fails by an exception, and is seen at the same time.
_CONSEQUENCES = {"failed": 1, "stopped": 2}
GRACE = 30.0  # seconds for a worker to end when another one has failed, as torchrun gives it
JOIN_SECS = 600.0  # time for so many machines to join as a script needs at least
LAST_CALL = 10.0  # and for further ones, before it starts without them
UNREGISTERED_SECS = 3600.0  # time for a script to reach edl.elastic after another worker has


def main(arguments: Sequence[str] | None = None) -> int:
    options, folder = begin("edl.master.scripts", arguments)
    with EventLog(folder.events) as events, contextlib.closing(ProcessCluster(options.cluster_fd)) as cluster:
        try:
            address, relayed, records = own_address(options.port), None, folder.job
            if folder.is_spread:
                relayed = Keeper(JobFolder(folder.job).relay_folder)
                records = JobFolder(folder.job).relay_folder / SCRIPT
            scripts = ScriptMaster(folder, Supervised(cluster, folder), events, records)
            relaying = serve_relay(relayed, folder.token(), address) if relayed else contextlib.nullcontext()
            with relaying:
                end = scripts.run()
            if end is not None:
                events.write(end)
                return exit_codes.OK
            return _train(scripts, folder, cluster, address, options.lease_secs, relayed)
        except SQLFlowError as error:
            log(error.report)
            events.write(to_failed(error, ""))
            return exit_codes.JOB_FAILED


def _train(
    scripts: ScriptMaster,
    folder: ClusterFolder,
    cluster: ProcessCluster,
    address: str,
    lease_secs: float,
    relayed: Keeper | None,
) -> int:
    try:
        state_store = FileStateStore(folder.state, lambda: flush_job(folder.job))
    except ClusterError as error:  # the other master continues
        log(error.report)
        return exit_codes.FAILED
    with contextlib.closing(state_store):
        backend = Backend(
            cluster=cluster,
            state_store=state_store,
            events=scripts.events,
            result_store=ClientResultStore(),
            show=lambda snapshot: snapshot.write(folder.snapshot),
            address=address,
            metrics_port=None if tls.identity() else 0,  # they would be plain
            beat=cluster.beat,
            register_secs=UNREGISTERED_SECS,
            relayed=relayed,
        )
        return scripts.train(backend, lease_secs)


class Workers(Protocol):
    """Workers of a script, where they run: see `edl.cluster.Cluster`."""

    @property
    def relaunches(self) -> int:
        """Number of masters before this one, as far as they are known."""

    def start(self, instance: Instance) -> None: ...

    def stop(self, instance: Instance, grace: float) -> None: ...

    def list(self) -> list[Change]: ...

    @property
    def room(self) -> int | None:
        """Number of workers that there is room for at present, or None if that is not limited."""

    def show(self, snapshot: Snapshot) -> None:
        """Publish how far they are. Called about once a second, as a sign of life too."""


class Supervised:
    """Workers that a supervisor of this machine starts."""

    def __init__(self, cluster: ProcessCluster, folder: ClusterFolder) -> None:
        self._cluster = cluster
        self._folder = folder
        self.stop, self.list = cluster.stop, cluster.list

    def start(self, instance: Instance) -> None:
        with contextlib.suppress(NoRoomError):  # a machine was lost: it is requested again
            self._cluster.start(instance)

    @property
    def relaunches(self) -> int:
        return self._cluster.relaunches

    @property
    def room(self) -> int | None:
        return None if self._cluster.room is None else self._cluster.room.slots

    def show(self, snapshot: Snapshot) -> None:
        self._cluster.beat()
        snapshot.write(self._folder.snapshot)


class ScriptMaster:
    """Master of one job of `edl run`. `records` is the folder of what its workers record."""

    def __init__(self, folder: ClusterFolder, cluster: Workers, events: Events, records: Path) -> None:
        self._folder = folder
        self._cluster = cluster
        self.events = events
        self._records = records
        script = script_run.read(folder.job, ScriptRun)
        if script is None:
            raise JobError("the job has no script")
        self._script = script
        self._began = time.monotonic()
        self._started = _now()
        self._shown = -SHOW_SECS
        self._tally = Tally(0, 0, 0)

    def run(self) -> Outcome | None:
        """Start and restart all workers until all have succeeded; return None as soon as they train together.

        Raises JobError if one fails and no restart is left.
        """
        script = self._script
        attempt = script_run.read(self._folder.job, Attempt)
        size = (attempt.workers if attempt is not None else 0) or 0
        gang = Gang(script.workers, script.max_restarts, self._log_of, least=script.least or 0, size=size)
        while script_run.read(self._records, Workload) is None:
            changes = self._look()
            if gang.has_succeeded(changes):
                return self._outcome()
            for instance, stop in gang.actions(changes, self._cluster.room):
                if stop:
                    self._cluster.stop(instance, GRACE)
                else:
                    self._begin(instance, gang)
            time.sleep(LOOK_SECS)
        return None

    def train(self, backend: Backend, lease_secs: float) -> int:
        """Serve the workers until the scripts of those that have trained have ended; return the exit code."""
        workload = script_run.read(self._records, Workload)
        spec = from_json((self._folder.job / "program" / "job.json").read_bytes())
        ends = ScriptEnds(backend.result_store, backend.state_store, self.await_ends)
        backend = dataclasses.replace(backend, result_store=ends)
        return run(_training_spec(spec, workload), self._folder, backend, lease_secs)

    def _begin(self, instance: Instance, gang: Gang) -> None:
        """Start a worker of the attempt that its incarnation names."""
        attempt = script_run.read(self._folder.job, Attempt)
        if attempt is None or attempt.restarts != instance.incarnation:
            attempt = Attempt(
                instance.incarnation,
                _free_port(),
                workers=gang.size,
                reason=gang.failure if instance.incarnation else msgspec.UNSET,
            )
            script_run.write(self._folder.job, attempt)
            if self._folder.is_spread:
                script_run.announce(self._records, attempt)
            if instance.incarnation:
                log(
                    f"starting all workers again: restart {instance.incarnation} of {self._script.max_restarts}"
                )
        self._cluster.start(instance)

    def await_ends(self, trained: AbstractSet[tuple[str, int]]) -> None:
        """Wait until the scripts of the workers that `trained` have ended. Others have come too late: they have nothing
        to do, and are ended with the job.

        Raises JobError if one of the scripts fails.
        """
        while True:
            changes = [change for change in self._look() if change.instance.key in trained]
            if all(change.state == "ended" for change in changes):
                break
            time.sleep(LOOK_SECS)
        if failed := [change for change in changes if change.reason not in ("done", "preempted", "stopped")]:
            raise JobError(
                f"{failed[0].instance.name} {_describe_end(failed[0])} after the training",
                hint=f"its log: {self._log_of(failed[0].instance.name)}",
            )

    def _look(self) -> list[Change]:
        """Return the state of all workers; publish it from time to time."""
        changes = [change for change in self._cluster.list() if change.instance.role == "worker"]
        if time.monotonic() - self._shown >= SHOW_SECS:
            self._shown = time.monotonic()
            self._show(changes)
        self._tell(changes)
        return changes

    def _show(self, changes: list[Change]) -> None:
        rows = tuple(
            Row(
                change.instance.name,
                "worker",
                change.instance.incarnation,
                change.state,
                change.place,
                relaunches=change.instance.incarnation,
            )
            for change in sorted(changes, key=lambda change: change.instance.name)
        )
        self._cluster.show(
            Snapshot(self._started, _now(), instances=rows, master_relaunches=self._cluster.relaunches)
        )

    def _tell(self, changes: list[Change]) -> None:
        """Write an event if the number of running workers, or the number of restarts, has changed."""
        running = sum(change.state == "running" for change in changes)
        restarts = max((change.instance.incarnation for change in changes), default=0)
        tally = Tally(
            0, 0, 0, running, restarts, starting=sum(change.state == "pending" for change in changes)
        )
        if tally != self._tally:
            self._tally = tally
            self.events.write(tally)

    def _outcome(self) -> Outcome:
        return Outcome("train", 0, time.monotonic() - self._began)

    def _log_of(self, name: str) -> str:
        return self._folder.shown_log(name)


class Gang:
    """State machine of workers that are started and stopped together. `log_of` says where the log of one is.

    They are `most` workers, or `least` or more if there is no room for all: then they wait, JOIN_SECS for the least
    and LAST_CALL for the others. `size` is the number in the present attempt; `failure` says which worker has ended the
    one before, and how.
    """

    def __init__(
        self,
        most: int,
        max_restarts: int,
        log_of: Callable[[str], str] = str,
        *,
        least: int = 0,
        size: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.size = size or most
        self.failure, self._failed = "", -1  # the latter is the attempt that it has ended
        self._most = most
        self._least = least or most
        self._max_restarts = max_restarts
        self._log_of = log_of
        self._clock = clock
        self._waiting_since: float | None = None  # for room, before an attempt
        self._stopped: set[tuple[str, int]] = set()  # asked to stop

    def has_succeeded(self, changes: Sequence[Change]) -> bool:
        """Return True if all workers have succeeded."""
        present = _last_attempt(changes)
        return len(present) == self.size and all(change.reason == "done" for change in present)

    def actions(self, changes: Sequence[Change], room: int | None = None) -> list[tuple[Instance, bool]]:
        """Return the instances to start, and those to stop (True). `room` is for so many workers, None for any.

        Raises JobError if a worker has failed and no restart is left, or if there is no room for too long.
        """
        present = _last_attempt(changes)
        if not present:
            return self._start_all(0, room)
        restarts = present[0].instance.incarnation
        failed = [change for change in present if change.state == "ended" and change.reason != "done"]
        if not failed:
            names_present = {change.instance.name for change in present}
            starts = self._starts(restarts)
            return [(instance, False) for instance in starts if instance.name not in names_present]
        first = min(failed, key=lambda change: _CONSEQUENCES.get(change.reason or "", 0))
        if self._failed != restarts:
            self._failed, self.failure = restarts, f"{first.instance.name} {_describe_end(first)}"
        if restarts >= self._max_restarts:
            times = f" after {restarts} restart{'' if restarts == 1 else 's'}" if restarts else ""
            raise JobError(
                f"{first.instance.name} {_describe_end(first)}{times}",
                hint=f"its log: {self._log_of(first.instance.name)}",
            )
        running = [change.instance for change in changes if change.state != "ended"]
        if not running:
            return self._start_all(restarts + 1, room)
        stops = [(instance, True) for instance in running if instance.key not in self._stopped]
        if not self._stopped & {change.instance.key for change in changes}:
            log(self.failure)
        self._stopped |= {instance.key for instance, _ in stops}
        return stops

    def _starts(self, attempt: int) -> list[Instance]:
        return [Instance(f"worker-{number}", "worker", attempt) for number in range(self.size)]

    def _start_all(self, attempt: int, room: int | None) -> list[tuple[Instance, bool]]:
        """Return the workers of an attempt, or none while they wait for room."""
        size = self._most if room is None else min(self._most, room)
        if size < self._most:
            if self._waiting_since is None:
                self._waiting_since = self._clock()
            waited = self._clock() - self._waiting_since
            if size < self._least:
                if waited > JOIN_SECS:
                    raise JobError(
                        f"there is room for {size} workers, and {self._least} are needed",
                        hint="start `edl run` on the other machines, with the same --rdzv_endpoint and join token",
                    )
                return []
            if waited < LAST_CALL:
                return []
        self._waiting_since = None
        self.size = size
        return [(instance, False) for instance in self._starts(attempt)]


def _last_attempt(changes: Sequence[Change]) -> list[Change]:
    """Return the workers of the last start of all."""
    restarts = max((change.instance.incarnation for change in changes), default=0)
    return [change for change in changes if change.instance.incarnation == restarts]


class ScriptEnds:
    """Result store of a job that ends with the scripts of its workers.

    The master serves meanwhile: a worker that has missed the end of the training learns of it, and the liveness
    probe is answered. `await_ends` gets the members of the last group.
    """

    def __init__(
        self,
        result_store: ResultStore,
        state_store: StateStore,
        await_ends: Callable[[AbstractSet[tuple[str, int]]], None],
    ) -> None:
        self._result_store = result_store
        self._state_store = state_store
        self._await_ends = await_ends

    def end(self, end: End) -> End:
        if isinstance(end, Outcome) and (data := self._state_store.read()) is not None:
            state = encoding.decode(data, MasterState).rendezvous
            members = state.present.members if state.present is not None else ()
            try:
                self._await_ends({*zip(members, state.incarnations, strict=True)})
            except JobError as error:
                log(error.report)
                end = to_failed(error, "")
        return self._result_store.end(end)


def _training_spec(spec: JobSpec, workload: Workload | None) -> JobSpec:
    """Return the JobSpec of the training of this workload; the workers permute its rows.

    If the script decides when it ends, the master leases ranges of steps instead of ranges of rows.
    """
    if workload is None:
        raise JobError("no worker has called edl.elastic")
    rows = workload.bounded_dataset
    if rows is None:
        return msgspec.structs.replace(spec, rows=Rows(True, MOST_STEPS, MOST_STEPS), training=STEPWISE)
    training = msgspec.structs.replace(
        spec.training, epochs=rows.epochs or 1, batch_size=rows.batch_size, seed=rows.seed, shuffle=False
    )
    return msgspec.structs.replace(spec, rows=Rows(True, rows.rows, rows.rows), training=training)


def _describe_end(change: Change) -> str:
    code = change.exit_code
    if code is not None and code > 0:
        return f"failed (exit code {code})"
    return f"was {change.detail}" if change.detail.startswith("killed") else change.detail or "ended"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    sys.exit(main())
