"""Statistics of categories for TARGET_ENCODE, GROUP_MEAN and COUNT_ENCODE, from a pass over the pinned training rows.

The pass comes last: it needs the categories, which are fitted to the rows, and the label's classes. It collects the
sums of labels for each fold of the rows, see `edl.features.folds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
import pyarrow as pa

from edl import spec
from edl.errors import SemanticError
from edl.features.arrays import Floats, Ints, numbers
from edl.features.categories import encoder
from edl.features.computed import column
from edl.features.folds import Folds, count_blocks
from edl.features.labels import target
from edl.features.weights import RowWeights

if TYPE_CHECKING:
    from typing_extensions import TypeIs

FOLDS = 5  # at least; a multiple of the folds of a search
DIGITS = 9  # of the largest sum: the last ones depend on the batches

Read = Callable[[int, int, Sequence[str]], Iterable[pa.RecordBatch]]
Filled = dict[spec.Feature, spec.Feature]


def with_statistics(job: spec.JobSpec, read: Read) -> spec.JobSpec:
    """Return the JobSpec of a training with the statistics of its categories. read: the pinned rows [start, end)."""
    encodings = list(filter(spec.is_encoding, job.features))
    if not encodings:
        return job
    blocks = job.rows.blocks or None
    size = job.rows.training if blocks is None else blocks.rows
    number = count_blocks(blocks)
    has_gaps = blocks is not None and bool(blocks.gaps)
    folds = Folds(number * (-(-FOLDS // number) + has_gaps), size, blocks)
    passes = [_GroupPass(one) if _is_group(one) else _Pass(one, folds) for one in encodings]
    labels = target(job.label) if any(encoding.needs_label for encoding in encodings) else None
    weights = RowWeights(job.weights) if job.weights else None
    columns = [*job.columns, *spec.label_columns(job.label), *([job.weights.column] if job.weights else [])]
    row = 0
    for batch in read(0, size, list(dict.fromkeys(columns))):
        of_rows = folds.find_folds(np.arange(row, row + batch.num_rows))
        row += batch.num_rows
        truth: Any = labels.transform(batch, "train") if labels else None
        weight = None if weights is None else weights.transform(batch, "train")
        for one_pass in passes:
            one_pass.add(batch, of_rows, truth, None if weight is None else weight.astype(np.float64))
    filled: Filled = {one_pass.feature: one_pass.ends() for one_pass in passes}
    return _replace_features(job, filled)


def _is_group(feature: spec.Encoding) -> TypeIs[spec.GroupMean]:
    return bool(feature.number)


class _Pass:
    """Collector of the statistics of one feature."""

    def __init__(self, feature: spec.Encoding, folds: Folds) -> None:
        self.feature = feature
        self._folds = folds
        self._encode = encoder(feature.category)
        self._ids = spec.num_ids(feature.category)
        outputs = feature.width if feature.needs_label else 0
        self._counts: Floats = np.zeros(folds.number * self._ids)
        self._sums: Floats = np.zeros((outputs, folds.number * self._ids))

    def add(self, batch: pa.RecordBatch, folds: Ints, labels: Any, weights: Floats | None) -> None:
        ids = folds * self._ids + cast(Ints, self._encode(batch))
        self._counts += np.bincount(ids, weights, len(self._counts))
        for output, sums in enumerate(self._sums):
            values = labels[:, 0] if labels.ndim == 2 else labels == output
            sums += np.bincount(ids, values if weights is None else values * weights, len(sums))

    def ends(self) -> spec.Encoding:
        folds, feature = self._folds, self.feature
        if not feature.needs_label:
            counts = self._counts.reshape(folds.number, self._ids).sum(axis=0)
            return msgspec.structs.replace(feature, counts=_round_values(counts))
        sums = self._sums.reshape(feature.width, folds.number, self._ids).transpose(1, 0, 2)
        return msgspec.structs.replace(
            feature,
            counts=_round_values(self._counts),
            sums=_round_values(sums.ravel()),
            folds=folds.number,
            rows=folds.rows,
            blocks=count_blocks(folds.blocks),
        )


class _GroupPass:
    """Collector of the means of a number by category, and of the squares about them (Chan et al., 1979)."""

    def __init__(self, feature: spec.GroupMean) -> None:
        self.feature = feature
        self._encode = encoder(feature.category)
        ids = spec.num_ids(feature.category)
        self._counts, self._means, self._squares = np.zeros(ids), np.zeros(ids), np.zeros(ids)

    def add(self, batch: pa.RecordBatch, folds: Ints, labels: Any, weights: Floats | None) -> None:
        number = numbers(column(batch, self.feature.number), str(self.feature.number))
        is_number = np.isfinite(number)
        ids, number = cast(Ints, self._encode(batch))[is_number], number[is_number]
        counts = np.bincount(ids, minlength=len(self._counts))
        means = np.bincount(ids, number, len(counts)) / np.maximum(counts, 1)
        squares = np.bincount(ids, np.square(number - means[ids]), len(counts))
        total, step = self._counts + counts, means - self._means
        share = counts / np.maximum(total, 1)
        self._squares += squares + np.square(step) * self._counts * share
        self._means += step * share
        self._counts = total

    def ends(self) -> spec.GroupMean:
        rows = self._counts.sum()
        if not rows:
            raise SemanticError(
                f"{self.feature.number} has no number in the training rows, of which groups have means",
                hint="name another column, which has numbers",
            )
        between = self._counts @ np.square(self._means - np.average(self._means, weights=self._counts))
        square = self._squares.sum() if self.feature.difference else between
        return msgspec.structs.replace(
            self.feature,
            counts=tuple(self._counts.tolist()),
            means=_round_values(self._means),
            deviation=float(f"{np.sqrt(square / rows):.{DIGITS}g}"),
        )


def _round_values(values: Floats) -> tuple[float, ...]:
    largest = np.abs(values).max(initial=0.0)
    digits = DIGITS - 1 - int(np.floor(np.log10(largest))) if 0 < largest < np.inf else 0
    return tuple(np.round(values, digits).tolist())


def _replace_features(job: spec.JobSpec, filled: Filled) -> spec.JobSpec:
    """Return the JobSpec with other features, also in the candidates of a search."""
    inputs = {
        name: tuple(filled.get(feature, feature) for feature in features)
        for name, features in job.inputs.items()
    }
    search = job.search
    if search is not None:
        candidates = (
            msgspec.structs.replace(candidate, spec=_replace_features(candidate.spec, filled))
            for candidate in search.candidates
        )
        search = msgspec.structs.replace(search, candidates=tuple(candidates))
    return msgspec.structs.replace(job, inputs=inputs, search=search)
