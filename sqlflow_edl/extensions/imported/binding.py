"""Inputs of a file bound to columns of tables, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from edl import spec
from edl.spec.imported import Gives
from edl.spec.job import Field, Parameter
from sqlflow_edl.extensions.imported.options import ImportOptions

NOTHING = spec.Component("none")  # optimizer and loss of a model that was trained elsewhere


@dataclass(frozen=True, slots=True)
class BoundModel:
    """Model of a file: its inputs over columns, their types, the label, and the parameters of the format."""

    inputs: dict[str, tuple[spec.Feature, ...]]
    label: spec.Label
    fields: tuple[Field, ...]
    loss: spec.Component = NOTHING
    optimizer: spec.Component = NOTHING
    params: dict[str, Parameter] = field(default_factory=dict)
    rounds: int = 0
    output: str = ""
    gives: Gives = "number"
    types: tuple[str, ...] = ()
    threshold: float | None = None
    notes: tuple[str, ...] = ()


def check_count(names: Sequence[str], width: int, what: str, options: ImportOptions) -> None:
    """Raise SemanticError unless there is a name for each of `width` columns."""
    if not any(names):
        raise options.error(
            "input_columns",
            f"{what} does not name its {width} columns",
            f"add input_columns = {_example(width)}, in the order of the training",
        )
    if len(names) != width or not all(names):
        listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        raise options.error(
            "input_columns",
            f"{what} takes {width} columns, and input_columns names {len(names)}: {listed}",
            "name each column once, in the order of the training",
        )


def _example(width: int) -> str:
    names = ", ".join(f"'{name}'" for name in "abcdefgh"[: min(width, 3)])
    return f"[{names}{', …' if width > 3 else ''}]"
