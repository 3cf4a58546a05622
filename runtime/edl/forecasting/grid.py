"""Series on a regular grid of times: one flat array of all series, with a place for each step of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.errors import SemanticError
from edl.features.arrays import numbers, plain_array
from edl.forecasting.steps import Ints, are_open, find_open, infer, number_steps
from edl.forecasting.steps import ticks as ticks_of
from edl.spec.forecast import Step

Floats = npt.NDArray[np.float64]
MOST_PLACES = 50  # of each row: more are gaps that no series has
FEWEST_PLACES = 10_000  # that are always allowed
_FEWEST_STEPS = 3  # between rows, before they tell that all are longer


@dataclass(frozen=True)
class Grid:
    """Series on their grid.

    values: label of each place (places,), NaN if it is unknown. rows: row of the table at each place, -1 without one.
    first, known, last: of each series, its first place, the place after its last known label, and the place after its
    last row. of: series of each place.
    """

    step: Step
    values: Floats
    rows: Ints
    first: Ints
    known: Ints
    last: Ints
    of: Ints

    @property
    def missing(self) -> int:
        """Number of places without a known label before the last known one."""
        inside = np.arange(len(self.values)) < self.known[self.of]
        return int((inside & np.isnan(self.values)).sum())

    def find_known(self, places: Ints) -> Ints:
        """Return the last place with a known label up to each place: -1, or of another series, if there is none."""
        has_label = ~np.isnan(self.values)
        last: Ints = np.maximum.accumulate(np.where(has_label, np.arange(len(has_label)), -1))
        return last[places]


def grid(rows: pa.Table, label: str, time: str, series: Sequence[str], step: Step | None = None) -> Grid:
    """Return the series of the rows, in any order. `step` is inferred unless it is given.

    Raises SemanticError for two rows at one time, and for times between two steps.
    """
    if not rows.num_rows:
        raise SemanticError("the query yields no rows")
    codes, times = _codes(rows, series), _array(rows, time)
    sorting = Step(1, "second") if step is None or step.unit == "month" else step
    order = np.lexsort((ticks_of(sorting, times, time), codes))
    codes, sorted_times = codes[order], times.take(pa.array(order))
    same = codes[1:] == codes[:-1]
    _check_duplicates(ticks_of(sorting, sorted_times, time), same, rows, order, time, series)
    is_learned = step is not None
    step = step or infer(sorted_times, same, time)
    ticks = ticks_of(step, sorted_times, time)
    between = np.diff(ticks)
    if not is_learned:
        step = find_open(step, ticks, same)
    wrong = np.flatnonzero(same & ((between % step.count != 0) | (between == 0)))
    if len(wrong):
        here, following = (_text(sorted_times[int(place)]) for place in (wrong[0], wrong[0] + 1))
        of_series = _series_prefix(rows, series, int(order[wrong[0]]))
        raise SemanticError(
            f"{time} has irregular steps: {of_series}{following} follows {here}, and the usual step is {step.words}",
            hint="round the times in the query, and aggregate the rows of each step: GROUP BY …",
        )
    if is_learned:
        _check_step(step, ticks, same, sorted_times, time)
    numbers = number_steps(step, ticks)
    starts = np.flatnonzero(np.r_[True, ~same])
    lengths = np.add.reduceat(np.r_[np.diff(numbers), 0] * np.r_[same, False], starts) + 1
    total = int(lengths.sum())
    if total > max(FEWEST_PLACES, MOST_PLACES * len(order)):
        raise SemanticError(
            f"{time} has {len(order):,} rows for {total:,} steps of {step.words}, too few of them to learn from",
            hint="aggregate the rows to longer steps: GROUP BY …",
        )
    first = np.cumsum(lengths) - lengths
    of_row = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(order)]))
    places = first[of_row] + numbers - numbers[starts][of_row]
    values, positions = np.full(total, np.nan), np.full(total, -1, dtype=np.int64)
    positions[places] = order
    values[places] = _labels(rows, label)[order]
    of = np.repeat(np.arange(len(starts)), lengths)
    ends = np.where(np.isnan(values), 0, np.arange(1, total + 1))
    ends_known = np.maximum(np.maximum.reduceat(ends, first), first)
    return Grid(step, values, positions, first, ends_known, first + lengths, of)


def _check_step(
    step: Step, ticks: Ints, same: npt.NDArray[np.bool_], sorted_times: pa.Array, time: str
) -> None:
    """Raise SemanticError for rows at other times than the model learned: at closed ones, or in longer steps."""
    closed = np.flatnonzero(~are_open(step, ticks))
    if len(closed):
        raise SemanticError(
            f"{time} = {_text(sorted_times[int(closed[0])])} is no time of the model's steps of {step.words}: no "
            f"training row was at such a time, and {len(closed):,} of {len(ticks):,} rows are",
            hint="select rows at the model's times alone, or train a model of all",
        )
    between = np.diff(number_steps(step, ticks))[same]
    if len(between) >= _FEWEST_STEPS and (longer := int(np.gcd.reduce(between))) > 1:
        raise SemanticError(
            f"{time} has steps of {Step(longer * step.count, step.unit).words}, and the model learned steps of "
            f"{step.words}",
            hint="select a row for each step, as in training, or train a model of the longer steps",
        )


def name_of(rows: pa.Table, series: Sequence[str], row: int) -> str:
    """Return the series of a row for people: `store = 3, item = 5`, or `the series` if there is one."""
    return ", ".join(f"{column} = {rows.column(column)[row].as_py()}" for column in series) or "the series"


def _series_prefix(rows: pa.Table, series: Sequence[str], row: int) -> str:
    return f"for {name_of(rows, series, row)}, " if series else ""


def _codes(rows: pa.Table, series: Sequence[str]) -> Ints:
    """Return a number of the series of each row, in the order of the values, independent of the rows' order."""
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for column in series:
        encoded = _array(rows, column).dictionary_encode(null_encoding="encode")
        ranks = np.argsort(pc.sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False))
        codes_of_column = ranks[encoded.indices.to_numpy(zero_copy_only=False)]
        _, codes = np.unique(codes * len(encoded.dictionary) + codes_of_column, return_inverse=True)
    return codes


def _array(rows: pa.Table, column: str) -> pa.Array:
    return plain_array(pa.concat_arrays(rows.column(column).chunks))


def _labels(rows: pa.Table, label: str) -> Floats:
    values = numbers(_array(rows, label), label).astype(np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _check_duplicates(
    ticks: Ints, same: npt.NDArray[np.bool_], rows: pa.Table, order: Ints, time: str, series: Sequence[str]
) -> None:
    twice = np.flatnonzero(same & (np.diff(ticks) == 0))
    if not len(twice):
        return
    row = int(order[twice[0]])
    at = _text(rows.column(time)[row])
    raise SemanticError(
        f"{_series_prefix(rows, series, row)}{time} = {at} has several rows: {len(twice):,} too many in all",
        hint="aggregate them, GROUP BY …, or name the columns that tell the series apart: "
        f"forecast.series = [{', '.join([*series, 'other_column'])}]",
    )


def _text(value: Any) -> str:
    return str(value.as_py()).removesuffix(" 00:00:00")
