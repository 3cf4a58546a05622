"""Instance manager: keeps the wanted workers and parameter servers running, and replaces instances that end early."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import msgspec

from edl.cluster import Change, Instance, NoRoomError, Role, Room
from edl.errors import ClusterError
from edl.jobs.failure import Failed
from edl.master.instances.slots import LONGEST_WAIT, Backoff, ScaleAction, Slot, describe
from edl.master.ps.ps_manager import Servers
from edl.master.tasks.task_manager import TaskManager
from edl.reachability import LIMIT

START_SECS = 30.0  # time until the cluster must know a requested instance
SILENT_LEASES = 3  # lease times of silence after which a given-up process is killed and replaced
# Least silence after which a server is replaced, otherwise after one lease: all wait for it.
LEAST_SERVER_SECS = 5.0
MOST_NAMED = 3  # instances that the error of a wait names
LONGEST_LOOK = 1.0  # seconds between two looks; during a longer interval this process was suspended
REGISTER_SECS = 120.0  # time for a running process to register; a worker does before it loads anything
Kept = Literal["all", "one worker", "servers", "none"]  # instances that a job has while it stops
_WORDS: dict[Role, str] = {"worker": "workers", "ps": "parameter servers"}


class InstanceManager:
    """State machine that decides which instances to start and stop.

    It does not call the cluster; the caller carries out `actions`. `patience` is the number of consecutive ends of a
    role's instances without durable progress after which the job fails (0: a default by the number of instances).
    `room` is the number of instances that the cluster allows at once, or None if it is unlimited. `register_secs` is
    the time for a running process to register. An instance that has run for `unreachable_secs` without registering is
    reported, with `advice`.
    """

    room: Room | None = None
    kept: Kept = "all"
    least_workers = 1  # without which the job stands still

    def __init__(
        self,
        tasks: TaskManager,
        workers: int,
        servers: Servers | None = None,
        *,
        patience: int = 0,
        log: Callable[[str], str] = str,
        unreachable_secs: float = LIMIT,
        advice: str = "",
        register_secs: float = REGISTER_SECS,
    ) -> None:
        self._tasks = tasks
        self._unreachable_secs = unreachable_secs
        self._advice = advice
        self._register_secs = register_secs
        self._servers = servers
        self.wanted = tasks.state.workers if tasks.state.workers is not None else workers
        tasks.want(self.wanted)
        self._slots: dict[str, Slot] = {}
        self._patience: dict[Role, int] = {
            "worker": patience or max(6, 3 * self.wanted),
            "ps": patience or max(6, 3 * len(servers or ())),
        }
        self._backoff: dict[Role, Backoff] = {"worker": Backoff(), "ps": Backoff()}
        self._log = log
        self._looked = 0.0  # second of the last look at silent instances
        # Number of instances that ran out of memory, and the last hint.
        self._starved: dict[Role, tuple[int, str]] = {}

    def found(self, changes: list[Change], now: float) -> None:
        """Reconcile with the cluster's list, after a start of the master or a broken watch."""
        for change in changes:
            self.on_change(change, now)
        listed = {change.instance.name for change in changes}
        state = self._tasks.state
        instances = [Instance(name, "worker", member.incarnation) for name, member in state.members.items()]
        instances += [
            Instance(record.instance, "ps", record.incarnation)
            for record in state.all_servers
            if record.instance.startswith("ps-")
        ]
        for instance in instances:
            slot = self._slots.setdefault(instance.name, Slot(instance.role))
            slot.saw_incarnation(instance.incarnation)
            if instance.name not in listed and slot.change is None:  # it ended while no master was watching
                self.on_change(Change(instance, "ended", reason="lost"), now)
        self._miss({change.instance.key for change in changes}, now)

    def _miss(self, listed: set[tuple[str, int]], now: float) -> None:
        """Mark instances as lost that must exist by now and are not listed."""
        for slot in list(self._slots.values()):
            late = slot.is_running or now - slot.started > START_SECS
            if late and not slot.is_vacant and slot.instance.key not in listed:
                self.on_change(Change(slot.instance, "ended", reason="lost"), now)

    def on_change(self, change: Change, now: float) -> None:
        """Apply a state change of an instance."""
        name, incarnation = change.instance.key
        slot = self._slot_of(change.instance)
        if slot is None:
            return
        if change.state == "running" and not slot.is_running:
            slot.unregistered = 0.0
        if change.reason == "stopped" and slot.unregistered > self._register_secs:  # not deliberately
            detail = "it never registered"
            change = msgspec.structs.replace(change, reason="hung", detail=detail, hint=self._advice)
        slot.change, slot.waits, slot.refusals = change, False, 0
        if change.state != "ended" or self._tasks.is_finished:
            return
        if change.reason == "no room":
            slot.not_before = now + LONGEST_WAIT
            self._wait_for_room(slot)
            return
        why = describe(change)
        slot.ending = "" if change.reason == "stopped" else why
        if change.reason == "out of memory":  # logged also for instances without tasks
            self._starved[slot.role] = (self._starved.get(slot.role, (0, ""))[0] + 1, change.hint)
            self._tasks.log(f"{name} {why}")
        if self._servers is not None:
            self._servers.on_loss(name, incarnation, now, why)
        self._tasks.on_loss(name, incarnation, now, "" if change.reason == "out of memory" else why)
        self._count(slot, change, why)
        slot.not_before = now + max(self._backoff[slot.role].wait, slot.backoff.wait)

    def actions(self, now: float) -> list[ScaleAction]:
        """Return the actions to request from the cluster now; they count as requested."""
        if self._tasks.is_finished:
            return []
        self._promote_stand_ins()
        scale_actions = self._dismiss_silent(now) + self._dismiss_surplus() + self._make_room()
        names: list[tuple[str, Role]] = [(name, "ps") for name in self._homes if self.kept != "none"]
        names += [(f"worker-{number}", "worker") for number in range(self._limit)]
        free = math.inf if self.room is None else self.room.slots - len(self._occupied_slots)
        for name, role in names:
            slot = self._slots.setdefault(name, Slot(role))
            if not slot.is_vacant or (role == "ps" and self._is_stood_in(name)):
                continue
            if now < slot.not_before:
                free -= role == "ps"  # its slot is not available to a worker
                continue
            instance = slot.next(name)
            if free > 0:
                free -= 1
                slot.waits, slot.started = False, now
                scale_actions.append(ScaleAction(instance))
            else:
                self._wait_for_room(slot)
        return scale_actions

    def on_resize(self, room: Room) -> None:
        """Set the number of instances that the cluster allows, and retry waiting slots at once."""
        self.room = room
        self._tasks.want(self._possible)
        for slot in self._slots.values():
            if slot.waits:
                slot.not_before, slot.refusals = 0.0, 0

    def scale(self, workers: int) -> list[ScaleAction]:
        """Set the wanted number of workers, which the state keeps, and return the stops of surplus ones."""
        self.wanted = self._tasks.state.workers = workers
        self._tasks.want(self._possible)
        return self._dismiss_surplus()

    def keep(self, kept: Kept) -> None:
        """Let the job have these instances alone from now on."""
        self.kept = kept

    @property
    def _limit(self) -> int:
        """Number of workers that may run."""
        return self.wanted if self.kept == "all" else min(self.wanted, int(self.kept == "one worker"))

    @property
    def needed_instances(self) -> tuple[int, int]:
        """Least number of instances that the job keeps once it runs, and the number that it can use."""
        return 1 + len(self._servers or ()), self.wanted + len(self._homes)

    def on_refusal(self, instance: Instance, error: ClusterError, now: float) -> None:
        """Handle a start that the cluster refused. A worker stands in for a server that has no room."""
        slot = self._slots[instance.name]
        if isinstance(error, NoRoomError):
            slot.refusals += 1
            if slot.refusals == 1:
                self._tasks.log(f"{instance.name} waits: {error.message}")
            slot.change = Change(instance, "pending", detail=error.message)
            slot.not_before = now + min(LONGEST_WAIT, 0.1 * 2 ** min(10, slot.refusals - 1))
            self._wait_for_room(slot)
            return
        change = Change(instance, "ended", reason="failed", detail=error.message)
        self.on_change(change, now)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._slots)

    @property
    def slots(self) -> dict[str, tuple[Change, int]]:
        """Last change of each name, and its number of restarts."""
        return {name: (slot.change, slot.relaunches) for name, slot in self._slots.items() if slot.change}

    def cut_off(self, name: str) -> str:
        """Return for how long an instance has run without registering, and what to check; empty if that is not long."""
        slot = self._slots[name]
        if not slot.is_running or slot.unregistered <= self._unreachable_secs:
            return ""
        return self._add_advice(f"has not reached the master for {slot.unregistered:.0f} s", name)

    def ending(self, name: str) -> str:
        """Return the reason why the previous incarnation of `name` ended; empty if there was none or it was stopped
        deliberately.
        """
        return self._slots[name].ending

    @property
    def notes(self) -> tuple[str, ...]:
        """Recommendations for later runs of the job."""
        return tuple(
            f"{_WORDS[role]} ran out of memory {'once' if times == 1 else f'{times} times'}{hint and f'; {hint}'}"
            for role, (times, hint) in self._starved.items()
        )

    @property
    def waiting(self) -> list[str]:
        """Names of the instances that wait for room."""
        return [name for name, slot in self._slots.items() if slot.waits]

    @property
    def hindrances(self) -> dict[str, str]:
        """Instances without which the job stands still, with the reason why each does not run, as far as it is known.

        Empty if enough workers and all parameter servers run, or the job needs none.
        """
        serving = self._homes[: len(self._servers or ())]  # behind them are those that join
        missing = [name for name in serving if name in self._slots and not self._is_stood_in(name)]
        if len(self.workers) < min(self.least_workers, self.wanted):
            missing += [name for name, slot in self._slots.items() if slot.role == "worker"]
        changes = {name: slot.change for name in missing if not (slot := self._slots[name]).is_running}
        return {
            name: change.detail if change is not None and change.state == "pending" else ""
            for name, change in list(changes.items())[:MOST_NAMED]
        }

    @property
    def workers(self) -> list[str]:
        """Names of the running workers."""
        return [name for name, slot in self._slots.items() if slot.role == "worker" and slot.is_running]

    @property
    def anyone_stays(self) -> bool:
        """True if an instance runs that nobody has asked to leave."""
        return any(
            slot.is_running and slot.change is not None and not slot.change.leaving
            for slot in self._slots.values()
        )

    @property
    def running(self) -> int:
        """Number of running instances."""
        return sum(slot.is_running for slot in self._slots.values())

    @property
    def starting_count(self) -> int:
        """Number of instances that were requested and do not run yet."""
        return len(self._occupied_slots) - self.running

    def _dismiss_silent(self, now: float) -> list[ScaleAction]:
        """Stop processes that are frozen or hang. Their tasks were reassigned when their leases expired."""
        scale_actions = []
        longest = SILENT_LEASES * self._tasks.worker_lease_secs
        passed, self._looked = min(now - self._looked, LONGEST_LOOK), now
        serving = {(record.instance, record.incarnation) for record in self._tasks.state.all_servers}
        for slot in self._slots.values():
            if not slot.is_running or slot.dismissed:
                continue
            who = slot.instance.key
            silence = (
                self._servers.silence(*who, now) if self._servers is not None and who in serving else None
            )
            is_server = silence is not None
            if silence is None:
                silence = self._tasks.silence(*who, now)
            if who in serving or self._is_member(who):
                if slot.unregistered > self._unreachable_secs:
                    self._tasks.log(f"{who[0]} has reached the master after {slot.unregistered:.0f} s")
                slot.unregistered = 0.0
            else:
                self._wait_for_registration(slot, passed)
            if slot.unregistered > self._register_secs:
                self._tasks.log(f"{who[0]} has not registered for {self._register_secs:.0f} s and is stopped")
                scale_actions.append(slot.dismiss(now=True))
            elif silence > (max(self._tasks.lease_secs, LEAST_SERVER_SECS) if is_server else longest):
                self._tasks.log(f"{who[0]} has not answered for {silence:.0f} s and is stopped")
                scale_actions.append(slot.dismiss())
        return scale_actions

    def _wait_for_registration(self, slot: Slot, passed: float) -> None:
        """Count the seconds that the occupant has run without registering."""
        before, slot.unregistered = slot.unregistered, slot.unregistered + passed
        if before <= self._unreachable_secs < slot.unregistered:
            name = slot.instance.name
            text = f"{name} has run for {slot.unregistered:.0f} s, and has not reached the master"
            self._tasks.log(self._add_advice(text, name))

    def _add_advice(self, text: str, name: str) -> str:
        """Add to the text where an instance says why, and what to check."""
        return "; ".join(filter(None, (text, f"why: {self._log(name)}", self._advice)))

    def _is_member(self, who: tuple[str, int]) -> bool:
        """Return True if the worker has registered, with this master or an earlier one."""
        member = self._tasks.state.members.get(who[0])
        return member is not None and member.incarnation == who[1]

    def _dismiss_surplus(self) -> list[ScaleAction]:
        """Stop the workers beyond the wanted number that were not asked yet, but never one in a server's place, and the
        servers that others have followed.
        """
        stand_ins, homes = {record.instance for record in self._tasks.state.servers}, self._homes
        scale_actions = []
        for name, slot in self._slots.items():
            is_wanted = name in homes if slot.role == "ps" else _number(name) < self._limit
            stays = is_wanted or name in stand_ins
            if stays and self.kept != "none":
                continue
            if slot.waits:
                slot.withdraw()
            elif not slot.is_vacant and not slot.dismissed:
                scale_actions.append(slot.dismiss(stops=self.kept != "all"))
        return scale_actions

    # Room -----------------------------------------------------------------------------------------------------

    @property
    def _occupied_slots(self) -> list[Slot]:
        """Slots with an occupant that has not ended, as far as is known."""
        return [slot for slot in self._slots.values() if not slot.is_vacant]

    @property
    def _possible(self) -> int:
        """Number of wanted workers that there is room for."""
        if self.room is None:
            return self.wanted
        return min(self.wanted, max(0, self.room.slots - len(self._homes)))

    def _make_room(self) -> list[ScaleAction]:
        """Stop the youngest workers beyond the available room, but never one that occupies a server's slot."""
        if self.room is None:
            return []
        staying = [slot for slot in self._occupied_slots if not slot.dismissed]
        stand_ins = {record.instance for record in self._tasks.state.servers}
        workers = [slot for slot in staying if slot.role == "worker" and slot.instance.name not in stand_ins]
        workers.sort(key=lambda slot: (slot.started, _number(slot.instance.name)), reverse=True)
        return [slot.dismiss() for slot in workers[: max(0, len(staying) - self.room.slots)]]

    def _wait_for_room(self, slot: Slot) -> None:
        """Mark the slot as waiting; a worker stands in for a server that has no room."""
        slot.waits = True
        if slot.role == "ps" and slot.change is not None:
            self._find_stand_in(slot.change.instance)

    def _slot_of(self, instance: Instance) -> Slot | None:
        """Return the slot of an instance, or None if a later incarnation has it or the instance is known to have
        ended.
        """
        slot = self._slots.setdefault(instance.name, Slot(instance.role))
        for candidate in (slot, *self._server_slots):  # a worker may be in a server's slot
            if candidate.change is not None and candidate.change.instance.key == instance.key:
                return candidate if candidate.change.state != "ended" else None
        if instance.incarnation < slot.incarnation:
            return None
        slot.saw_incarnation(instance.incarnation)
        return slot

    # Stand-ins ------------------------------------------------------------------------------------------------

    @property
    def _homes(self) -> list[str]:
        """Names of the parameter servers."""
        return self._tasks.state.homes if self._servers is not None else []

    @property
    def _server_slots(self) -> list[Slot]:
        return [slot for slot in self._slots.values() if slot.role == "ps"]

    def _is_stood_in(self, name: str) -> bool:
        """Return True if a worker occupies the server's slot, or is chosen to."""
        return self._servers is not None and self._servers.stand_in(name) is not None

    def _find_stand_in(self, server: Instance) -> None:
        """Choose the last worker to replace the server, if another one continues to train."""
        # One that joins is waited for.
        if self._servers is None or server.name not in self._homes[: len(self._servers)]:
            return
        if self._is_stood_in(server.name):
            return
        taken = {record.instance for record in self._tasks.state.servers}
        free = [name for name in self.workers if name not in taken]
        if len(free) > 1:
            chosen = max(free, key=_number)
            self._servers.replace_by(server.name, chosen, self._slots[chosen].incarnation)
            self._tasks.log(f"there is no room for {server.name}: {chosen} takes its place")

    def _promote_stand_ins(self) -> None:
        """Move each worker that has registered as a server to the server's slot, so that its own slot is vacant."""
        for index, record in enumerate(self._tasks.state.servers):
            slot = self._slots.get(record.instance)
            who = (record.instance, record.incarnation)
            if slot is None or slot.role == "ps" or not slot.is_running or not record.address:
                continue
            if slot.instance.key == who:
                ours = self._slots.setdefault(self._homes[index], Slot("ps"))
                ours.change, ours.waits, slot.change = slot.change, False, None

    def _count(self, slot: Slot, change: Change, why: str) -> None:
        """Count the end of an instance, and fail the job after too many ends without progress.

        A name that keeps ending backs off even if the others of its role make progress.
        """
        role, name = slot.role, change.instance.name
        gained = self._tasks.count_progress(role)
        backoff = self._backoff[role]
        backoff.on_end(change, gained)
        slot.backoff.on_end(change, gained if role == "ps" else (self._tasks.rows_of(name),))
        if backoff.fruitless >= self._patience[role]:
            message = f"{backoff.fruitless} {_WORDS[role]} in a row ended without lasting progress"
            hint = "; ".join(filter(None, (change.hint, f"its log: {self._log(name)}")))
            self._tasks.fail(Failed(ClusterError.code, f"{message}; the last, {name}, {why}", hint))


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
