"""The task source of a worker that trains in rings, and how it finds the next ring.

The first member of a ring takes training tasks from the master and writes them into the ring's log; all members train
what stands there, and stop for evaluations where it says so. So the members are at the same place when one of them is
lost: whoever is first then has the open tasks, and the reports that the master may not have written down.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from edl.nn.collective import RingError
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.exchange import Ring, Seek
from edl.tasks.task import Report, Task, TaskType
from edl.worker.best import standing
from edl.worker.rendezvous import Store
from edl.worker.ring_log import Course, Entry, Given, LeftError, Log, complete
from edl.worker.ring_member import RingMember
from edl.worker.strategy import VoidError


class Keeper(Protocol):
    """What the log has its readers do with the parameters."""

    def begin(self) -> None:
        """Nothing was trained since the cut, or the start: take the parameters of the cut."""
        ...

    def keep(self, epoch: int) -> None:
        """The parameters of now may be the best: keep them, besides those that were kept."""
        ...

    def keep_best(self, epoch: int) -> None:
        """Of the parameters that were kept, only those of this epoch are wanted."""
        ...


class RingTasks:
    """Of one member. address: host:port where the others find it. draining: is set when this worker has to go. ahead:
    tasks that the ring may have in hands; what is measured in the middle of an epoch is so many later at most."""

    keeper: Keeper  # is set before the first ring is sought

    def __init__(
        self,
        member: RingMember,
        address: str,
        training: Training,
        draining: threading.Event,
        *,
        ahead: int,
    ) -> None:
        self._member = member
        self._address = address
        self._training = training
        self._draining = draining
        self._ahead = ahead
        self._changed = member.changed
        self._number = 0  # of the last ring that we were told of
        self._without: Sequence[str] = ()
        self._log: Log | None = None
        self._first = False  # whether we write the log
        self._writer: threading.Thread | None = None
        self._given: dict[int, Given] = {}  # by lease, in the order of the log
        self._told: dict[int, Report] = {}  # by lease: what the master may not have written down
        self._durable = 0
        self._ended = self._concluded = 0  # epochs
        self._best = (0, 0)  # an epoch that was concluded here, and the best one then
        self._turns: deque[tuple[Log | None, Entry | None]] = deque()  # where `next` gave no training task
        self._called = False  # whether the loop was told that it has to find a ring
        self._aside = self._over = self._awake = self._busy = False

    # The rendezvous: called by the thread that trains -----------------------------------------------------------

    @property
    def regroup(self) -> bool:
        ended = self._log is None or self._log.ended
        return ended or self._member.regroup or self._draining.is_set()

    def next_ring(self, done: Report | None = None) -> Ring:
        self.close()
        if done is not None:
            with self._changed:
                self._advance(done)
        seek = Seek(self._address, self._number, tuple(self._without))
        ring = self._member.seek(seek, self._draining.is_set)
        if ring is None:
            raise VoidError
        self._number, self._without = ring.number, ()
        if not ring.holders and ring.members[0] == self._member.name:
            self.keeper.begin()
        return ring

    def leave_out(self, members: Sequence[str]) -> None:
        self._without = members

    def course(self) -> bytes:
        with self._changed:
            found = self._in_hands()
            told = [*self._told.values(), *filter(complete, found)]
            tasks = [report for report in found if not complete(report)]
            ended = max([self._ended, *(report.task.number for report in told if report.task.settles)])
            return encoding.encode(Course(tuple(tasks), tuple(told), ended, self._concluded))

    def follow(self, course: bytes, ring: Ring, store: Store, rank: int) -> None:
        found = encoding.decode(course, Course)
        first = rank == 0
        with self._changed:
            log = self._log = Log(store, found.open, self._changed)
            self._given.clear()
            self._told = {report.task.attempt: report for report in found.told}
            self._ended, self._concluded = found.ended, found.concluded
            self._called = self._aside = self._over = self._busy = False
            self._first = first
            self._member.enter(ring.number, found.open if first else (), found.told if first else ())
            self._changed.notify_all()
        work = self._write if first else self._read
        thread = threading.Thread(target=work, args=(log,), name="edl-ring-log", daemon=True)
        self._writer = thread if first else None
        thread.start()
        print(f"in ring {ring.number} of {', '.join(ring.members)}", flush=True)

    def close(self) -> None:
        """Leave the ring's log."""
        if self._log is not None:
            self._log.end()
        if self._writer is not None:  # it takes what the next one is to take
            with self._member.awake():
                self._writer.join()
            self._writer = None

    # The task source ------------------------------------------------------------------------------------------

    @property
    def pending(self) -> bool:
        return self._aside

    @property
    def stopped(self) -> bool:
        """What the log has, all members do."""
        return False

    @property
    def leads(self) -> bool:
        """Whether this member speaks for its ring, or did until it left, and no epoch is between its end and what
        follows from that."""
        return self._first and self._ended <= self._concluded and not self._member.over("export")

    def valid(self, task: Task) -> bool:
        self._member.check()
        if task.type != "train":
            return self._member.valid(task)
        with self._changed:
            return self._given_as(task) is not None

    def over(self, kind: TaskType) -> bool:
        """Of training tasks, that the ring has no more; the next one may have some again."""
        return (kind == "train" and self._over and not self.regroup) or self._member.over("export")

    def next(self, *types: TaskType) -> Task | None:
        if types == ("train",):
            return self._next_of_log()
        task = self._member.next(*types)
        if task is None:
            with self._changed:
                self._aside = self._busy = False
                self._changed.notify_all()
        return task

    def turn(self) -> bool:
        log, entry = self._turns.popleft()
        if entry is None:
            return self.regroup
        if log is not self._log:
            return False
        if entry.kind == "concluded":
            self._conclude(entry)
            return False
        if entry.epoch and self._training.keep == "best":
            self.keeper.keep(entry.epoch)
        self._member.inform()
        self._aside = entry.kind == "aside"
        return False

    def progress(self, done: Report) -> None:
        with self._changed:
            self._member.progress(self._advance(done))

    def report(self, report: Report) -> None:
        task = report.task
        if task.type != "train":
            self._note_best(report)
            self._member.report(report)
            return
        with self._changed:
            done = self._advance(report)
            if task.attempt > self._durable:
                self._told[task.attempt] = done
        if self._first:
            self._member.report(done)
        with self._changed:
            self._given.pop(task.attempt, None)
            if task.settles:
                self._ended = task.number
            self._changed.notify_all()

    def failed(self, task: Task, error: Exception) -> bool:
        return self._member.failed(task, error)

    def give_back(self, part: Report) -> None:
        """Of training tasks, what is done of them is in the ring's parameters."""
        if part.task.type != "train":
            self._member.give_back(part)

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        with self._changed:
            self._awake = True
            self._changed.notify_all()
        try:
            yield
        finally:
            self._awake = False

    def cut(self, folder: str, part: Report) -> None:
        """The weights of this moment go to `folder`, and with them the task that has begun."""
        with self._changed:
            begun = next((report for report in self._in_hands() if report.rows), part)
            self._member.cut(folder, begun)

    # The loop's side of the log -------------------------------------------------------------------------------

    def _next_of_log(self) -> Task | None:
        with self._changed:
            while True:
                self._member.check()
                if self._awake or self.over("train") or (self.regroup and not self._called):
                    self._called = self.regroup
                    self._turns.append((self._log, None))
                    return None
                if entry := self._taken():
                    return self._give(entry)
                self._changed.wait()

    def _taken(self) -> Entry | None:
        entry = self._log.take() if self._log is not None and not self.regroup else None
        if entry is not None:
            self._changed.notify_all()
        return entry

    def _give(self, entry: Entry) -> Task | None:
        if entry.task is None:
            self._over = entry.kind == "over"
            self._turns.append((self._log, entry))
            return None
        given = Given(entry.task)
        self._given[given.task.attempt] = given
        return given.task

    def _given_as(self, task: Task) -> Given | None:
        """What we know of a task that the loop has, unless it is of an earlier ring."""
        given = self._given.get(task.attempt)
        return given if given is not None and given.task is task else None

    def _in_hands(self) -> list[Report]:
        """What is done of the ring's open tasks, as they were leased, in the order of the log."""
        log = self._log.tasks() if self._log is not None else ()
        return [*(given.done for given in self._given.values()), *log]

    def _advance(self, done: Report) -> Report:
        """Know what is done of a task; that, of the task as it was leased."""
        given = self._given_as(done.task)
        if given is None:
            return done
        given.done = given.total(done)
        return given.done

    def _conclude(self, entry: Entry) -> None:
        if entry.best:
            self.keeper.keep_best(entry.best)
        with self._changed:
            self._concluded = entry.epoch
            self._busy = False
            self._changed.notify_all()

    def _note_best(self, report: Report) -> None:
        found, conclusion = report.task.round, report.conclusion
        if found is None or conclusion is None or not (found.epoch and found.final):
            return
        before = standing(found.curve, self._training.min_delta)
        figures = conclusion.figures
        now = before.after(found.epoch, figures, self._training.min_delta) if figures else before
        self._best = found.epoch, now.best if self._training.keep == "best" else 0

    # Threads of the log ---------------------------------------------------------------------------------------

    def _read(self, log: Log) -> None:
        """What the first member writes."""
        with self._ending(log):
            for entry in log.read():
                with self._changed:
                    self._forget(entry.durable)

    def _write(self, log: Log) -> None:
        """What there is to do, not far ahead."""
        with self._ending(log):
            self._wait(log, self._member.heard)
            more = True
            while more:
                self._wait(log, self._has_room)
                more = self._write_next(log)

    def _write_next(self, log: Log) -> bool:
        """False: training is over."""
        if self._ended > self._concluded:
            epoch = self._ended
            self._do(log, Entry("aside", epoch=epoch))
            concluded, best = self._best
            self._do(log, Entry("concluded", epoch=epoch, best=best if concluded == epoch else 0))
        elif self._member.measuring:
            self._do(log, Entry("aside"))
        elif self._member.stopped or self._member.over("train"):
            self._append(log, Entry("over"))
            return False
        elif task := self._member.next("train"):
            self._append(log, Entry("train", Report(task)))
        return True

    def _has_room(self) -> bool:
        """What follows the last task of an epoch is known when that is reported."""
        tasks = self._in_hands()
        return len(tasks) < self._ahead and not any(report.task.settles for report in tasks)

    def _do(self, log: Log, entry: Entry) -> None:
        """Write an entry, and wait until the loop here has done it."""
        self._busy = True
        self._append(log, entry)
        self._wait(log, lambda: not self._busy)

    def _append(self, log: Log, entry: Entry) -> None:
        with self._changed:
            unwritten = self._member.unwritten & self._told.keys()
            if self._told and not self.regroup:
                self._forget(min(unwritten) - 1 if unwritten else max(self._told))
            entry = msgspec.structs.replace(entry, durable=self._durable)
        log.append(entry)

    def _forget(self, durable: int) -> None:
        """Reports of leases up to this number survive the master."""
        self._durable = max(self._durable, durable)
        self._told = {lease: report for lease, report in self._told.items() if lease > self._durable}

    def _wait(self, log: Log, until: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: log.ended or until())
            if log.ended:
                raise LeftError

    @contextlib.contextmanager
    def _ending(self, log: Log) -> Iterator[None]:
        """Whatever ends the thread, except that training is over, ends the ring for this member."""
        try:
            yield
        except (LeftError, RingError):
            log.end()
        except Exception:
            traceback.print_exc()
            log.end()
