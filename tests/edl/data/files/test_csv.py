"""CSV files: exactly their rows, types by all values, and what is found is said (FAULTS A19)."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data import TextSource, connect
from edl.errors import SourceError


def read(folder: Path, content: str | bytes, options: str = "", name: str = "t.csv") -> pa.Table:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with connect(f"csv:{path}{options}") as source:
        return source.stream("SELECT * FROM rows").read_all()


FIELDS = st.text(st.sampled_from("ab1,;\"' \n\r\t#\\äß漢|"), max_size=6).filter(lambda text: text != "")


@given(rows=st.lists(st.tuples(FIELDS, FIELDS), max_size=8), line_end=st.sampled_from(["\n", "\r\n"]))
def test_a19_every_field_comes_back_as_it_was_written(rows: list[tuple[str, str]], line_end: str) -> None:
    out = io.StringIO()
    # Python's writer leaves a carriage return unquoted where lines end without one.
    quoting = csv.QUOTE_MINIMAL if "\r" in line_end else csv.QUOTE_ALL
    writer = csv.writer(out, lineterminator=line_end, quoting=quoting)
    writer.writerow(["first", 'se"cond'])
    writer.writerows([f"x{first}", f"{second}x"] for first, second in rows)
    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder), out.getvalue())
    assert found.column_names == ["first", 'se"cond']
    assert [tuple(row.values()) for row in found.to_pylist()] == [(f"x{a}", f"{b}x") for a, b in rows]


def test_a19_quoted_line_ends_are_no_rows_in_a_large_file(tmp_path: Path) -> None:
    """Larger than what DuckDB reads at a time, so that its threads begin in the midst of quotes."""
    count = 300_000
    text = "id,note\n" + "".join(f'{i},"line {i}\n,""two"",\r\nthree"\n' for i in range(count))
    found = read(tmp_path, text)
    assert found["id"].to_pylist() == list(range(count))
    assert found["note"][count - 1].as_py() == f'line {count - 1}\n,"two",\r\nthree'


@pytest.mark.soak
def test_a19_fields_that_are_longer_than_what_a_thread_looks_at_are_no_rows(tmp_path: Path) -> None:
    line = 'and a "" quote,\nin many lines of text\n'
    text = "id,note\n" + "".join(f'{i},"{line * 200}"\n' for i in range(6000))
    found = read(tmp_path, text)
    assert found["id"].to_pylist() == list(range(6000))
    assert set(found["note"].to_pylist()) == {line.replace('""', '"') * 200}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "-2", ""], pa.int64(), [1, -2, None]),
        ([" 1 ", "2"], pa.int64(), [1, 2]),
        (["0", "10"], pa.int64(), [0, 10]),
        (["007", "12"], pa.string(), ["007", "12"]),
        (["1", "2.5", "-1e-3", ".5"], pa.float64(), [1.0, 2.5, -0.001, 0.5]),
        (["1", "nan", "-inf"], pa.float64(), None),
        (["nan", "inf"], pa.string(), ["nan", "inf"]),
        (["9223372036854775807"], pa.int64(), [2**63 - 1]),
        (["9223372036854775808", "1"], pa.float64(), [2.0**63, 1]),
        (["9223372036854775809", "1"], pa.string(), ["9223372036854775809", "1"]),
        (["1_000"], pa.string(), ["1_000"]),
        (["0x10"], pa.string(), ["0x10"]),
        (["1,5"], pa.string(), ["1,5"]),
        (["true", "FALSE"], pa.bool_(), [True, False]),
        (["no", "de"], pa.string(), ["no", "de"]),
        (["t", "f"], pa.string(), ["t", "f"]),
        (["2024-02-29"], pa.date32(), [dt.date(2024, 2, 29)]),
        (["2024-02-30"], pa.string(), ["2024-02-30"]),
        (["01/02/2024"], pa.string(), ["01/02/2024"]),
        (["13/02/2024", " 1/2/2024"], pa.date32(), [dt.date(2024, 2, 13), dt.date(2024, 2, 1)]),
        (["2.13.2024", "", "1.2.2024 10:11"], pa.timestamp("us"),
         [dt.datetime(2024, 2, 13), None, dt.datetime(2024, 1, 2, 10, 11)]),
        (["12345678901234567.5", "1"], pa.string(), ["12345678901234567.5", "1"]),
        (["2024-02-29 01:02", "2024-02-29T01:02:03.5"], pa.timestamp("us"),
         [dt.datetime(2024, 2, 29, 1, 2), dt.datetime(2024, 2, 29, 1, 2, 3, 500_000)]),
        (["2024-02-29 01:02:03+02:00"], pa.timestamp("us", "UTC"), [dt.datetime(2024, 2, 28, 23, 2, 3, tzinfo=dt.UTC)]),
        (["", ""], pa.string(), [None, None]),
        ([" x ", "y"], pa.string(), [" x ", "y"]),
        (["NA", "x"], pa.string(), ["NA", "x"]),
        (["1", "NA"], pa.int64(), [1, None]),
        (["NA", "1.5"], pa.float64(), [None, 1.5]),
        (["NULL", "x"], pa.string(), ["NULL", "x"]),
        (["#1", "x"], pa.string(), ["#1", "x"]),
    ],
)  # fmt: skip
def test_a_column_is_of_a_type_when_all_its_values_are(
    tmp_path: Path, values: list[str], kind: pa.DataType, expected: list[object] | None
) -> None:
    quoted = "".join(
        f'{number},"{value}"\n' if value else f"{number},\n" for number, value in enumerate(values)
    )
    found = read(tmp_path, "n,v\n" + quoted)
    assert found.schema.field("v").type == kind
    if expected is not None:
        assert found["v"].to_pylist() == expected


@pytest.mark.soak
def test_a_type_holds_for_the_last_row_too(tmp_path: Path) -> None:
    found = read(tmp_path, "v\n" + "1\n" * 300_000 + "x\n")
    assert found["v"].to_pylist()[-1] == "x"
    assert found.schema.field("v").type == pa.string()


def test_nothing_is_null_and_two_quotes_are_an_empty_text(tmp_path: Path) -> None:
    found = read(tmp_path, 'a,b,c\nx,1,x\n"",,""\n"","",\n')
    assert found["a"].to_pylist() == ["x", "", ""]
    assert found["b"].to_pylist() == [1, None, None]
    assert found["c"].to_pylist() == ["x", "", None]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("options", "content", "expected"),
    [
        ("?delim=;", "a;b\n1;x,y\n", [{"a": 1, "b": "x,y"}]),
        ("?delim=%09", "a\tb\n1\tx\n", [{"a": 1, "b": "x"}]),
        ("?header=false", "1,x\n2,y\n", [{"column0": 1, "column1": "x"}, {"column0": 2, "column1": "y"}]),
        ("?header=true", "k,2019\nx,1\n", [{"k": "x", "2019": 1}]),
        ("?text=a", "a,b\n3.1,1\n3.10,2\n", [{"a": "3.1", "b": 1}, {"a": "3.10", "b": 2}]),
        ("?nullstr=NA", "a,b\nNA,x\n1,NA\n", [{"a": None, "b": "x"}, {"a": 1, "b": None}]),
        ("?quote='", "a\n'x,y'\n", [{"a": "x,y"}]),
        ("?escape=%5C", 'a\n"x\\"y"\n', [{"a": 'x"y'}]),
        ("?encoding=latin-1", "a\ncafé\n".encode("latin-1"), [{"a": "café"}]),
        ("?encoding=utf-16", "a\ncafé\n".encode("utf-16"), [{"a": "café"}]),
        ("", b"\xef\xbb\xbfa,b\r\n1,2\r\n", [{"a": 1, "b": 2}]),
        ("", "a,b\n1,2", [{"a": 1, "b": 2}]),
        ("", "a\n", []),
        ("", '"a\nb","c,""d"\n1,2\n', [{"a\nb": 1, 'c,"d': 2}]),
        ("", "x y,select,größe\n1,2,3\n", [{"x y": 1, "select": 2, "größe": 3}]),
    ],
)
def test_options_say_how_a_file_is_written(
    tmp_path: Path, options: str, content: str | bytes, expected: list[dict[str, object]]
) -> None:
    assert read(tmp_path, content, options).to_pylist() == expected


@pytest.mark.soak
def test_tabs_and_compression_go_by_the_ending(tmp_path: Path) -> None:
    assert read(tmp_path, "a\tb\n1\t2\n", name="t.tsv").to_pylist() == [{"a": 1, "b": 2}]
    assert read(tmp_path, gzip.compress(b"a,b\n1,2\n"), name="t.csv.gz").to_pylist() == [{"a": 1, "b": 2}]


@pytest.mark.variants(5)
@pytest.mark.parametrize(
    ("options", "content", "message", "hint"),
    [
        ("", "", "is empty", "its first line has the names of the columns"),
        ("", "a,2019\nx,1\n", "holds the value 2019", "?header=true"),
        ("", ",,\n1,2,3\n", "first line of .* has no names", "?header=false"),
        ("", "a,A\n1,2\n", "more than one column named A", "its own name"),
        ("", "a,b\n1,2\n3\n", "line 3 of .*: 2 fields are expected, but there are 1", "quotes"),
        ("", "a,b\n1,2,3\n", "line 2 of .*: 2 fields are expected, but there are 3", "quotes"),
        ("", 'a,b\n1,"x\n', "line 2 of .*: a quote is not closed", "twice"),
        ("", 'a,b\n"x"y,1\n', "line 2 of .*: a quote is not closed, or text follows one", "twice"),
        ("?encoding=utf-8", b"a\n" + b"x\n" * 9000 + b"caf\xe9\n", "not text of the encoding", "?encoding=cp1252"),
        ("", "a,b\n1,2\r3,4\n", "t.csv: the lines end in different ways", "line feed"),
        ("?header=maybe", "a\n1\n", "header is true or false", "None"),
        ("?delim=", "a\n1\n", "delim is one character", "quote the URL"),
        ("?encoding=klingon", "a\n1\n", "encoding klingon is not known", "latin-1"),
    ],
)  # fmt: skip
def test_a_file_that_looks_otherwise_says_what_to_write(
    tmp_path: Path, options: str, content: str | bytes, message: str, hint: str
) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        read(tmp_path, content, options)
    assert hint in str(caught.value.hint)


def test_files_of_a_pattern_are_joined_by_the_names_of_their_columns(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n", encoding="utf-8")
    (tmp_path / "2.csv").write_text("b,a\ny,2.5\n", encoding="utf-8")
    with connect(f"csv:{tmp_path}/?.csv") as source:
        assert source.stream("SELECT * FROM rows").read_all().to_pylist() == [
            {"a": 1.0, "b": "x"},
            {"a": 2.5, "b": "y"},
        ]
    (tmp_path / "3.csv").write_text("a,c\n1,x\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"3\.csv has the columns a, c, .*1\.csv has a, b"):
        connect(f"csv:{tmp_path}/?.csv")


def notes(folder: Path, content: str | bytes, name: str = "t.csv") -> list[str]:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with connect(str(folder / name)) as source:
        assert isinstance(source, TextSource)
        return list(source.notes)


SEMICOLON, COMMA = "with a semicolon as the separator", "with n as a decimal comma"
DAYS = "with d as day/month/year"
DAY_OR_MONTH = "day/month/year or month/day/year? ?dates=day-first or ?dates=month-first decides"


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("a,b\n1,x\n", None),
        (",g,y\n0,a,1.5\n", "with the name column0 where the first line has none"),
        ("a,b,\n1,2,\n", "without the last column, which is empty"),
        ("a,b,\n1,2,3\n", "with the name column2 for the last column"),
        ("x, y\n1,2\n", "without the blanks around the name y"),
        ("# exported\nx,y\n1,2\n", "from line 2 (as ?skip=1 states)"),
        ('a,b\n"x",  "y"\n', "without the blanks beside quotes"),
        ('a,b\n1,"x \\"y\\""\n', 'with \\" as a quote inside of quotes'),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "without a line of names (as ?header=false states)"),
        ("n;d\n1,5;26/12/2024\n", f"{SEMICOLON}; {COMMA}; {DAYS} (as ?delim=%3B&decimal=%2C&dates=day-first states)"),
        ("d,x\n01/02/2024,1\n", f"with d as text: {DAY_OR_MONTH}"),
        ("i,x\n12345678901234567890,1\n", "with i as text: its numbers have more than 15 digits"),
        ("name\nMüller €\n".encode("cp1252"), "as cp1252 (as ?encoding=cp1252 states)"),
    ],
)  # fmt: skip
def test_what_is_found_and_not_plain_is_said_in_a_line(
    tmp_path: Path, content: str | bytes, note: str | None
) -> None:
    assert notes(tmp_path, content) == ([] if note is None else [f"t.csv is read {note}"])


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    "content",
    [
        "n;d\n1,5;26/12/2024\n",
        "# x\na,b\n1,2\n",
        "1.5,x\n2.5,y\n",
        "n|q\n1|2\n",
        "a\nMüller\n".encode("cp1252"),
    ],
)
def test_the_options_of_a_note_state_what_was_found(tmp_path: Path, content: str | bytes) -> None:
    found = read(tmp_path, content)
    [note] = notes(tmp_path, content)
    options = note.partition("(as ")[2].partition(" states)")[0]
    assert read(tmp_path, content, options).equals(found)


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ('c,n\n"x", 1\n "y" ,2\n"z",3 \n', ["x", "y", "z"]),
        ('c;n\n"x; y"; "1"\n"z"; "2"\n', ["x; y", "z"]),
        ('c,n\n"x \\"y\\"",1\n"C:\\temp\\\\",2\n', ['x "y"', "C:\\temp\\"]),
        ('c,n\n "x, \\"y\\"" ,1\n', ['x, "y"']),
        ('c,n\n"C:\\",1\n"a ""b""",2\n', ["C:\\", 'a "b"']),
    ],
)
def test_blanks_beside_quotes_and_escaped_quotes_are_no_part_of_a_value(
    tmp_path: Path, content: str, values: list[str]
) -> None:
    found = read(tmp_path, content)
    assert found["c"].to_pylist() == values
    assert found["n"].to_pylist() == [1, 2, 3][: len(values)]


