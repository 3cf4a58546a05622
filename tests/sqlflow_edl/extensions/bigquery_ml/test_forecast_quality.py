"""ML.EVALUATE of a forecast on rows that follow the training rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from edl.errors import SemanticError
from sqlflow_edl.extensions.bigquery_ml.forecast_quality import evaluate_later
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.predict_calls import predict_calls
from tests.sessions import open_in_folder

TRAIN = "SELECT day, sold FROM t TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 2 LABEL sold INTO m"
LATER = "(SELECT 30 AS day, 10.0 AS sold UNION ALL SELECT 31, 0.0)"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("quality")) as opened:
        opened.run("CREATE TABLE t AS SELECT CAST(range AS INT) AS day, range * 1.0 AS sold FROM range(30)")
        yield opened


def evaluate(session: Session, arguments: str) -> pa.Table | None:
    def predict(statement: Statement) -> tuple[pa.Table, tuple[str, ...]]:
        return pa.table({"day": pa.array([31, 30], pa.int32()), "sold": [4.0, 8.0]}), ("sold",)

    [compiled] = session.compile(TRAIN)
    [call] = predict_calls(f"SELECT * FROM ML.EVALUATE(MODEL m, {arguments})", "duckdb")
    statement = Statement("evaluate", "", call.span, select=call.query, model=call.model)
    return evaluate_later(
        ModelFunction(call, statement, compiled.spec, session.source, predict, lambda _: None)
    )


def test_later_rows_are_compared_with_their_forecasts(session: Session) -> None:
    found = evaluate(session, f"{LATER}, STRUCT(TRUE AS perform_aggregation, 2 AS horizon)")
    assert found is not None
    [figures] = found.to_pylist()
    assert figures["mean_absolute_error"] == 3.0
    assert figures["root_mean_squared_error"] == pytest.approx(10**0.5)
    assert figures["mean_absolute_percentage_error"] == pytest.approx(0.2)  # of the value that is not 0
    assert figures["symmetric_mean_absolute_percentage_error"] == pytest.approx((2 / 9 + 2) / 2)
    assert figures["mean_absolute_scaled_error"] is None


def test_rows_with_those_of_the_training_are_measured_by_our_own_statement(session: Session) -> None:
    assert evaluate(session, "(SELECT * FROM t)") is None


def test_errors_of_each_row_are_not_there(session: Session) -> None:
    with pytest.raises(SemanticError, match="all its rows together"):
        evaluate(session, f"{LATER}, STRUCT(FALSE AS perform_aggregation)")
