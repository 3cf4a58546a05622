"""Thread of a group's log: on the first member it writes the entries, on the others it reads them."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

import msgspec

from edl.collectives.base import GroupError
from edl.tasks.task import Report
from edl.worker.strategies.allreduce.position import LogPosition
from edl.worker.strategies.allreduce.rendezvous_client import GroupMember
from edl.worker.strategies.allreduce.task_log import Entry, LeftError, Log


class LogThread:
    """Log thread of one member in one group.

    The first member writes the log, with at most `ahead` tasks open. `regroup` returns True if the group is over for
    this member, so that the master may have ignored its reports.
    """

    def __init__(
        self,
        log: Log,
        position: LogPosition,
        member: GroupMember,
        regroup: Callable[[], bool],
        *,
        first: bool,
        ahead: int,
    ) -> None:
        self._log = log
        self._position = position
        self._member = member
        self._regroup = regroup
        self._first = first
        self._ahead = ahead
        self._changed = position.changed
        self._thread = threading.Thread(target=self._run, name="edl-ring-log", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Leave the log."""
        self._log.end()
        if self._first:  # it would take tasks that belong to its successor
            with self._member.awake():
                self._thread.join()

    def _run(self) -> None:
        """Run until training is over. Any other end of the thread ends the group for this member."""
        try:
            if self._first:
                self._write()
            else:
                self._read()
        except (LeftError, GroupError):
            self._log.end()
        except Exception:
            traceback.print_exc()
            self._log.end()

    def _read(self) -> None:
        for entry in self._log.read():
            with self._changed:
                self._position.forget(entry.durable)

    def _write(self) -> None:
        """Write entries, a bounded number ahead of the loop."""
        self._wait(self._member.heard)
        more = True
        while more:
            self._wait(self._has_room)
            more = self._write_next()

    def _write_next(self) -> bool:
        """Write the next entry; return False if training is over."""
        position, member = self._position, self._member
        if epoch := position.unconcluded:
            self._do(Entry("aside", epoch=epoch))
            self._do(position.conclusion(epoch))
        elif member.measuring:
            self._do(Entry("aside"))
        elif member.stopped or member.over("train"):
            self._append(Entry("over"))
            return False
        elif task := member.next("train"):
            self._append(Entry("train", Report(task)))
        return True

    def _has_room(self) -> bool:
        """Return True if another entry may be written.

        The entry after the last task of an epoch is known only when that task is reported.
        """
        tasks = self._position.open
        return len(tasks) < self._ahead and not any(report.task.settles for report in tasks)

    def _do(self, entry: Entry) -> None:
        """Write an entry and wait until the local loop has executed it."""
        self._position.turning = True
        self._append(entry)
        self._wait(lambda: not self._position.turning)

    def _append(self, entry: Entry) -> None:
        with self._changed:
            if not self._regroup():
                self._position.forget_all_but(self._member.unwritten)
            entry = msgspec.structs.replace(entry, durable=self._position.durable)
        self._log.append(entry)

    def _wait(self, until: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._log.ended or until())
            if self._log.ended:
                raise LeftError
