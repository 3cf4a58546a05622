"""What a model remembers of its fitting: beside the rows, and in its archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edl.errors import SpecError
from edl.models.archive import read_archive
from edl.models.fitting import FILE, ColumnSummary, Fitting, read_fitting, write_fitting

FITTING = Fitting(
    columns={
        "größe": ColumnSummary(rows=3, nulls=1, min=-1.5, max=2.0, mean=0.5, std=1.0, top=(("é", 2), ("", 1)))
    },
    reasons=("by type: a number",),
    left_out={"id": "it is different in every row"},
)


def test_it_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_fitting(tmp_path, FITTING)
    assert read_fitting(tmp_path) == FITTING


def test_without_a_compiler_there_is_none(tmp_path: Path) -> None:
    assert read_fitting(tmp_path) is None


@pytest.mark.parametrize("contents", [b"", b"[]", b'{"columns": {"a": {}}}', b'{"more": 1}'])
def test_what_is_damaged_is_an_error(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / FILE).write_bytes(contents)
    with pytest.raises(SpecError, match=FILE):
        read_fitting(tmp_path)


def test_an_archive_keeps_it_and_can_do_without(write_model: Callable[..., Path]) -> None:
    assert read_archive(write_model("with.zip", fitting=FITTING)).fitting == FITTING
    assert read_archive(write_model("without.zip")).fitting is None


def test_an_archive_tells_its_numbers_without_reading_them(archive: Path) -> None:
    assert read_archive(archive).parameters() == 7
