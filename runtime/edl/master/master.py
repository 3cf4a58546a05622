"""Master of one job: accepts workers, counts their reports, and publishes the outcome.

It reads only the JobSpec: numbers of rows, epochs and workers. The backend decides where the durable state, the events
and the snapshots are written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

import msgspec

from edl import exit_codes, reachability
from edl.checkpoints import CheckpointStore, factory
from edl.cluster import Change, Instance, Order, Room, Wishes
from edl.errors import ClusterError, DamagedError, JobError, SQLFlowError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.failure import Failed, to_failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobPausedError
from edl.logs import log
from edl.master.backend import Backend
from edl.master.instances.automatic_scaling import automatic_scaling
from edl.master.instances.autoscaler import WorkerDecision
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.scaler import Scaler
from edl.master.instances.watch import follow
from edl.master.instances.whole_start import WholeStart
from edl.master.keeping import Keeping, bring_back
from edl.master.pace import SECS, Pace, collect_rarely
from edl.master.ps.checkpoint_coordinator import CheckpointCoordinator
from edl.master.ps.ps_client import PsClient
from edl.master.ps.ps_manager import Servers
from edl.master.reporting.health import life_shown
from edl.master.reporting.metrics_server import MetricsServer
from edl.master.reporting.status import StatusReporter
from edl.master.reporting.tensorboard import CurveCopies, Curves
from edl.master.servicer import Service, serve
from edl.master.state import MasterState
from edl.master.state_loop import StateLoop
from edl.master.stopping import INTERRUPTED, LEAVING, PAUSED, Deadline, Stopper, WaitLimit, wait_until
from edl.master.stored_checkpoints import StoredCheckpoints, stored_checkpoints
from edl.master.tasks.recovery import (
    AllReduceRecovery,
    RecoveryPolicy,
    ServerRecovery,
    TrainerRecovery,
    TreeRecovery,
)
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.content import Mode
from edl.spec import TREES, Checkpoints, JobSpec
from edl.spec import Cluster as ClusterSpec
from edl.tasks import encoding
from edl.tasks.job_state import plan
from edl.tasks.ranges import epoch_steps

LEAVE_SECS = 30.0  # timeout for workers to learn of the job's end
WISH_SECS = 2.0  # interval of looks at the wishes of users
GO_SECS = 10.0  # timeout for workers that know it to exit
# Time for the order of a supervisor after SIGTERM: without one, this process alone was asked to leave.
ORDER_SECS = 1.0


def run(spec: JobSpec, folder: ClusterFolder, backend: Backend, lease_secs: float) -> int:
    """Run the job to its end from the stored state, and return the exit code.

    Raises ClusterError if this master cannot continue, and another one may.
    """
    try:
        collect_rarely()
        store = factory.for_master(folder.job)
        checkpoints = stored_checkpoints(spec, store)
        tasks = restore_tasks(spec, backend, checkpoints, lease_secs)
        return asyncio.run(Master(spec, folder, tasks, backend, store, checkpoints).run())
    except ClusterError:
        raise
    except SQLFlowError as error:
        log(error.report)
        _end_instances(backend)
        end = backend.result_store.end(to_failed(error, folder.shown_log("master")))
        backend.events.write(end)
        backend.show_end(end)
        return exit_codes.JOB_FAILED


def restore_tasks(
    spec: JobSpec, backend: Backend, checkpoints: StoredCheckpoints, lease_secs: float
) -> TaskManager:
    """Restore the task manager from the state store, or from a checkpoint's state if that is damaged.

    Raises SpecError if the stored state was written by another version, JobError if it is of other rows: pods index
    files themselves.
    """
    damaged = ""
    try:
        data = backend.state_store.read()
        state = encoding.decode(data, MasterState) if data is not None else MasterState()
    except DamagedError as error:
        damaged = error.message
        state, wrong = checkpoints.newest_state()
        for line in (damaged, *wrong):
            log(line)
    state.digest = state.digest or spec.rows.digest
    if state.written and not backend.supervised:  # a supervisor resumes jobs that nothing ran of
        state.seconds += max(0.0, time.time() - state.written)
    if state.digest != spec.rows.digest:
        raise JobError(
            "the files of this job have changed since it began, so its master cannot go on",
            hint="submit it again, with data that nothing writes to meanwhile",
        )
    bring_back(state, checkpoints, backend.kept)
    tasks = TaskManager(
        plan(spec, spec.rows),
        state,
        _recovery(spec),
        lease_secs=lease_secs,
        log=backend.log,
        checkpoints=checkpoints,
        task_timeout=spec.cluster.task_timeout,
    )
    if damaged:  # instances have gone on meanwhile
        tasks.go_back()
    return tasks


def _recovery(spec: JobSpec) -> type[RecoveryPolicy]:
    """Return the recovery policy of a training job."""
    if spec.cluster.parameter_servers:
        return ServerRecovery
    if spec.cluster.strategy != "allreduce":
        return TrainerRecovery
    return TreeRecovery if spec.framework in TREES else AllReduceRecovery


class Master:
    """Master of one job, starting from the state of its task manager. `store` holds the job's checkpoints."""

    def __init__(
        self,
        spec: JobSpec,
        folder: ClusterFolder,
        tasks: TaskManager,
        backend: Backend,
        store: CheckpointStore,
        checkpoints: StoredCheckpoints,
    ) -> None:
        self._folder = folder
        self._tasks = tasks
        self._backend = backend
        self._cluster = backend.cluster
        mode = mode_of(spec.cluster)
        self._store = store
        self._checkpoints = checkpoints
        self._keeper = factory.keeper(folder.job)
        self._keeping = Keeping(tasks, checkpoints, backend.kept, copies=factory.are_with_master(folder.job))
        when = partial(factory.adapt_settings, spec.checkpoints, folder.job)
        served = spec.kind == "train" and spec.cluster.parameter_servers
        self._servers = _servers(spec, tasks, mode, when) if served else None
        self._instances = InstanceManager(
            tasks,
            spec.cluster.workers,
            self._servers,
            log=folder.shown_log,
            unreachable_secs=reachability.limit(),
            advice=reachability.advice(),
            register_secs=backend.register_secs,
        )
        if self._cluster.room is not None:
            self._instances.on_resize(self._cluster.room)
        tensorboard = JobFolder(folder.job).tensorboard
        curves = Curves(spec, tensorboard, tasks)
        copies = factory.curves(folder.job)
        self._copies = CurveCopies(tensorboard, copies, tasks.log) if copies else None
        self._state_loop = StateLoop(
            tasks,
            backend.state_store,
            self._servers,
            on_tick=self._on_tick,
            clock=backend.clock,
            add_state=self._add_state,
            date=lambda: 0.0 if self._stopper.has_begun else time.time(),
        )
        self._reporter = StatusReporter(
            spec, tasks, self._instances, backend, curves, self._servers, self._state_loop.obstacles
        )
        self._metrics_server = MetricsServer(
            self._state_loop,
            self._servers,
            self._reporter.snapshot,
            folder,
            store.folder,
            backend.metrics_port,
        )
        self._ps_client = (
            PsClient(self._servers, self._state_loop, mode, store, folder.token())
            if self._servers is not None
            else None
        )
        self._scaler = Scaler(self._cluster, self._on_refusal)
        self._instances_due = Pace(2 * SECS)
        self._automatic = automatic_scaling(spec, tasks, self._instances)
        self._stopper = Stopper(tasks, self._instances, self._servers)
        orderly = backend.supervised and spec.kind == "train"
        self._deadline = Deadline(
            tasks,
            self._stopper,
            spec.cluster.deadline,
            orderly=orderly,
            holds=spec.kind == "train"
            and backend.wishes is not None
            and not (self._servers is not None and self._servers.checkpoints.in_memory),
        )
        self._wait_limit = WaitLimit(tasks, self._instances, self._stopper, backend.wait_secs)
        self._whole_start = WholeStart(tasks, self._instances, backend.least_workers)
        self._leaving, self._unpaused = asyncio.Event(), asyncio.Event()
        self._needed = self._instances.needed_instances  # slots that the quota was asked for
        self._wanting: asyncio.Future[None] | None = None
        self._scaling: asyncio.Future[tuple[int, int]] | None = None
        self._departing: asyncio.Future[None] | None = None
        self._wishing = asyncio.Lock()

    async def run(self) -> int:
        """Serve until the job is over and all workers know, or this master must exit. Return the exit code."""
        async with life_shown(self._backend):
            return await self._run()

    async def _run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)
        await self._state_loop.write()  # the new epoch must be durable before any instance sees it
        service = Service(
            self._state_loop,
            self._reporter.snapshot_bytes,
            self._scale,
            self._keeper,
            self._stopper.begin,
            self._backend.relayed,
        )
        server, _ = await serve(service, self._backend.address, self._folder.token())
        try:
            return await self._manage(loop)
        finally:
            await server.stop(0.2)

    async def _manage(self, loop: asyncio.AbstractEventLoop) -> int:
        """Start and follow the instances until the job is over, or this master must exit. Return the exit code."""
        wishes = await self._read_wishes()
        if self._deadline.is_to_pause(wishes, self._state_loop.now()):
            self._stopper.begin_stopped()
        else:
            self._unpaused.set()
        await self._want()
        self._instances.found(await asyncio.to_thread(self._cluster.list), self._state_loop.now())
        threading.Thread(target=self._watch, args=(loop,), name="edl-watch", daemon=True).start()
        watched = [asyncio.create_task(self._metrics_server.serve())]
        if self._backend.wishes is not None:
            watched.append(asyncio.create_task(self._follow_wishes()))
        if self._ps_client is not None:
            await self._ps_client.start()
        self._on_tick(self._state_loop.now())
        try:
            return await self._serve()
        finally:
            self._scaler.close()
            for task in watched:
                task.cancel()

    async def _serve(self) -> int:
        going_on = asyncio.create_task(self._state_loop.run())
        leaving = asyncio.create_task(self._leaving.wait())
        stopped = asyncio.create_task(self._stops())
        await asyncio.wait((going_on, leaving, stopped), return_when=asyncio.FIRST_COMPLETED)
        for task in (leaving, stopped):
            task.cancel()
        if going_on.done():
            await going_on
            return await self._end()
        going_on.cancel()
        if leaving.done() or stopped.result() is LEAVING:
            if not (leaving.done() and self._instances.anyone_stays):
                if self._ps_client is not None:
                    await self._ps_client.retire_all()
                await self._keeping.keep()
            else:
                await self._keeping.keep_if_quick()
            await self._state_loop.write()
            self._backend.log("terminated: the next master continues from here")
            await self._keep_curves()
            return exit_codes.PREEMPTED
        return await self._end_stopped(stopped.result())

    async def _stops(self) -> Failed:
        """Wait until the job is stopped, and return the reason.

        A pause that a wish asked for ends with it: this master stays, because checkpoints may be on its disk.
        """
        while True:
            self._reporter.keeping = self._keeping.is_possible
            why = await self._stopper.stop()
            if self._backend.wishes is None or why is not PAUSED:
                return why
            await self._keeping.keep()
            await self._state_loop.write()
            self._reporter.keeping = False
            self._backend.show(self._reporter.snapshot())
            self._backend.log("the job is paused")
            state = self._tasks.state
            if state.held:  # the hint tells followers whether it was resumed since
                self._backend.events.write(Failed(JobPausedError.code, state.held, state.resumed))
            await self._unpaused.wait()
            self._stopper.withdraw()

    async def _read_wishes(self) -> Wishes:
        """Read the wishes of users, if this is how they come."""
        if self._backend.wishes is None:
            return Wishes()
        async with self._wishing:
            return await asyncio.to_thread(self._backend.wishes)

    async def _follow_wishes(self) -> None:
        """Carry out the wishes of users, now and whenever they change."""
        workers = self._instances.wanted
        while True:
            wishes = await self._read_wishes()
            if wishes.workers is not None and wishes.workers != workers and not self._tasks.is_finished:
                workers = wishes.workers
                await self._scale(workers, None)
            servers = self._servers.target_count if self._servers is not None else None
            if wishes.servers not in (None, servers) and servers and not self._tasks.is_finished:
                with contextlib.suppress(JobError):  # another change is under way: the next look repeats it
                    await self._scale(None, wishes.servers)
            if not self._deadline.is_to_pause(wishes, self._state_loop.now()):
                self._unpaused.set()
            elif self._unpaused.is_set():
                self._unpaused.clear()
                self._stopper.begin()
            await asyncio.sleep(WISH_SECS)

    async def _end_stopped(self, why: Failed) -> int:
        """Publish that the job was stopped, and keep what it needs to continue."""
        if self._ps_client is not None:
            await self._ps_client.close()
        await self._state_loop.write()
        self._reporter.end(why)
        await self._keep_curves()
        return exit_codes.PAUSED if why in (PAUSED, INTERRUPTED) else exit_codes.JOB_FAILED

    async def _end(self) -> int:
        """Release the workers, store the result, and publish the outcome.

        Checkpoints are removed, unless the job failed and can be resumed.
        """
        self._reporter.publish(self._state_loop.now())
        if self._ps_client is not None:
            await self._ps_client.close()
        await self._let_go()
        with contextlib.suppress(TimeoutError):  # else a pending start might follow the end of the others
            await asyncio.wait_for(self._scaler.finish(), GO_SECS)
        self._scaler.close()
        if self._backend.end_instances is not None:
            await self._end_instances()
        else:  # nothing is left to store, so a signal ends this process at once
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, exit_codes.PREEMPTED)
        if self._ps_client is not None:
            await self._ps_client.tidy()
        kept = bool(self._tasks.state.failed) and await self._keeping.keep_last()
        if not kept:
            await self._keeping.remove()
        if not (kept or (self._tasks.state.failed and self._backend.supervised)):
            try:
                await asyncio.to_thread(self._store.clear)
            except (OSError, SQLFlowError) as error:
                log(f"checkpoints of the job remain: {error}")
        end = self._reporter.outcome
        if kept and isinstance(end, Failed):
            end = msgspec.structs.replace(end, kept=True)
        code = self._reporter.end(await asyncio.to_thread(self._backend.result_store.end, end))
        await self._keep_curves()
        return code

    def _add_state(self, checkpoint: str, data: bytes) -> None:
        """Begin to add the state of the job to a checkpoint."""
        asyncio.get_running_loop().run_in_executor(None, self._checkpoints.add_state, checkpoint, data)

    async def _keep_curves(self) -> None:
        if self._copies is not None:
            await asyncio.to_thread(self._copies.close)

    def _on_tick(self, now: float) -> None:
        if self._instances.needed_instances != self._needed and (
            self._wanting is None or self._wanting.done()
        ):
            self._wanting = asyncio.ensure_future(self._want())
        if self._instances_due.is_due(now, len(self._instances)):
            for action in self._instances.actions(now):
                self._scaler.submit(action)
        if self._ps_client is not None and self._servers is not None:
            self._servers.replace(self._cluster.unfit, "runs on a node that the job avoids")
            self._ps_client.tick(now)
        self._deadline.tick(now)
        if self._tasks.state.held:
            self._unpaused.clear()
        self._whole_start.tick(now)
        self._wait_limit.tick(now)
        if self._automatic is not None and not self._stopper.has_begun:
            self._carry_out(self._automatic.tick(now))
        self._reporter.publish(now)
        self._metrics_server.tick(now)

    def _on_refusal(self, instance: Instance, error: SQLFlowError) -> None:
        if isinstance(error, ClusterError):
            self._instances.on_refusal(instance, error, self._state_loop.now())
        else:  # no instance could be started
            self._fail(error)

    def _fail(self, error: SQLFlowError) -> None:
        """Fail the job, which no other master could continue."""
        self._tasks.fail(to_failed(error, self._folder.shown_log("master")))
        self._state_loop.notify()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Pass cluster changes to the event loop. Runs in a thread of its own."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            follow(
                self._cluster,
                changed=lambda change: loop.call_soon_threadsafe(self._on_change, change),
                report=lambda changes: loop.call_soon_threadsafe(self._found, changes),
                failed=lambda error: loop.call_soon_threadsafe(self._fail, error),
            )

    def _found(self, changes: list[Change]) -> None:
        self._instances.found(changes, self._state_loop.now())
        self._on_tick(self._state_loop.now())
        self._state_loop.notify()

    def _on_change(self, change: Change | Room | Order) -> None:
        if isinstance(change, Order):
            self._obey(change)
        elif isinstance(change, Room):
            self._instances.on_resize(change)
        else:
            self._instances.on_change(change, self._state_loop.now())
        self._on_tick(self._state_loop.now())
        self._state_loop.notify()

    def _carry_out(self, decision: WorkerDecision | None) -> None:
        """Begin to carry out a decision on the automatic number of workers, and show why."""
        if decision is None:
            return
        self._reporter.scaling = f"automatic number of workers: {decision.reason}"
        self._backend.log(self._reporter.scaling)
        if decision.workers != self._instances.wanted:
            self._scaling = asyncio.ensure_future(self._set_numbers(decision.workers, None))

    async def _scale(self, workers: int | None, servers: int | None) -> tuple[int, int]:
        """Set the numbers as a person wants them, and return those until now; one that is None stays.

        Raises JobError if the number of servers is changing already, or the job has none.
        """
        if self._automatic is not None and workers is not None:
            self._automatic.set(workers)
        return await self._set_numbers(workers, servers)

    async def _set_numbers(self, workers: int | None, servers: int | None) -> tuple[int, int]:
        """Set the numbers durably. Returns and raises as `_scale`."""
        before = self._instances.wanted, self._servers.target_count if self._servers is not None else 0
        if servers is not None:
            if self._servers is None:
                raise JobError("the job has no parameter servers")
            self._servers.scale(servers)
        actions = self._instances.scale(before[0] if workers is None else workers)
        await self._state_loop.write()
        await self._want()
        for action in actions:
            self._scaler.submit(action)
        self._on_tick(self._state_loop.now())
        if workers not in (None, before[0]):
            self._backend.log(f"workers: {before[0]} → {workers}")
        return before

    async def _want(self) -> None:
        """Ask the quota, if any, for the slots that the job can use, if that is not the number of the JobSpec."""
        self._needed = self._instances.needed_instances
        state = self._tasks.state
        if (state.workers, state.server_count, state.server_change) != (None, None, None):
            await asyncio.to_thread(self._backend.want, *self._needed)

    def _obey(self, order: Order) -> None:
        """Carry out an order of the supervisor."""
        if order.end == "cancel":
            self._tasks.cancel("the job was cancelled")
        else:
            self._stopper.begin(INTERRUPTED)

    def _terminate(self) -> None:
        """Leave to another master. Where all processes of a machine are asked to end, the supervisor is too, and orders
        the end of the job.
        """
        if self._backend.supervised:
            asyncio.get_running_loop().call_later(ORDER_SECS, self._leave)
        elif self._departing is None:
            self._departing = asyncio.ensure_future(self._depart())

    async def _depart(self) -> None:
        """Leave at once, or with the last checkpoint if all pods of the job are asked to leave, one after another."""
        if self._keeping.is_of_use and not self._stopper.has_begun:
            await wait_until(lambda: not self._instances.anyone_stays, ORDER_SECS)
            is_alone = not self._instances.anyone_stays and not self._tasks.is_finished
            if is_alone and not (await self._read_wishes()).cancelled:
                self._stopper.begin(LEAVING)
                return
        self._leave()

    def _leave(self) -> None:
        if not (self._backend.supervised and self._stopper.has_begun) and not self._tasks.is_finished:
            self._leaving.set()

    async def _let_go(self) -> None:
        """Wait until the running workers know that the job is over; the remaining ones are stopped later."""
        seconds = LEAVE_SECS if not self._tasks.state.cancelled else 2.0
        await wait_until(lambda: not self._state_loop.waits_for(self._instances.workers), seconds)

    async def _end_instances(self) -> None:
        """Wait for workers that exit by themselves and complete their logs; stop the others."""
        await wait_until(lambda: self._state_loop.left.isdisjoint(self._instances.workers), GO_SECS)
        await asyncio.to_thread(_end_instances, self._backend)


def _end_instances(backend: Backend) -> None:
    if backend.end_instances is None:
        return
    try:
        backend.end_instances()
    except SQLFlowError as error:
        log(f"instances may remain: {error.message}")


def mode_of(cluster: ClusterSpec) -> Mode:
    """Return the update mode of the parameter servers."""
    if cluster.strategy == "sync":
        return Mode("sync", cluster.grads_to_wait)
    return Mode("async", durable_updates=cluster.durable_updates, max_staleness=cluster.max_staleness)


def _servers(spec: JobSpec, tasks: TaskManager, mode: Mode, when: Callable[[int], Checkpoints]) -> Servers:
    local_steps = spec.cluster.local_steps if mode.kind == "async" else 1
    count, training = spec.cluster.parameter_servers, spec.training
    steps = training.epochs * epoch_steps(training, spec.rows.training)
    loses = mode.kind == "async" and not mode.logs_updates
    versions = min(steps, training.max_steps or steps) // local_steps if loses else 0
    checkpoints = CheckpointCoordinator(
        tasks, when(count), count, steps_per_version=local_steps, versions=versions
    )
    return Servers(tasks, mode, count, checkpoints, when)
