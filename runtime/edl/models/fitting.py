"""Record of the feature fitting: statistics of the training rows, and the reason for each column's features.

The compiler writes it beside the pinned rows, and the model's archive stores it. It is for display; no job needs it.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from edl.errors import SpecError

FILE = "fitting.json"  # beside the pinned rows


class Histogram(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of numbers in bins of equal width from `start` on."""

    start: float
    width: float
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not (0 < self.width < math.inf and math.isfinite(self.start) and self.counts):
            raise ValueError("a histogram has bins of a width above 0")


class Bins(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of a sample of numbers below the first edge, between two edges, and from the last edge on.

    A number equal to an edge is above it. The edges are the distinct deciles of the sample.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.edges) + 1 or list(self.edges) != sorted(set(self.edges)):
            raise ValueError("bins have ascending edges, and one more count than edges")


class ColumnSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Statistics of a column of the training rows; None for statistics that were not needed.

    `min`, `max`, `mean` and `std` are of the numbers, with the population deviation. `distinct` counts values other
    than NULL, and `once` the values of one row only; `countless` is true if there are more than `distinct`. `top` holds
    the most frequent values and their counts, `histogram` and `bins` the numbers.
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
    histogram: Histogram | None = None
    bins: Bins | None = None
    once: int | None = None


class Fitting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Result of the fitting pass.

    `columns` maps a column to its summary. `reasons` has one entry for each of `JobSpec.features`, in order.
    `left_out` maps a column to the reason why it is not a feature. `warnings` name problems that make the model's
    metrics less meaningful than they seem, and remedies.
    """

    columns: dict[str, ColumnSummary] = {}
    reasons: tuple[str, ...] = ()
    left_out: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


def write_fitting(folder: Path, fitting: Fitting) -> None:
    (folder / FILE).write_bytes(msgspec.json.encode(fitting))


def read_fitting(folder: Path) -> Fitting | None:
    """Read the stored fitting, or None if there is none, as for a job that was not compiled.

    Raises SpecError if it is damaged.
    """
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Fitting)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{folder / FILE} cannot be read: {error}") from None
