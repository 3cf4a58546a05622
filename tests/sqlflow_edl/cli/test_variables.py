"""`--var`: a name and a value."""

from __future__ import annotations

import argparse

import pytest

from sqlflow_edl.cli.variables import assignment


def test_an_assignment_is_a_name_and_any_value() -> None:
    assert assignment("a=b=c") == ("a", "b=c")
    assert assignment("größe=") == ("größe", "")


@pytest.mark.parametrize("text", ["", "a", "=x", "1=2", "a b=c", "a-b=c"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        assignment(text)
