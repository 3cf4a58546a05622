"""CSV by row range: the same rows and types as through SQL, in bounded memory."""

from __future__ import annotations

import csv
import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import connect, open_reader
from edl.data.files.file_ranges import RangeReader, found_readings, pin_files
from edl.errors import SourceError

PARTS = ["a", "é", '"', ",", "\n", "\r\n", " ", "x"]
COLUMNS: dict[str, Callable[[random.Random], str]] = {
    "whole": lambda r: str(r.randrange(-5, 99999)),
    "number": lambda r: r.choice(["+1.5", "nan", "3", "1e5", " 2.5 ", ".5", "-Infinity"]),
    "flag": lambda r: r.choice(["True", "false", "TRUE"]),
    "day": lambda r: f"2026-01-{r.randrange(1, 28):02}",
    "time": lambda r: f"2026-01-{r.randrange(1, 28):02} 10:11",
    "instant": lambda r: f"2026-01-{r.randrange(1, 28):02}T10:11:12.5{r.choice(['Z', '+01:30', '-02'])}",
    "code": lambda r: r.choice(["007", "1", "99999999999999999999"]),
    "text": lambda r: "".join(r.choice(PARTS) for _ in range(r.randrange(8))),
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few rows are many pieces, and a row lies in several blocks."""
    monkeypatch.setattr("edl.data.files.csv_ranges.PIECE_ROWS", 7)
    monkeypatch.setattr("edl.data.files.csv_ranges.BLOCK_BYTES", 11)


def reader_of(written: str, folder: Path) -> RangeReader:
    reader = open_reader(pin_files(written, folder / "job"), folder / "job")
    assert isinstance(reader, RangeReader)
    return reader


def rows_of(written: str, folder: Path) -> pa.Table:
    reader = reader_of(written, folder)
    return pa.Table.from_batches(reader.read(0, reader.rows), reader.schema)


def through_sql(written: str) -> pa.Table:
    with connect(written) as source:
        return source.stream("SELECT * FROM rows").read_all()


@pytest.mark.variants(1)
@pytest.mark.parametrize("seed", range(6))
def test_rows_and_types_equal_the_sql_sources(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)  # noqa: S311
    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8-sig" if seed % 2 else "utf-8") as file:
        writer = csv.writer(file, lineterminator=source.choice(["\n", "\r\n"]))
        writer.writerow(COLUMNS)
        for _ in range(source.randrange(200)):
            writer.writerow([make(source) if source.random() < 0.9 else "" for make in COLUMNS.values()])
    ours, theirs = rows_of(str(path), tmp_path), through_sql(str(path))
    assert ours.schema == theirs.schema
    assert repr(ours.to_pylist()) == repr(theirs.to_pylist())  # a NaN is not equal to itself


def test_a19_header_quotes_and_embedded_newlines_give_exact_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(
        b'"id","say ""what"""\r\n1,"two\r\nlines, and a comma"\r\n\r\n2,""\r\n3,\r\n4,"""quoted"""'
    )
    assert rows_of(f"{tmp_path}/t.csv", tmp_path).to_pylist() == [
        {"id": 1, 'say "what"': "two\r\nlines, and a comma"},
        {"id": 2, 'say "what"': ""},
        {"id": 3, 'say "what"': None},
        {"id": 4, 'say "what"': '"quoted"'},
    ]


def test_an_empty_line_of_a_single_column_is_a_null_at_the_end_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n\n3\n\n")
    found = rows_of(f"{tmp_path}/t.csv", tmp_path).to_pylist()
    assert found == [{"a": 1}, {"a": None}, {"a": 3}, {"a": None}]


