"""Tasks that workers hold in advance, and workers that have none: the master asks the ones for the others.

A worker names the tasks that it has not begun with every request. Once none of their epoch is left in the queue, a
worker without a task gets the later half of the longest queue of another one: the master asks for them, and that worker
returns those that it has not begun by then. So an epoch ends when its last task is done, not when the slowest worker
has done all that it holds. For the same reason tasks of later epochs, which workers hold in advance too, are begun only
when no earlier one waits, and at most one epoch before them is not concluded; or when no master answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from edl.master.state import Lease
from edl.tasks.job_state import Job
from edl.tasks.protocol import Flag, Request
from edl.tasks.task import Task, TaskType

MOST = 2**31  # tasks that may be assigned at once if they are not shared
ASK_SECS = 1.0  # without an answer, after which other workers are asked


class Sharing:
    """Tasks of the type `kind` that are assigned and not begun, and the workers that wait for one.

    None shares nothing. `leases` are all leases of the job, by number. `job` returns its state machine.
    """

    def __init__(self, kind: TaskType | None, leases: Mapping[int, Lease], job: Callable[[], Job]) -> None:
        self.kind = kind
        self._leases = leases
        self._job = job
        self._waiting: dict[str, list[int]] = {}  # leases of the tasks by owner, in the order of their work
        self._first: dict[str, int] = {}  # epoch of the first one
        self._owners: Counter[int] = Counter()  # owners by that epoch
        self._idle: dict[str, None] = {}  # owners without tasks
        self._asked: dict[str, tuple[frozenset[int], float]] = {}  # leases, and when
        self._returned = 0  # tasks in the queue, for those without one
        self._version = 0

    # What workers say -----------------------------------------------------------------------------------------

    def on_request(self, request: Request) -> None:
        """Record what a worker has not begun, and if it waits for a task."""
        waiting = (task.attempt for run in request.waiting if run.type == self.kind for task in run.tasks)
        self._set_waiting(request.instance, [number for number in waiting if number in self._leases])
        if self.kind in request.idle:
            self._idle.setdefault(request.instance)
        else:
            self._idle.pop(request.instance, None)

    def take_asked(self, owner: str, named: Collection[int]) -> list[int]:
        """Return the leases that an owner was asked for and does not name any more: it has not begun them."""
        asked, _ = self._asked.pop(owner, ((), 0.0))
        returned = [number for number in asked if number in self._leases and number not in named]
        self._version += bool(returned)  # others may have them
        self._returned += len(returned)
        return returned

    def on_grant(self, owner: str, tasks: Iterable[Task]) -> None:
        """Record that an owner gets tasks. One that waits for a task begins the first."""
        if numbers := [task.attempt for task in tasks if task.type == self.kind]:
            self._returned = max(0, self._returned - len(numbers))
            numbers = numbers[1:] if owner in self._idle else numbers
            self._set_waiting(owner, [*self._waiting.get(owner, ()), *numbers])
            self._idle.pop(owner, None)

    def forget(self, owner: str) -> None:
        """Forget a lost owner."""
        self._asked.pop(owner, None)
        self._idle.pop(owner, None)
        self._set_waiting(owner, [])

    # What they are told ---------------------------------------------------------------------------------------

    @property
    def signal(self) -> tuple[object, ...]:
        """Value that changes when there may be news for a waiting worker."""
        return self._version, self.open_epoch, tuple(self._list_queues())

    @property
    def open_epoch(self) -> int:
        """Last epoch of which tasks may be begun; 0 if there are no epochs.

        It follows the first one that is not concluded. If several workers train, it is the first one with tasks that
        are not begun.
        """
        if self.kind != "train":
            return 0
        unconcluded = self._job().unconcluded_epoch
        epochs = [unconcluded + 1] if unconcluded else []
        if len(self._waiting.keys() | self._idle.keys()) > 1:
            epochs += [*self._list_queues(), *self._owners]
        return min(epochs, default=0)

    @property
    def has_idle(self) -> bool:
        """True if a worker waits for a task."""
        return bool(self._idle)

    def limit(self, kind: TaskType, owner: str, workers: int) -> tuple[int, int]:
        """Return how many tasks an owner may get at once, its share of the queue, and the last epoch of these; 0: any.

        Workers that have no task come first, and get what others have returned for them.
        """
        if kind != self.kind:
            return MOST, 0
        if self._idle and owner not in self._idle:
            return 0, 0
        share = max(1, -(-self._job().count_queue(kind) // max(1, workers)))
        if self._idle:
            share = max(share, -(-self._returned // len(self._idle)))
        return share, self.open_epoch if self._idle else 0

    def list_asked(self, owner: str) -> tuple[int, ...]:
        """Return the leases of tasks that an owner is to return."""
        return tuple(sorted(self._asked[owner][0])) if owner in self._asked else ()

    def flags_for(self, owner: str) -> Flag:
        """Return SOUGHT if other workers may need what an owner has not begun: nothing of its epoch is in the queue."""
        alone = len(self._waiting.keys() | self._idle.keys()) < 2
        sought = owner in self._first and not alone and self._first[owner] not in self._list_queues()
        return Flag.SOUGHT if sought else Flag.NONE

    def balance(self, now: float) -> None:
        """Ask the owners of the longest queues for tasks, as many owners as others wait."""
        missing = len(self._idle) - sum(now - at < ASK_SECS for _, at in self._asked.values())
        epoch = self.open_epoch
        if missing <= 0 or any(number <= epoch or not epoch for number in self._list_queues()):
            return
        owners = [owner for owner in self._waiting if owner not in self._asked]
        queues = {owner: self._list_of_epoch(owner, epoch) for owner in owners}
        longest = sorted(queues, key=lambda owner: len(queues[owner]), reverse=True)
        for owner in longest[:missing]:
            if queue := queues[owner]:
                self._asked[owner] = frozenset(queue[len(queue) // 2 :]), now
                self._version += 1

    def _list_queues(self) -> list[int]:
        """Return the numbers of the epochs, or rounds, of which tasks are in the queue."""
        pools = self._job().pools
        return [pool.state.number for pool in pools if pool.state.type == self.kind and pool.todo]

    def _list_of_epoch(self, owner: str, epoch: int) -> list[int]:
        """Return the leases of an owner's tasks of an epoch; 0: all."""
        leases = self._leases
        numbers = [number for number in self._waiting[owner] if number in leases]
        return [number for number in numbers if not epoch or leases[number].number == epoch]

    def _set_waiting(self, owner: str, numbers: list[int]) -> None:
        if (epoch := self._first.pop(owner, None)) is not None:
            self._owners[epoch] -= 1
            if not self._owners[epoch]:
                del self._owners[epoch]
        self._waiting.pop(owner, None)
        if numbers:
            self._waiting[owner] = numbers
            self._first[owner] = self._leases[numbers[0]].number
            self._owners[self._first[owner]] += 1
