"""ML.GLOBAL_EXPLAIN for each class, from explained rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.predict_calls import predict_calls
from tests.sessions import open_in_folder

TRAIN = "SELECT a, b, flag FROM t TO TRAIN BoostedTreesClassifier LABEL flag INTO m"
CALL = "SELECT * FROM ML.GLOBAL_EXPLAIN(MODEL m, STRUCT(TRUE AS class_level_explain))"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("importances")) as opened:
        opened.run(
            "CREATE TABLE t AS SELECT range % 7 AS a, range % 3 AS b, range % 2 = 0 AS flag FROM range(60)"
        )
        yield opened


def test_the_columns_of_a_class_are_weighed_in_the_rows_that_it_is_predicted_for(session: Session) -> None:
    explained = {
        "flag": [True, True, False],
        "confidence": [0.9, 0.6, 0.8],
        "base": [0.5, 0.5, 0.5],
        "a_shap": [0.1, -0.3, -0.4],
        "b_shap": [0.5, 0.1, 0.0],
    }
    queries: list[Statement] = []

    def predict(statement: Statement) -> tuple[pa.Table, tuple[str, ...]]:
        queries.append(statement)
        return pa.table(explained), tuple(explained)

    [compiled] = session.compile(TRAIN)
    [call] = predict_calls(CALL, "duckdb")
    statement = Statement("predict", CALL, call.span)
    found = ModelFunction(call, statement, compiled.spec, session.source, predict, lambda _: None).rows()
    assert found.to_pylist() == [
        {"class_label": False, "feature": "a", "attribution": 0.4},
        {"class_label": False, "feature": "b", "attribution": 0.0},
        {"class_label": True, "feature": "b", "attribution": 0.3},
        {"class_label": True, "feature": "a", "attribution": 0.2},
    ]
    assert queries[0].kind == "explain"
    assert queries[0].select.endswith("LIMIT 1000")