def test_types_hold_for_all_files_together(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n3.5,x\n")
    found = rows_of(f"{tmp_path}/*.csv", tmp_path)
    assert found.to_pylist() == [{"a": "1", "b": 2.0}, {"a": "x", "b": 3.5}]


def test_options_of_the_url_hold(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("1;'na''me';é\n2;-;x\n".encode("latin-1"))
    found = rows_of(
        f"csv:{tmp_path}/t.csv?delim=%3B&quote='&header=false&nullstr=-&encoding=latin-1", tmp_path
    )
    assert found.to_pylist() == [
        {"column0": 1, "column1": "na'me", "column2": "é"},
        {"column0": 2, "column1": None, "column2": "x"},
    ]


@pytest.mark.soak
def test_columns_that_are_not_asked_for_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n1,x,2\n")
    [batch] = reader_of(f"{tmp_path}/t.csv", tmp_path).read(0, 1, ["c", "a"])
    assert batch.to_pylist() == [{"c": 2, "a": 1}]


@pytest.mark.parametrize(
    ("content", "option", "words"),
    [
        ('a,b\n1,x "q"\n', "", "record 2 of .*: a quote is inside"),
        ("a,b\n1,2,3\n", "", "2 fields are expected, but there are 3"),
        ("a,b\n1,2\n", "?encoding=utf-16", "not text of the encoding utf-16"),
        ("a,b\n1,2\n", "?escape=%5C", "escape character"),
        (
            'a,b\n1, "2"\n',
            "",
            "ranges of rows cannot be read of .*, which is read without the blanks beside quotes",
        ),
        ("a,b\n1,2\n", "?delim=%C3%A9", "ASCII character"),
    ],
)
def test_what_would_make_rows_uncertain_is_named(
    content: str, option: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(SourceError, match=words):
        pin_files(f"csv:{tmp_path}/t.csv{option}", tmp_path / "job")


MEASURED = """
import resource
from pathlib import Path
import edl.data.files.csv_ranges
from edl.data import open_reader
from edl.data.files import file_ranges

def peak():  # MiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

file_ranges.KEPT_BYTES = 16 << 20
before = peak()
folder = Path({folder!r})
reader = open_reader(file_ranges.pin_files({path!r}, folder), folder)
rows = sum(batch.num_rows for batch in reader.read(0, reader.rows))
last = list(reader.read(reader.rows - 1, reader.rows))[-1].to_pylist()[0]
print(rows, last["id"], len(last["text"]), peak() - before)
"""


@pytest.mark.soak
def test_a19_a_file_larger_than_the_memory_in_use_is_read_exactly(
    tmp_path: Path, in_another_process: Callable[[str], str]
) -> None:
    text = 'a "" quote,\nand a line end ' * 300
    path, rows = tmp_path / "large.csv", 20_000
    with path.open("w") as file:
        file.write("id,text\n")
        for number in range(rows):
            file.write(f'{number},"{text}"\n')
    program = MEASURED.format(path=str(path), folder=str(tmp_path / "job"))
    found, last, length, grown = map(int, in_another_process(program).split())
    assert (found, last, length) == (rows, rows - 1, len(text) - 300)
    assert path.stat().st_size >> 20 > 150
    assert grown < 125


def test_later_files_are_read_as_the_training_rows_were(tmp_path: Path) -> None:
    training, later = tmp_path / "training.csv", tmp_path / "later.csv"
    training.write_text("x;day;k\n1,5;26.12.2024;a\n1.250,75;01.02.2024;b\n")
    pin_files(str(training), tmp_path / "training")
    readings = found_readings(tmp_path / "training")
    later.write_text("x;day;k\n1.250;01.02.2024;7\n" + "3;03.04.2024;8\n" * 9)
    assert pin_files(str(later), tmp_path / "guessed").schema[0].type == "double"
    pinned = pin_files(str(later), tmp_path / "later", readings=readings)
    rows = open_reader(pinned, tmp_path / "later")
    [first, *_] = pa.Table.from_batches(rows.read(0, 10), rows.schema).to_pylist()
    assert first == {"x": 1250.0, "day": dt.date(2024, 2, 1), "k": "7"}


def test_a_value_that_does_not_fit_the_reading_of_the_training_rows_is_named(tmp_path: Path) -> None:
    training, later = tmp_path / "training.csv", tmp_path / "later.csv"
    training.write_text("x;n\n1,5;1\n2,5;2\n")
    pin_files(str(training), tmp_path / "training")
    readings = found_readings(tmp_path / "training")
    later.write_text("x;n\n" + "2,5;1.5\n" * 20)
    assert [field.type for field in pin_files(str(later), tmp_path / "a", readings=readings).schema] == [
        "double",
        "double",
    ]
    later.write_text("x;n\n" + "2;1\n" * 20 + "1.5;2\n")
    with pytest.raises(SourceError, match=r"column x has the value '1\.5' in row 21 .* not a decimal comma"):
        pin_files(str(later), tmp_path / "b", readings=readings)


def test_later_files_of_rows_in_plain_form_keep_texts_and_may_have_numbers_in_another_form(
    tmp_path: Path,
) -> None:
    training, later = tmp_path / "training.csv", tmp_path / "later.csv"
    training.write_text("x;version;day\n1.5;1.9-a;2024-12-26\n")
    pin_files(str(training), tmp_path / "training")
    readings = found_readings(tmp_path / "training")
    assert readings == {"x": "DOUBLE", "version": "VARCHAR", "day": "DATE"}
    later.write_text("x;version;day\n1,5;1.10;2024-12-27\n")
    pinned = pin_files(str(later), tmp_path / "later", readings=readings)
    rows = open_reader(pinned, tmp_path / "later")
    assert pa.Table.from_batches(rows.read(0, 1)).to_pylist() == [
        {"x": 1.5, "version": "1.10", "day": dt.date(2024, 12, 27)}
    ]
    later.write_text("x;version;day\n1.5;1.10;4,5\n")
    with pytest.raises(SourceError, match="column day has the value '4,5' in row 1"):
        pin_files(str(later), tmp_path / "wrong", readings=readings)
