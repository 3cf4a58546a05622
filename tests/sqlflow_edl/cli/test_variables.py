"""`--var`: a name and a value."""

from __future__ import annotations

import argparse

import pytest

from sqlflow_edl.cli.variables import assignment, filled


def test_an_assignment_is_a_name_and_any_value() -> None:
    assert assignment("a=b=c") == ("a", "b=c")
    assert assignment("größe=") == ("größe", "")


@pytest.mark.parametrize("text", ["", "a", "=x", "1=2", "a b=c", "a-b=c"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        assignment(text)


def test_without_variables_braces_mean_nothing() -> None:
    text = "SELECT '{{ x }} {% raw %}' {# no comment"
    assert filled(text, []) is text
    assert filled("{{ x }}", [("x", "1"), ("x", "2")]) == "2"
