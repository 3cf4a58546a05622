"""Trained model that was loaded from its archive, ready to predict in this process.

The program is generated again from the JobSpec in the archive; nothing that was stored is executed.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from edl import frameworks
from edl.data.arrow_types import schema_of
from edl.errors import SemanticError
from edl.evaluation.prediction import Results
from edl.evaluation.predictor import Predictor
from edl.models.archive import Archive, read_archive
from edl.program import load, unload
from edl.run.background import can_be_explained
from edl.spec import TREES
from sqlflow_edl.analysis import uncertainty
from sqlflow_edl.analysis.extra_outputs import output_names
from sqlflow_edl.analysis.inference.explanation import default_samples
from sqlflow_edl.analysis.inference.prediction import prediction_in_memory
from sqlflow_edl.codegen import generate


@dataclass(frozen=True, eq=False)
class ServedModel:
    """Model in memory. Any number of threads may use it.

    reference: name@version, or the file of the archive.
    """

    reference: str
    archive: Archive
    predictor: Predictor

    @property
    def schema(self) -> pa.Schema:
        """Columns that the model reads, in the order of its features, with their types in training."""
        return self.predictor.schema

    @property
    def results(self) -> pa.Schema:
        """Columns that the model predicts."""
        nothing = pa.RecordBatch.from_pylist([], schema=self.schema)
        return self.predictor.predict(nothing).schema

    def settings(
        self, interval: float | None = None, threshold: float | None = None, extra_outputs: Sequence[str] = ()
    ) -> Results:
        """Return the format of predictions with an interval of this coverage, a threshold of the second class, or
        extra outputs.

        Raises SemanticError if the model has no such interval or output, or its label other classes.
        """
        for name, value in (("interval", interval), ("threshold", threshold)):
            if value is not None and not 0 < value < 1:
                raise SemanticError(f"{name} is {value:g}; it must be between 0 and 1")
        if threshold is not None:
            uncertainty.check_threshold(self.archive.spec.label, "threshold")
        around = None
        if interval is not None:
            around = uncertainty.interval_of(self.archive, self.reference, interval)
        extra, probabilities = output_names(extra_outputs, self.archive, self.reference)
        return self.predictor.results(around, threshold, extra, probabilities)

    def explain(
        self, row: pa.RecordBatch, background: pa.RecordBatch | None, cancelled: threading.Event
    ) -> tuple[float, list[float]] | None:
        """Return the base score and the contribution of each column to the prediction of a row; None if the model
        cannot be explained.

        background: the rows that the model keeps. Raises JobCancelledError if `cancelled` is set meanwhile.
        """
        spec = self.archive.spec
        if not can_be_explained(spec) or (background is None and spec.framework not in TREES):
            return None
        samples = default_samples(spec, of_rows=True)
        base, values = self.predictor.explain(row, samples, background, cancelled)
        return float(base[0]), [float(value) for value in values[0]]


def load_model(archive: Path, reference: str = "", threads: int | None = None) -> ServedModel:
    """Load a model from its archive into this process. threads: that it uses, by default one for each core.

    Raises SpecError for a damaged archive, JobError if its framework is not installed or the model cannot be built.
    """
    stored = read_archive(archive)
    spec = prediction_in_memory(stored, reference or str(archive))
    folder = tempfile.TemporaryDirectory(prefix="sqlflow-edl-model-")
    generate(spec).write(Path(folder.name))
    threads = threads or os.cpu_count() or 1
    frameworks.prepare(spec.framework, threads, own_process=False)
    program = load(Path(folder.name))
    types = {field.name: field for field in spec.query.schema}
    schema = schema_of(types[name] for name in spec.columns)
    predictor = Predictor(program, stored.weights(), schema, threads)
    weakref.finalize(predictor, _forget, program.module, folder)
    return ServedModel(reference or str(archive), stored, predictor)


def _forget(module: ModuleType, folder: tempfile.TemporaryDirectory[str]) -> None:
    """Remove what is left of a model that is no longer used."""
    unload(module)
    folder.cleanup()
