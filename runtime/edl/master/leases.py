"""Leases: which worker does which task, until when, and what becomes of it when the worker does not.

A pure state machine around `edl.tasks.job.Job`, with the clock handed in as seconds since the job began.

* Every task that is handed out is a lease with a number that grows: the epoch of the master, then a counter. A report
  counts when its lease is valid, once; whatever else comes changes nothing.
* A worker that leaves, dies or is silent for `lease_secs` gives its tasks back. That never counts against a task. A
  task that *raises* is tried three times, then the job fails and names it.
* A *trainer* (`stateful`) holds the model's weights itself. When it is lost, what it has done since its last cut is
  lost with it: the job goes back to that cut and begins a new generation.
* With parameter servers (`served`), what a worker did of a task before it was lost is in the parameters. So server 0
  revokes the lease, and says how much of it that is; only then the rest is given back. And a lease is written down
  before it is told, and never adopted: nobody's gradients come unknown.
* A worker names what it holds with every request. A lease that it does not name never reached it: it is given back.
* After a restart leases that were written down stay valid. One that was not is void, but a report on it counts as
  long as nobody else has the task: it was computed on the same rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from edl.cluster import Role
from edl.master.kept import Cut, Failure, Kept, Lease, Member
from edl.metrics import merge_states
from edl.ps.messages import Progress
from edl.tasks import encoding
from edl.tasks.events import EpochEnd
from edl.tasks.exchange import Answer, Flag, Joined, Request, Servers, Told
from edl.tasks.failed import Failed
from edl.tasks.job import Job, JobState, Plan
from edl.tasks.pool import States
from edl.tasks.task import ASIDE, Report, Task, TaskType

ATTEMPTS = 3  # of a task that raises
_COUNTER = 40  # lower bits of a lease's number


class Leases:
    """The state of a job with workers. `kept`: what was written down before a restart; its epoch is the one before.

    stateful: one worker trains, and holds the weights; served: parameter servers hold them. note: told in words what
    goes wrong.
    """

    def __init__(
        self,
        plan: Plan,
        kept: Kept | None = None,
        *,
        stateful: bool = False,
        served: bool = False,
        lease_secs: float = 10.0,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.plan = plan
        self.stateful = stateful and plan.kind == "train"
        self.served = served and plan.kind == "train"
        self.lease_secs = lease_secs
        self.kept = kept or Kept()
        self.kept.epoch += 1
        self.kept.counter = 0
        self.job = Job(plan, self.kept.job, merge=self._merge)
        for member in self.kept.members.values():
            member.seen = self.kept.seconds
        self._held: defaultdict[str, dict[int, None]] = defaultdict(
            dict
        )  # leases by instance, in their order
        for number, lease in self.kept.leases.items():
            self.job.hold(lease.type, lease.number, lease.id, lease.skip)
            self._held[lease.instance][number] = None
        for lease in self.kept.revoking.values():
            self.job.hold(lease.type, lease.number, lease.id, lease.skip)
        self._durable = {
            name: (member.incarnation, member.upto) for name, member in self.kept.members.items()
        }
        self.servers: Servers | None = None  # where they are, in a job that has them
        self._rows: Counter[str] = Counter()  # of tasks that were done, by instance
        self.told = 0  # reports that were counted and are not written down
        self.news: list[EpochEnd] = []  # that was not told of
        self.note = note
        self._ticked = self.kept.seconds

    # Instances ------------------------------------------------------------------------------------------------

    def join(
        self, instance: str, incarnation: int, now: float, metric_kinds: Mapping[str, str] | None = None
    ) -> Joined | None:
        """An instance registers, again or for the first time.

        metric_kinds: how states of the program's metrics merge, see `edl.metrics.merge_kind`. None: it is to leave,
        because a later start of its name has registered, or what it holds is void.
        """
        self.kept.seconds = now
        self.kept.metric_kinds.update(metric_kinds or {})
        member = self.kept.members.get(instance)
        if member is not None and member.incarnation > incarnation:
            return None
        if member is None or member.incarnation < incarnation or member.gone:
            if member is not None:
                self.lost(instance, member.incarnation, now)
            if member is None or member.incarnation < incarnation:
                self.kept.members[instance] = Member(incarnation, now)
            elif self.stateful:  # its weights are not those of the cut that the job went back to
                return None
            else:
                member.gone, member.seen = False, now
        resume = self.kept.cut.folder if self.stateful and self.kept.cut else ""
        return Joined(
            self.kept.epoch,
            self.kept.generation,
            self.lease_secs,
            self.lease_secs / 3,
            resume,
            self.finished,
            self.servers,
        )

    def _merge(self, one: States, other: States) -> States | None:
        """The states of one task's metrics and another's as one; None when a metric is none of ours."""
        return merge_states(self.kept.metric_kinds, one, other)

    def lost(self, instance: str, incarnation: int, now: float, why: str = "") -> None:
        """The instance is gone: its tasks go to others. Nothing when it was known to be, or a later one runs."""
        member = self.kept.members.get(instance)
        if member is None or member.incarnation != incarnation or member.gone:
            return
        member.gone = True
        held = list(self._held[instance])
        for number in reversed(held):
            self._give_back(number)
        if why and (held or self.stateful):
            self.note(f"{instance} {why}; {len(held)} task{'' if len(held) == 1 else 's'} given back")
        if self.stateful and not self.job.finished:
            self.go_back()

    def silence(self, instance: str, incarnation: int, now: float) -> float:
        """Seconds since the last word of an instance that was given up; 0 of one that was not, or is not known."""
        member = self.kept.members.get(instance)
        if member is None or member.incarnation != incarnation or not member.gone:
            return 0.0
        return now - member.seen

    def rows_of(self, instance: str) -> int:
        """That an instance did since this master began, those of its open tasks included."""
        return self._rows[instance] + sum(self.kept.leases[number].rows for number in self._held[instance])

    def gained(self, role: Role) -> int:
        """Grows with what stays when an instance of that role is lost: tasks, or, where the job goes back with it, the
        steps of the last cut."""
        if self.stateful or role == "ps":
            return self.kept.cut.job.step if self.kept.cut else 0
        return sum(self.kept.done.values())

    def tick(self, now: float) -> None:
        """Time has passed: give up who was silent for too long, begin a round if one is due."""
        if now - self._ticked > self.lease_secs / 2:  # we slept ourselves: nobody could have been heard
            for member in self.kept.members.values():
                member.seen += now - self._ticked
        self._ticked = self.kept.seconds = now
        for name, member in self.kept.members.items():
            if not member.gone and now - member.seen > self.lease_secs:
                self.lost(name, member.incarnation, now, f"was silent for {self.lease_secs:g} s")
        self.job.tick(now)

    # The exchange -----------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do, for whatever reason."""
        return self.job.finished or bool(self.kept.failed or self.kept.cancelled)

    def exchange(self, request: Request, now: float) -> Answer:
        """Take what a worker tells, and hand out what it wants."""
        member = self._known(request)
        if member is None:
            return Answer(self.kept.epoch, flags=Flag.REJOIN | self._flags())
        self.kept.seconds = now
        member.seen = now
        if request.number >= member.heard:
            member.heard = request.number
            if request.seen_upto <= member.upto:
                self._hear(request, member, now)
        return self.answer(request)

    def answer(self, request: Request) -> Answer:
        """Hand out what a worker wants, as far as it is there; the second part of `exchange`, which may be repeated."""
        member = self._known(request)
        if member is None:
            return Answer(self.kept.epoch, flags=Flag.REJOIN | self._flags())
        overtaken = request.number < member.heard  # by a later one, on another connection
        if (
            overtaken or request.seen_upto > member.upto
        ):  # an earlier master knew more: it is to tell that again
            return Answer(self.kept.epoch, flags=self._flags(), seen_upto=member.upto)
        revoked = [held.task.attempt for held in request.held if held.task.attempt not in self.kept.leases]
        tasks = tuple(self._grant(request)) if not self.finished else ()
        incarnation, upto = self._durable.get(request.instance, (-1, 0))
        return Answer(
            self.kept.epoch,
            tasks,
            tuple(revoked),
            self._flags() | self._role_of(request),
            member.upto,
            upto if incarnation == member.incarnation else 0,
            self.servers if self.servers and self.servers.number != request.servers else None,
        )

    def _known(self, request: Request) -> Member | None:
        """The member that asks; None when it is to register (again)."""
        member = self.kept.members.get(request.instance)
        if member is None or member.gone or member.incarnation != request.incarnation:
            return None
        return member if request.generation == self.kept.generation else None

    def _hear(self, request: Request, member: Member, now: float) -> None:
        for told in request.told:
            if told.sequence == member.upto + 1:
                member.upto = told.sequence
                self.told += 1
                self._take(told, request.instance, now)
        named = {held.task.attempt for held in request.held}
        for number in [number for number in reversed(self._held[request.instance]) if number not in named]:
            self._give_back(number)
        for held in request.held:
            lease = self.kept.leases.get(held.task.attempt)
            if lease is None:
                self._adopt(held.task, request.instance)
            elif lease.instance == request.instance:
                lease.rows, lease.steps, lease.loss = held.rows, held.steps, held.loss

    def _grant(self, request: Request) -> Iterable[Task]:
        for kind, count in request.want.items():
            if kind == "export" and self.kept.revoking:
                continue
            for _ in range(count):
                number = self._next_number()
                task = self.job.take(kind, number)
                if task is None:
                    break
                self._lease(task, request.instance)
                yield task

    @property
    def signal(self) -> tuple[object, ...]:
        """Differs when there may be something new to say to somebody who waits."""
        kinds: tuple[TaskType, ...] = ("train", "predict", *ASIDE)
        stand_ins = tuple(place.instance for place in self.kept.servers)
        revoking = bool(self.kept.revoking)
        rest = (revoking, stand_ins, *map(self.job.waits, kinds))
        return (self._flags(), self.kept.generation, self.servers, *rest)

    def _role_of(self, request: Request) -> Flag:
        """Whether the worker is to be a parameter server from now on; see `edl.master.servers`."""
        who = (request.instance, request.incarnation)
        waited_for = any((place.instance, place.incarnation) == who for place in self.kept.servers)
        return Flag.TAKE_OVER if waited_for and not self.finished else Flag.NONE

    def _flags(self) -> Flag:
        job = self.job
        flags = Flag.FINISHED if self.finished else Flag.NONE
        if any(map(job.waits, ASIDE)):
            flags |= Flag.PENDING
        if job.measuring:
            flags |= Flag.MEASURING
        if job.stopped:
            flags |= Flag.STOPPED
        if self.served and not job.waits("train"):
            flags |= Flag.DRY
        if job.over("train"):
            flags |= Flag.TRAIN_OVER
        if job.over("predict"):
            flags |= Flag.PREDICT_OVER
        return flags

    # What is told -------------------------------------------------------------------------------------------

    def _take(self, told: Told, instance: str, now: float) -> None:
        task = told.report.task
        if told.kind == "cut":
            self._begin_cut(told)
            return
        if told.kind == "cut written":
            self._end_cut(told)
            return
        if told.fatal and told.error:
            self.fail(told.error)
            return
        lease = self.kept.leases.get(task.attempt)
        if lease is None and not self._adopt(task, instance):
            return  # void: somebody else has it, or it is done
        if task.attempt not in self._held[instance]:
            return
        if told.kind == "done":
            self._end(task.attempt)
            self._rows[instance] += told.report.rows
            self._done(told.report, now)
        elif told.kind == "given back":
            self._give_back(task.attempt, told.report if told.report.rows else None)
        elif told.error:
            self._give_back(task.attempt)
            self._count_failure(task, told.error, instance, now)

    def _done(self, report: Report, now: float) -> None:
        kind = report.task.type
        self.kept.failures.pop(_key(report.task), None)
        self.kept.done[kind] = self.kept.done.get(kind, 0) + 1
        self.news += self.job.done(report, now)
        if self.served and self.job.stopped:  # nobody is to push while the model is exported
            for number in [number for number, lease in self.kept.leases.items() if lease.type == "train"]:
                self._give_back(number)

    def _count_failure(self, task: Task, error: Failed, instance: str, now: float) -> None:
        earlier = self.kept.failures.get(_key(task))
        times = earlier.times + 1 if earlier else 1
        self.kept.failures[_key(task)] = Failure(times, error)
        self.note(f"{_named(task)} failed on {instance}: {error.message}")
        if times >= ATTEMPTS:
            message = f"{_named(task)} failed {times} times, the last time: {error.message}"
            self.fail(Failed(error.code, message, error.hint))
        elif self.stateful and task.type == "train":  # its weights have taken a part of the task
            member = self.kept.members[instance]
            self.lost(instance, member.incarnation, now)

    def fail(self, why: Failed) -> None:
        """The job has failed."""
        if not self.finished:
            self.kept.failed = why

    def cancel(self, reason: str) -> None:
        if not self.finished:
            self.kept.cancelled = reason

    # Trainers -----------------------------------------------------------------------------------------------

    def _begin_cut(self, told: Told) -> None:
        """Remember the course of the job at the cut: what was told before it, and the part of its open task."""
        if not self.stateful:
            return
        copy = self.copy()
        part = told.report
        if part.rows and copy.claim(part.task, part.task.attempt):
            copy.give_back(part.task, part)
        self.kept.cutting = [*self.kept.cutting[-1:], Cut(told.folder, copy.kept())]

    def _end_cut(self, told: Told) -> None:
        """From now on the job goes back to this cut."""
        for cut in self.kept.cutting:
            if cut.folder == told.folder:
                self.kept.cut = cut
        self.kept.cutting = [cut for cut in self.kept.cutting if cut.folder != told.folder]

    def go_back(self) -> None:
        """The weights since the last cut are lost, and so is what was done since."""
        cut = self.kept.cut
        self.kept.generation += 1
        self.kept.cutting = []
        self.kept.leases.clear()
        self.kept.revoking.clear()
        self._held.clear()
        self.job = Job(self.plan, _copied(cut.job) if cut else None, merge=self._merge)
        step = self.job.state.step
        self.note(f"training goes on from step {step:,}" if cut else "training begins anew")

    # Parameter servers ----------------------------------------------------------------------------------------

    def revoked(self, numbers: Iterable[int], progress: Iterable[Progress]) -> None:
        """Server 0 takes no gradients of these leases any more; what of them is in the parameters for good."""
        found = {each.task.attempt: each for each in progress}
        for number in sorted(numbers, reverse=True):  # each goes to the head of the queue
            lease = self.kept.revoking.pop(number, None)
            if lease is None:
                continue
            task = _task(number, lease)
            part = found.get(number) or lease.pushed
            if part is not None and part.rows >= part.task.rows:
                self._done(report_of(part), self.kept.seconds)
            else:
                self.job.give_back(task, report_of(part) if part is not None and part.rows else None)

    def copy(self) -> Job:
        """The course of the job at this moment; what is in hands is to do. See `edl.master.cuts`."""
        copy = Job(self.plan, _copied(self.job.kept()), merge=self._merge)
        for number, lease in {**self.kept.leases, **self.kept.revoking}.items():
            if lease.pushed and copy.claim(_task(number, lease), number):
                copy.done(report_of(lease.pushed), self.kept.seconds)
        return copy

    # Leases ---------------------------------------------------------------------------------------------------

    def _adopt(self, task: Task, instance: str) -> bool:
        """A lease of an earlier master that was not written down: it holds if nobody else has the task.

        What was written down may be an earlier lease of the same task to the same instance; the later one counts.
        """
        if self.served or task.attempt >> _COUNTER >= self.kept.epoch or self.finished:
            return False
        for number in [number for number in self._held[instance] if number < task.attempt]:
            lease = self.kept.leases[number]
            if (lease.type, lease.number, lease.id) == (task.type, task.number, task.id):
                self._give_back(number)
        if self.job.claim(task, task.attempt) is None:
            return False
        self._lease(task, instance)
        return True

    def _lease(self, task: Task, instance: str) -> None:
        self.kept.leases[task.attempt] = Lease(task.type, task.number, task.id, task.skip, instance)
        self._held[instance][task.attempt] = None

    def _end(self, number: int) -> Lease:
        lease = self.kept.leases.pop(number)
        del self._held[lease.instance][number]
        return lease

    def _give_back(self, number: int, part: Report | None = None) -> None:
        lease = self._end(number)
        if self.served and lease.type == "train":
            self.kept.revoking[number] = lease
        else:
            self.job.give_back(_task(number, lease), part)

    def _next_number(self) -> int:
        self.kept.counter += 1
        return (self.kept.epoch << _COUNTER) + self.kept.counter

    # What is written down -----------------------------------------------------------------------------------

    def to_keep(self) -> tuple[Kept, dict[str, tuple[int, int]]]:
        """What to write down now; and what to hand to `written` when that has been done."""
        self.told = 0
        kept = msgspec.structs.replace(self.kept, job=self.job.kept(doing=True))
        return kept, {name: (member.incarnation, member.upto) for name, member in self.kept.members.items()}

    def written(self, marks: dict[str, tuple[int, int]]) -> None:
        """What `to_keep` gave survives this master."""
        self._durable = marks


def _task(number: int, lease: Lease) -> Task:
    """As far as the job wants to know it."""
    return Task(lease.id, lease.type, number=lease.number, skip=lease.skip, attempt=number)


def report_of(part: Progress) -> Report:
    """What is in the parameters of a task, as its worker would tell it."""
    return Report(part.task, part.rows, part.steps, part.loss, part.weight)


def _key(task: Task) -> str:
    return f"{task.type} {task.number} {task.id}"


def _named(task: Task) -> str:
    if task.type in ("conclude", "export"):
        return f"the task {task.type}"
    return f"the {task.type} task of the rows [{task.start:,}, {task.end:,})"


def _copied(state: JobState) -> JobState:
    return encoding.decode(encoding.encode(state), JobState)
