"""Where PREDICT(model, query) stands as a table, and what is only a name."""

from __future__ import annotations

import pytest

from edl.errors import Span, StatementSyntaxError
from sqlflow_edl.syntax.ast import Constant
from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.predict_calls import predict_calls, replace_parts, shared_queries


@pytest.mark.variants(30)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM PREDICT(m, t)", [("m", "t")]),
        (
            "SELECT * FROM t JOIN predict (a.b, (SELECT 1 AS x, f(2))) p ON t.x = p.x",
            [("a.b", "SELECT 1 AS x, f(2)")],
        ),
        (
            "SELECT * FROM s, PREDICT(m@2, SELECT a, b FROM t) AS p WHERE a > 1",
            [("m@2", "SELECT a, b FROM t")],
        ),
        ("SELECT * FROM PREDICT('a b@3', x.y) p, PREDICT(n, u) q", [("a b@3", "x.y"), ("n", "u")]),
        ("WITH p AS (SELECT * FROM PREDICT(m, t)) SELECT * FROM p", [("m", "t")]),
        ("SELECT * FROM PREDICT(m, (SELECT * FROM PREDICT(n, t)))", [("m", "SELECT * FROM PREDICT(n, t)")]),
        ("SELECT a, (SELECT max(b) FROM PREDICT(m, t)) FROM u", [("m", "t")]),
        ("INSERT INTO u SELECT * FROM PREDICT(m, t)", [("m", "t")]),
        ("SELECT a, predict(x, y) FROM t", []),
        ("SELECT predict FROM predict", []),
        ("SELECT 'FROM PREDICT(m, t)' /* FROM PREDICT(m, t) */ FROM t", []),
        ("SELECT * FROM s.PREDICT(m, t)", []),
    ],
)
def test_a_call_is_a_table_of_the_query(text: str, found: list[tuple[str, str]], dialect: str) -> None:
    calls = predict_calls(text, dialect)
    assert [(str(call.model), call.query) for call in calls] == found
    for call in calls:
        assert text[call.span.start : call.span.end].lower().startswith("predict")
        assert text[call.query_span.start : call.query_span.end] == call.query


def test_calls_are_found_in_sql_that_sqlglot_does_not_know() -> None:
    text = "SELECT * FROM a UNHEARD OF JOIN PREDICT(m, t) USING (((a), predict(b, c)"
    assert [call.query for call in predict_calls(text, "duckdb")] == ["t"]


def test_settings_are_attributes_of_the_statement() -> None:
    text = "SELECT * FROM PREDICT(m, t, threshold = 0.3, predict.interval => 0.9, batch_size := 64)"
    (call,) = predict_calls(text, "duckdb", 100)
    found = {each.key: each.value.value for each in call.attributes if isinstance(each.value, Constant)}
    assert found == {"predict.threshold": 0.3, "predict.interval": 0.9, "predict.batch_size": 64}
    value = call.attributes[0].value.span
    assert text[value.start - 100 : value.end - 100] == "0.3"


@pytest.mark.parametrize(
    ("call", "message", "at"),
    [
        ("PREDICT()", "PREDICT needs a model and a query", "PREDICT()"),
        ("PREDICT(m)", "PREDICT needs a query behind the model", "PREDICT(m)"),
        ("PREDICT(m,)", "PREDICT needs a query behind the model", "PREDICT(m,)"),
        ("PREDICT(1 + 2, t)", "this is not the name of a model", "1 + 2"),
        ("PREDICT(m, a + b)", "PREDICT takes a query or the name of a table", "a + b"),
        ("PREDICT(m, t, often)", "a setting of PREDICT is a name and a number or text", "often"),
        (
            "PREDICT(m, t, threshold = high)",
            "a setting of PREDICT is a name and a number or text",
            "threshold = high",
        ),
    ],
)
def test_a_call_that_cannot_be_meant_is_named_with_its_place(call: str, message: str, at: str) -> None:
    text = f"SELECT * FROM {call} p"
    with pytest.raises(StatementSyntaxError, match=message) as caught:
        predict_calls(text, "duckdb", 7)
    span = caught.value.span
    assert span is not None
    assert text[span.start - 7 : span.end - 7] == at


def test_other_text_takes_the_place_of_spans() -> None:
    assert replace_parts("abcdef", [(Span(1, 2), "_"), (Span(4, 6), "")]) == "a_cd"


@pytest.mark.parametrize(
    ("text", "word", "names"),
    [
        ("SELECT 1", "", []),
        (
            "WITH a AS (SELECT 1), b (x, y) AS NOT MATERIALIZED (SELECT 2, 3) SELECT * FROM a",
            "WITH",
            ["a", "b"],
        ),
        ('INSERT INTO t WITH RECURSIVE "A b" AS (SELECT 1) SELECT * FROM x', "WITH RECURSIVE", ["A b"]),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a)", "", []),
    ],
)
def test_common_table_expressions_are_found(text: str, word: str, names: list[str]) -> None:
    found, shared = shared_queries(text, "duckdb")
    assert (found, [each.name for each in shared]) == (word, names)
    assert all(text[each.span.end - 1] == ")" for each in shared)
