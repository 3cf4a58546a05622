"""Reader of the examples that a program makes of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from edl.data import Reader
from edl.errors import JobError
from edl.forecasting.examples import Examples
from edl.program import Program
from edl.spec import label_columns
from edl.spec.forecast import PREFIX


class ExamplesReader:
    """Reader of examples in memory; `training` of them are training rows, and come first.

    `refit` makes the examples of a training on all rows.
    """

    def __init__(self, examples: Examples, refit: Callable[[], ExamplesReader] | None = None) -> None:
        self.refit = refit
        self._rows = examples.rows.combine_chunks()
        self.training = examples.training
        self.notes = examples.notes
        self.rows: int = self._rows.num_rows
        self.schema: pa.Schema = self._rows.schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order."""
        part = self._rows.slice(start, end - start)
        yield from (part if columns is None else part.select(list(columns))).to_batches()


def with_examples(reader: Reader, program: Program) -> Reader:
    """Return the reader of a job's rows, or of the examples that its program makes of them."""
    if not program.has("examples"):
        return reader
    spec = program.spec
    mode = spec.kind if spec.work == "predict" or spec.kind == "train" else "evaluate"
    batches = list(reader.read(0, reader.rows, _columns(reader, program)))
    table = pa.Table.from_batches(batches, None if batches else reader.schema)
    return ExamplesReader(
        _call_examples(program, table, mode), lambda: ExamplesReader(_call_examples(program, table, "refit"))
    )


def _call_examples(program: Program, table: pa.Table, mode: str) -> Examples:
    result = program.call("examples", table, mode)
    if isinstance(result, Examples):
        return result
    raise JobError(
        f"examples in {program.file} returns a {type(result).__name__}, not an edl.forecasting.Examples"
    )


def _columns(reader: Reader, program: Program) -> list[str] | None:
    """Return the columns of the rows that a compiled program reads; None for all."""
    spec = program.spec
    if program.edited or spec.forecast is None:
        return None
    keep = spec.output.keep if spec.work == "predict" else ()
    names = dict.fromkeys((*spec.columns, *label_columns(spec.label), *spec.forecast.order_columns, *keep))
    return [name for name in names if not name.startswith(PREFIX)]
