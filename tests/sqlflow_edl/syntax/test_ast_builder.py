"""Every case of statements.sql parses to what it says."""

from __future__ import annotations

import pytest

from edl.errors import Span, StatementSyntaxError
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Call, Constant, Name, calls
from tests.sql_cases import Case, cases
from tests.sqlflow_edl.syntax.written import field


@pytest.mark.variants(80)
@pytest.mark.parametrize("case", cases("syntax/statements.sql"), ids=str)
def test_a_statement_parses_to_what_the_fixture_says(case: Case) -> None:
    fields = dict(case.fields)
    statements = parse(case.program, case.dialect)

    assert [statement.kind for statement in statements] == fields.pop("kind").split()
    plans = [str(statement.plan) for statement in statements]
    assert plans == fields.pop("plan", " ".join(plans)).split()
    assert {name: field(statements[-1], name) for name in fields} == fields
    assert not any(statement.warnings for statement in statements)


def test_every_node_points_at_its_own_text() -> None:
    text = (
        "SELECT 1;\nSELECT 2 TO TRAIN a.M WITH x.y = f(b, k=[1]) COLUMN E(c, 8) AS d FOR i LABEL `l` INTO n;"
    )
    statement = parse(text)[1]
    assert statement.select_span
    assert statement.model
    assert statement.columns[0].items[0].alias
    call = statement.columns[0].items[0].value
    assert isinstance(call, Call)

    places = {
        statement.span: text[10:-1],
        statement.select_span: "SELECT 2",
        statement.model.span: "a.M",
        statement.attributes[0].span: "x.y = f(b, k=[1])",
        statement.attributes[0].key_span: "x.y",
        statement.columns[0].span: "COLUMN E(c, 8) AS d FOR i",
        call.span: "E(c, 8)",
        call.function_span: "E",
        call.args[1].span: "8",
        statement.columns[0].items[0].alias.span: "d",
        statement.labels[0].span: "`l`",
        statement.into[0].span: "n",
    }
    assert {span: text[span.start : span.end] for span in places} == places


def test_calls_are_found_inside_lists_and_maps() -> None:
    value = parse("SELECT 1 TO TRAIN m WITH a=[f(g(1), k={x: h()})]")[0].attributes[0].value

    assert [call.function for call in calls(value)] == ["f", "g", "h"]


def test_the_tree_holds_plain_text_and_nothing_of_the_parser() -> None:
    statement = parse("SELECT 1 TO TRAIN m WITH a='x' LABEL b INTO c.d VALIDATE ON (SELECT 2)")[0]
    assert statement.model
    assert statement.validate

    texts = [
        statement.model.text,
        *statement.into[0].parts,
        statement.labels[0].text,
        statement.validate.query,
    ]
    assert {type(text) for text in texts} == {str}


def test_a_text_in_label_is_a_name() -> None:
    assert parse("SELECT 1 TO TRAIN m LABEL 'employee.salary'")[0].labels == (
        Name(("employee.salary",), "'employee.salary'", Span(26, 43)),
    )


@pytest.mark.parametrize("target", ['""', 'main.""', '"".predicted', "``"])
def test_a_target_with_an_empty_name_is_refused(target: str) -> None:
    with pytest.raises(StatementSyntaxError, match="a name of the target is empty"):
        parse(f"SELECT 1 AS x TO PREDICT {target} USING m;")


def test_a_text_in_double_quotes_stays_a_text_in_column_and_calls() -> None:
    items = parse('SELECT 1 TO TRAIN m COLUMN "a.b", f("c")', "duckdb")[0].columns[0].items

    assert isinstance(items[0].value, Constant)
    assert isinstance(items[1].value, Call)
    assert isinstance(items[1].value.args[0], Constant)


@pytest.mark.parametrize("number", ["9" * 401, "1e999", "-1e999"])
def test_a_number_that_no_float_holds_is_an_error(number: str) -> None:
    with pytest.raises(StatementSyntaxError, match="the number is too"):
        parse(f"SELECT 1 TO TRAIN m WITH a={number}")