@pytest.mark.parametrize("lines", ["\r\n \n", "\n \r\n", "\n \n \r\n", "\r\n \r\n \n"])
def test_lines_may_end_in_both_ways(tmp_path: Path, lines: str) -> None:
    ends = lines.split(" ")
    text = "n,c" + "\n" + "".join(f'{i},"a\r\n{i}\n"{ends[i % len(ends)]}' for i in range(20))
    found = read(tmp_path, text)
    assert found["n"].to_pylist() == list(range(20))
    assert found["c"].to_pylist() == [f"a\r\n{i}\n" for i in range(20)]


def test_files_of_a_pattern_may_be_written_in_different_ways(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n", encoding="utf-8")
    (tmp_path / "2.csv").write_bytes("b;a\nß;2,5\n".encode("cp1252"))
    (tmp_path / "3.csv").write_bytes("a\tb\n3\tz\n".encode("utf-16"))
    with connect(f"csv:{tmp_path}/?.csv?decimal=,") as source:
        assert source.stream("SELECT * FROM rows").read_all().to_pylist() == [
            {"a": 1.0, "b": "x"},
            {"a": 2.5, "b": "ß"},
            {"a": 3.0, "b": "z"},
        ]


@pytest.mark.variants(2)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.zst", "t.csv.gz"])
def test_compression_is_found_in_the_bytes(tmp_path: Path, name: str) -> None:
    with pa.output_stream(tmp_path / "packed", compression="zstd") as packed:
        packed.write(b"a,b\n1,2\n")
    for content in (gzip.compress(b"a,b\n1,2\n"), (tmp_path / "packed").read_bytes(), b"a,b\n1,2\n"):
        assert read(tmp_path, content, name=name).to_pylist() == [{"a": 1, "b": 2}]


def test_a_line_longer_than_what_the_parser_expects_is_read(tmp_path: Path) -> None:
    long = "x" * 3_000_000
    assert read(tmp_path, f'a,b\n1,"{long}"\n2,y\n')["b"].to_pylist() == [long, "y"]


def test_a_damaged_row_of_a_copied_file_has_its_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"line 4 of .*t\.csv: 2 fields are expected, but there are 3"):
        read(tmp_path, 'say "hi\na,b\nß,2\n1,2,3\n'.encode("cp1252"), "?skip=1")


