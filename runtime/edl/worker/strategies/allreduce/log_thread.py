"""Thread of a group's log: on the first member it writes the entries, on the others it reads them."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

import msgspec

from edl.collectives.base import GroupError, Store
from edl.tasks.task import Report
from edl.worker.master_client import RemoteTasks
from edl.worker.strategies.allreduce.rendezvous_client import RendezvousClient
from edl.worker.strategies.allreduce.task_log import LeftError, LogEntry, TaskLog


class LogThread:
    """Log thread of one member in one group.

    The first member takes training tasks from `tasks` and writes the log, with at most `ahead` tasks open. `regroup`
    returns True if the group is over for this member, so that the master may have ignored its reports.
    """

    def __init__(
        self,
        log: TaskLog,
        store: Store,
        tasks: RemoteTasks,
        member: RendezvousClient,
        regroup: Callable[[], bool],
        *,
        first: bool,
        ahead: int,
    ) -> None:
        self._log = log
        self._store = store
        self._tasks = tasks
        self._member = member
        self._regroup = regroup
        self._first = first
        self._ahead = ahead
        self._changed = log.changed
        self._thread = threading.Thread(target=self._run, name="edl-task-log", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Leave the group."""
        self._log.leave(self._store)
        if self._first:  # it would take tasks that belong to its successor
            with self._tasks.awake():
                self._thread.join()

    def _run(self) -> None:
        """Run until training is over. Any other end of the thread ends the group for this member."""
        try:
            if self._first:
                self._write()
            else:
                self._read()
        except (LeftError, GroupError):
            self._log.leave(self._store)
        except Exception:
            traceback.print_exc()
            self._log.leave(self._store)

    def _read(self) -> None:
        over = False
        while not over:
            entry = self._log.read(self._store)
            over = entry.kind == "over"
            with self._changed:
                self._log.forget(entry.durable)

    def _write(self) -> None:
        """Write entries, a bounded number ahead of the training thread."""
        self._wait(lambda: self._member.is_acknowledged)
        more = True
        while more:
            self._wait(self._has_room)
            more = self._write_next()

    def _write_next(self) -> bool:
        """Write the next entry; return False if training is over."""
        log, tasks = self._log, self._tasks
        if epoch := log.unconcluded_epoch:
            self._end_epoch(epoch)
        elif (
            log.postponed
            and self._member.is_acknowledged
            and not (tasks.is_away or self._member.is_measuring)
        ):
            self._execute(log.conclusion(log.postponed[-1]))
        elif self._member.is_measuring and not (
            log.postponed and tasks.is_away
        ):  # else the last answer is old
            self._execute(LogEntry("control"))
        elif tasks.is_stopped or tasks.is_over("train"):
            self._append(LogEntry("over"))
            return False
        elif task := tasks.next("train"):
            self._append(LogEntry("train", Report(task)))
        return True

    def _end_epoch(self, epoch: int) -> None:
        """Have an epoch measured and concluded; without a master, keep its weights until that is possible."""
        if not self._tasks.may_postpone(epoch, len(self._log.postponed)):
            self._execute(LogEntry("control", epoch=epoch))
        if self._tasks.may_postpone(epoch, len(self._log.postponed)):
            self._execute(LogEntry("postponed", epoch=epoch))
        elif self._member.has_measured:
            self._execute(self._log.conclusion(epoch))

    def _has_room(self) -> bool:
        """Return True if another entry may be written.

        The entry after the last task of an epoch is known only when that task is reported.
        """
        tasks = self._log.open
        return len(tasks) < self._ahead and not any(report.task.settles for report in tasks)

    def _execute(self, entry: LogEntry) -> None:
        """Write an entry and wait until this member's training thread has executed it."""
        self._append(entry)
        self._wait(lambda: self._log.is_executed)

    def _append(self, entry: LogEntry) -> None:
        with self._changed:
            if not self._regroup():
                self._log.forget_all_but(self._member.unstored_leases)
            entry = msgspec.structs.replace(entry, durable=self._log.durable)
        self._log.write(entry, self._store)

    def _wait(self, until: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._log.is_in(self._store) or until())
            if not self._log.is_in(self._store):
                raise LeftError
