"""Result sets as text."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from sqlflow_edl.display.output import WRITERS, as_table, first_rows, table_width, write_records, write_rows

TABLE = pa.table({"n": pa.array([1, None, 30]), "what": ["a|b", "two\nlines", None]})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(name: str, table: pa.Table = TABLE) -> tuple[str, str]:
    out = io.StringIO()
    return WRITERS[name](table.to_reader(), out), out.getvalue()


def test_a_table_of_markdown_keeps_its_cells_apart() -> None:
    footer, text = written("markdown")
    assert footer == "3 rows"
    assert text.splitlines() == [
        "| n | what |",
        "| --: | --- |",
        "| 1 | a\\|b |",
        "|  | two lines |",
        "| 30 |  |",
    ]


def test_fields_between_tabs_are_quoted_where_they_have_to_be() -> None:
    assert written("tsv") == ("3 rows", 'n\twhat\n1\ta|b\n\t"two\nlines"\n30\t\n')


def test_rows_are_objects_on_a_line_each() -> None:
    footer, text = written("jsonl")
    assert footer == "3 rows"
    assert [json.loads(line) for line in text.splitlines()] == TABLE.to_pylist()
    assert json.loads(written("json")[1]) == TABLE.to_pylist()


def test_types_stand_under_the_names() -> None:
    out = io.StringIO()
    found = first_rows(TABLE.to_reader())
    write_rows(found.columns, found.rows, out, types=found.types)
    assert [line.split() for line in out.getvalue().splitlines()[:3]] == [
        ["n", "what"],
        ["int64", "string"],
        ["1", "a|b"],
    ]


def test_rows_one_below_another_have_a_line_for_each_value() -> None:
    out = io.StringIO()
    found = first_rows(TABLE.to_reader())
    write_records(found.columns, found.rows, out)
    assert out.getvalue().split()[:6] == ["row", "1", "n", "1", "what", "a|b"]


def test_a_null_is_never_the_text_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    pipe, terminal = io.StringIO(), Terminal()
    for out in (pipe, terminal):
        write_rows([("a", False), ("b", False)], [(None, "NULL")], out)
    assert pipe.getvalue().splitlines()[1] == "   NULL"
    assert terminal.getvalue().splitlines()[1] == "\x1b[2mNULL\x1b[0m  NULL"


def test_values_equal_the_databases() -> None:
    numbers = pa.table(
        {"single": pa.array([0.1], pa.float32()), "double": [1234567890.123], "items": [[1.5, None]]}
    )
    out = io.StringIO()
    found = first_rows(numbers.to_reader())
    write_rows(found.columns, found.rows, out)
    assert out.getvalue().splitlines()[1].strip().split("  ") == ["0.1", "1234567890.123", "[1.5, NULL]"]


def test_a_value_within_others_is_written_as_it_is_by_itself() -> None:
    price = Decimal("0.0000001")
    inside = pa.table(
        {
            "price": [price],
            "prices": [[price]],
            "row": [{"price": price, "raw": b"ab", "day": dt.date(2024, 1, 2), "none": None}],
            "map": pa.array([[("a", price)]], pa.map_(pa.string(), pa.decimal128(8, 7))),
        }
    )
    assert written("tsv", inside)[1].splitlines()[1].split("\t") == [
        "0.0000001",
        "[0.0000001]",
        "{price: 0.0000001, raw: 0x6162, day: 2024-01-02, none: NULL}",
        "{a: 0.0000001}",
    ]
    assert json.loads(written("jsonl", inside)[1]) == {
        "price": "0.0000001",
        "prices": ["0.0000001"],
        "row": {"price": "0.0000001", "raw": "YWI=", "day": "2024-01-02", "none": None},
        "map": [["a", "0.0000001"]],
    }


def test_the_rows_that_are_left_out_are_told() -> None:
    found = first_rows(TABLE.to_reader(max_chunksize=1), most=2)
    assert found.rows == [(1, "a|b"), (None, "two\nlines")]
    assert found.footer("ask for more") == "3 rows, 2 shown (ask for more)"


def test_a_table_is_as_wide_as_its_longest_line() -> None:
    table = as_table([("n", True), ("name", False)], [(1, "a" * 300), (22, "b")])
    assert table_width(table) == 2 + 2 + 300
