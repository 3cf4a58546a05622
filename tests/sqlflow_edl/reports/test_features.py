"""What a model sees of rows, as SHOW FEATURES tells it."""

from __future__ import annotations

import datetime as dt

import msgspec
import pyarrow as pa
import pytest

from edl import spec
from edl.errors import SemanticError
from sqlflow_edl.reports import features
from tests.edl.models.conftest import SPEC
from tests.trained import Models

BATCH = pa.record_batch(
    {
        "id": [1, 2, 3],
        "x": pa.array([5.0, None, 30.0]),
        "city": ["oslo", "rome", None],
        "tags": ["a,b", "", None],
        "day": [dt.date(2024, 2, 5), None, dt.date(2023, 12, 31)],
    }
)
CITY = spec.Vocabulary("city", ("oslo", "bonn"))


@pytest.mark.parametrize(
    ("feature", "name", "values"),
    [
        (spec.Standardize("x", 10.0, 5.0), "standardize(x)", [-1.0, 0.0, 4.0]),
        (spec.Numeric(spec.Computed("/", ("x", 5.0)), 2.0), "numeric(x / 5)", [1.0, 2.0, 6.0]),
        (
            spec.PiecewiseLinear("x", (0.0, 10.0, 20.0), nulls=True),
            "piecewise_linear(x)",
            [[1.0, 0.5, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]],
        ),
        (spec.Periodic("x", 10.0, 5.0, 4), "periodic(x, 4)", [-1.0, 0.0, 4.0]),
        (spec.OneHot(CITY), "one_hot(vocabulary(city))", ["oslo", None, None]),
        (spec.Embedding(spec.HashBucket("city", 1), 8), "embedding(hash_bucket(city, 1), 8)", [0, 0, None]),
        (spec.OneHot(spec.Bucket("x", (5.0, 9.5))), "one_hot(bucket(x))", ["5 to 9.5", None, "from 9.5"]),
        (spec.OneHot(spec.DatePart("day", "month")), "one_hot(date_part(day, month))", [2, None, 12]),
        (
            spec.Embedding(spec.ListOf(spec.Vocabulary("tags", ("b", "a"))), 2),
            "embedding(list_of(vocabulary(tags)))",
            [["a", "b"], [], []],
        ),
        (
            spec.Sequence(spec.ListOf(spec.Vocabulary("tags", ("b", "a"))), 3),
            "sequence(list_of(vocabulary(tags)), 3)",
            [["a", "b"], [], []],
        ),
        (spec.Raw("x"), "raw(x)", [5.0, None, 30.0]),
        (spec.Raw("day", "year"), "raw(day, year)", [2024.0, None, 2023.0]),
        (spec.Codes(CITY), "vocabulary(city)", ["oslo", None, None]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_feature_has_a_column_of_what_the_model_takes(
    feature: spec.Feature, name: str, values: list[object]
) -> None:
    found = features.reader(
        msgspec.structs.replace(SPEC, inputs={"features": (feature,)}), [BATCH], BATCH.schema, ["id"]
    ).read_all()
    assert found.to_pydict() == {"id": [1, 2, 3], name: values}


@pytest.mark.soak
def test_the_statement_shows_the_features_of_a_model(trained: Models) -> None:
    trained["computed_trees"]
    [shown] = trained.session.run(
        "SHOW FEATURES FOR computed_trees (SELECT * FROM sales ORDER BY id LIMIT 4)"
    )
    table = shown.to_arrow()
    assert table.num_rows == 4
    ratio = table["raw(amount / small)"].to_pylist()
    [plain] = trained.session.run("SELECT amount / nullif(small, 0) AS r FROM sales ORDER BY id LIMIT 4")
    assert ratio == pytest.approx(plain.to_arrow()["r"].to_pylist())


def test_features_are_a_result_set(trained: Models) -> None:
    trained["computed_trees"]
    with pytest.raises(SemanticError) as raised:
        list(
            trained.session.run(
                "SELECT * FROM sales TO PREDICT t WITH predict.report = features USING computed_trees"
            )
        )
    assert raised.value.message == "features are a result set"


def test_levels_may_be_larger_than_any_signed_integer() -> None:
    known = features.levels(spec.Vocabulary("id", (2**64 - 1, 2**63)), [0, 1, 2])
    assert known.to_pylist() == [2**64 - 1, 2**63, None]
