"""Which files a job's data are."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.data.paths import found_files
from edl.errors import SourceError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.csv", "a.csv", "_SUCCESS", ".a.csv.crc"):
        (tmp_path / name).write_text("x\n1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("written", ["*.csv", "csv:*.csv", "csv:///[ab].csv", "."])
def test_files_come_in_the_order_of_their_names(folder: Path, written: str) -> None:
    files = found_files(written)
    assert [Path(path).name for path in files.paths] == ["a.csv", "b.csv"]
    assert files.format == "csv"


def test_options_are_the_urls(folder: Path) -> None:
    files = found_files("csv:///a.csv?delim=%3B")
    assert files.options == (("delim", ";"),)
    assert str(files.url) == f"csv:///{folder}/a.csv?delim=%3B"


@pytest.mark.parametrize(("head", "name"), [(b"\x04\x03\x02\x01rest", "recordio"), (b"PAR1rest", "parquet")])
def test_a_name_without_an_ending_is_told_by_its_first_bytes(folder: Path, head: bytes, name: str) -> None:
    (folder / "data-00001").write_bytes(head)
    assert found_files("data-00001").format == name


def test_a_format_that_nothing_tells_is_asked_for(folder: Path) -> None:
    (folder / "data").write_bytes(b"what")
    with pytest.raises(SourceError, match="identify its format") as caught:
        found_files("data")
    assert "csv:data" in (caught.value.hint or "")
    assert found_files("recordio:data").format == "recordio"


@pytest.mark.parametrize(
    ("written", "words", "hint"),
    [
        ("c.csv", "there is no file", "did you mean"),
        ("nowhere/*.csv", "there is no file", "check the path"),
        ("cvs:a.csv", "cvs is not a scheme of files", "did you mean csv"),
        ("csv:", "names no file", "csv:///path"),
    ],
)
def test_what_is_not_there_is_named(folder: Path, written: str, words: str, hint: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        found_files(written)
    assert hint in (caught.value.hint or "")


def test_files_of_several_formats_are_refused(folder: Path) -> None:
    (folder / "c.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="of several formats"):
        found_files(str(folder))


def test_a_file_that_is_packed_as_a_whole_is_refused(folder: Path) -> None:
    (folder / "a.csv.gz").write_bytes(b"")
    with pytest.raises(SourceError, match="compressed as a whole"):
        found_files("a.csv.gz")
