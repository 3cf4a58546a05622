"""Where rows of CSV begin, whatever the blocks are in which the file comes."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data.files.csv_index import LineScanner
from edl.errors import SourceError


def begins(text: bytes, size: int, *, empty_lines: bool = False) -> list[int]:
    scanner = LineScanner("f.csv", b",", b'"', empty_lines)
    blocks = [text[at : at + size] for at in range(0, len(text), size)]
    return [int(begin) for part in (*map(scanner.rows, blocks), scanner.end()) for begin in part]


# No lone carriage return: the csv module does not quote it.
FIELD = st.lists(st.sampled_from(["a", '"', ",", "\n", "\r\n", "é"]), max_size=6).map("".join)


@pytest.mark.soak
@given(st.lists(st.tuples(FIELD, FIELD), max_size=8), st.sampled_from(["\n", "\r\n"]), st.integers(1, 9))
def test_what_the_csv_module_writes_is_cut_into_its_rows(
    rows: list[tuple[str, str]], end: str, size: int
) -> None:
    wanted, text = [], b""
    for row in rows:
        wanted.append(len(text))
        line = io.StringIO()
        csv.writer(line, lineterminator=end).writerow(row)
        text += line.getvalue().encode()
    assert begins(text, max(size, 3)) == wanted


@pytest.mark.parametrize("size", [3, 4, 100])
def test_a_byte_order_mark_is_no_part_of_the_first_row(size: int) -> None:
    assert begins(b'\xef\xbb\xbf"a",b\n1,2', size) == [3, 9]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_empty_lines_are_rows_of_a_single_column_only(size: int) -> None:
    assert begins(b"a\n\n\r\nb\n", size) == [0, 5]
    assert begins(b"a\n\n\r\nb\n", size, empty_lines=True) == [0, 2, 3, 5]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'a,b\n1,x"y\n', "record 2 of f.csv: a quote is inside"),
        (b'a\n"x\n"\n"x"y\n', "record 3 of f.csv: a quote is inside"),
        (b'"x" \n', "record 1 of f.csv: a quote is inside"),
        (b"a\n1\r2\n", "record 2 of f.csv: a carriage return"),
        (b"a\n1\r", "record 2 of f.csv: a carriage return"),
        (b'a\n"x\n', "record 2 of f.csv: a quote is not closed"),
    ],
)
def test_what_would_make_rows_uncertain_is_named(size: int, text: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        begins(text, size)
