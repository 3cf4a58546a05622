"""Programs as templates."""

from __future__ import annotations

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.texts.templates import render_template


def test_expressions_and_statements_are_replaced_and_the_rest_stays_as_it_is() -> None:
    text = "-- {# why #}\nSELECT '{{ city }}'\r\n{% if n | int > 2 %}LIMIT {{ n }}{% endif %};\n"
    assert (
        render_template(text, {"city": "O'Slo <&>", "n": "3"}, "duckdb")
        == "-- \nSELECT 'O'Slo <&>'\nLIMIT 3;\n"
    )


def test_a_name_that_may_be_missing_can_say_so() -> None:
    assert render_template("{{ x | default(7) }}{{ 1 if x is defined }}", {"y": "1"}, "duckdb") == "7"


@pytest.mark.parametrize(
    ("dialect", "wanted"),
    [("duckdb", "'O''Slo\\', 3"), ("mysql", "'O''Slo\\\\', 3"), ("hive", "'O\\'Slo\\\\', 3")],
)
def test_a_value_may_be_a_literal_of_the_database(dialect: str, wanted: str) -> None:
    variables = {"city": "O'Slo\\", "n": 3}
    assert render_template("{{ city | literal }}, {{ n | literal }}", variables, dialect) == wanted


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("SELECT 1,\n  {{ citty }}", "citty", "the variable citty is not given", "did you mean city?"),
        ("SELECT {{ zzz }}", "zzz", "the variable zzz is not given", "add --var zzz="),
        ("{% for i in [1] %}\n{{ nope.x }}\n{% endfor %}", "nope", "the variable nope is not given", ""),
        ("SELECT 1\n  {{ city", "{{ city", "unexpected end of template", ""),
        ("a\n{% bad %}\n", "{% bad %}", "unknown tag 'bad'", ""),
        ("a\n{{ 1 / 0 }}", "{{ 1 / 0 }}", "ZeroDivisionError: division by zero", ""),
        ("{{ city.x.y }}", "{{ city.x.y }}", "has no attribute 'x'", ""),
        ("{{ ''.__class__.__mro__ }}", "{{ ''.__class__.__mro__ }}", "SecurityError", ""),
        ("{{ range(10 ** 9) | list }}", "{{ range(10 ** 9) | list }}", "OverflowError", ""),
        ("{% include '/etc/passwd' %}", "{% include '/etc/passwd' %}", "no loader", ""),
    ],
)
def test_what_is_wrong_is_pointed_at(text: str, place: str, message: str, hint: str) -> None:
    with pytest.raises(SQLFlowError) as raised:
        render_template(text, {"city": "x"}, "duckdb")
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == place
