"""Explanation of single predictions: the contribution of each column to the score of a row.

The value of a column is its Shapley value (Shapley 1953, "A value for n-person games"; Štrumbelj and Kononenko 2014,
"Explaining prediction models and individual predictions with feature contributions"), estimated by random walks. A walk
begins at a sampled background row and replaces its columns by the columns of the row to explain, one after another in a
random order. The change of the score at a replacement is the contribution of that column. Each order is walked
backwards too, which makes the estimate more exact than another random order would (Mitchell et al. 2022, "Sampling
permutations for Shapley value estimation").

Background rows are those that the model keeps of its training, or rows of the query if it keeps none.

Each row is explained by the same walks, drawn from the job's seed. So one walk of many rows is a few arrays, any
worker gives the same values, and the values of a row add up to its score minus the mean score of the sampled rows. For
the importance for a whole model, the walks of adjacent rows begin at other background rows, so that all of them count.

The score is the predicted number in its own unit, the probability of the second of two classes, or, with more classes,
the probability of the class that is predicted for the row.

Trees are explained by TreeSHAP (Lundberg et al. 2020, "From local explanations to global understanding with explainable
AI for trees"): exact Shapley values, computed by the library from the trees themselves. The explained score is the
margin, which trees add up: the predicted number, its logarithm for losses of counts and amounts, the logit of the
second of two classes, or, with more classes, the margin of the class that is predicted for the row. The values of a row
and the base add up to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.arrays import Array
from edl.data.names import fit_name, unique_names
from edl.data.readers import BatchReader
from edl.errors import JobError
from edl.evaluation.prediction import Results, probabilities, results
from edl.evaluation.scoring import Scorer
from edl.frameworks.adapter import ExplainingAdapter
from edl.input.blocks import Block, Blocks
from edl.jobs.outcome import JobCancelledError
from edl.models.background import over_columns
from edl.program import Program
from edl.spec import Explanation, JobSpec, Output, label_offset, matrix_columns
from edl.spec.forecast import HOLIDAY, PREFIX, Forecast
from edl.tasks.ranges import LEAST_ROWS, explained_rows, generator

Floats = npt.NDArray[np.float64]

_STREAM = 0x5A9  # random stream of the walks


@dataclass(frozen=True)
class Walks:
    """Walks from sampled rows over all columns, in both directions.

    `rows` are the start rows. `orders` has the column positions in order of replacement, (walks,
    columns). `of_query`: the start rows are among the rows that are explained. `rotate`: there are more start rows than
    walks, and each explained row of a block has the next ones.
    """

    rows: pa.RecordBatch
    orders: npt.NDArray[np.int64]
    of_query: bool = True
    rotate: bool = False


def draw(spec: JobSpec, blocks: Blocks, background: pa.RecordBatch | None = None, samples: int = 0) -> Walks:
    """Return the walks of a job, a function of its seed and its number of rows (at least 1).

    background: rows that the model keeps, under the names that its columns had in the training. They are not used if
    they do not fit the columns of the query, nor by an edited program, which may read columns that no model keeps.
    samples: number of walks, by default the job's.
    """
    samples = samples or (spec.explanation or Explanation()).samples
    kept = None
    if background is not None and not spec.edited:
        kept = over_columns(background, spec.columns, blocks.reader.schema)
    random = generator(spec.training.seed, _STREAM)
    rows = blocks.reader.rows if kept is None else kept.num_rows
    again = rows < samples  # sample with replacement, each row about equally often
    positions = (
        np.resize(random.permutation(rows), samples) if again else random.choice(rows, samples, replace=False)
    )
    columns = np.tile(np.arange(len(spec.columns)), (samples, 1))
    orders = random.permuted(columns, axis=1)
    if kept is None:
        return Walks(_rows_at(blocks, np.sort(positions)), orders)
    if (spec.explanation or Explanation()).level == "model":
        return Walks(kept.take(pa.array(random.permutation(rows))), orders, of_query=False, rotate=True)
    return Walks(kept.take(pa.array(np.sort(positions))), orders, of_query=False)


def _rows_at(blocks: Blocks, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Read the rows at ascending positions; adjacent rows are read together."""
    parts = []
    for some in np.split(positions, 1 + np.flatnonzero(np.diff(positions // LEAST_ROWS))):
        batch = blocks.read(int(some[0]), int(some[-1]) + 1, "predict").batch
        if batch is None:
            raise RuntimeError("rows to predict come with their batch")
        parts.append(batch.take(pa.array(some - some[0])))
    return pa.concat_batches(parts)


@dataclass(frozen=True)
class Explainer(Scorer):
    """Scorer that explains rows.

    `predict` returns the model's scores, the base score and the value of each column: float64 (rows, classes + 1 +
    columns). `evaluate` returns the values alone, and a loss of 0. Both raise JobCancelledError if `cancelled` is set,
    because the walks of a single row can take minutes.
    """

    blocks: Blocks
    walks: Walks
    cancelled: threading.Event

    def evaluate(self, block: Block) -> tuple[Array, float]:
        return self.predict(block)[:, -len(self._columns) :], 0.0

    def predict(self, block: Block) -> Array:
        if block.batch is None:
            raise RuntimeError("what is explained was read to be predicted")
        scores = self._scores_of(block)
        chosen = self._explained_scores(scores)
        row_scores = pick_scores(scores, chosen)
        values = self._values(self._like_starts(block.batch), row_scores, chosen)
        return np.column_stack([scores, self._without[chosen], values])

    @property
    def block_rows(self) -> int:
        return explained_rows(self.program.spec)

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        return self.program.spec.columns

    @cached_property
    def _inside(self) -> Blocks:
        """Return a context for a program that keeps no input columns: they would be copied at every step of a walk."""
        spec = msgspec.structs.replace(self.program.spec, output=Output())
        return replace(self.blocks, program=replace(self.program, spec=spec))

    @cached_property
    def _starts(self) -> Floats:
        """Scores of the start rows, (walks, classes)."""
        return self._scores_of(self._block(self.walks.rows))

    @cached_property
    def _without(self) -> Floats:
        """Mean score of the sampled rows for each class."""
        mean: Floats = self._starts.mean(axis=0)
        return mean

    def _like_starts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with columns of the types of the start rows: whole numbers become those with a fraction."""
        starts = self.walks.rows.schema
        if all(starts.field(name).type == batch.schema.field(name).type for name in self._columns):
            return batch
        columns = {
            name: values.cast(starts.field(name).type, safe=False) if name in self._columns else values
            for name, values in zip(batch.schema.names, batch.columns, strict=True)
        }
        return pa.RecordBatch.from_pydict(columns)

    def mean_sizes(self, batch: pa.RecordBatch, until: float) -> Floats:
        """Return the mean absolute value of each column over some rows, (columns,).

        It is computed by all walks, or by those that begin before `until`, as of `time.monotonic`, and at least one.
        """
        scores = self._scores_of(self._block(batch))
        chosen = self._explained_scores(scores)
        total, walked = np.zeros((len(scores), len(self._columns))), 0
        for walk in self._walk(batch, pick_scores(scores, chosen), chosen):
            total, walked = total + walk, walked + 1
            if time.monotonic() >= until:
                break
        sizes: Floats = np.abs(total / max(1, walked)).mean(axis=0)
        return sizes

    def _values(self, batch: pa.RecordBatch, row_scores: Floats, chosen: npt.NDArray[np.intp]) -> Floats:
        """Return the column values of some rows, (rows, columns).

        `row_scores` has the rows' scores of the explained class.
        """
        total = np.zeros((len(row_scores), len(self._columns)))
        # Every walk ends where it begins; the values would be rounding errors.
        if self.walks.of_query and self.blocks.reader.rows == 1:
            return total
        for walk in self._walk(batch, row_scores, chosen):
            total += walk
        return total / len(self.walks.orders)

    def _walk(
        self, batch: pa.RecordBatch, row_scores: Floats, chosen: npt.NDArray[np.intp]
    ) -> Iterator[Floats]:
        """Yield the contributions of each walk, the mean of both directions, (rows, columns)."""
        for number, order_forth in enumerate(self.walks.orders):
            places = np.array([number])
            if self.walks.rotate:
                places = (number + np.arange(len(row_scores))) % self.walks.rows.num_rows
            starts = self.walks.rows.take(pa.array(places))
            first = self._starts[places, chosen]
            differ = np.stack([_differ(batch.column(name), starts.column(name)) for name in self._columns])
            changes = np.zeros((len(row_scores), len(self._columns)))
            for order in (order_forth, order_forth[::-1]):
                if self.cancelled.is_set():
                    raise JobCancelledError
                passed = self._score_walk(batch, starts, first, order, differ, chosen)
                changes[:, order] += np.diff(np.vstack([passed, row_scores]), axis=0).T
            yield changes / 2

    def _score_walk(
        self,
        batch: pa.RecordBatch,
        start: pa.RecordBatch,
        first: Floats,
        order: npt.NDArray[np.int64],
        differ: npt.NDArray[np.bool_],
        chosen: npt.NDArray[np.intp],
    ) -> Floats:
        """Return the scores of a walk but for its end, (columns, rows), computed as one batch.

        first: scores at the start. differ: where rows differ from the start, (columns, rows). A replacement by an equal
        value keeps the score, which spares most of the work where most values are 0, or categories are few.
        """
        is_new = np.vstack([np.zeros(len(first), dtype=bool), differ[order[:-1]]])
        is_new[1:2] |= self.program.edited  # such a program may read columns that no walk replaces
        stations, rows = np.nonzero(is_new)
        if not len(rows):
            return np.tile(first, (len(order), 1))
        late = {self._columns[position]: number for number, position in enumerate(order.tolist(), 1)}
        mixed = {
            name: _mix_column(batch.column(name), start.column(name), rows, stations < late.get(name, 0))
            for name in (batch.schema.names if self.program.edited else self._columns)
        }
        scores = self._scores_of(self._block(pa.RecordBatch.from_pydict(mixed)))
        scores_passed = np.concatenate([first, pick_scores(scores, chosen[rows])])
        source = np.zeros(is_new.shape, dtype=np.intp)  # the positions in `found` of new scores
        source[0] = np.arange(len(first))
        source[is_new] = np.arange(len(first), len(scores_passed))
        return scores_passed[np.maximum.accumulate(source, axis=0)]

    def _block(self, batch: pa.RecordBatch) -> Block:
        return replace(self._inside, reader=BatchReader(batch)).read(0, batch.num_rows, "predict")

    def _scores_of(self, block: Block) -> Floats:
        """Return the scores, (rows, classes), (rows, 1) for a number, or (rows, 1 + quantiles) of a forecast."""
        return self._checked_scores(super().predict(block))

    def _scores_of_outputs(self, outputs: Array) -> Floats:
        """Return the scores of the model's outputs, but for the bounds of a forecast."""
        return self._checked_scores(self._scores([outputs]))

    def _checked_scores(self, scores: Array) -> Floats:
        label = self.program.spec.label
        if label.has_classes:
            return probabilities(scores, label).astype(np.float64)
        if label.is_forecast:
            return scores.astype(np.float64)
        if scores.size != len(scores):
            raise JobError(
                f"the program's scores have the shape {scores.shape}",
                hint="a model of one number, or of classes, can be explained",
            )
        return scores.reshape(-1, 1).astype(np.float64)

    def _explained_scores(self, scores: Floats) -> npt.NDArray[np.intp]:
        """Return the position of the explained score of each row; of a forecast the first, before its quantiles."""
        if self.program.spec.label.is_forecast:
            return np.zeros(len(scores), dtype=np.intp)
        last = np.full(len(scores), scores.shape[1] - 1)
        return last if scores.shape[1] <= 2 else np.argmax(scores, axis=1, out=last)


def _differ(cells: pa.Array, start: pa.Array) -> npt.NDArray[np.bool_]:
    """Return True for the values that may differ from the start row's. There is one start row, or one for each row.

    Nested values always may.
    """
    if pa.types.is_nested(cells.type):
        return np.ones(len(cells), dtype=bool)
    if len(start) == 1:
        unequal = pc.not_equal(cells, start[0]) if start[0].is_valid else cells.is_valid()
    else:
        unequal = pc.if_else(pc.and_(cells.is_null(), start.is_null()), False, pc.not_equal(cells, start))
    return np.asarray(pc.fill_null(unequal, True).to_numpy(zero_copy_only=False))


def _mix_column(
    cells: pa.Array, start: pa.Array, rows: npt.NDArray[np.intp], is_start: npt.NDArray[np.bool_]
) -> pa.Array:
    """Return one column at the new stations of a walk: the start row's value until the column is replaced."""
    starts = len(cells) + (rows if len(start) > 1 else 0)
    return pa.concat_arrays([cells, start]).take(pa.array(np.where(is_start, starts, rows)))


def pick_scores(scores: Floats, chosen: npt.NDArray[np.intp]) -> Floats:
    """Return the explained score of each row, (rows,)."""
    picked: Floats = np.take_along_axis(scores, chosen[:, np.newaxis], axis=1)[:, 0]
    return picked


# Of each row -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values(Results):
    """Result batches of a job that explains each row.

    The columns are the columns of a prediction, then `<label>_base`, the score without knowledge of the row, and
    `<column>_shap`, the contribution of each column. Those of a forecast are also added up to its parts.
    """

    explained: tuple[str, ...]  # names of these columns
    parts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # name -> places of contributions

    @property
    def scores(self) -> int:
        return super().scores + len(self.explained)

    def batch(
        self, rows: pa.RecordBatch, scores: Array, extra: Mapping[str, Array] | None = None
    ) -> pa.RecordBatch:
        count = len(self.explained)
        predicted, values = scores[:, :-count], scores[:, -count:]
        if self.parts:
            values = _add_up(predicted[:, 0], values.astype(np.float64))
        sums = [values[:, places].sum(axis=1) for places in map(list, self.parts.values())]
        predictions = super().batch(rows, predicted)
        columns = [pa.array(column, mask=~np.isfinite(column)) for column in (*values.T, *sums)]
        names = [*predictions.schema.names, *self.explained, *self.parts]
        return pa.RecordBatch.from_arrays([*predictions.columns, *columns], names=names)


def _add_up(forecasts: Array, values: Floats) -> Floats:
    """Return the base and the contributions so that they add up to the forecasts, (n, 1 + columns).

    Trees add up in less digits, and to a forecast below its bound: contributions keep their shares of the difference.
    """
    forecasts, base = forecasts.astype(np.float64), values[:, 0]
    total = values[:, 1:].sum(axis=1)
    is_even = np.abs(total) <= 1e-9 * np.abs(base)
    factor = np.where(is_even, 1.0, (forecasts - base) / np.where(is_even, 1.0, total))
    scaled: Floats = np.column_stack([base, values[:, 1:] * factor[:, np.newaxis]])
    scaled[:, 0] = forecasts - scaled[:, 1:].sum(axis=1)
    return scaled


def row_values(program: Program) -> Values:
    """Return the result format that the program's JobSpec requests."""
    spec, plain = program.spec, results(program)
    scheme = spec.query.source.partition(":")[0]
    columns = [f"{spec.label.column}_base", *(f"{name}_shap" for name in spec.columns)]
    parts = forecast_parts(spec.forecast, spec.columns) if spec.forecast is not None else {}
    columns += [f"{spec.label.column}_{name}" for name in parts]
    names = unique_names([fit_name(name, scheme) for name in columns], taken=(*plain.keep, *plain.names))
    count = 1 + len(spec.columns)
    of_parts = dict(zip(names[count:], parts.values(), strict=True))
    return Values(
        plain.target, plain.keep, plain.names, plain.interval, plain.threshold, (), names[:count], of_parts
    )


def forecast_parts(forecast: Forecast, columns: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the parts of a forecast, in order, with the places of the base (0) and of the columns (from 1 on).

    The last values, their means and the trend are the trend; values of earlier seasons and parts of the time are the
    season.
    """
    parts: dict[str, list[int]] = {"trend": [0], "season": [], "holidays": [], "columns": []}
    for place, column in enumerate(columns, 1):
        if column.startswith(HOLIDAY):
            part = "holidays"
        elif column == forecast.time or column.startswith(f"{PREFIX}season"):
            part = "season"
        else:
            part = "trend" if column.startswith(PREFIX) else "columns"
        parts[part].append(place)
    return {name: tuple(places) for name, places in parts.items()}


TREE_ROWS = 8192  # of one call: cancelling or preempting a worker waits for it


@dataclass(frozen=True)
class TreeExplainer(Scorer):
    """Scorer that explains rows of a model of trees.

    `predict` returns the model's scores, the base margin and the value of each column: float64 (rows, classes + 1 +
    columns). `evaluate` returns the values alone, and a loss of 0.
    """

    def evaluate(self, block: Block) -> tuple[Array, float]:
        return self.predict(block)[:, -len(self.program.spec.columns) :], 0.0

    def predict(self, block: Block) -> Array:
        scores = super().predict(block)
        adapter = cast(ExplainingAdapter, self.adapter)
        parts = (
            block.part(first, min(first + TREE_ROWS, block.rows)) for first in range(0, block.rows, TREE_ROWS)
        )
        contributions = np.concatenate([adapter.contributions(part.features) for part in parts])
        explained = np.argmax(scores, axis=1) if contributions.shape[1] > 1 else 0
        values = contributions[np.arange(block.rows), explained]
        base = values[:, -1] + label_offset(self.program.spec.label)
        return np.column_stack([scores, base, values[:, :-1] @ self._shares])

    @cached_property
    def _shares(self) -> npt.NDArray[np.float64]:
        """Share of each matrix column in the value of each source column, (matrix columns, columns)."""
        spec = self.program.spec
        positions = {name: position for position, name in enumerate(spec.columns)}
        of_columns = [names for feature in spec.features for names in matrix_columns(feature)]
        shares = np.zeros((len(of_columns), len(positions)))
        for row, names in enumerate(of_columns):
            for name in names:
                shares[row, positions[name]] += 1 / len(names)
        return shares
