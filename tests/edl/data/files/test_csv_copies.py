"""Copies of CSV files as RFC 4180 says, however the text is divided into blocks."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data.files.csv_copies import Repairs

FIELDS = st.text(st.sampled_from('ab1,;"\\ \n\r\t'), max_size=6)
ROWS = st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=5)


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def write_loosely(rows: list[tuple[str, str]], blanks: str, end: str) -> str:
    """Rows with blanks beside their fields, and backslashes before quotes and backslashes."""
    fields = [[field.replace("\\", "\\\\").replace('"', '\\"') for field in row] for row in rows]
    return "".join(
        f"{blanks},{blanks}".join(f'{blanks}"{field}"{blanks}' for field in row) + end for row in fields
    )


@given(
    rows=ROWS,
    blanks=st.sampled_from(["", " ", " \t "]),
    end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 40),
)
def test_a_loosely_written_file_has_the_fields_that_were_written(
    rows: list[tuple[str, str]], blanks: str, end: str, size: int
) -> None:
    text = write_loosely(rows, blanks, end)
    repairs = Repairs(blanks=True, escapes=True, line_ends=True)
    copy = "".join(repairs.apply(cut(text, size), ",", '"'))
    assert list(csv.reader(io.StringIO(copy, newline=""), strict=True)) == [list(row) for row in rows]
    assert "".join(repairs.apply([text], ",", '"')) == copy


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("text", "copy"),
    [
        ('a, "b" ,c\r\n', 'a,"b",c\n'),
        (' "a"  "b" ,1\n', '"a"  "b",1\n'),
        ('a "b" c,1\n', 'a "b" c,1\n'),
        ('" a "," ""b"" "\n', '" a "," ""b"" "\n'),
        ('a\n"b" ', 'a\n"b"'),
        ("a, b \r\n", "a, b \n"),
    ],
)
def test_only_blanks_between_a_quote_and_the_end_of_a_field_are_left_out(
    text: str, copy: str, size: int
) -> None:
    repairs = Repairs(blanks=True, line_ends=True)
    assert "".join(repairs.apply(cut(text, size), ",", '"')) == copy


def test_a_tab_that_separates_fields_is_no_blank() -> None:
    assert "".join(Repairs(blanks=True).apply(['"a"\t\t "b"\n'], "\t", '"')) == '"a"\t\t"b"\n'
