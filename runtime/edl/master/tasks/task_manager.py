"""Task manager: which worker does which task, until when, and what happens to the task when the worker is lost.

A pure state machine around `edl.tasks.job_state.Job`; the caller passes the time in seconds since the start of the job.
Recovery from a lost worker depends on where the parameters are: see `edl.master.tasks.recovery`.

* A report counts once, while its lease is valid; anything else changes nothing.
* A worker that leaves, dies or is silent for `lease_secs` loses its tasks. That never counts against a task. A task
  that *raises* is tried three times; then the job fails and names it. So is a task if its worker *hangs* in it.
* A worker names its leases with every request. A lease that it does not name never reached it and is returned to the
  queue. It holds some in advance, so that it goes on while no master answers (`edl.master.tasks.sharing`).
* Stored leases stay valid after a restart. A lease that was not stored is void, but a report on it counts as long as
  the task is not assigned to another worker: it was computed on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from edl.cluster import Role
from edl.errors import JobError
from edl.jobs.events import EpochEnd, TrialEnd
from edl.jobs.failure import Failed
from edl.master.pace import Pace
from edl.master.state import Lease, MasterState, Member
from edl.master.tasks.backups import Backups
from edl.master.tasks.lease_table import LeaseCheckpoints, LeaseTable, report_of, task_key, task_name, task_of
from edl.master.tasks.ownership import DoneRows
from edl.master.tasks.progress_watch import Hanging, ProgressWatch
from edl.master.tasks.recovery import Gain, RecoveryPolicy
from edl.master.tasks.sharing import Sharing
from edl.ps.checkpoint.content import Progress
from edl.tasks.job_state import Job, Plan
from edl.tasks.protocol import Answer, Flag, Joined, Request, Servers, TaskRun, TaskUpdate
from edl.tasks.task import CONTROL, Report, Summary, Task, TaskType

ATTEMPTS = 3  # attempts of a task that raises
HEARTBEATS = 400  # of all workers per second, at the most: an exchange takes half a millisecond of a core


class Marks(msgspec.Struct, frozen=True):
    """Position of a write to the state store. `reports` maps each instance to its incarnation and number of accepted
    reports; `group` is the number of the last group.
    """

    reports: dict[str, tuple[int, int]]
    group: int


class TaskManager:
    """State of a job with workers. `state` is the stored state before a restart, with the epoch of the previous master.

    `recovery` is the policy of a training job. `log` logs problems. `checkpoints` are the stored ones, of which an
    earlier master may have had some on a disk of its own. `task_timeout` is the seconds without progress after which a
    worker is replaced; 0 derives them.
    """

    def __init__(
        self,
        plan: Plan,
        state: MasterState | None = None,
        recovery: type[RecoveryPolicy] = RecoveryPolicy,
        *,
        lease_secs: float = 10.0,
        log: Callable[[str], None] = lambda text: None,
        checkpoints: LeaseCheckpoints | None = None,
        task_timeout: float = 0.0,
    ) -> None:
        self.plan = plan
        self.lease_secs = lease_secs
        self._looks_due = Pace()
        self._most = 0  # workers that were ever wanted
        self.state = state or MasterState()
        self.log = log
        self._table = LeaseTable(plan, self.state, log, checkpoints)
        self._recovery = (recovery if plan.kind == "train" else RecoveryPolicy)(self._table)
        self.rendezvous, self.owners = self._recovery.rendezvous, self._recovery.owners
        self._recovery.begin()
        self._durable = self._marks()
        self.servers: Servers | None = None  # parameter servers, if the job has any
        self._done_rows = DoneRows(self.rendezvous)
        self.is_held = False  # no task is assigned, because too few workers are ready
        self.unstored = 0  # number of accepted reports that are not durable
        self.news: list[EpochEnd | TrialEnd] = []  # unpublished events
        self._ticked = self.state.seconds
        self._awake = False  # True after the first tick
        self._watch = ProgressWatch(task_timeout, measured=plan.kind != "search")
        self._hung: dict[str, int] = {}  # incarnations that are to exit
        self._backups = Backups(self._table, plan.kind) if plan.kind in ("predict", "evaluate") else None
        shared = plan.kind if self._recovery.shares and plan.kind != "search" else None
        self._in_advance: dict[str, tuple[TaskRun, ...]] = {}  # tasks that are not begun, by instance
        self._sharing = Sharing(shared, self.state.leases, lambda: self._table.job)

    @property
    def job(self) -> Job:
        """State machine of the job; replaced when the job goes back."""
        return self._table.job

    @property
    def has_begun(self) -> bool:
        """True if a task of the job was ever assigned."""
        return bool(self.state.leases or self.state.done or self.job.state.step)

    def count_workers(self) -> int:
        """Return the number of registered workers that are not lost."""
        return sum(not member.gone for member in self.state.members.values())

    @property
    def is_finished(self) -> bool:
        """True if nothing is left to do, for whatever reason."""
        return self._table.is_finished

    def is_written_first(self, tasks: Iterable[Task]) -> bool:
        """Return True if the leases of these tasks must be persisted before they are announced.

        Another worker could get tasks that the next master does not know of.
        """
        return any(self._recovery.written_first or task.type == self._sharing.kind for task in tasks)

    @property
    def is_awaited(self) -> bool:
        """True if a reply is blocked until the next write to the state store."""
        return self.state.rendezvous.number > self._durable.group

    @property
    def checkpoint_is_lost(self) -> bool:
        """True if the checkpoint to go back to does not exist any more."""
        return self._table.checkpoint_is_lost

    # Instances ------------------------------------------------------------------------------------------------

    @property
    def worker_lease_secs(self) -> float:
        """Seconds without a request before a worker is given up. They never become shorter, because a worker keeps the
        interval of heartbeats that it was told when it registered.
        """
        return max(self.lease_secs, 3 * max(self._most, len(self.state.members)) / HEARTBEATS)

    def join(
        self, instance: str, incarnation: int, now: float, metric_kinds: Mapping[str, str] | None = None
    ) -> Joined | None:
        """Register an instance, again or for the first time.

        `metric_kinds` says how states of the program's metrics merge, see `edl.metrics.merge_kind`. Return None if the
        instance must exit, because a later incarnation has registered or its state is void.
        """
        self.state.seconds = now
        self.state.metric_kinds.update(metric_kinds or {})
        member = self.state.members.get(instance)
        if member is not None and member.incarnation > incarnation:
            return None
        if self._hung.get(instance) == incarnation:
            return None
        if member is None or member.incarnation < incarnation or member.gone:
            if member is not None:
                self.on_loss(instance, member.incarnation, now)
            if member is None or member.incarnation < incarnation:
                self.state.members[instance] = Member(incarnation, now)
            elif not self._recovery.readmits:
                return None
            else:
                member.gone, member.seen = False, now
                self.rendezvous.look_at(instance)
        lease_secs = self.worker_lease_secs
        return Joined(
            self.state.epoch,
            self.state.generation,
            lease_secs,
            lease_secs / 3,
            self._recovery.resume,
            self.is_finished,
            self.servers,
        )

    def on_loss(self, instance: str, incarnation: int, now: float, why: str = "") -> None:
        """Reassign the tasks of a lost instance. No effect if its loss is known or a later incarnation runs."""
        member = self.state.members.get(instance)
        if member is None or member.incarnation != incarnation or member.gone:
            return
        member.gone = True
        self._sharing.forget(instance)
        self._in_advance.pop(instance, None)
        held = self._table.of(instance)
        for number in reversed(held):
            self._recovery.give_back(number)
        if why and (held or self._recovery.matters(instance)):
            back = f"; {len(held)} task{'' if len(held) == 1 else 's'} given back" if held else ""
            self.log(f"{instance} {why}{back}")
        self._recovery.on_loss(instance)
        self.rendezvous.look_at(instance)
        self.rendezvous.tick(now)

    def silence(self, instance: str, incarnation: int, now: float) -> float:
        """Return the seconds since the last request of an instance that was given up, or 0 for any other."""
        member = self.state.members.get(instance)
        if member is None or member.incarnation != incarnation or not member.gone:
            return 0.0
        return now - member.seen

    def listens(self, instance: str, now: float) -> bool:
        """Return True if an instance that takes part was seen recently, so that it will receive the next answer."""
        member = self.state.members.get(instance)
        if member is None or member.gone or not self.rendezvous.takes_part(instance):
            return False
        return now - member.seen < self.worker_lease_secs / 2  # heartbeats come three times per lease

    def rows_of(self, instance: str) -> int:
        """Return the rows that an instance has done since this master started, including rows of its open tasks."""
        under_way = sum(self.state.leases[number].rows for number in self._table.of(instance))
        return self._done_rows.of(instance) + under_way

    def count_in_advance(self, kind: TaskType) -> int:
        """Return the number of tasks of that type that workers hold and have not begun."""
        runs = (run for runs in self._in_advance.values() for run in runs)
        return sum(run.count for run in runs if run.type == kind)

    def oldest_lease(self, instance: str) -> Lease | None:
        """Return the oldest lease of a task that an instance does, alone or with others."""
        held = [numbers[0] for owner in self.owners.of_worker(instance) if (numbers := self._table.of(owner))]
        return self.state.leases[min(held)] if held else None

    def count_progress(self, role: Role) -> Gain:
        """Return a monotonic counter of durable progress for `role`; used to detect crash loops."""
        return self._recovery.count_progress(role)

    def want(self, workers: int) -> None:
        """Set the wanted number of workers."""
        self._most = max(self._most, workers)
        self.rendezvous.wanted = workers

    def tick(self, now: float) -> None:
        """Advance the time: give up silent instances, and begin an evaluation round that is due."""
        if (slept := now - self._ticked) > self.lease_secs / 2:  # no request could arrive
            if self._awake:
                self.log(f"was suspended for {slept:.1f} s: all leases start anew")
            for member in self.state.members.values():
                member.seen = member.seen + slept if member.gone else now
            self._watch.begin_anew(now)
        self._ticked = self.state.seconds = now
        self._awake = True
        if self._looks_due.is_due(now, len(self.state.members)):
            self._expire_leases(now)
        self.job.tick(now)
        self.rendezvous.tick(now)
        self._sharing.balance(now)

    def _expire_leases(self, now: float) -> None:
        """Give up workers that are silent for the time of a lease, or hang; find tasks that take too long."""
        longest = self.worker_lease_secs
        for name, member in self.state.members.items():
            if not member.gone and now - member.seen > longest:
                self.on_loss(name, member.incarnation, now, f"was silent for {longest:g} s")
        if self.servers is not None and not self.servers.ready:  # the workers wait for them
            self._watch.begin_anew(now)
        late = (longest - self.lease_secs) / 3  # heartbeats show the progress
        if (hanging := self._watch.take_hanging(now, self.state.is_alive, late)) is not None:
            self._end_hanging(hanging, now)
        if self._backups is not None:
            self._backups.find_overdue(now)

    # Exchange ---------------------------------------------------------------------------------------------

    def exchange(self, request: Request, now: float) -> Answer:
        """Apply a worker's reports, and assign the tasks that it wants."""
        member = self._find_member(request)
        if member is None:
            return self._unknown(request)
        self.state.seconds = now
        follows = self.rendezvous.has_member(request.instance) and not self.rendezvous.leads(request)
        self._watch.observe(request, now, follows=follows)
        member.seen = now
        if request.number >= member.last_request:
            member.last_request = request.number
            if request.seen_upto <= member.upto:
                self._apply(request, member, now)
        self._sharing.balance(now)
        return self.answer(request)

    def answer(self, request: Request) -> Answer:
        """Assign the tasks that a worker wants, as far as available. Second part of `exchange`; may be repeated."""
        member = self._find_member(request)
        if member is None:
            return self._unknown(request)
        overtaken = request.number < member.last_request  # a later request came first, on another connection
        # An earlier master had accepted more reports: the worker has to repeat them.
        if overtaken or request.seen_upto > member.upto:
            return Answer(self.state.epoch, flags=self._flags(), seen_upto=member.upto)
        tasks = tuple(self._grant(request)) if not self.is_finished else ()
        incarnation, upto = self._durable.reports.get(request.instance, (-1, 0))
        return Answer(
            self.state.epoch,
            tasks,
            tuple(self._list_revoked(request)),
            self._flags() | self._flags_for(request, tasks),
            member.upto,
            upto if incarnation == member.incarnation else 0,
            self.servers if self.servers and self.servers.number != request.servers else None,
            self.rendezvous.requested_group(request),
            self._sharing.list_asked(request.instance),
            self._sharing.open_epoch,
            self.job.certain_epoch,
        )

    def _flags_for(self, request: Request, tasks: Collection[Task]) -> Flag:
        """Return the flags for one worker, which gets these tasks."""
        flags = self._recovery.flags_for(request) | self._sharing.flags_for(request.instance)
        if self._recovery.tells_dry and "train" in request.idle and not tasks:
            flags |= Flag.DRY
        return flags

    def _unknown(self, request: Request) -> Answer:
        """Answer an instance that has to register again, or to exit because it hangs."""
        hung = Flag.HUNG if self._hung.get(request.instance) == request.incarnation else Flag.NONE
        return Answer(self.state.epoch, flags=Flag.REJOIN | hung | self._flags())

    def _find_member(self, request: Request) -> Member | None:
        """Return the requesting member, or None if it has to register (again)."""
        member = self.state.members.get(request.instance)
        if member is None or member.gone or member.incarnation != request.incarnation:
            return None
        return member if request.generation == self.state.generation else None

    def _apply(self, request: Request, member: Member, now: float) -> None:
        self.rendezvous.observe(request, now, self.job.state.step)
        for update in request.updates:
            if update.sequence == member.upto + 1 and not self.rendezvous.defers(update, request):
                member.upto = update.sequence
                self.unstored += 1
                self._take(update, request, now)
        if member.gone:  # one of the reports ended it
            return
        self._return_unnamed(request)
        for held in request.held:
            lease, owner = (
                self.state.leases.get(held.task.attempt),
                self.owners.of_request(held.task.type, request),
            )
            if lease is None:
                self._adopt(held.task, owner)
            elif lease.instance == owner:
                lease.rows, lease.steps = held.rows, held.steps
                lease.loss, lease.weight = held.loss, held.weight
        for task in _waiting_tasks(request):
            if task.attempt not in self.state.leases:
                self._adopt(task, self.owners.of_request(task.type, request))
        self._sharing.on_request(request)
        self._in_advance[request.instance] = request.waiting
        if self._backups is not None:
            self._backups.on_begin((held.task for held in request.held), now)

    def _return_unnamed(self, request: Request) -> None:
        """Return leases that a request does not name to the queue."""
        named = {held.task.attempt for held in request.held}
        named.update(task.attempt for task in _waiting_tasks(request))
        for number in sorted(self._sharing.take_asked(request.instance, named), reverse=True):
            self._table.give_back(number)
        # An answer that the worker has cancelled, to report something, is repeated, so that its tasks stay in order.
        # Tasks that it gives back come before them.
        again = request.want if all(update.kind != "given back" for update in request.updates) else {}
        for owner in self.owners.list_owners(request):
            self._table.confirm(owner, named)
            named.update(self._table.list_undelivered(owner, again))
            for number in [number for number in reversed(self._table.of(owner)) if number not in named]:
                self._recovery.give_back(number)

    def _adopt(self, task: Task, owner: str) -> bool:
        return bool(owner) and self._recovery.adopts and self._table.adopt(task, owner)

    def _grant(self, request: Request) -> Iterable[Task]:
        if self.is_held:
            return
        for kind, count in request.want.items():
            owner = self.owners.of_request(kind, request)
            if not owner or not self._recovery.may_take(kind, request):
                continue
            repeated = [
                self._table.repeat(number) for number in self._table.list_undelivered(owner, {kind: count})
            ]
            yield from repeated
            granted = self._take_tasks(kind, owner, count - len(repeated))
            yield from granted
            self._sharing.on_grant(owner, (*repeated, *granted))

    def _take_tasks(self, kind: TaskType, owner: str, count: int) -> list[Task]:
        """Assign tasks to an owner, `count` at most."""
        most, epoch = self._sharing.limit(kind, owner, self.count_workers())
        is_idle = not self._table.of(owner)
        tasks: list[Task] = []
        while len(tasks) < min(count, most):
            task = self._table.take(kind, owner, upto=epoch)
            if task is None and self._backups is not None:
                task = self._backups.take(kind, owner)
            if task is None:
                break
            tasks.append(task)
        if self._backups is not None and is_idle:
            self._backups.on_begin(tasks[:1], self.state.seconds)
        return tasks

    def _list_revoked(self, request: Request) -> Iterable[int]:
        """Yield the named leases that the worker has lost."""
        for task in (*(held.task for held in request.held), *_waiting_tasks(request)):
            if task.attempt not in self.state.leases and self.owners.of_request(task.type, request):
                yield task.attempt

    @property
    def signal(self) -> tuple[object, ...]:
        """Value that changes when there may be news for a waiting worker."""
        stand_ins = tuple(record.instance for record in self.state.servers)
        news = (
            self._flags(),
            self.is_held,
            self.state.generation,
            self.servers,
            bool(self.state.revoking),
            stand_ins,
        )
        overdue = self._backups.due if self._backups is not None else 0
        return *news, overdue, *self._sharing.signal, *self.rendezvous.signal, self.job.available

    def _flags(self) -> Flag:
        job = self.job
        flags = self._recovery.flags
        if self.is_finished:
            flags |= Flag.FINISHED
        if not job.available.isdisjoint(CONTROL):
            flags |= Flag.PENDING
        if job.is_measuring:
            flags |= Flag.MEASURING
        if job.is_stopped:
            flags |= Flag.STOPPED
        if job.is_over("train"):
            flags |= Flag.TRAIN_OVER
        if job.is_over("predict"):
            flags |= Flag.PREDICT_OVER
        return flags

    # Reports ------------------------------------------------------------------------------------------------

    def _take(self, update: TaskUpdate, request: Request, now: float) -> None:
        task, owner = update.report.task, self.owners.of_update(update, request)
        if update.kind == "checkpoint":
            self._recovery.begin_checkpoint(update, request)
            return
        if update.kind == "checkpoint written":
            self.state.end_checkpoint(update.folder)
            return
        if update.fatal and update.error:
            self._give_up(update.error, update.folder)
            return
        lease = self.state.leases.get(task.attempt)
        if lease is None and not self._adopt(task, owner):
            return  # void: the task is assigned to another worker, or done
        if self.state.leases[task.attempt].instance != owner:
            return
        if update.kind == "done":
            self._table.finish(task.attempt)
            if self._backups is not None:
                self._backups.on_done(task.attempt, owner, now)
            self._done_rows.add(owner, update.report.rows)
            self._on_done(update.report, now)
        elif update.kind == "given back":
            self._recovery.give_back(task.attempt, update.report if update.report.rows else None)
        elif update.error:
            self._recovery.on_failure(task)
            self._count_failure(task, update.error, request.instance, now)

    def _on_done(self, report: Report, now: float) -> None:
        self.state.count_done(report.task.type, task_key(report.task))
        self.news += self.job.finish_task(report, now)
        if self.job.is_stopped:
            self._recovery.on_stop()

    def _count_failure(self, task: Task, error: Failed, instance: str, now: float) -> None:
        times = self.state.count_failure(task_key(task), error)
        self.log(f"{task_name(task)} failed on {instance}: {error.message}")
        if times >= ATTEMPTS:
            message = f"{task_name(task)} failed {times} times, the last time: {error.message}"
            self.fail(Failed(error.code, message, error.hint, error.traceback))
        elif self._recovery.ends_on_failure and task.type == "train":
            member = self.state.members[instance]
            self.on_loss(instance, member.incarnation, now)

    def _end_hanging(self, hanging: Hanging, now: float) -> None:
        """Give up a worker that hangs; the answer to its next request ends it."""
        name, incarnation, seconds, task = hanging
        what = f"no progress for {seconds:.0f} s"
        self._hung[name] = incarnation
        if task is not None:
            hint = f"the stacks of its threads are in the log of {name}"
            self._count_failure(task, Failed(JobError.code, what, hint), name, now)
        self.on_loss(
            name, incarnation, now, f"made {what} and is ended; the stacks of its threads are in its log"
        )

    def fail(self, why: Failed) -> None:
        """Fail the job."""
        if not self.is_finished:
            self.state.failed = why

    def cancel(self, reason: str) -> None:
        if not self.is_finished:
            self.state.cancelled = reason

    # Servers and rollbacks ----------------------------------------------------------------------------------

    def go_back(self) -> None:
        """Go back to the last checkpoint: the weights and the progress since are lost."""
        self._recovery.go_back()

    def _give_up(self, error: Failed, checkpoint: str) -> None:
        """Handle an error that would occur in every worker, unless a damaged checkpoint is the reason."""
        if checkpoint:
            self.checkpoint_damaged(checkpoint, error.message)
        else:
            self.fail(error)

    def checkpoint_damaged(self, name: str, why: str) -> None:
        """Resume from an older checkpoint than a damaged one. No effect beyond its mark if it is not the last one."""
        self._recovery.checkpoint_damaged(name, why)

    def take_went_back(self) -> Summary | None:
        """Return the earliest point that the job went back to since the last call, or None if it did not."""
        summary, self._table.went_back = self._table.went_back, None
        return summary

    def on_revoked(self, numbers: Iterable[int], progress: Iterable[Progress]) -> None:
        """Finish leases that no server accepts gradients of any more; `progress` is their durable part."""
        parts = {reported.task.attempt: reported for reported in progress}
        for number in sorted(numbers, reverse=True):  # each is put at the head of the queue
            lease = self.state.revoking.pop(number, None)
            if lease is None:
                continue
            part = parts.get(number) or lease.pushed
            if part is not None and part.rows >= part.task.rows:
                self._on_done(report_of(part), self.state.seconds)
            else:
                done = report_of(part) if part is not None and part.rows else None
                self.job.give_back(task_of(number, lease), done)

    def copy(self) -> Job:
        """Return a copy of the job's state, with assigned tasks made unassigned. See
        `edl.master.ps.checkpoint_coordinator`."""
        return self._table.copy()

    # Durable state ------------------------------------------------------------------------------------------

    def to_store(self) -> tuple[MasterState, Marks]:
        """Return the state to write now, and the marks to pass to `written` afterwards."""
        self.unstored = 0
        state = msgspec.structs.replace(self.state.with_runs(), job=self.job.to_state(doing=True))
        return state, self._marks()

    def on_written(self, marks: Marks) -> None:
        """Record that the state of these marks is durable."""
        self._durable = marks
        self.rendezvous.on_written(marks.group)

    def _marks(self) -> Marks:
        members = self.state.members.items()
        reports = {name: (member.incarnation, member.upto) for name, member in members}
        return Marks(reports, self.state.rendezvous.number)


def _waiting_tasks(request: Request) -> Iterable[Task]:
    """Yield the tasks that a worker has not begun."""
    return (task for run in request.waiting for task in run.tasks)
