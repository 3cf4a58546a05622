"""Functions of `edl.elastic`, which has an example of them: elastic training loops of scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from edl.errors import SemanticError
from edl.extensions.elastic.cursor import Cursor
from edl.extensions.elastic.evaluation import Evaluation
from edl.extensions.elastic.member import World
from edl.extensions.elastic.rows import Dataset, Sampler, check_number, count_of, describe_rows
from edl.extensions.elastic.script import ElasticScript
from edl.extensions.elastic.session import ElasticSession
from edl.extensions.elastic.steps import Regrouped
from edl.extensions.elastic.stream import LONGEST, Source, Stream, StreamCursor
from edl.jobs.script_run import NamedRows

__all__ = [
    "World",
    "broadcast",
    "checkpoint",
    "dataset",
    "evaluation",
    "leaving",
    "on_change",
    "on_leave",
    "rank",
    "run",
    "sampler",
    "step",
    "stream",
    "world_size",
]

_script = ElasticScript()  # of this process
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Plain = TypeVar("Plain", bound=Any)
Left = TypeVar("Left", bound=Callable[[float], object])
Changed = TypeVar("Changed", bound=Callable[[World | None, World], object])


def sampler(
    rows: int,
    *,
    batch_size: int,
    epochs: int | None = 1,
    seed: int = 0,
    shuffle: bool = True,
    micro_batch: int = 0,
    name: str = "train",
) -> Sampler:
    """Return a batch sampler of `rows` rows for a DataLoader: `DataLoader(data, batch_sampler=sampler)`.

    A step has `batch_size` rows, however many workers share them; each gets the indices of its part. With
    `micro_batch`, a part is given in pieces of at most so many rows, and their gradients are accumulated. `epochs` is
    None if the loop itself ends; each epoch has another order. Several datasets have a `name` each. Raises
    SemanticError for an invalid number.
    """
    return Sampler(*_add_rows(name, describe_rows(rows, batch_size, epochs, seed, shuffle), micro_batch))


def dataset(
    rows: Any,
    *,
    batch_size: int,
    epochs: int | None = 1,
    seed: int = 0,
    shuffle: bool = True,
    micro_batch: int = 0,
    name: str = "train",
) -> Dataset:
    """Return an iterable of this worker's part of each step: of a number of rows, a `pyarrow.Table`, or a reader.

    A part is an array of row numbers, int64, or a table. For the other arguments see `sampler`. Without
    `edl.elastic.checkpoint`, a part counts as done when the next one is requested.
    """
    return Dataset(
        *_add_rows(name, describe_rows(rows, batch_size, epochs, seed, shuffle), micro_batch), rows
    )


def evaluation(rows: Any, *, batch_size: int, name: str = "evaluate") -> Evaluation:
    """Return rows that all workers evaluate together: a number of rows, a `pyarrow.Table`, or a reader.

    `evaluation.sums(measure)` calls `measure` on this worker's share, at most `batch_size` rows at once, and returns
    the sums over all rows in each worker.
    """
    shared = NamedRows(
        check_number("rows", count_of(rows), 1), check_number("batch_size", batch_size, 1), trained=False
    )
    session = _script.session_for(name)
    handle = Evaluation(session, shared, rows)
    session.add(name, handle)
    return handle


def stream(
    source: Source,
    *,
    batch_size: int,
    start: Mapping[str | int, int] | None = None,
    wait_secs: float = 1.0,
    micro_batch: int = 0,
    name: str = "train",
) -> Stream:
    """Return an iterable of this worker's part of each step of a source without an end.

    `edl.extensions.elastic.stream.Source` has the methods of the source. A part is a list of records, or a table. It
    begins at the offsets of `start` by partition, 0 where there is none. A step has `batch_size` records; if they are
    not there after `wait_secs`, it has fewer. The other workers wait meanwhile, so these are at most 30.
    """
    if isinstance(wait_secs, bool) or not isinstance(wait_secs, int | float) or not 0 <= wait_secs <= LONGEST:
        raise SemanticError(f"wait_secs is {wait_secs!r}; expected seconds, from 0 to {LONGEST:g}")
    shared = NamedRows(0, check_number("batch_size", batch_size, 1), None, shuffle=False)
    cursor = StreamCursor(name, shared, check_number("micro_batch", micro_batch, 0), start or {})
    session = _script.session_for(name)
    session.add(name, cursor)
    return Stream(session, cursor, source, wait_secs)


def _add_rows(name: str, rows: NamedRows, micro_batch: int) -> tuple[ElasticSession, Cursor]:
    cursor = Cursor(name, rows, check_number("micro_batch", micro_batch, 0))
    session = _script.session_for(name)
    session.add(name, cursor)
    return session, cursor


def checkpoint(model: Any, optimizer: Any, *others: Any) -> None:
    """Declare what all workers hold alike: a model of PyTorch or Keras, its optimizer, and objects with a `state_dict`.

    From now on `optimizer.step()`, or `apply` of Keras, sums the gradients of all workers first. Workers that join
    receive the state from another one; one of the workers also writes it to a checkpoint of the job, for the loss of
    all. Learning-rate schedulers of PyTorch are among `others`. Call it once, before the function of `run`.
    """
    _script.declare(model, optimizer, others)


def run(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate the function with the training loop: it is called again when the group of workers has changed.

    It then continues where the group is, with the state of `checkpoint`. Its local variables begin anew.
    """

    @wraps(function)
    def wrapper(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        session = _script.session("the function of edl.elastic.run")
        session.begin()
        result = cast(Result, None)  # if the other workers have ended the loop meanwhile
        with session.running():
            while True:
                session.join()
                try:
                    if not session.has_ended:
                        result = function(*arguments, **named)
                    session.finish()
                except Regrouped:
                    continue
                return result

    return wrapper


def on_change(function: Changed) -> Changed:
    """Decorate a function of the old and the new `World` to be called when the members of the group have changed.

    It is called in each worker that enters the group, when all have the same state and before the loop goes on: after
    the loss of a worker, when one has joined, and when one was replaced. It is also called for the first group of a
    worker; the old world is None then. Other members wait for it at the next step. Its exceptions count as exceptions
    of the script.
    """
    _script.declared.change_hooks.append(function)
    return function


def leaving() -> float | None:
    """Return the seconds left until this worker is killed if it was asked to leave (SIGTERM), else None.

    It takes no further step: when its loop asks for rows, it leaves the group, after a checkpoint if no other worker
    holds the state. Code that takes long between two steps can end earlier for it, in any thread. Another worker has
    another value, so a loop that ends by it needs `broadcast`. Outside of a job, and before the function of `run`, it
    is None: SIGTERM is for the script to handle there.
    """
    return _script.session("edl.elastic.leaving").seconds_left


def on_leave(function: Left) -> Left:
    """Decorate a function that is to be called with the seconds left when this worker was asked to leave.

    It is called when the worker has left its group, so the others do not wait for it and the checkpoint, if this worker
    had to write one, is complete. Its exceptions are printed.
    """
    _script.declared.leave_hooks.append(function)
    return function


def broadcast(value: Plain) -> Plain:
    """Return the value of rank 0 in all workers: a number, a text, or a list of such.

    Use it where a decision depends on what one worker alone knows, such as the time: all workers then decide alike.
    Raises SemanticError for a single dataset with a number of epochs: its loop has no decision to make.
    """
    received: Plain = _script.session("edl.elastic.broadcast").broadcast(value)
    return received


def step() -> int:
    """Return the number of optimizer steps that have been taken, by all workers together."""
    return _script.session("edl.elastic.step").positions.trained


def rank() -> int:
    """Return the number of this worker in its group, from 0; it may change when the group does."""
    return _script.place[0]


def world_size() -> int:
    """Return the number of workers in the group."""
    return _script.place[1]
