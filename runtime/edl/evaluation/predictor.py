"""Predictions without a job: rows in memory in, the columns of PREDICT out, in the process of the caller."""

from __future__ import annotations

import queue
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import repeat

import msgspec
import numpy as np
import pyarrow as pa

from edl.arrays import Array
from edl.data.readers import BatchReader
from edl.errors import SemanticError
from edl.evaluation.explaining import explaining_scorer
from edl.evaluation.prediction import Results, results
from edl.evaluation.scoring import Scorer, trained_adapter
from edl.features.column_types import check_ids, columns_of_large_ids
from edl.input.blocks import Blocks
from edl.program import Program
from edl.spec import TREES, Explanation, Interval
from edl.tasks.ranges import LEAST_ROWS

SMALL = 4 << 20  # numbers of a network of which there may be several copies


class Predictor:
    """Trained model in memory. Any number of threads may use it, and their random states stay as they are.

    `program` is of a PREDICT without kept columns, and `schema` has the columns that the model reads. A copy of the
    model does one forward pass at a time, so there are several of a small network; large ones, and trees, use all
    `threads` themselves.
    """

    def __init__(
        self, program: Program, weights: Mapping[str, Array], schema: pa.Schema, threads: int = 1
    ) -> None:
        self.schema = schema
        self._program = program
        whole = [field.name for field in schema if not pa.types.is_floating(field.type)]
        self._large_ids = columns_of_large_ids(program.spec.features, whole, hashed=True)
        nulls = pa.RecordBatch.from_arrays([pa.nulls(2, field.type) for field in schema], schema=schema)
        example = Blocks(program, BatchReader(nulls)).read(0, 2, "predict")
        is_small = sum(values.size for values in weights.values()) <= SMALL
        self._copies = threads if is_small and program.spec.framework not in TREES else 1
        self._idle: queue.SimpleQueue[Scorer] = queue.SimpleQueue()
        for _ in range(self._copies):
            with _same_random_states():
                adapter = trained_adapter(program, example, "predict", weights)
            scorer = Scorer(program, adapter, program.spec.batch_size)
            with suppress(SemanticError):  # of a file that takes no NULL
                scorer.predict(example)  # the first forward pass takes long
            self._idle.put(scorer)
        rows = program.spec.batch_size
        self.rows = -(-LEAST_ROWS // rows) * rows  # of a block

    def results(
        self,
        interval: Interval | None = None,
        threshold: float | None = None,
        extra: tuple[str, ...] = (),
        probabilities: bool | None = None,
    ) -> Results:
        """Return the format of predictions with an interval around numbers, a threshold of the second class, extra
        outputs, or a probability of each class.

        Without a threshold the program's applies.
        """
        spec = self._program.spec
        threshold = spec.threshold if threshold is None else threshold
        if probabilities is None:
            probabilities = spec.output.probabilities
        output = msgspec.structs.replace(spec.output, extra=extra, probabilities=probabilities)
        spec = msgspec.structs.replace(spec, interval=interval, threshold=threshold, output=output)
        return results(replace(self._program, spec=spec))

    def predict(self, batch: pa.RecordBatch, form: Results | None = None) -> pa.RecordBatch:
        """Return the columns that PREDICT adds to the rows, by default without an interval or a threshold.

        Raises SemanticError for a missing column or one of another kind.
        """
        form = form or self.results()
        return form.batch(batch, *self.scores(batch, form.extra))

    def scores(self, batch: pa.RecordBatch, extra: Sequence[str] = ()) -> tuple[Array, dict[str, Array]]:
        """Return the scores of the rows, (n, classes): numbers, or probabilities of classes; and the extra outputs.

        The rows are computed in the blocks of a PREDICT, and so to the same bits.
        """
        check_ids(batch, self._large_ids)
        if not batch.num_rows:
            return np.empty((0, self.results().scores)), {name: np.empty((0, 1)) for name in extra}
        blocks = [batch.slice(start, self.rows) for start in range(0, batch.num_rows, self.rows)]
        if len(blocks) == 1:
            return self._block(batch, extra)
        with ThreadPoolExecutor(self._copies) as threads:
            by_block = list(threads.map(self._block, blocks, repeat(extra)))
        joined = {name: np.concatenate([more[name] for _, more in by_block]) for name in extra}
        return np.concatenate([scores for scores, _ in by_block]), joined

    def explain(
        self,
        batch: pa.RecordBatch,
        samples: int,
        background: pa.RecordBatch | None,
        cancelled: threading.Event,
    ) -> tuple[Array, Array]:
        """Return the base score of each row, (n,), and the contribution of each of its columns, (n, columns).

        The model is a single one of trees, or `background` has rows to compare with, `samples` of which are taken.
        Raises JobCancelledError if `cancelled` is set meanwhile.
        """
        check_ids(batch, self._large_ids)
        explanation = Explanation("rows", samples)
        spec = msgspec.structs.replace(self._program.spec, explanation=explanation)
        program = replace(self._program, spec=spec)
        blocks = Blocks(program, BatchReader(batch))
        scorer = self._idle.get()
        try:
            explainer = explaining_scorer(program, scorer.adapter, blocks, background, cancelled)
            values = explainer.predict(blocks.read(0, batch.num_rows, "predict"))
        finally:
            self._idle.put(scorer)
        columns = len(spec.columns)
        return values[:, -columns - 1], values[:, -columns:]

    def _block(self, batch: pa.RecordBatch, extra: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        block = Blocks(self._program, BatchReader(batch)).read(0, batch.num_rows, "predict")
        scorer = self._idle.get()
        try:
            return scorer.predict_with(block, extra)
        finally:
            self._idle.put(scorer)


@contextmanager
def _same_random_states() -> Iterator[None]:
    """Restore the random states of Python, NumPy and PyTorch, which the creation of a model seeds."""
    kept: list[Callable[[], object]] = []
    python, numpy = random.getstate(), np.random.get_state()
    kept += [lambda: random.setstate(python), lambda: np.random.set_state(numpy)]
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        state = torch.get_rng_state()
        kept.append(lambda: torch.set_rng_state(state))
    try:
        yield
    finally:
        for restore in kept:
            restore()
