"""Session of a script with `edl.elastic`: its loop over its datasets, in a worker of `edl run` or alone."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from edl import exit_codes
from edl.errors import JobError, SemanticError, SQLFlowError
from edl.extensions.elastic import connection as places
from edl.extensions.elastic.agreement import agree
from edl.extensions.elastic.connection import JobConnection
from edl.extensions.elastic.cursor import Cursor, Position, Positions
from edl.extensions.elastic.gradients import Gradients
from edl.extensions.elastic.leave_notice import LeaveHook, LeaveNotice, call_hooks
from edl.extensions.elastic.member import Alone, World
from edl.extensions.elastic.state import ScriptState
from edl.extensions.elastic.steps import Steps
from edl.jobs.script_run import NamedRows, Workload
from edl.spec import Training
from edl.tasks.job_state import MOST_STEPS, STEPWISE, Plan
from edl.tasks.local import LocalTasks
from edl.worker.master_client import RefusedError
from edl.worker.strategies.base import VoidError

ChangeHook = Callable[[World | None, World], object]


@dataclass
class Declared:
    """Objects that all workers of a script hold alike, the optimizer's gradients, and the functions to call.

    change_hooks: when the members of the group have changed. leave_hooks: when this worker has left its group.
    """

    objects: tuple[Any, ...] = ()
    gradients: Gradients | None = None
    optimizer: Any = None
    change_hooks: list[ChangeHook] = field(default_factory=list)
    leave_hooks: list[LeaveHook] = field(default_factory=list)


class ElasticSession:
    """Training of a script by this process, on datasets that are added before its loop begins."""

    def __init__(self, declared: Declared) -> None:
        self.positions = Positions()
        self._declared = declared
        self._worker = places.current_worker()
        self._connection: JobConnection | None = None
        self._notice = LeaveNotice()
        self._steps: Steps | None = None  # in a job, from the first group on
        self._world: World | None = None  # of which the hooks know
        if self._worker is not None:
            self._worker.at_end.append(self._end)
        elif int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise SemanticError(
                "edl.elastic was called by a worker of another launcher", hint="start the script with edl run"
            )

    def has(self, name: str) -> bool:
        return name in self.positions.of

    def add(self, name: str, position: Position) -> None:
        """Add a dataset. Raises SemanticError if there is one of this name, or the loop has begun."""
        if self.has(name):
            raise SemanticError(
                f"edl.elastic has got a dataset {name!r} twice",
                hint='give each a name of its own, such as name="pretrain"',
            )
        if self._steps is not None:
            raise SemanticError(
                f"the dataset {name!r} comes after the loop has begun",
                hint="call edl.elastic.sampler, dataset and evaluation before the function of edl.elastic.run",
            )
        self.positions.of[name] = position

    def begin_at(self, cursor: Position, position: Any) -> None:
        """Let a dataset begin at a position. Raises SemanticError if the loop has begun."""
        if self._steps is not None:
            raise SemanticError(
                "load_state_dict of edl.elastic comes after the loop has begun",
                hint="load it before the function of edl.elastic.run; in it, the positions move with the model",
            )
        cursor.load(position)

    @property
    def workload(self) -> Workload:
        return Workload({name: cursor.rows for name, cursor in self.positions.of.items()})

    @property
    def steps(self) -> Steps:
        """Steps of the loop. Raises SemanticError in a job outside of the function of `run`."""
        if self._steps is None and self._worker is None:
            self._steps = self._alone()
        if self._steps is None:
            raise SemanticError(
                "the training loop is outside of the function of edl.elastic.run",
                hint="put it into a function with the decorator @edl.elastic.run, and call that",
            )
        return self._steps

    def _alone(self) -> Steps:
        """Return the steps of a process without a master."""
        rows = self.workload.bounded_dataset
        training = STEPWISE if rows is None else _training(rows)
        plan = Plan("train", rows.rows if rows is not None else MOST_STEPS, training=training, measured=False)
        return Steps(LocalTasks(plan), Alone(), self.positions, bounded=rows is not None)

    @property
    def has_optimizer(self) -> bool:
        return self._declared.gradients is not None

    @property
    def place(self) -> tuple[int, int]:
        """Rank and size of the group."""
        if self._steps is None:
            return place_of_environment()
        return self._steps.strategy.rank, self._steps.strategy.size

    @property
    def seconds_left(self) -> float | None:
        """Seconds until this worker is killed, None if it has not been asked to leave."""
        return self._notice.seconds_left

    def begin(self) -> None:
        """Begin the function of `run`. Raises SemanticError if the training has ended with an earlier one."""
        if self._connection is not None and self._connection.is_over:
            raise SemanticError(
                "the training has ended with the first function of edl.elastic.run",
                hint="call all loops in one function with the decorator",
            )

    def join(self) -> None:
        """Take part in the next group, unless this worker is in one that goes on."""
        with self.leaving():
            if self._steps is None and self._worker is not None:
                agree(self._worker.job, self.workload)
                self._connect()
            if self._declared.gradients is not None:
                self._declared.gradients.discard()
            self.steps.join()
        if self._world is None:  # alone, without a group
            self._on_regroup()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Provide a context for the loop. In it, this worker may be told to leave."""
        with self.leaving():
            yield

    @property
    def has_ended(self) -> bool:
        """True if all workers have left the loop, though the function of this one was not at its end."""
        return self.positions.ended

    def finish(self) -> None:
        """Wait for the end of the training. Raises JobError if rows are left in a job with several workers."""
        if self._connection is None:
            return
        left = [
            name
            for name, cursor in self.positions.of.items()
            if isinstance(cursor, Cursor) and cursor.has_rows_left
        ]
        if left and not self.has_ended:
            raise JobError(
                f"the function of edl.elastic.run has returned before all rows were trained: {', '.join(left)}",
                hint="iterate over sampler.epochs(), and over the DataLoader to its end, in each worker; a loop that "
                "ends earlier has epochs=None",
            )
        self.steps.end()

    @contextlib.contextmanager
    def leaving(self) -> Iterator[None]:
        """Provide a context in which the end of this worker's part exits the process."""
        try:
            yield
        except (VoidError, RefusedError) as end:
            if self._connection is not None and self._connection.is_over:
                print("the job is over: this worker has nothing to do", file=sys.stderr)
                raise SystemExit(exit_codes.OK) from None
            print(f"stopping: {str(end) or 'this worker was asked to leave'}", file=sys.stderr)
            raise SystemExit(exit_codes.PREEMPTED) from None

    # The step -------------------------------------------------------------------------------------------------

    def take(self, step: Callable[[], None]) -> bool:
        """Take a step with the group, or accumulate the gradients of a micro-batch; return True for a step."""
        gradients = self._declared.gradients
        if gradients is None:
            raise JobError("there is no optimizer")
        part = self.steps.next_issued()
        alone = part.last and part.share == 1.0 and not gradients.accumulated
        if not (alone and self.steps.strategy.size == 1):
            gradients.add(part.share)
        if not part.last:
            self.steps.accumulate()
            return False
        with self.leaving():
            self.steps.commit(gradients.sum if gradients.accumulated else _keep_gradients, step)
        gradients.keep()
        return True

    def broadcast(self, value: Any) -> Any:
        """Return the value of rank 0. Raises SemanticError if the tasks are bounded."""
        if self.steps.bounded:
            raise SemanticError(
                "edl.elastic.broadcast: a loop over one dataset with a number of epochs trains all of its rows",
                hint="give the dataset epochs=None if the loop itself ends",
            )
        with self.leaving():
            return self.steps.broadcast(value)

    def _connect(self) -> JobConnection:
        """Connect to the master, and make what the groups need."""
        worker = self._worker
        assert worker is not None  # noqa: S101
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda number, frame: self._notice.set())
        bounded = self.workload.bounded_dataset is not None
        state = ScriptState((*self._declared.objects, self.positions))
        connection = JobConnection(worker, state, self._notice)
        self._connection = connection
        steps = self._steps = Steps(
            connection.source,
            connection.member,
            self.positions,
            bounded=bounded,
            draining=self._notice,
            stepped=connection.on_step,
            leaving=connection.leaving,
            regrouped=self._on_regroup,
        )
        connection.steps = steps
        return connection

    def _on_regroup(self) -> None:
        """Call the hooks if the group has other members; all of them have the same state now.

        A worker that waited for the others at the end of the training may have no further group.
        """
        if self._declared.gradients is not None:
            self._declared.gradients.keep()
        before, world = self._world, self.steps.strategy.world
        if world is None or world == before:
            return
        self._world = world
        for hook in self._declared.change_hooks:
            hook(before, world)

    def _end(self, code: int, error: SQLFlowError | None) -> None:
        """Leave the job at the end of the script. An error of ours would occur in every other worker too."""
        if code != exit_codes.OK and error is None and self._connection is None:
            return
        if self._connection is None and self._worker is not None:
            with contextlib.suppress(JobError):  # it is known already
                agree(self._worker.job, self.workload)
        connection = self._connection or self._connect()
        if code == exit_codes.OK and not connection.is_over and not self._notice.is_set():
            error = JobError(
                "the script has ended in a worker before its loop had trained all rows",
                hint="put the loop into the function of edl.elastic.run",
            )
        if error is not None and not isinstance(error, RefusedError):
            connection.give_up(error)
        connection.close()
        call_hooks(self._declared.leave_hooks, self._notice)


def place_of_environment() -> tuple[int, int]:
    """Return rank and size of the first group of this worker."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def _keep_gradients(group: Any, share: float) -> None:
    """Leave the gradients as they are: this worker has computed all of them."""


def _training(rows: NamedRows) -> Training:
    return Training(epochs=rows.epochs or 1, batch_size=rows.batch_size, shuffle=False)
