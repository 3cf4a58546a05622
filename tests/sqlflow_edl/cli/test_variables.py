"""`--var`: a name and a value."""

from __future__ import annotations

import argparse

import pytest

from sqlflow_edl.cli.program.variables import assignment, fill_variables


def test_an_assignment_is_a_name_and_any_value() -> None:
    assert [(each.name, each.value) for each in map(assignment, ("a=b=c", "größe="))] == [
        ("a", "b=c"),
        ("größe", ""),
    ]


def test_a_value_may_have_dates_and_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGION", "emea")
    assert assignment("place=${REGION}-${yyyy}").value.startswith("emea-2")
    with pytest.raises(argparse.ArgumentTypeError, match="did you mean REGION"):
        assignment("place=${REGIONS}")


@pytest.mark.parametrize("text", ["", "a", "=x", "1=2", "a b=c", "a-b=c"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        assignment(text)


def test_without_variables_braces_mean_nothing() -> None:
    text = "SELECT '{{ x }} {% raw %}' {# no comment"
    assert fill_variables(text, [], "duckdb") is text
    assert fill_variables("{{ x }}", [assignment("x=1"), assignment("x=2")], "duckdb") == "2"
