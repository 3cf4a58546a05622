"""The master process: `python -m edl.master.main JOB_FOLDER --port PORT --cluster-fd N`.

What it reads of the job is `program/job.json`: how many rows, how many epochs, how many workers. What it writes is in
`cluster/` of the job folder: the ledger, the events that clients follow, and the figures of the moment.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from edl import exit_codes
from edl.cluster import Change, Cluster, Room
from edl.cluster.events import EventLog
from edl.cluster.folder import ClusterFolder
from edl.cluster.processes import ProcessCluster
from edl.data.jobs import JobFolder
from edl.errors import ClusterError, SQLFlowError
from edl.master.crew import Crew, Order
from edl.master.curves import Curves
from edl.master.cuts import Cuts
from edl.master.following import follow
from edl.master.kept import Kept
from edl.master.leases import Leases
from edl.master.ledger import FileLedger, Ledger
from edl.master.office import Office
from edl.master.parameters import InTrainer, NoParameters, OnServers
from edl.master.ring_leases import InRing
from edl.master.servers import Servers
from edl.master.service import Service, serve
from edl.master.serving import Serving
from edl.master.telling import Teller
from edl.master.watching import Watching
from edl.ps.messages import Mode
from edl.spec import Cluster as ClusterSpec
from edl.spec import JobSpec, from_json
from edl.tasks import encoding
from edl.tasks.failed import to_failed
from edl.tasks.job import Plan

LEAVE_SECS = 30.0  # that workers have to hear of the end


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder = ClusterFolder(options.job)
    try:
        ledger = FileLedger(folder.path / "ledger")
    except ClusterError as error:  # the other master goes on, and tells how the job ends
        print(f"error: {error.message}", file=sys.stderr)
        return exit_codes.FAILED
    try:
        spec = from_json((options.job / "program" / "job.json").read_bytes())
        cluster = ProcessCluster(options.cluster_fd)
        with EventLog(folder.events) as events, contextlib.closing(ledger):
            return _run(spec, folder, cluster, ledger, events, options)
    except SQLFlowError as error:
        print(f"error: {error.message}", file=sys.stderr)
        with EventLog(folder.events) as events:
            events.write(to_failed(error, str(folder.log("master"))))
        return exit_codes.JOB_FAILED


def _run(
    spec: JobSpec,
    folder: ClusterFolder,
    cluster: ProcessCluster,
    ledger: Ledger,
    events: EventLog,
    options: argparse.Namespace,
) -> int:
    data = ledger.read()
    kept = encoding.decode(data, Kept) if data is not None else None
    leases = Leases(plan(spec), kept, _parameters(spec), lease_secs=options.lease_secs, note=_note)
    master = Master(spec, folder, leases, ledger, cluster, events)
    try:
        return asyncio.run(master.run(f"127.0.0.1:{options.port}"))
    finally:
        cluster.close()


def plan(spec: JobSpec) -> Plan:
    """What the job of the spec is to do."""
    rows = spec.rows
    if spec.kind == "train":
        return Plan("train", rows.training, rows.validation, spec.training, spec.evaluation)
    return Plan(spec.kind, rows.total)


def _parameters(spec: JobSpec) -> type[NoParameters]:
    """Where they are, in a job that trains."""
    if spec.cluster.parameter_servers:
        return OnServers
    return InRing if spec.cluster.strategy == "allreduce" else InTrainer


class Master:
    """Runs one job: workers in, reports heard, the end told."""

    def __init__(
        self,
        spec: JobSpec,
        folder: ClusterFolder,
        leases: Leases,
        ledger: Ledger,
        cluster: Cluster,
        events: EventLog,
    ) -> None:
        self._folder = folder
        self._leases = leases
        self._cluster = cluster
        mode = mode_of(spec.cluster)
        checkpoints = JobFolder(folder.job).checkpoints
        served = isinstance(leases.parameters, OnServers)
        self._servers = _servers(spec, leases, mode, checkpoints) if served else None
        self._crew = Crew(leases, spec.cluster.workers, self._servers, log=lambda name: str(folder.log(name)))
        if cluster.room is not None:
            self._crew.resized(cluster.room)
        curves = Curves(spec, JobFolder(folder.job).tensorboard, leases)
        self._teller = Teller(spec, folder, leases, self._crew, events, curves, self._servers)
        self._office = Office(leases, ledger, self._servers, on_tick=self._on_tick)
        self._watching = Watching(self._office, self._servers, self._teller.snapshot, folder, checkpoints)
        self._serving = (
            Serving(self._servers, self._office, mode, checkpoints, folder.token())
            if self._servers is not None
            else None
        )
        self._orders: asyncio.Queue[Order] = asyncio.Queue()

    async def run(self, address: str) -> int:
        """Serve until the job is over and everybody knows; the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._cancel)
        await self._office.write()  # the epoch of this master, before anybody hears of it
        service = Service(self._office, self._teller.snapshot_bytes, self._scale)
        server, _ = await serve(service, address, self._folder.token())
        self._crew.found(await asyncio.to_thread(self._cluster.list), self._office.now())
        threading.Thread(target=self._watch, args=(loop,), name="edl-watch", daemon=True).start()
        ordering = asyncio.create_task(self._carry_out())
        watched = asyncio.create_task(self._watching.serve())
        if self._serving is not None:
            await self._serving.start()
        self._on_tick(self._office.now())
        await self._office.run()
        self._teller.tell(self._office.now())
        if self._serving is not None:
            await self._serving.close()
        await self._let_go()
        ordering.cancel()
        watched.cancel()
        end = self._teller.end()
        await server.stop(0.2)
        return end

    def _on_tick(self, now: float) -> None:
        for order in self._crew.orders(now):
            self._orders.put_nowait(order)
        if self._serving is not None:
            self._serving.tick(now)
        self._teller.tell(now)
        self._watching.tick(now)

    async def _carry_out(self) -> None:
        """Ask the cluster for what the crew orders, one after another."""
        while True:
            order = await self._orders.get()
            instance = order.instance
            try:
                if order.stop:
                    await asyncio.to_thread(
                        self._cluster.stop, instance.name, instance.incarnation, order.grace
                    )
                else:
                    await asyncio.to_thread(self._cluster.start, instance)
            except ClusterError as error:
                if not order.stop:
                    self._crew.refused(instance, error, self._office.now())

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own: hand changes to the loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            follow(
                self._cluster,
                changed=lambda change: loop.call_soon_threadsafe(self._changed, change),
                found=lambda changes: loop.call_soon_threadsafe(self._found, changes),
            )

    def _found(self, changes: list[Change]) -> None:
        self._crew.found(changes, self._office.now())
        self._on_tick(self._office.now())
        self._office.ring()

    def _changed(self, change: Change | Room) -> None:
        if isinstance(change, Room):
            self._crew.resized(change)
        else:
            self._crew.changed(change, self._office.now())
        self._on_tick(self._office.now())
        self._office.ring()

    def _scale(self, workers: int) -> None:
        for order in self._crew.scale(workers):
            self._orders.put_nowait(order)
        self._on_tick(self._office.now())

    def _cancel(self) -> None:
        self._leases.cancel("the job was cancelled")
        self._office.ring()

    async def _let_go(self) -> None:
        """Wait until the workers that run have heard that the job is over; what stays longer, the supervisor ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECS if not self._leases.kept.cancelled else 2.0):
                while self._office.waits_for(self._crew.workers):
                    await asyncio.sleep(0.02)


def mode_of(cluster: ClusterSpec) -> Mode:
    """How pushes become steps."""
    return Mode("sync", cluster.grads_to_wait) if cluster.strategy == "sync" else Mode("async")


def _servers(spec: JobSpec, leases: Leases, mode: Mode, checkpoints: Path) -> Servers:
    local_steps = spec.cluster.local_steps if mode.kind == "async" else 1
    cuts = Cuts(leases, spec.checkpoints, spec.cluster.parameter_servers, steps_per_version=local_steps)
    return Servers(leases, mode, spec.cluster.parameter_servers, cuts, checkpoints)


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="edl.master.main", description="Runs one job with many workers")
    parser.add_argument("job", type=Path, help="the job folder")
    parser.add_argument("--port", type=int, required=True, help="to serve on")
    parser.add_argument("--cluster-fd", type=int, required=True, help="the socket to the supervisor")
    parser.add_argument(
        "--lease-secs", type=float, default=10.0, help="of silence after which a worker is given up"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
