"""Mended faults that are put back into the product, each beside the relations that must find it.

`python -m tests.relations --put-back` puts each back in turn and draws seeds until a relation finds it. Training
processes are children: `child/sitecustomize.py` puts the fault back in them too, because it may lie in what they run.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "RELATIONS_FAULT"
ROOT = Path(__file__).parents[2]
SECONDS = 300.0  # in which a fault must be found
Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Fault:
    """what: the fault, as a user meets it. relations: that find it; the first one must."""

    what: str
    relations: tuple[str, ...]
    put: Callable[[Patch], None]


# As they were ------------------------------------------------------------------------------------------------------


def _single_precision_labels(patch: Patch) -> None:
    from edl.features.labels import RegressionTarget
    from sqlflow_edl.analysis.statistics import precision

    original = RegressionTarget.transform

    def transform(self: Any, batch: Any, mode: Any) -> Any:
        found = original(self, batch, mode)
        return found.astype("float32").astype("float64") if mode == "evaluate" else found

    patch.setattr(RegressionTarget, "transform", transform)
    patch.setattr(precision, "is_coarse", lambda *arguments: False)


def _null_is_no_value(patch: Patch) -> None:
    from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics

    patch.setattr(ColumnStatistics, "constant", property(lambda self: self.single_value))
    patch.setattr(ColumnStatistics, "is_value_or_null", property(lambda self: False))


def _zero_dates_end_a_result(patch: Patch) -> None:
    from edl.errors import SourceError
    from edl.sources.mysql import types

    original = types.displayed_batch

    def displayed_batch(columns: Any, rows: Any, *others: Any) -> Any:
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                if value is not None and bytes(value).startswith(b"0000-00-00"):
                    raise SourceError(f"column {column.name} holds '0000-00-00', which is not a date")
        return original(columns, rows, *others)

    patch.setattr(types, "displayed_batch", displayed_batch)


def _one_odd_column_refuses_all(patch: Patch) -> None:
    from edl.errors import SourceError
    from edl.sources.duckdb.source import DuckDBSource

    original = DuckDBSource.schema

    def schema(self: Any, query: str) -> Any:
        if "INTERVAL" in query or "HUGEINT" in query:
            raise SourceError("column odd is of the type INTERVAL, which cannot be used")
        return original(self, query)

    patch.setattr(DuckDBSource, "schema", schema)


def _frames_as_arrow_takes_them(patch: Patch) -> None:
    import pyarrow as pa

    from sqlflow_edl.session import frames

    def arrow_table(data: Any) -> Any:
        is_pandas = all(hasattr(data, name) for name in ("dtypes", "columns", "iloc"))
        return pa.Table.from_pandas(data, preserve_index=False) if is_pandas else pa.table(data)

    patch.setattr(frames, "arrow_table", arrow_table)


def _zone_of_the_session_is_taken_for_utc(patch: Patch) -> None:
    from edl.sources.mysql.source import MySQLSource

    patch.setattr(MySQLSource, "_session_zone", lambda self: "+00:00")
    patch.setattr(MySQLSource, "in_utc", lambda self, connection: contextlib.nullcontext())


# Faults that nobody has made -----------------------------------------------------------------------------------------


def _rows_in_the_order_of_the_table(patch: Patch) -> None:
    from edl.sources.duckdb.source import DuckDBSource

    original = DuckDBSource.pin

    def pin(self: Any, query: str, folder: Path, *, seed: int, shuffle: bool, split: Any = None) -> Any:
        return original(self, query, folder, seed=seed, shuffle=False, split=None if shuffle else split)

    patch.setattr(DuckDBSource, "pin", pin)


def _predictions_of_the_row_before(patch: Patch) -> None:
    from edl.evaluation.predictor import Predictor

    original = Predictor.predict

    def predict(self: Any, batch: Any, *others: Any) -> Any:
        found = original(self, batch, *others)
        return found.take([0, *range(found.num_rows - 1)]) if found.num_rows > 100 else found

    patch.setattr(Predictor, "predict", predict)


def _numbers_lose_their_last_digits(patch: Patch) -> None:
    from sqlflow_edl.display import output

    original = output.rows_of

    def rows_of(batch: Any) -> Iterator[tuple[Any, ...]]:
        return (
            tuple(float(f"{v:.12g}") if isinstance(v, float) else v for v in row) for row in original(batch)
        )

    convert = output._convert_rows
    patch.setattr(output, "rows_of", rows_of)
    patch.setattr(
        output,
        "_convert_rows",
        lambda batch, form: (
            tuple(float(f"{v:.12g}") if isinstance(v, float) else v for v in row)
            for row in convert(batch, form)
        ),
    )


def _line_ends_change_a_number(patch: Patch) -> None:
    from sqlflow_edl.session.session import Session

    original = Session.parse
    patch.setattr(
        Session,
        "parse",
        lambda self, text: original(self, text.replace("0.2", "0.3", 1) if "\n" in text else text),
    )


FAULTS: dict[str, Fault] = {
    "single_precision_labels": Fault(
        "labels are rounded to single precision, and metrics compare with the rounded label",
        ("evaluated", "label_shifted"),
        _single_precision_labels,
    ),
    "null_is_no_value": Fault(
        "a column of one value and NULLs is left out as a constant", ("null_as_value",), _null_is_no_value
    ),
    "zero_dates_end_a_result": Fault(
        "a SELECT over a table with one '0000-00-00' shows nothing",
        ("shown_as_text", "shown_in_every_format"),
        _zero_dates_end_a_result,
    ),
    "one_odd_column_refuses_all": Fault(
        "a column that no feature can use refuses SELECT *", ("odd_column",), _one_odd_column_refuses_all
    ),
    "frames_as_arrow_takes_them": Fault(
        "a data frame of an odd form ends with an error of Arrow, or a column gets another name",
        ("frame_of_any_form",),
        _frames_as_arrow_takes_them,
    ),
    "zone_of_the_session_is_taken_for_utc": Fault(
        "after SET time_zone, instants of MySQL are shown and written hours late",
        ("session_zone",),
        _zone_of_the_session_is_taken_for_utc,
    ),
    "rows_in_the_order_of_the_table": Fault(
        "the order of the rows in the table decides the order of the training",
        ("rows_permuted",),
        _rows_in_the_order_of_the_table,
    ),
    "predictions_of_the_row_before": Fault(
        "in batches of more than 100 rows each row gets the prediction of the one before",
        ("batches_split", "predicted_rows_permuted"),
        _predictions_of_the_row_before,
    ),
    "numbers_lose_their_last_digits": Fault(
        "numbers are shown with twelve digits", ("shown_as_text",), _numbers_lose_their_last_digits
    ),
    "line_ends_change_a_number": Fault(
        "a number of a statement with several lines is read wrongly",
        ("plan_formatted", "plan_respelt"),
        _line_ends_change_a_number,
    ),
}


@contextlib.contextmanager
def put_back(name: str) -> Iterator[None]:
    """Put a fault back in this process and in the training processes that it starts; an empty name is none."""
    if not name:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        paths = [
            str(Path(__file__).parent / "child"),
            str(ROOT),
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv(VARIABLE, name)
        FAULTS[name].put(patch)
        yield


def put_back_in_child() -> None:
    """Put the fault back that the environment names, for the life of this process."""
    if name := os.environ.get(VARIABLE, ""):
        FAULTS[name].put(pytest.MonkeyPatch())


def report_put_back(names: Sequence[str]) -> int:
    """Put faults back one after another, and say which relation finds each, and after how many pairs."""
    from tests.relations.catalog import RELATIONS
    from tests.relations.checking import check
    from tests.relations.places import opened

    missed = 0
    for name in names or FAULTS:
        for relation in FAULTS[name].relations:
            with put_back(name), opened() as place:
                place.warm()
                began, pairs, failure, seed = time.monotonic(), 0, "", 0
                while not failure and time.monotonic() - began < SECONDS:
                    outcome = check(RELATIONS[relation], place, seed, shrinks=False)
                    pairs, failure, seed = pairs + outcome.pairs, outcome.failure, seed + 1
            found = f"found after {pairs:,} pairs" if failure else f"NOT FOUND in {pairs:,} pairs"
            print(f"{name}, by {relation}: {found}, {time.monotonic() - began:.0f} s", flush=True)
            missed += not failure
    return int(missed > 0)
