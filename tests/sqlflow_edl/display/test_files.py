"""Result sets in files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.display.files import OutputFile, format_of, name_write_errors


def test_a_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("old")
    with OutputFile(path) as file:
        file.out.write("new\r\n")
        assert path.read_text() == "old"
        file.keep()
    assert path.read_bytes() == b"new\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_stays_as_it_was_where_something_goes_wrong(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), OutputFile(path) as file:
        file.out.write("new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "rows.csv", tmp_path / "latest.csv"
    link.symlink_to(path)
    with OutputFile(link) as file:
        file.out.write("new")
        file.keep()
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_a_pipe_takes_what_is_written(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    with OutputFile(pipe) as file:
        file.out.write("row")
        file.keep()
    reader.join(60)
    assert found == ["row"]
    assert pipe.is_fifo()


def test_a_file_keeps_who_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.touch(0o640)
    with OutputFile(path) as file:
        file.out.write("new")
        file.keep()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with (
        pytest.raises(SQLFlowError, match="No space left"),
        OutputFile(path) as file,
        name_write_errors(path),
    ):
        os.dup2(os.open("/dev/full", os.O_WRONLY), file.out.fileno())
        file.out.write("x" * 100_000)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SQLFlowError, match=r"cannot write .*none/rows.csv: No such file"):
        OutputFile(tmp_path / "none" / "rows.csv")
    with pytest.raises(SQLFlowError, match="Is a directory"):
        OutputFile(tmp_path)


def test_the_name_of_a_file_says_its_format() -> None:
    assert [format_of(Path(name)) for name in ("a.CSV", "a.b.jsonl", "a", "a.md", "a.txt")] == [
        *("csv", "jsonl", "", "markdown", "")
    ]
