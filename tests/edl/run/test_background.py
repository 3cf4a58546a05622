"""Background rows that a model keeps of its training, and those made of quantiles."""

from __future__ import annotations

from datetime import date, timedelta

import msgspec
import numpy as np
import pyarrow as pa

from edl.data.readers import BatchReader
from edl.run.background import MOST_BYTES, MOST_ROWS, background_rows, needs_background, spread_rows
from edl.spec import AnomalyLabel, ClassLabel, JobSpec, Raw
from tests.edl.models.conftest import SPEC

COUNT = 5000
random = np.random.default_rng(5)
NUMBER = random.normal(100, 20, COUNT)
ROWS = pa.record_batch(
    {
        "id": np.arange(COUNT),
        "x": NUMBER,
        "visits": (NUMBER / 10).round().astype(np.int32),
        "day": [date(2024, 1, 1) + timedelta(days=int(each)) for each in NUMBER],
        "city": np.where(NUMBER > 100, "oslo", "rome"),
        "name": [f"customer {number}" for number in range(COUNT)],
    }
)
COLUMNS = ("x", "visits", "day", "city", "name")


def spec_of(*columns: str, **changes: object) -> JobSpec:
    inputs = {"features": tuple(Raw(name) for name in columns)}
    return msgspec.structs.replace(SPEC, inputs=inputs, **changes)


def test_rows_are_taken_from_all_parts_of_the_training_rows() -> None:
    found = background_rows(spec_of("id", "x"), BatchReader(ROWS), 4000)
    assert found is not None
    numbers = found["id"].to_numpy()
    assert found.num_rows == MOST_ROWS
    assert found.schema.names == ["id", "x"]
    assert numbers.min() < 500
    assert 3500 <= numbers.max() < 4000, "a validation row is none of the training"


def test_few_rows_are_all_kept_once() -> None:
    for count in (1, 3, 199):
        assert sorted(spread_rows(BatchReader(ROWS), 0, count, MOST_ROWS, ["id"])["id"].to_pylist()) == list(
            range(count)
        )


def test_rows_of_long_texts_are_fewer() -> None:
    rows = pa.record_batch({"x": ["long" * 25_000] * 100})
    found = background_rows(spec_of("x"), BatchReader(rows), 100)
    assert found is not None
    assert found.nbytes <= MOST_BYTES
    assert found.num_rows == 7


def test_trees_and_models_that_are_not_explained_keep_none() -> None:
    assert needs_background(spec_of("x"))
    assert not needs_background(spec_of("x", framework="lightgbm"))
    assert not needs_background(spec_of("x", label=AnomalyLabel()))
    assert background_rows(spec_of("x", "absent"), BatchReader(ROWS), COUNT) is None


def test_rows_of_quantiles_are_no_rows_of_the_training() -> None:
    spec = spec_of(*COLUMNS, keep_rows="none", label=ClassLabel("y", ("a", "b")))
    found = background_rows(spec, BatchReader(ROWS), COUNT)
    assert found is not None
    assert found.schema == pa.schema([ROWS.schema.field(name) for name in COLUMNS])
    x = found["x"].to_numpy()
    assert abs(x.mean() - 100) < 2
    assert abs(x.std() - 20) < 2
    assert set(found["name"].to_pylist()) == {None}, "a text of one row is never kept"
    assert set(found["city"].to_pylist()) == {"oslo", "rome"}
    together = np.corrcoef(x, found["visits"].to_numpy())[0, 1]
    assert abs(together) < 0.5, "values of a row did not belong together"
    assert max(found["day"].to_pylist()) < date(2024, 1, 1) + timedelta(days=200)


def test_quantiles_keep_the_share_of_nulls() -> None:
    half = pa.record_batch(
        {"x": [None if number % 2 else 7.0 for number in range(400)], "none": pa.nulls(400, pa.int64())}
    )
    spec = spec_of("x", "none", keep_rows="none")
    found = background_rows(spec, BatchReader(half), 400)
    assert found is not None
    assert found["x"].null_count == found.num_rows // 2
    assert found["none"].null_count == found.num_rows


def test_the_setting_is_written_where_it_differs() -> None:
    assert b"keep_rows" not in msgspec.json.encode(SPEC)
    assert b'"keep_rows":"none"' in msgspec.json.encode(spec_of("x", keep_rows="none"))
