"""Values in JSON texts, which a SELECT reads: the expression that the error names is one of the database."""

from __future__ import annotations

import re

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session

PAYLOAD = """SELECT '{"user": {"ages": [34, 51], "name": "Ada"}}' AS payload"""


def refused(session: Session, item: str) -> str:
    """The expression that the error names."""
    query = f"SELECT p.payload, income FROM people CROSS JOIN ({PAYLOAD}) p"
    text = f"{query} TO TRAIN DNNRegressor COLUMN {item} LABEL income INTO m"
    with pytest.raises(SQLFlowError, match="COLUMN reads no JSON") as raised:
        session.compile(text)
    span, hint = raised.value.span, raised.value.hint or ""
    assert span is not None
    assert item.removeprefix("LOG(").startswith(text[span.start : span.end])
    [written] = re.findall(r"in the SELECT: (.*) \(in a CAST", hint)
    return str(written)


@pytest.mark.parametrize(
    ("item", "path", "name", "value"),
    [
        ("payload.user.name", "$.user.name", "user_name", "Ada"),
        ("JSON(payload, '$.user.ages[1]')", "$.user.ages[1]", "user_ages_1", "51"),
        ("LOG(JSON_VALUE(payload, '$.user.ages[0]') + 1)", "$.user.ages[0]", "user_ages_0", "34"),
    ],
)
def test_the_error_names_an_expression_of_the_database(
    session: Session, item: str, path: str, name: str, value: str
) -> None:
    written = refused(session, item)
    if session.dialect == "maxcompute":  # its double has no such function
        assert written == f"GET_JSON_OBJECT(payload, '{path}') AS {name}"
        return
    found = session.source.stream(f"SELECT {written} FROM ({PAYLOAD}) p").read_all()
    assert {key: str(each[0]) for key, each in found.to_pydict().items()} == {name: value}


@pytest.mark.parametrize("item", ["JSON(city, '$..a[*]')", 'city."it\'s"'])
def test_a_path_that_is_none_gets_the_general_hint(session: Session, item: str) -> None:
    text = f"SELECT * FROM people TO TRAIN DNNRegressor COLUMN {item} LABEL income INTO m"
    with pytest.raises(SQLFlowError, match="COLUMN reads no JSON") as raised:
        session.compile(text)
    assert (
        raised.value.hint == "read the value in the SELECT, under a name of its own, and write that name here"
    )
