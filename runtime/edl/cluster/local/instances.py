"""Instances of a job on this machine: started, running and ended processes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass

from edl.cluster import Change, Instance, NoRoomError, Reason, Room
from edl.cluster.exit_reason import Exit, find_reason
from edl.cluster.local.children import Children, kill, kill_group
from edl.cluster.local.launcher import Key, Launcher
from edl.errors import ClusterError

FRUGAL = "use fewer workers or a smaller batch"


@dataclass(slots=True)
class _Record:
    change: Change
    pid: int = 0  # 0 before it runs
    asked: bool = False  # a stop was requested
    grace: float = 0.0
    killer: asyncio.TimerHandle | None = None
    stop_elsewhere: Callable[[float], None] | None = None  # of an instance on another machine


class Instances:
    """Registry of instances that starts, stops and watches them. All calls come from the event loop's thread.

    `notify` is called with every change. `slots` is the maximum number of instances, or None; `room` is the same if it
    may change. `wanted` are the numbers that the job keeps and can use, if the master has changed them. `launcher` is
    set before the first start.
    """

    launcher: Launcher
    room: Room | None = None
    wanted: tuple[int, int] | None = None

    def __init__(
        self, children: Children, notify: Callable[[Change], None], slots: int | None = None
    ) -> None:
        self._slots = slots
        self._children = children
        self._notify = notify
        self._records: dict[Key, _Record] = {}
        self._newest: dict[str, int] = {}
        self._all_ended = asyncio.Event()
        self._all_ended.set()

    def start(self, instance: Instance) -> None:
        """Start an instance. Raises ClusterError if a later incarnation was started, and NoRoomError if all slots
        are taken.
        """
        newest = self._newest.get(instance.name, -1)
        if instance.key in self._records:
            return
        if instance.incarnation <= newest:
            raise ClusterError(
                f"{instance.name} has reached incarnation {newest}, later than {instance.incarnation}"
            )
        slots = self.room.slots if self.room is not None else self._slots
        if slots is not None and self.alive_count >= slots:
            raise NoRoomError(f"all {slots} slots are taken")
        self._forget_ended(instance.name)
        self._newest[instance.name] = instance.incarnation
        self._all_ended.clear()
        self._records[instance.key] = _Record(Change(instance, "pending"))
        self._notify(self._records[instance.key].change)
        self.launcher.launch(instance)

    def stop(self, instance: Instance, grace: float) -> None:
        record = self._records.get(instance.key)
        if record is None or record.change.state == "ended":
            return
        record.grace = min(grace, record.grace) if record.asked else grace
        record.asked = True
        if record.pid or record.stop_elsewhere:
            self._terminate(record)
        elif self.launcher.forget(instance.key):
            self._end(record, "stopped", None, "before it started")

    @property
    def alive_count(self) -> int:
        """Number of instances that have not ended."""
        return sum(record.change.state != "ended" for record in self._records.values())

    def list(self) -> list[Change]:
        return [record.change for record in self._records.values()]

    async def end_all(self, grace: float) -> None:
        """Stop launching, stop every instance, and wait for their ends. A server has nothing to return."""
        for change in self.list():
            self.stop(change.instance, grace if change.instance.role == "worker" else 0.0)
        self.launcher.close()
        await self._all_ended.wait()

    # Results of launches, and exits ------------------------------------------------------------------------

    def started(self, key: Key, pid: int) -> None:
        record = self._records[key]
        record.pid = pid
        self._children.watch(pid, lambda how: self._on_end(record, how))
        self._change(record, Change(record.change.instance, "running", f"pid {pid}"))
        if record.asked:
            self._terminate(record)

    def on_refusal(self, key: Key, why: str) -> None:
        record = self._records[key]
        self._end(record, "stopped" if record.asked else "failed", None, why)

    def place_elsewhere(self, key: Key, stop: Callable[[float], None], place: str) -> None:
        """Record that another machine starts an instance; `stop` asks it to stop it within so many seconds."""
        record = self._records[key]
        record.stop_elsewhere = stop
        self._change(record, Change(record.change.instance, "pending", place))

    def change_elsewhere(self, change: Change) -> None:
        """Take over the state of an instance on another machine."""
        record = self._records.get(change.instance.key)
        if record is None or record.change.state == "ended":
            return
        if change.state == "ended":
            self._end(record, change.reason or "lost", change.exit_code, change.detail, change.hint)
        else:
            self._change(record, change)

    def _on_end(self, record: _Record, how: Exit) -> None:
        hint = FRUGAL if how.starved else ""
        self._end(record, find_reason(how, asked=record.asked), how.code, str(how), hint)

    def _end(self, record: _Record, reason: Reason, code: int | None, detail: str, hint: str = "") -> None:
        if record.killer is not None:
            record.killer.cancel()
        was = record.change
        self._change(record, Change(was.instance, "ended", was.place, reason, code, detail, hint))
        if all(other.change.state == "ended" for other in self._records.values()):
            self._all_ended.set()

    # -----------------------------------------------------------------------------------------------------

    def _change(self, record: _Record, change: Change) -> None:
        record.change = change
        self._notify(change)

    def _terminate(self, record: _Record) -> None:
        """Send SIGTERM, and kill its group after the grace period, at once without one."""
        if record.killer is not None:
            record.killer.cancel()
        if record.stop_elsewhere is not None:
            record.stop_elsewhere(record.grace)
            return
        if record.grace <= 0:
            kill_group(record.pid)
            return
        kill(record.pid, signal.SIGTERM)
        record.killer = asyncio.get_running_loop().call_later(record.grace, kill_group, record.pid)

    def _forget_ended(self, name: str) -> None:
        """Drop ended incarnations of a name that is started again."""
        for key in [key for key in self._records if key[0] == name]:
            if self._records[key].change.state == "ended":
                del self._records[key]
