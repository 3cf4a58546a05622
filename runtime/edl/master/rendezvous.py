"""Rendezvous of all-reduce workers: which workers request to join, which hold the trained state, and when a group
begins.

A pure state machine; the caller passes the time in seconds since the start of the job.

    requests to join ─▶ is assigned a group ─▶ forms it, takes the state ─▶ confirms it: a holder ─▶ trains … ─▶ again

* A group begins at once when all concerned workers request to join: the live ones among the members of the present
  group and the holders, or, without any, all wanted workers. Workers that are late are left out.
* A holder stays one until a later group without it is confirmed: as long as nothing can have been trained without it,
  its state may be the only one left.
* A group includes a holder if one is alive. Without one nothing was trained since the checkpoint, or the start.
* A joining worker makes the present group end between two minibatches, as does the loss of a member.
* A member that the others find far slower is excluded for a while, longer each time. So is the youngest member when two
  groups in a row train nothing though all their members are alive: a group of one always makes progress.
* A *complete* group has all wanted workers: rows are divided among its members, so the trees that they grow depend on
  their number. It waits for the replacement of a lost member, ends for a joining one when all are there, and excludes
  none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from edl.master.pace import Pace
from edl.master.state import Holder, MasterState, Pause
from edl.tasks.protocol import JoinRequest, Request, TaskUpdate, WorkerGroup

MEMBER_SECS = 0.3  # time for the other members to join after the first one of a group
BOUNDARY_SECS = 2.0  # the same when the group was to end: members may be in the middle of a step
JOIN_SECS = 1.0  # time for further workers before the first group, and for others after a joiner
PAUSE_SECS, LONGEST_PAUSE = 10.0, 300.0

# Most members of a group for which all addresses are told; they only serve to say which are not reached.
ADDRESSED = 1000
LONGEST_STEP = 10.0  # seconds; a longer interval is no step

Key = tuple[str, int]  # name and incarnation


class NoGroups:
    """Rendezvous of jobs with independent workers.

    `independent`: the rows that a worker has done show its speed. `signal` changes when there may be news for a waiting
    worker. `wanted` is the number of wanted workers.
    """

    independent = True
    complete = False
    members: tuple[str, ...] = ()
    number = 0
    signal: tuple[object, ...] = ()
    wanted = 0

    def standing(self, instance: str, now: float) -> str:
        """Describe an instance that does not take part at present; empty otherwise."""
        return ""

    def takes_part(self, instance: str) -> bool:
        """Return True if others depend on the instance, or it waits to do its part."""
        return True

    def has_member(self, instance: str) -> bool:
        """Return True if the instance is in the present group."""
        return False

    def leads(self, request: Request) -> bool:
        """Return True if the instance is the leader of the present group."""
        return False

    def defers(self, update: TaskUpdate, request: Request) -> bool:
        """Return True if the worker is to send a report again later."""
        return False

    def requested_group(self, request: Request) -> WorkerGroup | None:
        """Return the requested group, once it may be announced."""
        return None

    def observe(self, request: Request, now: float, step: int) -> None:
        """Process the part of a request that is not about tasks; called before its tasks. `step` is the step of the
        job.
        """

    def look_at(self, instance: str) -> None:
        """Process that an instance was lost, or is back."""

    def tick(self, now: float) -> None:
        """Advance the time."""

    def on_written(self, number: int) -> None:
        """Record that groups up to that number are durable."""

    def reset(self) -> None:
        """Forget all groups: the state since the checkpoint is lost."""


@dataclass
class _Candidate:
    """Worker that requests to join, and the second since when."""

    key: Key
    request: JoinRequest
    since: float


class RendezvousManager:
    """Groups of one job. `wanted` is the number of wanted workers, `step_secs` the duration of a step as far as
    known. Groups are `complete` or have the workers that are there.
    """

    independent = False  # members take the same steps, and exclude stragglers themselves

    def __init__(
        self, state: MasterState, log: Callable[[str], None] = lambda text: None, *, complete: bool = False
    ) -> None:
        self._master_state = state
        self._state = state.rendezvous
        self._log = log
        self.complete = complete
        self._candidates: dict[str, _Candidate] = {}
        self._holders = {_key(holder): holder for holder in self._state.holders}
        self._due = Pace()
        self._set_members()
        self._written = self._state.number
        self._ending = False  # True if the present group has to end
        self._last_step = (0.0, 0)  # second and step of the leader's last report of a new step
        self.wanted = 1
        self.step_secs = 0.0

    # State --------------------------------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """Number of the last group."""
        return self._state.number

    @property
    def present(self) -> WorkerGroup | None:
        return self._state.present

    @property
    def members(self) -> tuple[str, ...]:
        """Members of the present group."""
        return self._state.present.members if self._state.present else ()

    def has_member(self, instance: str) -> bool:
        """Return True if the instance is in the present group."""
        return instance in self._names

    @property
    def is_held(self) -> bool:
        """True if an instance has, or had, state that was trained since the checkpoint or the start."""
        return bool(self._state.holders)

    @property
    def has_live_holder(self) -> bool:
        """True if a holder is alive."""
        return any(self._is_alive(_key(holder)) for holder in self._state.holders)

    @property
    def is_ending(self) -> bool:
        """True if the present group is to end at the next minibatch."""
        return self._ending

    @property
    def signal(self) -> tuple[object, ...]:
        """Value that changes when there may be news for a waiting worker."""
        return self._written, self._ending, self._is_broken

    def is_holder(self, request: Request) -> bool:
        """Return True if the instance is in the present group and has its state."""
        return request.group == self.number and self._is_member((request.instance, request.incarnation))

    def leads(self, request: Request) -> bool:
        """Return True if the instance is the leader of the present group."""
        present = self._state.present
        return self.is_holder(request) and present is not None and present.members[0] == request.instance

    def has_led(self, request: Request) -> bool:
        """Return True if the instance led the group of this request: all later groups include the results of that
        group.
        """
        holder = self._holder((request.instance, request.incarnation))
        return holder is not None and 0 < holder.led == request.group

    def defers(self, update: TaskUpdate, request: Request) -> bool:
        """Return True for results of a group that ended before it was confirmed: they may be lost until the next group
        includes them.
        """
        if update.kind != "done" or update.report.task.type != "train":
            return False
        holder = self._holder((request.instance, request.incarnation))
        return holder is not None and holder.group < request.group

    def was_in(self, request: Request) -> bool:
        """Return True if the present group includes the state of this request's group."""
        holder = self._holder((request.instance, request.incarnation))
        return holder is not None and 0 < holder.group == request.group

    def remaining_pause(self, instance: str, now: float) -> float:
        """Return the seconds until the instance may join a group again, or 0 if it may now."""
        pause = self._state.pauses.get(instance)
        return max(0.0, pause.until - now) if pause else 0.0

    def standing(self, instance: str, now: float) -> str:
        """Describe the state of an instance that is not in the present group."""
        if seconds := self.remaining_pause(instance, now):
            return f"left out, {seconds:.0f} s: {self._state.pauses[instance].why}"
        candidate = self._candidates.get(instance)
        if candidate is not None and self._waits(candidate) and not self._is_member(candidate.key):
            return "joins"
        member = self._master_state.members.get(instance)
        is_member = member is not None and not member.gone
        return "not in the group" if is_member and self.members and instance not in self._names else ""

    def takes_part(self, instance: str) -> bool:
        """Return True if the instance is in the present group or requests to join one."""
        return instance in self._names or instance in self._candidates

    def requested_group(self, request: Request) -> WorkerGroup | None:
        """Return the requested group once it is durable."""
        present = self._state.present
        if request.join is None or present is None or self._written < present.number:
            return None
        return present if self._is_for((request.instance, request.incarnation), request.join) else None

    # Events -------------------------------------------------------------------------------------------------

    def observe(self, request: Request, now: float, step: int) -> None:
        """Process the group and join request of a request. `step` is the step of the job before its reports."""
        self._process(request, now)
        if self.leads(request):
            self._time_steps(step + sum(held.steps for held in request.held), now)

    def _process(self, request: Request, now: float) -> None:
        key = (request.instance, request.incarnation)
        if self.is_holder(request):
            self._on_formed(key)
        if request.join is None:
            self._candidates.pop(request.instance, None)
            return
        before = self._candidates.get(request.instance)
        again = before is not None and before.key == key and before.request.after == request.join.after
        since = before.since if before is not None and again else now
        self._candidates[request.instance] = _Candidate(key, request.join, since)
        if self._is_member(key) and not self._is_for(key, request.join):
            self._pause(request.join.without, now, "slower than the others")
        self.tick(now)

    def _time_steps(self, step: int, now: float) -> None:
        """Measure the step time: a member in the middle of a step cannot join the next group sooner."""
        second, before = self._last_step
        if step > before:
            self.step_secs = min(LONGEST_STEP, (now - second) / (step - before)) if before else 0.0
        if step != before:
            self._last_step = now, step

    def look_at(self, instance: str) -> None:
        """Process that an instance was lost, or is back."""
        key = self._names.get(instance)
        if key is not None:
            (self._lost.discard if self._is_alive(key) else self._lost.add)(key)

    def tick(self, now: float) -> None:
        """Begin the next group, or end the present one, if that is due. Takes time in proportion to the workers."""
        if not self._due.is_due(now, len(self._candidates) + len(self._names)):
            return
        candidates = [candidate for candidate in self._candidates.values() if self._waits(candidate)]
        if self._is_due(candidates, now):
            self._begin(candidates, now)
        self._ending = self._is_to_end(now)

    def reset(self) -> None:
        """Forget all groups and holders: the state since the checkpoint is lost."""
        self._state.present, self._state.incarnations, self._state.holders = None, (), []
        self._holders.clear()
        self._set_members()
        self._candidates.clear()
        self._ending = False

    def on_written(self, number: int) -> None:
        """Record that groups up to that number are durable."""
        self._written = number

    # Members ------------------------------------------------------------------------------------------------

    def _is_alive(self, key: Key) -> bool:
        return self._master_state.is_alive(*key)

    def _set_members(self) -> None:
        """Index the members of the present group, find the lost ones, and whether a holder has confirmed it."""
        present = self._state.present
        keys = zip(present.members, self._state.incarnations, strict=True) if present else ()
        self._names = {key[0]: key for key in keys}
        self._lost = {key for key in self._names.values() if not self._is_alive(key)}
        self._has_formed = any(holder.group == self.number for holder in self._state.holders)

    @property
    def _members(self) -> list[Key]:
        """Members of the present group."""
        return [*self._names.values()]

    def _is_member(self, key: Key) -> bool:
        return self._names.get(key[0]) == key

    def _holder(self, key: Key) -> Holder | None:
        return self._holders.get(key)

    @property
    def _is_broken(self) -> bool:
        """True if a member was lost before the group was confirmed."""
        return not self._has_formed and bool(self._lost)

    def _is_for(self, key: Key, request: JoinRequest) -> bool:
        """Return True if the present group satisfies the join request."""
        return request.after < self.number and self._is_member(key) and not self._is_broken

    def _waits(self, candidate: _Candidate) -> bool:
        """Return True if the worker waits for a group after the present one."""
        return self._is_alive(candidate.key) and not self._is_for(candidate.key, candidate.request)

    # Next group ---------------------------------------------------------------------------------------------

    def _on_formed(self, key: Key) -> None:
        """Confirm the present group: instances outside it are not holders any more."""
        state = self._state
        if not self._has_formed:
            state.holders = [holder for holder in state.holders if self._is_member(_key(holder))]
            self._holders = {_key(holder): holder for holder in state.holders}
            self._has_formed = True
            state.vain = 0
        holder = self._holder(key)
        if holder is None:
            holder = self._holders[key] = Holder(*key)
            state.holders.append(holder)
        holder.group = self.number
        if state.present is not None and state.present.members[0] == key[0]:
            holder.led = self.number

    def _awaited_members(self, now: float) -> set[Key]:
        """Return the live members and holders that a group waits for."""
        keys = {*self._members, *map(_key, self._state.holders)}
        return {key for key in keys if self._is_alive(key) and not self.remaining_pause(key[0], now)}

    def _is_due(self, candidates: list[_Candidate], now: float) -> bool:
        if not candidates or (
            self.has_live_holder and not any(self._holder(candidate.key) for candidate in candidates)
        ):
            return False
        if self.complete and len(candidates) < self.wanted:
            return False
        concerned = self._awaited_members(now)
        here = [candidate for candidate in candidates if candidate.key in concerned]
        if not concerned:
            return len(candidates) >= self.wanted or now >= _earliest_time(candidates) + JOIN_SECS
        if not here:
            return False
        haste = BOUNDARY_SECS if self._ending else MEMBER_SECS
        return len(here) == len(concerned) or now >= _earliest_time(here) + max(haste, 2 * self.step_secs)

    def _begin(self, candidates: list[_Candidate], now: float) -> None:
        state = self._state
        self._count_vain(candidates, now)
        free = [candidate for candidate in candidates if not self.remaining_pause(candidate.key[0], now)]
        if not free or (self.has_live_holder and not any(self._holder(candidate.key) for candidate in free)):
            free = candidates
        by_key = {candidate.key: candidate for candidate in free}
        holders = [_key(holder) for holder in state.holders if _key(holder) in by_key]
        members = [*dict.fromkeys((*holders, *by_key))]
        for name, _ in sorted(self._awaited_members(now).difference(members)):
            self._log(f"{name} did not join: the next group forms without it")
        state.number += 1
        state.present = WorkerGroup(
            state.number,
            tuple(name for name, _ in members),
            len(holders),
            by_key[members[0]].request.address,
            tuple(by_key[key].request.address for key in members) if len(members) <= ADDRESSED else (),
        )
        state.incarnations = tuple(incarnation for _, incarnation in members)
        self._set_members()

    def _count_vain(self, candidates: list[_Candidate], now: float) -> None:
        """Count groups that failed without a loss; after the second in a row, exclude the youngest member."""
        members = self._members
        if not members or self._has_formed or self.complete:
            return
        back = {candidate.key for candidate in candidates if candidate.request.after == self.number}
        if back.issuperset(members):
            self._state.vain += 1
            if self._state.vain > 1 and len(members) > 1:
                names = [name for name, _ in members]
                those = " and ".join(names) if len(names) == 2 else "these members"
                self._pause([names[-1]], now, f"two groups of {those} failed, who may not reach each other")

    def _pause(self, names: Iterable[str], now: float, why: str) -> None:
        """Exclude instances for a while, once per group."""
        for name in filter(self.has_member, names):
            before = self._state.pauses.get(name)
            if before is not None and before.group == self.number:
                continue
            times = before.times + 1 if before else 1
            seconds = min(LONGEST_PAUSE, PAUSE_SECS * times)
            self._state.pauses[name] = Pause(now + seconds, times, self.number, why)
            self._log(f"{name} is left out of the group for {seconds:g} s: {why}")

    def _is_to_end(self, now: float) -> bool:
        if self._lost:
            return len(self._lost) < len(self._names)
        joiners = [
            candidate
            for candidate in self._candidates.values()
            if self._waits(candidate)
            and not self._is_member(candidate.key)
            and not self.remaining_pause(candidate.key[0], now)
        ]
        if not joiners or not self._names:
            return False
        arrived = {
            *self._members,
            *(candidate.key for candidate in self._candidates.values() if self._is_alive(candidate.key)),
        }
        late = not self.complete and now >= self._first_free(joiners) + JOIN_SECS
        return late or len(arrived) >= self.wanted

    def _first_free(self, candidates: list[_Candidate]) -> float:
        """Return the second at which the first of them could have joined."""
        pauses = self._state.pauses
        return min(
            max(candidate.since, pauses[candidate.key[0]].until if candidate.key[0] in pauses else 0.0)
            for candidate in candidates
        )


def _key(holder: Holder) -> Key:
    return holder.instance, holder.incarnation


def _earliest_time(candidates: list[_Candidate]) -> float:
    return min(candidate.since for candidate in candidates)
