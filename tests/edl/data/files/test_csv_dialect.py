"""Dialects of CSV files: found by fixed rules, or an error with advice that can be followed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from edl.data import connect
from edl.data.files.csv_dialect import CSVDialect, find_dialect, options_of, same_dialect, settings
from edl.data.url import SourceURL
from edl.errors import SourceError


def dialect(folder: Path, text: str, *options: tuple[str, str], name: str = "t.csv") -> CSVDialect:
    path = folder / name
    path.write_bytes(text.encode())
    return find_dialect(str(path), settings(options), SourceURL("csv", str(path), options))


@pytest.mark.parametrize(
    ("text", "delim", "names"),
    [
        ("a,b\n1,2\n", ",", ["a", "b"]),
        ("a;b\n1,5;2\n", ";", ["a", "b"]),
        ("a\tb\n1\t2\n", "\t", ["a", "b"]),
        ("a|b\n1|2\n", "|", ["a", "b"]),
        ("a\n1\n", ",", ["a"]),
        ("a\nx;y\nz;u\n", ",", ["a"]),
        ('"a;b",c\n"1;2",3\n', ",", ["a;b", "c"]),
        ("a,b\n1,x;y\n", ",", ["a", "b"]),
        ("sep=;\na;b\n1;2\n", ";", ["a", "b"]),
        ("# by me; and you\n#\n\na;b\n1;2\n", ";", ["a", "b"]),
        ("#id,x\n1,2\n", ",", ["#id", "x"]),
        ("#id\n1\n", ",", ["#id"]),
        ("a,b\n'x,y',2\n'z',3\n", ",", ["a", "b"]),
        ("column1,,x\n1,2,3\n", ",", ["column1", "column1_", "x"]),
    ],
)
def test_the_separator_and_the_names_are_found(
    tmp_path: Path, text: str, delim: str, names: list[str]
) -> None:
    found = dialect(tmp_path, text)
    assert found.delim == delim
    assert list(found.names) == names


def test_a_single_column_of_rows_with_a_separator_is_said(tmp_path: Path) -> None:
    assert dialect(tmp_path, "Report\nx;y\n1;2\n").notes == (
        "as one column; a semicolon would divide the rows behind the first line",
    )


def test_the_end_of_a_name_tells_tabs(tmp_path: Path) -> None:
    assert dialect(tmp_path, "a\tb\n1\t2\n", name="t.tsv").notes == ()


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("5.1,setosa\n4.9,setosa\n", False),
        ("7,0,0\n3,1,0\n", False),
        ("2024-01-02,x\n2024-01-03,y\n", False),
        ("-1,x\n2,y\n", False),
        ("x,1.5\ny,z\n", None),
        ("country,2019,2020\nDE,1,2\n", None),
        ("0,1,2\n5,6,7\n", None),
        ("1.5\n", None),
        ("a,b\nx,y\n", True),
    ],
)
def test_a_first_line_of_values_is_told_from_names(tmp_path: Path, text: str, header: bool | None) -> None:
    if header is None:
        with pytest.raises(SourceError, match="should name the columns, but holds the value"):
            dialect(tmp_path, text)
    else:
        assert dialect(tmp_path, text).header is header


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;b,c\n1;2,3\n", "may be separated by a comma or a semicolon"),
        ("country,2019\nDE,1\n", "should name the columns"),
        (
            "Report, of May\nx;y;z\n1;2;3\n3;4;5\n",
            "line 1 of .* is not part of the table, which begins at line 2",
        ),
        (",,\n1,2,3\n", "has no names"),
        ("a,b\0c\n1,2\n", "a zero byte in the column name 'b.x00c'"),
    ],
)
def test_the_advice_of_an_error_opens_the_file(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        dialect(tmp_path, text)
    for url in shlex.split(str(caught.value.hint)):
        if url.startswith("csv:"):
            connect(url.rstrip(",")).close()


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ('"a","b"\n"r1",1,2\n"r2",3,4\n', "has 2 names, and the rows have 3 fields", "for the first column"),
        ("a,b\n1,2,\n3,4,\n", "has 2 names, and the rows have 3 fields", "',' at the end of the line"),
    ],
)
def test_a_line_of_fewer_names_is_told_from_a_title(tmp_path: Path, text: str, words: str, hint: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        dialect(tmp_path, text)
    assert hint in str(caught.value.hint)


def test_several_texts_for_null_are_all_taken(tmp_path: Path) -> None:
    (tmp_path / "na.csv").write_text("x,y\nNA,1\n?,2\n3,4\n")
    with connect(f"{tmp_path}/na.csv?nullstr=NA&nullstr=%3F") as source:
        assert source.stream("SELECT x FROM rows").read_all()["x"].to_pylist() == [None, None, 3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([("delim", ";"), ("delim", ",")], "delim is given twice"),
        ([("skip", "x")], "skip is a number of lines, not x"),
        ([("dates", "dmy")], "dates is day-first or month-first, not dmy"),
        ([("comment", "//")], "comment is one character"),
        ([("encoding", "klingon")], "klingon is not known"),
        ([("encoding", "base64")], "base64 is not known"),
    ],
)
def test_an_option_of_no_meaning_is_an_error(options: list[tuple[str, str]], words: str) -> None:
    with pytest.raises(SourceError, match=words):
        settings(options)


def test_options_after_a_bare_path_are_the_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "semi.csv").write_text("x;y\n1;2\n")
    with connect("semi.csv?delim=;") as source:
        assert source.stream("SELECT * FROM rows").read_all().to_pylist() == [{"x": 1, "y": 2}]


def test_a_dialect_is_restored_from_its_options(tmp_path: Path) -> None:
    found = dialect(tmp_path, "# x\na;b;\n1;2;\n", ("nullstr", "NA"), ("nullstr", "-"))
    restored = same_dialect(str(tmp_path / "t.csv"), options_of(found))
    assert options_of(restored) == options_of(found)
    assert (restored.names, restored.nulls, restored.unnamed_last) == (
        ("a", "b", "column2"),
        ("", "NA", "-"),
        True,
    )
