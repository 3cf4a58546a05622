"""Results as files."""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from edl.cli.output import LEAST_ROOM, check_suffix, prepare_output, write_model, write_rows
from edl.errors import JobError, SQLFlowError

TABLE = pa.table({"id": [1, 2, 3], "class": ["a", 'b",\n', None]})


@pytest.mark.parametrize("name", ["r.csv", "r.PARQUET", "r.arrow"])
def test_a_result_becomes_a_file_of_the_suffix(tmp_path: Path, name: str) -> None:
    write_rows(TABLE.to_reader(), tmp_path / name)
    read = {
        "r.csv": lambda path: csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True)),
        "r.PARQUET": parquet.read_table,
        "r.arrow": lambda path: pa.ipc.open_file(path).read_all(),
    }
    assert read[name](tmp_path / name)["id"].to_pylist() == [1, 2, 3]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [name]


def test_an_unknown_suffix_is_named() -> None:
    check_suffix(None)
    with pytest.raises(JobError, match=r"cannot write r\.xlsx") as caught:
        check_suffix(Path("r.xlsx"))
    assert caught.value.hint == "known suffixes: .csv, .parquet, .arrow"


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("old")

    def broken() -> pa.RecordBatchReader:
        def batches():  # type: ignore[no-untyped-def]
            yield TABLE.to_batches()[0]
            raise OSError(5, "Input/output error")

        return pa.RecordBatchReader.from_batches(TABLE.schema, batches())

    with pytest.raises(JobError, match="cannot write"):
        write_rows(broken(), file)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["r.csv"]


def test_lists_of_one_length_become_columns_of_csv(tmp_path: Path) -> None:
    lists = pa.array([[1.0, 2.0], [3.0, None]], pa.list_(pa.float64(), 2))
    rows = pa.table({"id": [1, 2], "p": lists})
    write_rows(rows.to_reader(), tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == '"id","p_0","p_1"\n1,1,2\n2,3,\n'
    write_rows(rows.slice(0, 0).to_reader(), tmp_path / "empty.csv")
    assert (tmp_path / "empty.csv").read_text() == '"id","p_0","p_1"\n'


def options(kind: str, output: Path | str, weights: Path | None = None) -> argparse.Namespace:
    return argparse.Namespace(kind=kind, output=Path(output), weights=weights)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("train", "no-such-folder/m.zip", "there is no folder"),
        ("predict", "no-such-folder/p.csv", "there is no folder"),
        ("train", ".", "Is a directory"),
        ("train", "x" * 300, "File name too long"),
    ],
)
def test_an_output_that_could_not_be_made_is_refused(kind: str, name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SQLFlowError, match=said):
        prepare_output(options(kind, tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_an_output_needs_as_much_room_as_the_weights_it_starts_from(tmp_path: Path) -> None:
    weights, output = tmp_path / "first.zip", tmp_path / "m.zip"
    weights.write_bytes(bytes(2 * LEAST_ROOM))
    output.write_text("an older model")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LEAST_ROOM, before[1]))  # of a file, for want of a small disk
    try:
        prepare_output(options("train", output))
        with pytest.raises(JobError, match="File too large"):
            prepare_output(options("train", output, weights))
        with pytest.raises(JobError, match="File too large"):
            write_model(weights, output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert output.read_text() == "an older model"
    assert {path.name for path in tmp_path.iterdir()} == {"first.zip", "m.zip"}
    write_model(weights, output)
    assert output.read_bytes() == weights.read_bytes()


def test_rows_that_standard_output_did_not_take_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(JobError, match="cannot write to standard output: No space left"):
            write_rows(TABLE.to_reader(), None)
