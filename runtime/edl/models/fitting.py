"""How a model's features were found: statistics of the training rows, and why each column became what it is.

The compiler writes it beside the pinned rows, and the archive of the model keeps it. No job needs it; people do.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from edl.errors import SpecError

FILE = "fitting.json"  # beside the pinned rows


class ColumnSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the fitting pass learnt of a column of the training rows; None is what it had no need to know.

    min, max, mean, std: of the numbers, with the deviation of the population. distinct: values other than NULL;
    `countless` says that there are more than that. top: the most frequent values, and how often each occurs.
    """

    rows: int
    nulls: int
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    distinct: int | None = None
    countless: bool = False
    top: tuple[tuple[str | bool | int, int], ...] = ()


class Fitting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """columns: column -> its summary. reasons: one for each of `JobSpec.features`, in their order. left_out: column ->
    why it is no feature. warnings: what makes the figures of the model mean less than they seem, and what to do."""

    columns: dict[str, ColumnSummary] = {}
    reasons: tuple[str, ...] = ()
    left_out: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


def write_fitting(folder: Path, fitting: Fitting) -> None:
    (folder / FILE).write_bytes(msgspec.json.encode(fitting))


def read_fitting(folder: Path) -> Fitting | None:
    """What was written there; None when nothing was, as for a job that no compiler made. SpecError: damaged."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Fitting)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise SpecError(f"{folder / FILE} cannot be read: {error}") from None
