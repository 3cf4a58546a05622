"""Task source of a worker with a master in another process.

A thread exchanges messages with the master: reports, heartbeats, and requests for what other threads wait for. It waits
for an unreachable master without a limit, unless this worker has to leave: then the whole job often ends. Reports that
a master has not stored are sent again to its successor. Meanwhile the worker does the tasks that it holds in advance.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc

from edl import reachability
from edl.errors import JobError
from edl.jobs.failure import Failed, to_failed
from edl.rpc import codec
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import AwayError, MasterChannel, translate_error
from edl.tasks.protocol import Flag, Joined, Servers
from edl.tasks.task import CONTROL, Report, Task, TaskType
from edl.worker.ahead import REFILL, Ahead
from edl.worker.loop import DivergedError
from edl.worker.outbox import Outbox

CALL_SECS = 10.0  # for an answer, on top of the time that it may wait
SHORTEST_RETRY, LONGEST_RETRY = 0.05, 1.0  # seconds between attempts to reach the master
NEWS_SECS = 0.2  # longest time until a group learns that others wait to join
MEMBERS = 80  # most members of a group that all ask that often; in a larger one each asks more rarely
LEAVING_SECS = 5.0  # maximum wait for an unreachable master if this worker has to leave
AWAY_SECS = 1.0  # without an expected answer, after which the worker goes on without the master
LOOK_SECS = 0.2  # interval of looks whether the master is away
# Flags that say that no task of the type will come.
_OVER: dict[TaskType, Flag] = {"train": Flag.TRAIN_OVER | Flag.STOPPED, "predict": Flag.PREDICT_OVER}


class RefusedError(JobError):
    """Error of a worker after the master has given up its incarnation: all its leases are void."""


class RemoteTasks:
    """Tasks from the master at the other end of `channel`. Call `join` first; close it, or use it as a context.

    `ahead` determines the tasks to hold in advance. A `trainer` holds the weights, so it cannot register again once the
    master has given it up, and no other worker needs its tasks. A report on which nothing depends may wait
    `gather_secs` for others; an exchange costs both sides as much as a step of a small model. `draining` is set when
    this worker has to leave, and by this object when it has to take over another role. `end_hung` ends this process
    when the master has seen no progress for too long. A member of all-reduce groups (`grouped`) does control tasks as
    long as a round is open.
    """

    waits = True

    def __init__(
        self,
        channel: MasterChannel,
        instance: str,
        incarnation: int,
        *,
        ahead: Ahead | None = None,
        trainer: bool = False,
        grouped: bool = False,
        gather_secs: float = 0.0,
        draining: threading.Event | None = None,
        log: str = "",
        end_hung: Callable[[], object] = lambda: None,
    ) -> None:
        self._channel = channel
        self.outbox = Outbox(instance, incarnation)
        self._ahead = ahead
        self._trainer = trainer
        self._shared = ahead is not None and not trainer
        self._gather_secs = gather_secs
        gathers = gather_secs if gather_secs and not self._shared else math.inf
        self._shortest_silence = min(gathers, NEWS_SECS if grouped else math.inf)
        self._longest_silence = self._shortest_silence
        # While set, control tasks may come between two training tasks.
        self._control_flags = Flag.PENDING | (Flag.MEASURING if grouped else Flag.NONE)
        self._draining = draining or threading.Event()
        self._log = log
        self._end_hung = end_hung
        # Time since which this worker has to leave without a master.
        self._unreachable_since: float | None = None
        self._away_since: float | None = (
            None  # time of the first call in a row that the master did not answer
        )
        self._sent_at = self._answer_due = 0.0  # of the last exchange
        self._sent_upto = 0  # last report that it had
        self.changed = threading.Condition()
        self._waiting: list[tuple[TaskType, ...]] = []  # types that threads in `next` wait for
        self._awaiting = 0  # threads that wait for something other than tasks
        # Epochs that may be measured later, if their end comes while no master answers; their weights are kept.
        self.most_postponed = 0
        self._postponed: list[int] = []  # since the last answer
        self._ended = 0  # epoch that has ended and is not known to be concluded
        # True if this worker, or its group, has gone on after the end of an epoch, since the last answer.
        self.has_postponed: Callable[[], bool] = lambda: bool(self._postponed)
        # True if this worker, or its group, goes on without the control tasks that it waits for.
        self.has_moved_on: Callable[[], bool] = self._may_leave_epoch
        self._idle: tuple[TaskType, ...] = ()  # types of which it said that this worker has none
        self._call: Any = None  # exchange in flight
        self._patient = False  # True if it waits at the master for something to do
        self._version = 0  # changes since the last request
        self._closed = self._awake = False
        self._refused: RefusedError | None = None
        self._heartbeat = 1.0
        self._kinds: dict[str, str] = {}
        self._error: Exception | None = None  # last error that a task raised
        self._thread = threading.Thread(target=self._run, name="edl-exchange", daemon=True)

    def join(self) -> Joined:
        """Register and start the exchange.

        Raises RefusedError if the master refuses, or is unreachable while this worker has to leave.
        """
        joined = self._register()
        self._thread.start()
        return joined

    # The task source ------------------------------------------------------------------------------------------

    def turn(self) -> bool:
        return not self.is_pending

    @property
    def is_pending(self) -> bool:
        is_waiting = self.outbox.flags & Flag.PENDING and not self.has_postponed()
        return bool(is_waiting) or self.outbox.has_received(*CONTROL)

    @property
    def is_stopped(self) -> bool:
        return bool(self.outbox.flags & Flag.STOPPED)

    @property
    def takes_over(self) -> bool:
        """True if this worker has to become a parameter server."""
        return bool(self.outbox.flags & Flag.TAKE_OVER)

    def holds_lease(self, task: Task) -> bool:
        """Return True if the task's lease is held; else its results are discarded."""
        with self.changed:
            self.check()
            return self.outbox.holds_lease(task)

    def is_over(self, kind: TaskType) -> bool:
        over = {"train": Flag.TRAIN_OVER | Flag.FINISHED, "predict": Flag.PREDICT_OVER | Flag.FINISHED}
        with self.changed:
            self.check()
            return bool(self.outbox.flags & over.get(kind, Flag.FINISHED))

    def next(self, *types: TaskType) -> Task | None:
        with self.changed:
            self._waiting.append(types)
            try:
                while True:
                    self.check()
                    if task := self.outbox.take(*types, away=self.is_away):
                        return task
                    if self._closed or self._awake or self._draining.is_set() or self._is_unavailable(types):
                        return None
                    if not self._is_asked(types):
                        self.wake()
                    looks = self.most_postponed or self.outbox.has_received(*types)
                    self.changed.wait(LOOK_SECS if looks else None)
                    if self._ahead is not None:
                        self._ahead.on_wait()
            finally:
                self._waiting.remove(types)

    def progress(self, done: Report) -> None:
        with self.changed:
            self.check()
            self.outbox.progress(done)
            self._send_gathered()

    def report(self, report: Report) -> None:
        """Report a done task. If something may depend on it, wait until the master has it.

        If other workers train too, and the master is away, this one goes on with the tasks that it has.
        """
        kind = report.task.type
        with self.changed:
            number = self.outbox.report("done", report)
            if self._ahead is not None and kind == self._ahead.kind:
                self._ahead.on_done()
            followed = report.task.settles or kind in ("conclude", "export")
            if followed or not self._gather_secs:
                self.wake()
            self._send_gathered()
            if report.task.settles and kind == "train":
                self._ended = report.task.number
            if followed and self._wait_until_seen(number, lambda: self._may_go_on(report.task)):
                self._ended = 0 if kind == "conclude" else self._ended
            self.check()

    def describe(self, metric_kinds: Mapping[str, str]) -> None:
        """Declare how the states of the program's metrics merge; see `edl.metrics.merge_kind`."""
        self._kinds = dict(metric_kinds)
        self._register()

    def report_failure(self, task: Task, error: Exception) -> bool:
        self._error = error
        fatal = isinstance(error, DivergedError)
        self._report_failure(task, to_failed(error, self._log), fatal=fatal)
        return not (fatal or (self._trainer and task.type == "train") or self._refused)

    def give_back(self, part: Report) -> None:
        with self.changed:
            self.outbox.report("given back", part)
            self.wake()

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        with self.changed:
            self._awake = True
            self.changed.notify_all()
        try:
            yield
        finally:
            self._awake = False

    def is_reported(self, error: BaseException) -> bool:
        """Return True if this error was reported to the master."""
        return error is self._error

    # Parameter servers ----------------------------------------------------------------------------------------

    @property
    def servers(self) -> Servers | None:
        """Last known addresses of the parameter servers, or None in a job without them."""
        return self.outbox.servers

    def wait_for_servers(self, after: int, seconds: float) -> Servers | None:
        """Wait until all servers are ready under a number above `after`; return None after `seconds`.

        Raises RefusedError if the master has given this worker up.
        """

        def found() -> Servers | None:
            servers = self.outbox.servers
            return servers if servers is not None and servers.ready and servers.number > after else None

        with self.awaiting():
            self.changed.wait_for(lambda: found() or self.is_disconnected or self._awake, seconds)
            self.check()
            return found()

    # Besides tasks ----------------------------------------------------------------------------------------------

    def give_up(self, error: Failed, checkpoint: str = "") -> None:
        """Report an error that fails the whole job, and wait until the master has it.

        If it is damage of this checkpoint, the job goes on from another one.
        """
        self._report_failure(Task(0, "export"), error, fatal=True, folder=checkpoint)

    @property
    def master_epoch(self) -> int:
        """Number that grows with every master of the job."""
        return self.outbox.master_epoch

    def begin_checkpoint(self, folder: str, part: Report) -> None:
        """Report that the present weights go to `folder`; they contain `part` of the open task."""
        with self.changed:
            self.outbox.report("checkpoint", part, folder=folder)

    def end_checkpoint(self, folder: str) -> None:
        with self.changed:
            self.outbox.report("checkpoint written", Report(Task(0, "train")), folder=folder)
            self.wake()

    def leave(self, seconds: float = 5.0) -> None:
        """Return tasks that were not begun, and wait until the master has all reports, at most `seconds`."""
        with self.changed:
            self._ahead = None
            self.outbox.give_back_received()
            self.wake()
            self.changed.wait_for(lambda: not self.outbox.is_unacknowledged or self.is_disconnected, seconds)

    def close(self) -> None:
        with self.changed:
            self._closed = True
            self.wake()
            self.changed.notify_all()
        if self._thread.ident:
            self._thread.join()

    def __enter__(self) -> RemoteTasks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def on_enter(self, members: int) -> None:
        """Ask for news as often as one of so many members of a group has to: the first one to leave ends it for all."""
        if self._ahead is not None:
            self._ahead.forget()
        self._longest_silence = self._shortest_silence * max(1.0, members / MEMBERS)

    # Under the lock `changed`, which is notified on every message from the master ------------------------------

    def check(self) -> None:
        """Raise RefusedError if the master has given this worker up."""
        if self._refused:
            raise self._refused

    @contextlib.contextmanager
    def awaiting(self) -> Iterator[None]:
        """Provide a context with the lock, in which exchanges wait at the master for news besides tasks."""
        with self.changed:
            self._awaiting += 1
            self.changed.notify_all()
            try:
                yield
            finally:
                self._awaiting -= 1

    @property
    def is_disconnected(self) -> bool:
        """True if no report would be accepted any more."""
        deaf = self._closed or self._refused is not None or not self._thread.is_alive()
        return deaf or bool(self.outbox.flags & Flag.FINISHED)

    @property
    def is_away(self) -> bool:
        """True if an answer of the master is overdue."""
        now = time.monotonic()
        if self._away_since is not None:
            return now - self._away_since > AWAY_SECS
        return self._call is not None and now - self._answer_due > AWAY_SECS

    def _wait_until_seen(self, number: int, may_go_on: Callable[[], bool] = lambda: False) -> bool:
        """Wait until the master has the report of that number. Return False if it is away and this worker may go on."""
        while not (self.outbox.seen_upto >= number or self.is_disconnected):
            if may_go_on():
                return False
            self.changed.wait(LOOK_SECS if self._shared or self.most_postponed else None)
        if self._ahead is not None:
            self._ahead.on_wait()
        return True

    def _may_go_on(self, task: Task) -> bool:
        """Return True if this worker may go on after the last task of an epoch, or of the job, without a master."""
        if task.type == "conclude":
            return self.has_moved_on()
        if not task.settles or task.type == "export":
            return False
        if self._shared:
            return self.is_away and self.outbox.has_received(task.type)
        return self.may_postpone(task.number, len(self._postponed))

    def _may_leave_epoch(self) -> bool:
        """Return True if this worker, which trains alone, may go on after the epoch that has ended."""
        return not self._shared and self.may_postpone(self._ended, len(self._postponed))

    def may_postpone(self, epoch: int, others: int) -> bool:
        """Return True if no master can have this epoch measured, which has ended, and the next one may begin meanwhile.

        So it may if it is trained whatever the next conclusions decide. `others` is the number of epochs that wait.
        """
        may = others < self.most_postponed and 0 < epoch < self.outbox.certain_epoch
        return may and self.is_away

    def take_postponed(self) -> int:
        with self.changed:
            if not self._may_leave_epoch():
                return 0
            epoch, self._ended = self._ended, 0
            self._postponed.append(epoch)
            return epoch

    def _is_unavailable(self, types: tuple[TaskType, ...]) -> bool:
        """Return True if no task of these types can come, as far as the master's last answer says."""
        flags = self.outbox.flags
        if flags & (Flag.FINISHED | Flag.TAKE_OVER):
            return True
        if types == ("train",):
            flush = bool(flags & Flag.DRY) and self.outbox.holds("train")
            return self.is_pending or flush or bool(flags & (Flag.TRAIN_OVER | Flag.STOPPED))
        if types == CONTROL:
            may_come = self._control_flags | Flag.TRAIN_OVER | Flag.STOPPED
            is_over = self.outbox.informed and not flags & may_come
            return self.outbox.regroup or is_over or self.has_moved_on()
        return bool(flags & Flag.PREDICT_OVER)

    def wake(self) -> None:
        """Cancel the exchange that waits at the master, because there is something new to send."""
        self._version += 1
        if self._call is not None and self._patient:
            self._call.cancel()
        self.changed.notify_all()

    def _report_failure(self, task: Task, error: Failed, *, fatal: bool, folder: str = "") -> None:
        with self.changed:
            number = self.outbox.report("failed", Report(task), error=error, fatal=fatal, folder=folder)
            self.wake()
            self._wait_until_seen(number)

    def _send_gathered(self) -> None:
        """Send reports that have waited for others long enough, though a call may wait for news at the master."""
        late = time.monotonic() - self._sent_at >= self._gather_secs
        if self._shared and late and self.outbox.last_report > self._sent_upto:
            self.wake()

    def _want(self) -> dict[TaskType, int]:
        want: dict[TaskType, int] = {}
        if (ahead := self._ahead) is not None and not self.outbox.flags & _OVER.get(
            ahead.kind, Flag.FINISHED
        ):
            count = ahead.count(self.outbox.master_epoch)
            if self.outbox.count_received(ahead.kind) < REFILL * count:
                want[ahead.kind] = count
        for types in self._unserved_types():
            want.update({kind: max(want.get(kind, 0), 1) for kind in types})
        return want

    def _unserved_types(self) -> list[tuple[TaskType, ...]]:
        """Return the awaited types that are not here and may still come."""
        return [
            types
            for types in self._waiting
            if not (self.outbox.may_begin(*types) or self._is_unavailable(types))
        ]

    @property
    def _keeps_call_open(self) -> bool:
        """True if the master may have tasks for this worker, or needs some of it, at any time."""
        ahead, outbox = self._ahead, self.outbox
        if ahead is None or not self._shared or not outbox.informed:
            return False
        sought = outbox.flags & Flag.SOUGHT and outbox.has_received(ahead.kind)
        return bool(sought or self._want())

    def _is_asked(self, types: tuple[TaskType, ...]) -> bool:
        """Return True if the exchange in flight requests these types."""
        return self._call is not None and self._patient and all(kind in self._idle for kind in types)

    # The exchange thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        wait = SHORTEST_RETRY
        try:
            while not self._closed:
                try:
                    if self.outbox.rejoin:
                        self._register()
                    self._exchange()
                    wait, self._unreachable_since = SHORTEST_RETRY, None
                except AwayError:
                    if self._away_since is None:
                        self._away_since = time.monotonic()
                    wait = self._wait_for_master(wait)
        except Exception as error:  # RefusedError, or a master of another protocol version: final
            with self.changed:
                self._refused = error if isinstance(error, RefusedError) else RefusedError(str(error))
                self.changed.notify_all()

    def _wait_for_master(self, seconds: float) -> float:
        """Pause before the next attempt and return the pause after it.

        Raises RefusedError if this worker has to leave and has waited long enough.
        """
        if self._draining.is_set():
            now = time.monotonic()
            self._unreachable_since = now if self._unreachable_since is None else self._unreachable_since
            if now - self._unreachable_since >= LEAVING_SECS:
                raise RefusedError("asked to leave, and the master is away")
        self._pause(seconds)
        return min(2 * seconds, LONGEST_RETRY, self._heartbeat)  # in time for the master's lease

    def _exchange(self) -> None:
        """Send what is due and process the answer; send a heartbeat if nothing is due."""
        with self.changed:
            self.changed.wait_for(self._is_due, self._silence)
            if self._closed:
                return
            obstacle = reachability.obstacle(to=reachability.MASTER)
            opens = self._keeps_call_open and not (self.outbox.is_unacknowledged or self.outbox.asked)
            awaited = {kind for types in self._unserved_types() for kind in types}
            request = self.outbox.request(self._want(), obstacle, awaited)
            self._idle = request.idle
            waits = self._heartbeat if opens or (self._is_waited_for and self.outbox.informed) else 0.0
            self._sent_at, self._sent_upto = time.monotonic(), self.outbox.last_report
            self._answer_due = self._sent_at + waits
            message = codec.request_to(request, waits, self.outbox.flags)
            self._call = self._channel.begin(self._channel.stub.Exchange, message, waits + CALL_SECS)
            self._version, self._patient = 0, waits > 0
        try:
            response = self._call.result()
        except grpc.FutureCancelledError:
            return
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.CANCELLED:
                return
            raise translate_error(error) from None
        finally:
            with self.changed:
                self._call = None
        answer = codec.answer_from(response)
        if answer.flags & Flag.HUNG:
            self._end_hung()
        with self.changed:
            self._away_since = None
            self._postponed.clear()
            self.outbox.on_answer(answer)
            if self.takes_over:
                self._draining.set()
            self.changed.notify_all()

    def _is_due(self) -> bool:
        outbox = self.outbox
        unacknowledged = outbox.is_unacknowledged and not self._gather_secs
        due = unacknowledged or self._is_waited_for or self._keeps_call_open or outbox.asked
        return bool(self._closed or due or self._version or outbox.rejoin)

    @property
    def _is_waited_for(self) -> bool:
        return bool(self._unserved_types() or self._awaiting)

    @property
    def _silence(self) -> float:
        """Seconds until the next exchange if nothing is due."""
        if self._shared and self.outbox.is_unacknowledged:
            return min(self._heartbeat, self._longest_silence, self._gather_secs)
        return min(self._heartbeat, self._longest_silence)

    def _register(self) -> Joined:
        """Register, waiting for a master if none is reachable."""
        outbox = self.outbox
        request = pb.RegisterRequest(
            instance=outbox.instance, incarnation=outbox.incarnation, metric_kinds=self._kinds
        )
        wait = SHORTEST_RETRY
        while True:
            try:
                response = self._channel.call(self._channel.stub.Register, request, CALL_SECS)
                break
            except AwayError:
                wait = self._wait_for_master(wait)
                if self._closed:
                    raise
        self._unreachable_since = None
        joined = codec.joined_from(response)
        if joined is None:
            raise RefusedError("the master has given this worker up")
        if self._trainer and outbox.generation not in (0, joined.generation):
            raise RefusedError("training went back to before what this worker holds")
        with self.changed:
            outbox.apply_registration(joined)
            self._heartbeat = joined.heartbeat_secs
            self.changed.notify_all()
        return joined

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self.changed:
            self.changed.wait_for(lambda: self._closed or time.monotonic() >= end, seconds)
