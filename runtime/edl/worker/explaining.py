"""Explaining: how much each column of the query moves what a model says of a row.

What a column is worth is its Shapley value (Shapley 1953, "A value for n-person games"; Štrumbelj and Kononenko 2014,
"Explaining prediction models and individual predictions with feature contributions"), estimated by walks. A walk begins
at a sampled row of the query and takes over the columns of the row to explain, one after another in a random order; a
column is worth by how much the score changes as it is taken over. Each order is walked back too, which makes the
estimate more exact than another order would (Mitchell et al. 2022, "Sampling permutations for Shapley value
estimation").

All rows are explained by the same walks, which the job's seed draws. So one walk of many rows is a few arrays, any
worker gives the same values, and the values of a row add up to its score less the mean score of the sampled rows.

The score is a predicted number in its own unit, the probability of the second of two classes, and of more classes the
probability of the one that is predicted for the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.data.batch_reader import BatchReader
from edl.data.names import fitting
from edl.errors import JobError
from edl.nn.structure import Array
from edl.program import Program
from edl.spec import ClassLabel, Explanation, JobSpec, Output
from edl.tasks.ranges import LEAST_ROWS, explained_rows, generator
from edl.worker.blocks import Block, Blocks
from edl.worker.prediction import Results, probabilities, results, unique_names
from edl.worker.scoring import Scorer

Floats = npt.NDArray[np.float64]

_STREAM = 0x5A9  # of random numbers: those that draw walks


@dataclass(frozen=True)
class Walks:
    """Each from a row of the query over the columns in an order of their positions, and back.

    rows: where they begin. orders: (walks, columns).
    """

    rows: pa.RecordBatch
    orders: npt.NDArray[np.int64]


def draw(spec: JobSpec, blocks: Blocks) -> Walks:
    """The walks of a job: a function of its seed and its rows, of which there is one at least."""
    samples = (spec.explanation or Explanation()).samples
    random, rows = generator(spec.training.seed, _STREAM), blocks.reader.rows
    again = rows < samples  # then each row comes about as often as the others
    positions = (
        np.resize(random.permutation(rows), samples) if again else random.choice(rows, samples, replace=False)
    )
    columns = np.tile(np.arange(len(spec.columns)), (samples, 1))
    return Walks(_rows_at(blocks, np.sort(positions)), random.permuted(columns, axis=1))


def _rows_at(blocks: Blocks, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Rows at ascending positions; those that lie together are read together."""
    found = []
    for some in np.split(positions, 1 + np.flatnonzero(np.diff(positions // LEAST_ROWS))):
        batch = blocks.read(int(some[0]), int(some[-1]) + 1, "predict").batch
        if batch is None:
            raise RuntimeError("rows to predict come with their batch")
        found.append(batch.take(pa.array(some - some[0])))
    return pa.concat_batches(found)


@dataclass(frozen=True)
class Explainer(Scorer):
    """A scorer whose scores explain. `predict` gives the model's scores of a row, what the score is without the row,
    and the value of each column: float64 (rows, classes + 1 + columns). `evaluate` gives the values alone, and no loss.
    """

    blocks: Blocks
    walks: Walks

    def evaluate(self, block: Block) -> tuple[Array, float]:
        return self.predict(block)[:, -len(self._columns) :], 0.0

    def predict(self, block: Block) -> Array:
        if block.batch is None:
            raise RuntimeError("what is explained was read to be predicted")
        scores = self._scores_of(block)
        chosen = self._chosen(scores)
        own = _pick(scores, chosen)
        values = self._values(block.batch, own, chosen)
        return np.column_stack([scores, self._without[chosen], values])

    @property
    def streamed(self) -> int:
        return explained_rows(self.program.spec)

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        return self.program.spec.columns

    @cached_property
    def _inside(self) -> Blocks:
        """Of a program that keeps no columns: they would be copied to every station of a walk."""
        spec = msgspec.structs.replace(self.program.spec, output=Output())
        return replace(self.blocks, program=replace(self.program, spec=spec))

    @cached_property
    def _starts(self) -> Floats:
        """The scores where walks begin, (walks, classes)."""
        return self._scores_of(self._block(self.walks.rows))

    @cached_property
    def _without(self) -> Floats:
        """The mean score of the sampled rows, for each class."""
        mean: Floats = self._starts.mean(axis=0)
        return mean

    def _values(self, batch: pa.RecordBatch, own: Floats, chosen: npt.NDArray[np.intp]) -> Floats:
        """The values of the columns of some rows, (rows, columns). own: their scores of the classes that are chosen."""
        total = np.zeros((len(own), len(self._columns)))
        if self.blocks.reader.rows == 1:  # walks end where they begin: what they found would be rounding
            return total
        for number, (there, start) in enumerate(zip(self.walks.orders, self._starts, strict=True)):
            row = self.walks.rows.slice(number, 1)
            for order in (there, there[::-1]):
                passed = np.vstack([start[chosen], self._passed(batch, row, order, chosen), own])
                total[:, order] += np.diff(passed, axis=0).T
        return total / (2 * len(self.walks.orders))

    def _passed(
        self,
        batch: pa.RecordBatch,
        start: pa.RecordBatch,
        order: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.intp],
    ) -> Floats:
        """The scores between start and end of a walk, (columns - 1, rows): all of its stations are one batch."""
        stations = len(order) - 1
        if not stations:
            return np.empty((0, batch.num_rows))
        late = {self._columns[position]: number for number, position in enumerate(order.tolist())}
        mixed = {
            name: _mixed(batch.column(name), start.column(name), late.get(name, 0), stations)
            for name in (batch.schema.names if self.program.edited else self._columns)
        }
        scores = self._scores_of(self._block(pa.RecordBatch.from_pydict(mixed)))
        return _pick(scores, np.tile(chosen, stations)).reshape(stations, -1)

    def _block(self, batch: pa.RecordBatch) -> Block:
        return replace(self._inside, reader=BatchReader(batch)).read(0, batch.num_rows, "predict")

    def _scores_of(self, block: Block) -> Floats:
        """(rows, classes), or (rows, 1) of a number."""
        scores = super().predict(block)
        label = self.program.spec.label
        if isinstance(label, ClassLabel):
            return probabilities(scores, label).astype(np.float64)
        if scores.size != len(scores):
            raise JobError(
                f"the program's scores have the shape {scores.shape}",
                hint="a model of one number, or of classes, can be explained",
            )
        return scores.reshape(-1, 1).astype(np.float64)

    def _chosen(self, scores: Floats) -> npt.NDArray[np.intp]:
        """Which score of each row is explained."""
        last = np.full(len(scores), scores.shape[1] - 1)
        return last if scores.shape[1] <= 2 else np.argmax(scores, axis=1, out=last)


def _mixed(own: pa.Array, start: pa.Array, late: int, stations: int) -> pa.Array:
    """A column at all stations: where walks begin, up to the one after which it is taken over."""
    before = start.take(pa.array(np.zeros(late * len(own), dtype=np.int64)))
    return pa.concat_arrays([before, *[own] * (stations - late)])


def _pick(scores: Floats, chosen: npt.NDArray[np.intp]) -> Floats:
    found: Floats = np.take_along_axis(scores, chosen[:, np.newaxis], axis=1)[:, 0]
    return found


# Of each row -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values(Results):
    """The result of a job that explains each row: that of a prediction, then `<label>_base`, what is said without
    knowing the row, and `<column>_shap`, the value of each column.
    """

    explained: tuple[str, ...]  # names of these columns

    @property
    def scores(self) -> int:
        return super().scores + len(self.explained)

    def batch(self, rows: pa.RecordBatch, scores: Array) -> pa.RecordBatch:
        own = len(self.explained)
        made = super().batch(rows, scores[:, :-own])
        values = [pa.array(column, mask=~np.isfinite(column)) for column in scores[:, -own:].T]
        return pa.RecordBatch.from_arrays(
            [*made.columns, *values], names=[*made.schema.names, *self.explained]
        )


def row_values(program: Program) -> Values:
    """The results that the program's JobSpec asks for."""
    spec, found = program.spec, results(program)
    scheme = spec.query.source.partition(":")[0]
    wanted = [f"{spec.label.column}_base", *(f"{name}_shap" for name in spec.columns)]
    names = unique_names([fitting(name, scheme) for name in wanted], taken=(*found.keep, *found.names))
    return Values(found.target, found.keep, found.names, names)
