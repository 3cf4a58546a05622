"""Positions in the datasets of a script. They are a part of the state that all workers hold alike, with the model.

So a worker that gets the state from another one, or from a checkpoint, goes on with the rows that the state lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from edl.errors import SemanticError
from edl.jobs.script_run import NamedRows


def describe_position(rows: NamedRows, epoch: int, done: int, *, ended: bool = False) -> dict[str, Any]:
    """Return a position for a checkpoint of the script: `done` rows of an epoch, and what makes their order.

    A stream has 0 rows, so only `ended` says that nothing is left of it.
    """
    order = {"rows": rows.rows, "shuffle": rows.shuffle, "seed": rows.seed}
    return {"epoch": epoch, "done": done, "ended": ended or 0 < rows.rows <= done, **order}


def read_position(state: Mapping[str, Any], rows: NamedRows) -> tuple[int, int]:
    """Return epoch and done rows of a position. Raises SemanticError if it is of rows in another order."""
    here = describe_position(rows, 0, 0)
    if not isinstance(state, Mapping) or set(state) != set(here):
        raise SemanticError(
            "load_state_dict got something else than the result of state_dict",
            hint="give the value that state_dict of edl.elastic returned, with its keys " + ", ".join(here),
        )
    for name in ("rows", "shuffle", "seed"):
        if state[name] != here[name]:
            raise SemanticError(
                f"the state is of data with {name} = {state[name]!r}, and here it is {here[name]!r}: rows would be "
                "seen twice or never",
                hint="load it for the same data with the same seed and shuffle; for other data begin a new epoch",
            )
    epoch, done = state["epoch"], state["done"]
    if not (isinstance(epoch, int) and isinstance(done, int) and epoch >= 0 and done >= 0):
        raise SemanticError(f"the state has epoch {epoch!r} and done {done!r}; expected whole numbers")
    return epoch, min(done, rows.rows) if rows.rows else done


class Position(Protocol):
    """Position of one dataset, as plain data that `load` takes again."""

    rows: NamedRows

    def position(self) -> Any: ...

    def load(self, position: Any) -> None: ...


class Cursor:
    """Position in the rows of a dataset that is trained on.

    `epoch` is counted from 0. `row` is a position in its order: the steps of the rows before are taken. `loops`: the
    epoch was given to a loop over epochs, so it is over when that loop comes back, and not with its last row.
    `loop` is the loop of this process. `closed`: the script has left an iteration in the middle of an epoch.
    `loaded`: the script has loaded the position, and the tasks of the master do not know of it yet.
    """

    def __init__(self, name: str, rows: NamedRows, micro_batch: int) -> None:
        self.name = name
        self.rows = rows
        self.micro_batch = micro_batch
        self.epoch = self.row = 0
        self.loops = False
        self.loop: object = None
        self.closed = self.loaded = False

    @property
    def is_over(self) -> bool:
        """True if the present epoch is after the last one."""
        return self.rows.epochs is not None and self.epoch >= self.rows.epochs

    @property
    def is_epoch_over(self) -> bool:
        """True if all rows of the present epoch are trained."""
        return self.row >= self.rows.rows

    @property
    def has_rows_left(self) -> bool:
        """True if rows are left of a dataset that has an end."""
        return self.rows.epochs is not None and self.epoch + self.is_epoch_over < self.rows.epochs

    def advance(self, row: int) -> None:
        self.row = row

    def position(self) -> Any:
        return [self.epoch, self.row, self.loops, self.loaded]

    def load(self, position: Any) -> None:
        # Checkpoints from before `load_state_dict` of the script have three entries.
        self.epoch, self.row, self.loops, self.loaded = (*position, False)[:4]


class Positions:
    """Positions of all datasets by name.

    `trained` is the number of steps that have changed the model. `ended`: all workers have left their loops.
    """

    def __init__(self) -> None:
        self.of: dict[str, Position] = {}
        self.trained = 0
        self.ended = False

    def state_dict(self) -> dict[str, Any]:
        positions = {name: cursor.position() for name, cursor in self.of.items()}
        return {"positions": positions, "trained": self.trained, "ended": self.ended}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.trained, self.ended = state["trained"], state["ended"]
        for name, position in state["positions"].items():
            self.of[name].load(position)
