"""Statistics of rows and distances between two sets of them, against numbers that can be counted by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from tests.sessions import open_in_folder


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("statistics")) as opened:
        opened.run(
            "CREATE TABLE t AS SELECT NULLIF(i, 3) AS x, ['a', 'b', NULL][1 + i % 3] AS \"A key\", i > 1 AS flag, "
            "[i, 2 * i] AS pair, TIMESTAMP '2024-01-01' + to_days(CAST(i AS INT)) AS at FROM range(9) AS r(i)"
        )
        yield opened


def rows(session: Session, text: str) -> list[dict]:
    return session.run(text)[-1].to_arrow().to_pylist()


def test_a_column_is_described_by_what_its_type_has(session: Session) -> None:
    found = {
        row["name"]: row
        for row in rows(session, "SELECT * FROM ML.DESCRIBE_DATA(TABLE t, STRUCT(3 AS top_k))")
    }
    assert list(found) == ["x", "A key", "flag", "pair", "at"]
    x, key, flag, pair, at = found.values()
    assert (x["num_rows"], x["num_nulls"], x["num_zeros"], x["num_values"]) == (9, 1, 1, 8)
    assert (x["min"], x["max"], x["mean"], x["median"], x["quantiles"]) == ("0", "8", 33 / 8, 4.5, [0, 4, 8])
    assert x["stddev"] == pytest.approx(2.90, abs=0.01)
    assert (key["unique"], key["avg_string_length"], key["min"]) == (2, 1.0, None)
    assert key["top_values"] == [{"value": "a", "count": 3}, {"value": "b", "count": 3}]
    assert (flag["min"], flag["max"], flag["top_values"][0]) == (
        "false",
        "true",
        {"value": "true", "count": 7},
    )
    assert (pair["total_array_length"], pair["max_array_length"], pair["max"]) == (18, 2, "16")
    assert (at["min"][:10], at["unique"]) == ("2024-01-01", 9)


def test_a_table_of_no_rows_is_described(session: Session) -> None:
    found = rows(session, "SELECT * FROM ml.describe_data((SELECT * FROM t WHERE x > 99))")
    assert [row["num_rows"] for row in found] == [0] * 5
    assert {row["mean"] for row in found} == {None}


def test_equal_rows_are_not_apart_and_other_ones_are(session: Session) -> None:
    call = "SELECT * FROM ML.VALIDATE_DATA_DRIFT(TABLE t, (SELECT * EXCLUDE (pair) {} FROM t))"
    found = rows(session, call.format(""))
    assert [row["input"] for row in found] == ["x", "A key", "flag", "at"]
    assert {(row["value"], row["threshold"], row["is_anomaly"]) for row in found} == {(0.0, 0.3, False)}
    found = rows(session, call.format("REPLACE (x + 100 AS x, 'c' AS \"A key\")"))
    far = {row["input"]: (row["metric"], row["value"], row["is_anomaly"]) for row in found}
    # a NULL of nine rows in both stays in common, with a ninth of the whole
    assert far["x"] == ("JENSEN_SHANNON_DIVERGENCE", pytest.approx(8 / 9), True)
    assert far["A key"] == ("L_INFTY", 1.0, True)


def test_single_columns_have_limits_of_their_own(session: Session) -> None:
    tables = "(SELECT 1 AS x, 5 AS y, 'a' AS k), (SELECT 2 AS x, 5 AS y, 'b' AS k)"
    settings = (
        "STRUCT([('x', 1.0)] AS numerical_thresholds, [('k', 0.75), ('y', 0)] AS categorical_thresholds)"
    )
    found = rows(session, f"SELECT * FROM ML.VALIDATE_DATA_DRIFT({tables}, {settings})")
    assert {row["input"]: row["threshold"] for row in found} == {"x": 1.0, "y": 0.0, "k": 0.75}
    assert {row["input"] for row in found if row["is_anomaly"]} == {"k"}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("[('z', 0.1)]", "there is no column z to compare"),
        ("[('x', 2)]", "x is a number from 0 to 1"),
        ("[('x')]", "these are no thresholds of columns"),
        ("[('x', 0.1), 3]", "these are no thresholds of columns"),
    ],
)
def test_a_wrong_limit_of_a_column_is_an_error_at_its_place(
    session: Session, limits: str, message: str
) -> None:
    text = "SELECT * FROM ML.VALIDATE_DATA_DRIFT((SELECT 1 AS x), (SELECT 2 AS x), STRUCT({} AS numerical_thresholds))"
    with pytest.raises(SQLFlowError, match=message) as raised:
        rows(session, text.format(limits))
    assert raised.value.span is not None


def test_settings_choose_the_metric_and_the_limit_of_categories(session: Session) -> None:
    settings = (
        "STRUCT('jensen_shannon_divergence' AS categorical_metric_type, 1.0 AS categorical_default_threshold)"
    )
    text = f"SELECT * FROM ML.VALIDATE_DATA_DRIFT((SELECT 'a' AS k), (SELECT 'b' AS k), {settings})"
    [row] = rows(session, text)
    assert row == {
        "input": "k",
        "metric": "JENSEN_SHANNON_DIVERGENCE",
        "threshold": 1.0,
        "value": 1.0,
        "is_anomaly": False,
    }


def test_a_column_without_values_has_no_distance(session: Session) -> None:
    text = "SELECT * FROM ML.VALIDATE_DATA_DRIFT((SELECT CAST(NULL AS INT) AS x), (SELECT 1 AS x))"
    [row] = rows(session, text)
    assert (row["value"], row["is_anomaly"]) == (None, None)


def test_common_tables_are_read_by_both_queries(session: Session) -> None:
    shared = "WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM t)"
    [row] = rows(session, f"{shared} SELECT value FROM ML.VALIDATE_DATA_DRIFT(TABLE a, TABLE b)")
    assert 0 < row["value"] < 1


def test_skew_compares_the_columns_of_the_model_with_the_training_rows(session: Session) -> None:
    session.run(
        "CREATE OR REPLACE MODEL m OPTIONS(model_type='BOOSTED_TREE_REGRESSOR', input_label_cols=['y'], "
        "max_iterations=1, data_split_method='NO_SPLIT') AS SELECT x, \"A key\", 2 * x AS y FROM t WHERE x IS NOT NULL"
    )
    found = rows(session, "SELECT * FROM ML.VALIDATE_DATA_SKEW(MODEL m, (SELECT * FROM t WHERE x < 5))")
    assert [row["input"] for row in found] == ["x", "A key"]
    assert found[1]["value"] == pytest.approx(
        max(abs(2 / 4 - 3 / 8), abs(2 / 4 - 3 / 8), abs(1 / 4 - 2 / 8)), abs=0.13
    )


def test_the_place_of_an_error_in_a_query_is_its_own(session: Session) -> None:
    text = "SELECT * FROM ML.DESCRIBE_DATA((SELECT nothing FROM t))"
    with pytest.raises(SQLFlowError, match="nothing") as raised:
        session.run(text)
    assert raised.value.span is not None
    assert text[raised.value.span.start : raised.value.span.end] == "nothing"
