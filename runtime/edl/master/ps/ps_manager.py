"""Parameter servers of a job: slots, pending calls, and recovery from losses.

A pure state machine: the caller (`edl.master.ps.ps_client`) makes the `calls` and passes their answers back.

    started by the instance manager ─▶ registered ─▶ arranged ─▶ open: pulls and pushes are answered

A slot is identified by its index; its `epoch` counts the processes that served it. If the cluster has no room for a
server, a worker stands in: it gives back its tasks and becomes a server in the same process and under its own name.
Workers receive the addresses once every server is arranged with the addresses of all.

In `async`, a lost server is replaced alone, from the last complete checkpoint, and from its update log if it keeps one
(`Mode.durable_updates`). In `sync`, when all servers without logs are lost at once, or before the first checkpoint,
parameters and tasks go back together (`TaskManager.go_back`), and every server is arranged anew in the next
generation. A checkpoint in memory is lost when a server and its replica peer are lost.

The set of servers changes at a checkpoint that is their last (`scale`):

    those that join are registered ─▶ all are sealed, and have written the checkpoint ─▶ the job goes back to it, with
    the other servers, in the next generation

Until the state store has the last step, any loss is one of the present servers, which are reopened; after it, one of
those that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from edl.errors import DamagedError, SQLFlowError
from edl.jobs.failure import to_failed
from edl.jobs.snapshot import ServerCounts
from edl.master.ps.checkpoint_coordinator import CheckpointCoordinator, PendingCheckpoint
from edl.master.ps.server_set import ServerSet
from edl.master.ps.server_slot import Answer, Header, ServerCall, ServerSlot
from edl.master.ps.update_tally import UpdateTally
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.content import Manifest, Mode, Progress
from edl.ps.messages import (
    Arrange,
    CheckpointTaken,
    Figures,
    GenerationError,
    NotReadyError,
    Reopen,
    Revoke,
    Revoked,
    Status,
    TakeCheckpoint,
)
from edl.rpc.channel import AwayError
from edl.spec import Checkpoints
from edl.tasks import protocol
from edl.tasks.protocol import Joined

STATUS_SECS = 1.0  # interval of status calls to a server
HASTY_SECS = 0.2  # the same while something depends on the answer
RETRY_SECS = 0.2  # pause after a call without an answer
LONG_SECS = 600.0  # timeout of restoring and of a checkpoint; status calls detect a lost server earlier
LOGGED_BYTES = (
    64_000_000  # least size of an update log, like the parameters' size, for a checkpoint to be due
)
_NUMBER = 20  # lower bits of a server list's number; the upper ones are the master's epoch


class Servers:
    """State of the parameter servers of one job, `count` of them unless that was changed. While it is `stopping`, no
    server is replaced. When `all_end`, they go back together to their last checkpoint.

    `when` returns the checkpoint settings for a number of servers; without it they are `checkpoints`.
    """

    stopping = all_end = False

    def __init__(
        self,
        leases: TaskManager,
        mode: Mode,
        count: int,
        checkpoints: CheckpointCoordinator,
        when: Callable[[int], Checkpoints] | None = None,
    ) -> None:
        self._tasks = leases
        self._set = ServerSet(leases.state)
        self._tally = UpdateTally(leases.state)
        self._mode = mode
        self.checkpoints = checkpoints
        self._when = when
        state = leases.state
        if len(self) != (state.server_count or count):
            self._begin_with(count)
        elif state.server_count:
            self._resize_checkpoints()
        self._slots = [
            ServerSlot(state.seconds, holds=bool(record.address) and index < len(self))
            for index, record in enumerate(self._set.places)
        ]
        self._number = state.epoch << _NUMBER
        self._ticked = state.seconds
        self._publish()
        if checkpoints.in_memory and count == 1:
            leases.log(
                "a single parameter server has no peer for copies: there are no checkpoints, "
                "and its loss restarts training"
            )

    def __len__(self) -> int:
        return len(self._set.records)

    @property
    def is_ready(self) -> bool:
        """True if all servers are arranged."""
        addresses = self._set.addresses
        return all(self._is_arranged(index, addresses) for index in range(len(self)))

    def figures(self, instance: str) -> Figures | None:
        """Return the last reported figures of a server, or None if there are none."""
        return self.all_figures.get(instance)

    @property
    def all_figures(self) -> dict[str, Figures]:
        """Last reported figures of each server, by name."""
        pairs = zip(self._set.places, self._slots, strict=True)
        return {record.instance: slot.figures for record, slot in pairs if record.address and slot.figures}

    @property
    def counts(self) -> ServerCounts:
        """Counts of all servers since the start of the job. They never go down."""
        return self._tally.counts

    @property
    def losses(self) -> tuple[int, int]:
        """Updates that the parameters lack, over all servers, and their rows."""
        return self._tally.losses

    @property
    def torn(self) -> tuple[int, int]:
        """Updates among them of workers that ended, which some servers have, and their rows."""
        return self._tally.torn

    def address(self, instance: str) -> str:
        """Return the address of a server, or an empty string if the instance is not a running server."""
        return next((record.address for record in self._set.places if record.instance == instance), "")

    # Instances ------------------------------------------------------------------------------------------------

    def register(self, instance: str, incarnation: int, address: str, now: float) -> Joined | None:
        """Register a server. Return None if it must exit, because a later incarnation has registered."""
        index = self._set.index(instance)
        if index is None:
            return None
        self._tasks.on_loss(instance, incarnation, now)  # it may have been a worker before
        record = self._set.places[index]
        if record.instance == instance and record.incarnation > incarnation:
            return None
        if (record.instance, record.incarnation, record.address) != (instance, incarnation, address):
            self.on_loss(record.instance, record.incarnation, now)
            self._tasks.state.keep_counts([record])
            record.instance, record.incarnation, record.address = instance, incarnation, address
            record.epoch += 1
            self._slots[index] = ServerSlot(now)
            self._publish()
        leases = self._tasks
        return Joined(leases.state.epoch, leases.state.generation, leases.lease_secs, leases.lease_secs / 3)

    def on_loss(self, instance: str, incarnation: int, now: float, why: str = "") -> None:
        """Handle the loss of an instance. No effect if it does not serve a slot any more."""
        index = self._set.index(instance)
        if index is None or self._tasks.is_finished:
            return
        record, slot = self._set.places[index], self._slots[index]
        if (record.instance, record.incarnation) != (instance, incarnation):
            return
        if self._set.stand_in(self._set.homes[index]) is not None:
            record.instance = ""
        if not record.address:
            return
        if self._set.is_to_replace(self._set.homes[index]):  # its own replacement follows it
            self._set.withdraw()
            del self._slots[len(self) :]
        record.address = ""
        self._slots[index] = ServerSlot(now)
        self.checkpoints.drop(now, at_once=True)  # another server has to be ready first
        what = f"{instance} {why or 'is gone'}"
        if not self.checkpoints.is_readable():
            self._begin_anew(f"{what}, and with it the checkpoint in memory")
        elif slot.holds:
            self._replace(index, slot, what)
        self._publish()

    def stand_in(self, home: str) -> tuple[str, int] | None:
        """Return name and incarnation of the worker that occupies the slot of this server, or is chosen to."""
        return self._set.stand_in(home)

    def replace_by(self, home: str, worker: str, incarnation: int) -> None:
        """Choose a worker for a free slot; its next request is answered with that."""
        record = self._set.records[self._set.homes.index(home)]
        record.instance, record.incarnation = worker, incarnation

    def silence(self, instance: str, incarnation: int, now: float) -> float | None:
        """Return the seconds since the last answer of a server, or None if the instance is not a server."""
        for record, slot in zip(self._set.places, self._slots, strict=True):
            if (record.instance, record.incarnation) == (instance, incarnation) and record.address:
                return now - slot.answered
        return None

    def tick(self, now: float) -> None:
        """Advance the time, and give up silent servers."""
        # This process was suspended: no answer could arrive.
        if now - self._ticked > self._tasks.lease_secs / 2:
            for slot in self._slots:
                slot.answered += now - self._ticked
        self._ticked = now

    # Calls ----------------------------------------------------------------------------------------------------

    def calls(self, now: float) -> list[ServerCall]:
        """Return the calls to make now. A returned call is pending until it is `answered` or `unanswered`."""
        if self._tasks.is_finished:
            return []
        ready = self.is_ready
        waits = bool(
            self.checkpoints.under_way or any(slot.sealed_checkpoint for slot in self._slots)
        ) or not (ready and self.is_open)
        due = [
            ServerCall(index, home, record.epoch, record.address, header, secs)
            for index, (home, record) in enumerate(zip(self._set.homes, self._set.places, strict=True))
            if record.address
            for header, secs in self._headers(index, now, ready=ready, waits=waits)
        ]
        for call in due:
            self._slots[call.index].under_way.add(call.name)
        return due

    def on_answer(self, call: ServerCall, answer: Answer, now: float) -> None:
        """Apply the answer of a call."""
        index = self._done(call)
        if index is None:
            return
        slot = self._slots[index]
        slot.answered = now
        if isinstance(call.header, Arrange):
            slot.arranged = call.header
            self.checkpoints.on_held(call.header)
            self._publish()
        elif isinstance(answer, Figures):
            self._look(index, answer, now)
        elif isinstance(call.header, Revoke) and isinstance(answer, Revoked):
            if call.header.generation == self._tasks.state.generation:
                self._on_revoked(slot, call.header.leases, answer.progress)
        elif isinstance(call.header, TakeCheckpoint) and isinstance(answer, CheckpointTaken):
            alive = [attempt for attempt in answer.unfinished.items() if self._tasks.state.is_alive(*attempt)]
            if call.header.last and alive:
                self._tasks.log(f"the servers cannot change yet: {alive[0][0]} is pushing to some of them")
                self.checkpoints.drop(now)
            self.checkpoints.on_taken(call.header.folder, answer)

    def on_unanswered(self, call: ServerCall, error: SQLFlowError, now: float) -> None:
        """Handle a failed call. If a server cannot restore a checkpoint, no other could, so the job fails.

        A checkpoint that no longer exists anywhere is handled like a loss of servers instead. If it is damaged, all
        servers go back to the one before it.
        """
        index = self._done(call)
        if index is None:
            return
        self._slots[index].not_before = now + RETRY_SECS
        if isinstance(call.header, TakeCheckpoint):
            self.checkpoints.drop(now)
        if isinstance(error, AwayError | NotReadyError | GenerationError):
            return
        what = f"parameter server {index}: {error.message}"
        if isinstance(call.header, Arrange) and (
            call.header.manifest is not None or self._tasks.checkpoint_is_lost
        ):
            if call.header.generation == self._tasks.state.generation:
                self._begin_anew(what) if call.header.manifest is not None else self._go_back(what)
                self._publish()
            return
        if isinstance(call.header, Arrange) and isinstance(error, DamagedError):
            self._fall_back(call.header, error.message)
            return
        self._tasks.log(what)
        if isinstance(call.header, Arrange):
            self._tasks.fail(to_failed(error, ""))

    def _headers(self, index: int, now: float, *, ready: bool, waits: bool) -> list[tuple[Header, float]]:
        """Return the headers to send to one server, with their timeouts in seconds. `ready`: all servers are arranged;
        `waits`: something depends on their answers.
        """
        slot, state = self._slots[index], self._tasks.state
        headers: list[tuple[Header, float]] = []
        if now - slot.asked >= (HASTY_SECS if waits else STATUS_SECS) and "Status" not in slot.under_way:
            slot.asked = now
            headers.append((Status(self.checkpoints.durable), self._tasks.lease_secs))
        if now < slot.not_before or index >= len(self):
            return headers
        if not (ready or self._is_arranged(index, self._set.addresses)):
            if "Arrange" not in slot.under_way and all(record.address for record in self._set.records):
                slot.holds = True
                headers.append((self._set.arrangement(index, self._mode), LONG_SECS))
        elif ready:
            revoking = tuple(lease for lease in state.revoking if lease not in slot.revoked)
            if revoking and "Revoke" not in slot.under_way:
                headers.append((Revoke(state.generation, revoking), self._tasks.lease_secs))
            if (
                slot.sealed_checkpoint not in ("", self.checkpoints.closing)
                and "Reopen" not in slot.under_way
            ):
                headers.append((Reopen(state.generation, slot.sealed_checkpoint), self._tasks.lease_secs))
            if index == 0 and self.is_open and "TakeCheckpoint" not in slot.under_way:
                headers += [(header, LONG_SECS) for header in self._due_checkpoint(now)]
        return headers

    def _due_checkpoint(self, now: float) -> Iterator[TakeCheckpoint]:
        state, checkpoints = self._tasks.state, self.checkpoints
        steps = tuple(slot.step for slot in self._slots[: len(self)])
        if self._has_next and not state.revoking:
            if checkpoints.may_begin(now):
                yield TakeCheckpoint(state.generation, checkpoints.begin(steps, now, last=True), last=True)
        elif checkpoints.is_due(steps[0], now):
            yield self._take_checkpoint(checkpoints.begin(steps, now))

    def _take_checkpoint(self, name: str) -> TakeCheckpoint:
        state = self._tasks.state
        if self.checkpoints.in_memory:
            last = (state.checkpoint.folder,) if state.checkpoint else ()
            return TakeCheckpoint(state.generation, name, memory=True, kept=last)
        return TakeCheckpoint(state.generation, name)

    @property
    def is_open(self) -> bool:
        """True if all servers answer pulls and pushes, according to their last status."""
        generation = self._tasks.state.generation
        figures = [slot.figures for slot in self._slots[: len(self)]]
        return all(
            figures_of_server is not None
            and figures_of_server.open
            and figures_of_server.generation == generation
            for figures_of_server in figures
        )

    def _done(self, call: ServerCall) -> int | None:
        """Return the present index of the server that was called, or None if another process serves its slot."""
        index = self._set.index(call.home)
        if index is None:
            return None
        record = self._set.places[index]
        if (record.epoch, record.address) != (call.epoch, call.address):
            return None
        self._slots[index].under_way.discard(call.name)
        return index

    def _on_revoked(self, slot: ServerSlot, leases: Sequence[int], progress: Sequence[Progress]) -> None:
        """Record leases that one server has revoked. A lease that all have revoked is finished with the greatest
        progress of any server.
        """
        part_of_lease = {part.task.attempt: part for part in progress}
        slot.revoked |= {lease: part_of_lease.get(lease) for lease in leases}
        serving = self._slots[: len(self)]
        everywhere = [lease for lease in leases if all(lease in other.revoked for other in serving)]
        by_lease = [[other.revoked.pop(lease) for other in serving] for lease in everywhere]
        if self._mode.logs_updates:  # servers lose nothing, so a difference is of a push that only some have
            for parts in by_lease:
                self._tally.record_torn_push(parts)
        furthest_last = sorted(filter(None, chain.from_iterable(by_lease)), key=lambda part: part.rows)
        self._tasks.on_revoked(everywhere, furthest_last)

    def _look(self, index: int, figures: Figures, now: float) -> None:
        self._slots[index].figures = figures
        self._tally.observe(index, figures)
        if figures.leaving:
            homes = zip(self._set.homes, self._slots, strict=True)
            self.replace(
                {home for home, other in homes if other.figures and other.figures.leaving}, "is to end"
            )
        if figures.logged > max(LOGGED_BYTES, figures.bytes):
            self.checkpoints.request()
        for name, shard in figures.written.items():
            if error := self.checkpoints.record_shard(index, name, shard):
                self._tasks.log(f"a checkpoint cannot be written: {error}")
                self.checkpoints.drop(now)

    # Changes of the set -----------------------------------------------------------------------------------------

    def scale(self, count: int, leaving: Collection[str] = ()) -> None:
        """Begin to have `count` servers, without the instances `leaving`; the present number withdraws a change.

        Raises JobError if another change is under way.
        """
        before = self._set.change
        self._set.begin(count, leaving)
        places, now = len(self._set.places), self._tasks.state.seconds
        kept = self._slots if self._set.change is before else self._slots[: len(self)]
        self._slots = [*kept, *(ServerSlot(now) for _ in range(places))][:places]
        if self._set.change is None and self.checkpoints.closing:
            self.checkpoints.drop(now)

    def replace(self, leaving: AbstractSet[str], why: str) -> None:
        """Begin to replace servers, unless the set changes anyway."""
        homes = sorted(leaving & {*self._set.homes}) if leaving else []
        if (
            homes
            and not self.stopping
            and self._set.change is None
            and self.is_open
            and not self._tasks.job.is_over("train")
        ):
            self._tasks.log(f"{', '.join(homes)} {why}: another server follows")
            self.scale(len(self), homes)

    def complete(self, taking: PendingCheckpoint, manifest: Manifest) -> bool:
        """Make the checkpoint the one to go back to. Return False if it was dropped meanwhile.

        If it is the last one of these servers, the others begin with it.
        """
        if taking.last and not self._has_next:
            if self.checkpoints.closing == taking.name:
                self.checkpoints.drop(self._tasks.state.seconds)
            return False
        if not self.checkpoints.complete(taking, manifest):
            return False
        if taking.last:
            self._change()
        return True

    def _change(self) -> None:
        slots = dict(zip(self._set.homes, self._slots, strict=True))
        before = ", ".join(self._set.homes[: len(self)])
        self._tasks.state.end_server_change()
        self._slots = [slots[home] for home in self._set.homes]
        self._resize_checkpoints()
        self._go_back(f"parameter servers: {before} → {', '.join(self._set.homes)}")
        self.checkpoints.request()
        self._publish()

    def _resize_checkpoints(self) -> None:
        if self._when is not None:
            self.checkpoints.resize(len(self), self._when(len(self)))

    @property
    def target_count(self) -> int:
        """Number of servers, after the change that is under way."""
        return self._set.target_count

    @property
    def change_under_way(self) -> str:
        """Description of the change that is under way, or empty."""
        return self._set.describe(closing=bool(self.checkpoints.closing))

    @property
    def _has_next(self) -> bool:
        """True if the servers to come are there, and there is something left to train."""
        return self._set.is_complete and not self._tasks.job.is_over("train")

    # Slots ------------------------------------------------------------------------------------------------------

    def _is_arranged(self, index: int, addresses: tuple[str, ...]) -> bool:
        """Return True if the server has the wanted arrangement, apart from the checkpoint to restore."""
        arranged = self._slots[index].arranged
        expected = self._tasks.state.generation, self._set.records[index].epoch, addresses
        return arranged is not None and (arranged.generation, arranged.epoch, arranged.addresses) == expected

    def _replace(self, index: int, slot: ServerSlot, what: str) -> None:
        """Recover from a lost server that held parameters: it alone goes back to the checkpoint, or all servers do."""
        checkpoint = self._tasks.state.checkpoint
        logged = self._mode.logs_updates
        others = any(slot.holds for slot in self._slots)
        if self.all_end and others:  # nothing was trained behind the last checkpoint
            self._tasks.log(what)
            return
        if self._mode.kind == "async" and checkpoint is not None and (others or logged):
            steps = self.checkpoints.steps
            lost = max(0, slot.step - steps[index]) if steps and not logged else 0
            updates = f"{lost:,} updates" if steps else "updates"
            rest = "the updates since then are in its log" if logged else f"{updates} of it are lost"
            self._tasks.log(f"{what}; it resumes from the checkpoint {checkpoint.folder}: {rest}")
            rows = lost * self.checkpoints.steps_per_version * self._tasks.plan.training.batch_size
            self._tally.lose(index, checkpoint.folder, lost, rows)
            return
        self._go_back(what)

    def _begin_with(self, count: int) -> None:
        """Set up the records for `count` servers: at the start, or when the job resumes with another number of
        servers.
        """
        state = self._tasks.state
        resumed = bool(state.servers)
        state.reset_servers(count)
        state.server_count = None
        if resumed:
            self._tasks.log(f"the job continues with {count} parameter servers")
            self._tasks.go_back()

    def _begin_anew(self, what: str) -> None:
        """Forget the lost checkpoint and start training anew."""
        self._tasks.state.checkpoint = None
        self._go_back(what)

    def _fall_back(self, asked: Arrange, why: str) -> None:
        """Go back to the checkpoint before a damaged one, unless another server has said so already."""
        if asked.generation == self._tasks.state.generation and asked.restore:
            self._tasks.checkpoint_damaged(asked.restore, why)
            self._forget_arrangements()
            self._publish()

    def _go_back(self, what: str) -> None:
        self._tasks.log(what)
        self._tasks.go_back()
        self._forget_arrangements()

    def _forget_arrangements(self) -> None:
        for other in self._slots:
            other.holds, other.arranged = False, None
            other.revoked.clear()

    def _publish(self) -> None:
        """Publish the servers' addresses to the workers if they have changed."""
        state = self._tasks.state
        addresses = self._set.addresses
        before = self._tasks.servers
        if before is None or (state.generation, addresses, self.is_ready) != (
            before.generation,
            before.addresses,
            before.ready,
        ):
            self._number += 1
            self._tasks.servers = protocol.Servers(self._number, state.generation, addresses, self.is_ready)
