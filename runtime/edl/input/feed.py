"""Conversion of rows to arrays by the program's `feed`, or by PyTorch's DataLoader over its `dataset` or `stream`.

    feed(batch, mode)                    all rows of the range in one record batch -> arrays
    dataset(reader, start, end, mode)    a Dataset of the rows [start, end), or a DataLoader of one
    stream(batches, mode)                an IterableDataset over the record batches of the range, or a DataLoader of one

All three give features, labels and optionally weights of exactly the rows of the range, in their order. The training
order and the split into minibatches are the same for all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from edl.data import Reader
from edl.errors import JobError
from edl.program import INPUTS, Mode, Program, user_code

if TYPE_CHECKING:
    import pyarrow as pa


class ModelInput(NamedTuple):
    """Unchecked output of the program's function `by`. `batch` has the rows beside which predictions are written."""

    features: Any
    labels: Any
    weights: Any
    by: str
    batch: pa.RecordBatch | None


def convert_rows(
    program: Program, reader: Reader, start: int, end: int, mode: Mode, columns: Sequence[str] | None
) -> ModelInput:
    """Convert the rows [start, end).

    Raises JobError if the reader gives another number of rows, or the program's function returns a wrong type.
    """
    by = next(name for name in INPUTS if program.has(name))
    if by == "feed":
        batch = _join_batches(_batches(reader, start, end, columns))
        return ModelInput(*_complete_input(program, program.call("feed", batch, mode)), by, batch)
    batches: list[pa.RecordBatch] = []
    if by == "stream" or mode == "predict":
        batches = _batches(reader, start, end, columns)
    arguments = (iter(batches), mode) if by == "stream" else (reader, start, end, mode)
    arrays = _load_input(program, by, program.call(by, *arguments), end - start, mode)
    return ModelInput(*arrays, by, _join_batches(batches) if mode == "predict" else None)


def _complete_input(program: Program, result: object) -> tuple[Any, Any, Any]:
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        described = f"a tuple of {len(result)}" if isinstance(result, tuple) else f"a {type(result).__name__}"
        raise JobError(
            f"feed in {program.file} gives {described}; it must return (features, labels) "
            "or (features, labels, weights)",
            hint="labels are None in the mode predict",
        )
    return result if len(result) == 3 else (*result, None)


def _load_input(program: Program, by: str, data: object, rows: int, mode: Mode) -> tuple[Any, Any, Any]:
    from edl.frameworks.torch.datasets import load  # imports PyTorch, which such a program has imported

    with user_code(program.file, f"{by}()"):
        return load(data, rows, program.spec.batch_size, mode, f"{by} in {program.file}")


def _batches(reader: Reader, start: int, end: int, columns: Sequence[str] | None) -> list[pa.RecordBatch]:
    batches = list(reader.read(start, end, columns))
    rows = sum(batch.num_rows for batch in batches)
    if rows != end - start:
        raise JobError(f"the reader gave {rows} rows for the range [{start}, {end})")
    return batches


def _join_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
