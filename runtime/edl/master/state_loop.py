"""Event loop of the master: answers calls, writes the durable state in groups, and advances the time.

Everything runs in one event loop, so the state machines need no locks. Only the state store's disk and the cluster are
awaited in threads. An answer never contains more than what is durable where that matters: the master's epoch, a
registration, the end of the job, a new group, and each lease of a task that workers share are written before they are
announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

import msgspec

from edl.errors import ClusterError, SQLFlowError
from edl.jobs.failure import to_failed
from edl.master.pace import SECS, Pace
from edl.master.ps.ps_manager import Servers
from edl.master.reporting.counters import Timed
from edl.master.reporting.status import Obstacles
from edl.master.state_store import StateStore
from edl.master.tasks.task_manager import TaskManager
from edl.reachability import advice
from edl.tasks import encoding
from edl.tasks.protocol import Answer, Flag, Joined, Request

GROUP_SECS = 1.0  # maximum seconds until a report is durable
GROUP_REPORTS = 256  # number of unwritten reports that triggers a write earlier
TICK_SECS = 0.1


class StateLoop:
    """Serves workers and persists their reports. `on_tick` is called ten times a second with the current second.

    `add_state` gets the written state, and the name of the checkpoint that is the one to go back to from then on.
    `date` is the time of a write in seconds since 1970, 0 if the time until the next master does not belong to the job.
    """

    def __init__(
        self,
        tasks: TaskManager,
        state_store: StateStore,
        servers: Servers | None = None,
        *,
        on_tick: Callable[[float], None] = lambda now: None,
        clock: Callable[[], float] = time.monotonic,
        add_state: Callable[[str, bytes], None] = lambda name, data: None,
        date: Callable[[], float] = time.time,
    ) -> None:
        self.tasks = tasks
        self._state_store = state_store
        self._servers = servers
        self._on_tick = on_tick
        self._clock = clock
        self._add_state = add_state
        self._date = date
        self._with_state = ""  # last checkpoint that got its state
        self._offset = tasks.state.seconds - clock()
        self._news = asyncio.Event()
        self._waiting = 0  # calls
        self._news_due = Pace(10 * SECS)
        self._woken: asyncio.TimerHandle | None = None  # when they wake next
        self._writes_due = Pace(SECS / 5)
        self._group = asyncio.Event()
        self._writing = asyncio.Lock()
        self._asked = self._answered = 0  # numbers of writes
        self._writes: set[asyncio.Future[None]] = set()  # in progress
        self._signal: tuple[object, ...] = ()
        self.ended = asyncio.Event()  # set when the job's end is durable
        self.left: set[str] = set()  # instances that know of the end
        self.exchanges = 0
        self.writes = Timed()  # durations of the store's writes
        self.obstacles = Obstacles(tasks.log, advice())
        self._lost: ClusterError | None = None  # error that prevents all further writes

    def now(self) -> float:
        """Return the seconds since the start of the job, over all its masters."""
        return self._clock() + self._offset

    async def join(self, instance: str, incarnation: int, metric_kinds: dict[str, str]) -> Joined | None:
        """Register a worker. Return None if it must exit."""
        joined = self.tasks.join(instance, incarnation, self.now(), metric_kinds)
        await self.write()
        self.notify()
        return joined

    async def register_server(self, instance: str, incarnation: int, address: str) -> Joined | None:
        """Register a parameter server. Return None if it is not expected."""
        if self._servers is None:
            return None
        joined = self._servers.register(instance, incarnation, address, self.now())
        await self.write()
        self.notify()
        return joined

    async def exchange(self, request: Request, wait_secs: float, flags: Flag) -> Answer:
        """Apply the reports, and answer as soon as there is news for the worker, after `wait_secs` at most."""
        self.exchanges += 1
        self.obstacles.on_heard(request.instance, request.incarnation, request.obstacle)
        answer = self._mask_end(self.tasks.exchange(request, self.now()))
        self.notify()
        end = asyncio.get_running_loop().time() + wait_secs
        while _nothing(answer, request, flags):
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            self._waiting += 1
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                pass
            finally:
                self._waiting -= 1
            answer = self._mask_end(self.tasks.answer(request))
        if answer.flags & Flag.FINISHED:
            self.left.add(request.instance)
        if self.tasks.is_written_first(answer.tasks) and not await self._can_write():
            return msgspec.structs.replace(answer, tasks=())
        return answer

    def waits_for(self, workers: Iterable[str]) -> bool:
        """Return True if one of the workers does not know yet that the job is over."""
        return any(name not in self.left and self.tasks.listens(name, self.now()) for name in workers)

    def notify(self) -> None:
        """Wake waiting calls if there may be news for them, and request a write if one is needed."""
        tasks = self.tasks
        signal = (tasks.signal, self.ended.is_set())
        if signal != self._signal:
            self._signal = signal
            if self._woken is None:
                pause = self._news_due.wait(self.now(), self._waiting)
                self._woken = asyncio.get_running_loop().call_later(pause, self._wake) if pause else None
                if not pause:
                    self._wake()
        over = tasks.is_finished and not self.ended.is_set()
        stateless = tasks.state.checkpoint_name != self._with_state  # a checkpoint that has not got its state
        if tasks.unstored >= GROUP_REPORTS or tasks.is_awaited or over or stateless:
            self._group.set()

    def _wake(self) -> None:
        """Wake all waiting calls. Each costs as much as an exchange, so that many are woken rarely."""
        self._woken = None
        self._news_due.is_due(self.now(), 0)
        self._news.set()
        self._news = asyncio.Event()

    async def write(self) -> None:
        """Write the state. Calls during a write share the next one.

        A write continues when its caller is cancelled, for example by a worker that cancels its call: one thread at a
        time writes to the state store.
        """
        self._asked += 1
        writing = asyncio.ensure_future(self._write(self._asked))
        self._writes.add(writing)
        writing.add_done_callback(self._writes.discard)
        try:
            await asyncio.shield(writing)
        except ClusterError as error:
            self._lost = error
            self._group.set()
            raise
        self.notify()

    async def _write(self, mine: int) -> None:
        async with self._writing:
            if self._answered >= mine:
                return
            if pause := self._writes_due.wait(self.now(), len(self.tasks.state.members)):
                await asyncio.sleep(pause)
            self._writes_due.is_due(self.now(), 0)
            answered = self._asked
            finished = self.tasks.is_finished
            state, marks = self.tasks.to_store()
            state.written = self._date()
            data = encoding.encode(state)
            began = time.monotonic()
            await asyncio.to_thread(self._state_store.write, data)
            self.writes.add(time.monotonic() - began)
            self.tasks.on_written(marks)
            self._answered = answered
            if state.checkpoint_name != self._with_state:
                self._with_state = state.checkpoint_name
                if state.checkpoint is not None and state.checkpoint.manifest is None:  # else it is in memory
                    self._add_state(state.checkpoint_name, data)
            if finished:
                self.ended.set()

    async def run(self) -> None:
        """Write in groups and advance the time until the job is over. A failing state store ends the job.

        Raises ClusterError if the state store is unreachable or belongs to another master, which then continues the
        job.
        """
        await self.write()
        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(self._tick())
            await self._write_in_groups()
            ticking.cancel()
        if self._lost is not None:
            raise self._lost

    async def _write_in_groups(self) -> None:
        while not self.ended.is_set() and self._lost is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._group.wait(), GROUP_SECS)
            self._group.clear()
            new = self.tasks.state.checkpoint_name != self._with_state
            if self.tasks.unstored or self.tasks.is_awaited or self.tasks.is_finished or new:
                try:
                    await self._can_write()
                except ClusterError:
                    return
        self.notify()

    async def _can_write(self) -> bool:
        """Write the state. If the state store refuses it, fail the job and return False."""
        try:
            await self.write()
        except ClusterError:
            raise
        except SQLFlowError as error:
            self.tasks.fail(to_failed(error, ""))
            self.ended.set()
            return False
        return True

    async def _tick(self) -> None:
        while True:
            self.tasks.tick(self.now())
            self._on_tick(self.now())
            self.notify()
            await asyncio.sleep(TICK_SECS)

    def _mask_end(self, answer: Answer) -> Answer:
        """Hide the end of the job until it is durable."""
        if not answer.flags & Flag.FINISHED or self.ended.is_set():
            return answer
        return msgspec.structs.replace(answer, flags=answer.flags & ~Flag.FINISHED)


def _nothing(answer: Answer, request: Request, flags: Flag) -> bool:
    """Return True if the answer contains no news, so that it may wait."""
    behind = answer.seen_upto < request.seen_upto
    said = answer.tasks or answer.revoked or answer.servers or answer.group or answer.asked
    changed = answer.flags ^ flags
    if request.join is not None:  # whoever waits for a group knows that its last one is over
        changed &= ~Flag.REGROUP
    return not (said or behind or changed or answer.open_epoch != request.open_epoch)