def test_no_values_of_a_column_fit_another_reading(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("code,day\n1,13/02/2024\nA7,01/02/2024\n", encoding="utf-8")
    with connect(str(tmp_path / "t.csv")) as source:
        assert isinstance(source, TextSource)
        assert source.readings == {"code": "VARCHAR", "day": "DATE d/m/Y"}
        found = source.misfits({"code": "BIGINT", "day": "DATE m/d/Y"})
        assert "'A7' in row 2 of " in found["code"].message
        assert "'13/02/2024' in row 1 of " in found["day"].message
        source.read_as({"day": "VARCHAR"})
        assert source.stream("SELECT day FROM rows").read_all()["day"].to_pylist() == [
            "13/02/2024",
            "01/02/2024",
        ]
        source.read_as({})
        assert source.schema("SELECT day FROM rows").types == [pa.date32()]


def test_a_file_of_many_columns_opens_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    def seconds(columns: int) -> float:
        lines = [",".join(f"f{number}" for number in range(columns)), *[",".join(["0.5"] * columns)] * 100]
        (tmp_path / f"{columns}.csv").write_text("\n".join(lines), encoding="utf-8")
        began = time.process_time()
        connect(f"{tmp_path}/{columns}.csv").close()
        return time.process_time() - began

    seconds(10)
    assert seconds(800) < 8 * (seconds(100) + 0.05)  # the square would be 64
