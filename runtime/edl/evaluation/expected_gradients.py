"""Explanation of networks with many columns: contributions from gradients in place of predictions for each column.

Expected gradients (Erion et al. 2021, "Improving performance of deep learning models with axiomatic attribution priors
and expected gradients") are the mean over background rows b and shares t, uniform in (0, 1), of

    (x - b) * gradient of the score at b + t (x - b),

which are the Aumann-Shapley values of the score: one pass of the gradient is a sample of all numbers at the same time.
Ids have no gradient. Each has a share of its own, drawn from (0, 1): a point of the path has the id of the row to
explain once t is above it, and the id of the background row before. Its contribution is the change of the score at that
point, which takes two predictions. So numbers move together, and ids one after another in a random order.

The shares of the numbers are stratified, and of the shares of ids each second one mirrors the one before. They are
drawn from the job's seed, so that each row is explained by the same ones. The base and the contributions add up to the
score except for the error of the samples; they are not rescaled, so that the difference shows this error.

A feature of several columns counts for each of them equally, as in trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.arrays import Array
from edl.errors import JobError
from edl.evaluation.shapley import Explainer, Floats, pick_scores
from edl.features import NUMBERS, Entry
from edl.frameworks.adapter import DifferentiableAdapter
from edl.jobs.outcome import JobCancelledError
from edl.ragged import Ragged
from edl.spec import source_columns
from edl.tasks.ranges import generator

_STREAM = 0xE6  # random stream of the shares
_STEP = 1e-4  # of the difference that gives the slope of a score, in an output of about 1
_ID_PREDICTIONS = 3200  # of one row: samples of ids times twice their features
_LEAST_ID_SAMPLES = 4

Arrays = dict[str, Any]  # by entry: float32 (n, k), int64 (n,) or (n, k), or Ragged


@dataclass(frozen=True)
class GradientExplainer(Explainer):
    """Scorer that explains the rows of a network by expected gradients, with the results of an `Explainer`.

    Its walks give the background rows, one for each sample. Raises JobError for a program without FEATURES.
    """

    def _values(self, batch: pa.RecordBatch, row_scores: Floats, chosen: npt.NDArray[np.intp]) -> Floats:
        rows = self._arrays(batch)
        total = np.zeros((len(row_scores), len(self._columns)))
        for samples in self._passes(np.arange(self._samples), len(row_scores)):
            total += self._of_numbers(rows, samples, chosen)
        total /= self._samples
        for number, entry in enumerate(self._ids):
            for samples in self._passes(self._id_samples, len(row_scores)):
                change = self._of_id(rows, number, samples, chosen) / len(self._id_samples)
                total += change[:, np.newaxis] * self._shares(entry.feature)
        return total

    # Draws -------------------------------------------------------------------------------------------------

    @property
    def _samples(self) -> int:
        return len(self.walks.orders)

    @cached_property
    def _id_samples(self) -> npt.NDArray[np.intp]:
        """The samples that are taken of each feature of ids: pairs of a share and its mirror, drawn at random."""
        most = max(_ID_PREDICTIONS // max(1, 2 * len(self._ids)), _LEAST_ID_SAMPLES)
        if self._samples <= most:
            return np.arange(self._samples)
        pairs = generator(self.program.spec.training.seed, _STREAM, 2).permutation(self._samples // 2)
        first = 2 * np.sort(pairs[: most // 2])
        return np.stack([first, first + 1], axis=1).ravel()

    @cached_property
    def _places(self) -> Floats:
        """Share of the way at which each sample takes the gradient, (samples,)."""
        random = generator(self.program.spec.training.seed, _STREAM)
        return (random.permutation(self._samples) + random.random(self._samples)) / self._samples

    @cached_property
    def _switches(self) -> Floats:
        """Share of the way at which each feature of ids changes, (samples, features)."""
        random = generator(self.program.spec.training.seed, _STREAM, 1)
        switches = random.random((self._samples, len(self._ids)))
        switches[1::2] = 1 - switches[: self._samples // 2 * 2 : 2]
        return switches

    def _passes(self, samples: npt.NDArray[np.intp], rows: int) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the samples, as many at a time as fit a pass over so many rows."""
        size = max(1, self.rows // max(1, rows))
        for first in range(0, len(samples), size):
            if self.cancelled.is_set():
                raise JobCancelledError
            yield samples[first : first + size]

    # Features ----------------------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> Sequence[Entry]:
        features = getattr(self.program.module, "FEATURES", None)
        if features is None:
            raise JobError(
                f"expected gradients explain the features of FEATURES, and {self.program.file} has none",
                hint="name the features FEATURES = fc.Features(…), or leave explain.method out",
            )
        return cast(Sequence[Entry], features.entries)

    @cached_property
    def _numbers(self) -> list[Entry]:
        return [entry for entry in self._entries if entry.kind in NUMBERS]

    @cached_property
    def _ids(self) -> list[Entry]:
        return [entry for entry in self._entries if entry.kind not in NUMBERS]

    @cached_property
    def _start_arrays(self) -> Arrays:
        return self._arrays(self.walks.rows)

    def _arrays(self, batch: pa.RecordBatch) -> Arrays:
        return cast(Arrays, self._block(batch).arrays.features)

    @cached_property
    def _shares_of_numbers(self) -> Mapping[str, Floats]:
        """Share of each column of a matrix in the value of each source column, (k, columns), by entry."""
        return {
            entry.name: np.repeat(
                np.stack([self._shares(feature) for feature in entry.features]),
                [feature.width if entry.kind == "dense" else 1 for feature in entry.features],
                axis=0,
            )
            for entry in self._numbers
        }

    def _shares(self, feature: Any) -> Floats:
        """Return the share of each source column in a feature, (columns,)."""
        names = list(dict.fromkeys(source_columns(feature)))
        shares = np.zeros(len(self._columns))
        shares[[self._columns.index(name) for name in names]] = 1 / len(names)
        return shares

    # Passes ------------------------------------------------------------------------------------------------

    def _of_numbers(
        self, rows: Arrays, samples: npt.NDArray[np.intp], chosen: npt.NDArray[np.intp]
    ) -> Floats:
        """Return the sums over some samples of what the numbers contribute, (rows, columns)."""
        total = np.zeros((len(chosen), len(self._columns)))
        if not self._numbers:
            return total
        of_row, of_start = self._pairs(len(chosen), samples)
        places = np.repeat(self._places[samples], len(chosen))
        switched = places[:, np.newaxis] > np.repeat(self._switches[samples], len(chosen), axis=0)
        mixed = self._mix(rows, of_row, of_start, places, switched)
        gradients = cast(DifferentiableAdapter, self.adapter).input_gradients(
            mixed, lambda outputs: self._slopes(outputs, chosen[of_row])
        )
        for entry in self._numbers:
            way = rows[entry.name][of_row] - self._start_arrays[entry.name][of_start]
            parts = (way * gradients[entry.name]).reshape(len(samples), len(chosen), -1).sum(axis=0)
            total += parts.astype(np.float64) @ self._shares_of_numbers[entry.name]
        return total

    def _of_id(
        self, rows: Arrays, number: int, samples: npt.NDArray[np.intp], chosen: npt.NDArray[np.intp]
    ) -> Floats:
        """Return the sums over some samples of what one feature of ids contributes, (rows,)."""
        of_row, of_start = self._pairs(len(chosen), samples)
        places = np.repeat(self._switches[samples, number], len(chosen))
        switched = places[:, np.newaxis] > np.repeat(self._switches[samples], len(chosen), axis=0)
        before, after = switched.copy(), switched
        before[:, number], after[:, number] = False, True
        scores = [
            pick_scores(
                self._scores_of_outputs(
                    self.adapter.predict(self._mix(rows, of_row, of_start, places, state))
                ),
                chosen[of_row],
            )
            for state in (before, after)
        ]
        change: Floats = (scores[1] - scores[0]).reshape(len(samples), len(chosen)).sum(axis=0)
        return change

    def _pairs(
        self, rows: int, samples: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the row and the background row of each point: all rows for the first sample, then for the next."""
        of_row = np.tile(np.arange(rows), len(samples))
        of_sample = np.repeat(samples, rows)
        if self.walks.rotate:
            of_sample = (of_sample + of_row) % self.walks.rows.num_rows
        return of_row, of_sample

    def _mix(
        self,
        rows: Arrays,
        of_row: npt.NDArray[np.intp],
        of_start: npt.NDArray[np.intp],
        places: Floats,
        switched: npt.NDArray[np.bool_],
    ) -> Arrays:
        """Return the features at points of the way: numbers at `places`, ids of the row where they are switched."""
        mixed: Arrays = {}
        starts = self._start_arrays
        for name in (entry.name for entry in self._numbers):
            first, last = starts[name][of_start], rows[name][of_row]
            mixed[name] = first + places[:, np.newaxis].astype(first.dtype) * (last - first)
        for name, is_row in zip((entry.name for entry in self._ids), switched.T, strict=True):
            mixed[name] = _choose_ids(rows[name], starts[name], of_row, of_start, is_row)
        return mixed

    def _slopes(self, outputs: Array, chosen: npt.NDArray[np.intp]) -> Array:
        """Return the derivative of the explained score by each output, float32 in the shape of the outputs.

        The score is a function of NumPy, so that it is a central difference, in float64. The score of an ensemble of
        members is the mean of their scores, so that each is moved alone.
        """
        if outputs.ndim == 3 and outputs.shape[1] > 1 and self.program.spec.temperature == 1:
            rows, members, width = outputs.shape
            alone = outputs.reshape(rows * members, 1, width)
            return self._slopes(alone, np.repeat(chosen, members)).reshape(outputs.shape) / np.float32(
                members
            )
        flat = outputs.reshape(len(outputs), -1).astype(np.float64)
        slopes = np.empty_like(flat)
        for column in range(flat.shape[1]):
            step = _STEP * np.maximum(1, np.abs(flat[:, column]))
            ends = []
            for sign in (1, -1):
                moved = flat.copy()
                moved[:, column] += sign * step
                ends.append(pick_scores(self._scores_of_outputs(moved.reshape(outputs.shape)), chosen))
            slopes[:, column] = (ends[0] - ends[1]) / (2 * step)
        return slopes.reshape(outputs.shape).astype(np.float32)


def _choose_ids(
    rows: Any,
    starts: Any,
    of_row: npt.NDArray[np.intp],
    of_start: npt.NDArray[np.intp],
    is_row: npt.NDArray[np.bool_],
) -> Any:
    """Return the ids of the row or of the background row for each point."""
    places = np.where(is_row, of_row, len(rows) + of_start)
    both = Ragged.concatenate([rows, starts]) if isinstance(rows, Ragged) else np.concatenate([rows, starts])
    return both.take(places, axis=0)
