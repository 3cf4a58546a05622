"""A loop over several datasets in several workers, of which some are killed: the same rows, sums and weights."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from edl.extensions import elastic
from edl.extensions.elastic.script import ElasticScript

SCRIPT = Path(__file__).with_name("datasets_script.py")
Kill = tuple[int, int, str]
Rows = Counter[tuple[str, int, int]]


def trained(folder: Path, workers: int, *kills: Kill, more: tuple[str, ...] = ()) -> None:
    folder.mkdir()
    command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", str(workers), *more]
    subprocess.run(
        [*command, str(SCRIPT), str(folder), json.dumps(kills)], check=True, capture_output=True, timeout=240
    )


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result").read_text())
    return found


def expected(alone: Path) -> dict[str, Any]:
    inexact = ("weights", "loss")
    return {
        name: pytest.approx(value, abs=1e-5) if name in inexact else value
        for name, value in result(alone).items()
    }


def counted(folder: Path) -> Rows:
    """Count how often each row of each epoch of each dataset was trained on."""
    lines = (json.loads(line) for file in folder.glob("rows-*") for line in file.read_text().splitlines())
    return Rows((name, epoch, row) for name, epoch, rows in lines for row in rows)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the script in one process, without a master."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(SCRIPT), str(folder), "[]"])
        patch.setattr(elastic, "_script", ElasticScript())
        runpy.run_path(str(SCRIPT))
    return folder


@pytest.mark.soak
def test_a_worker_that_is_lost_in_an_evaluation_costs_no_row(tmp_path: Path, alone: Path) -> None:
    trained(tmp_path / "killed", 2, (1, 0, "evaluate"))
    assert counted(tmp_path / "killed") == counted(alone)
    assert result(tmp_path / "killed") == expected(alone)
    assert set(counted(alone).values()) == {1}
    assert result(alone)["offsets"] == [30, 30]


@pytest.mark.soak
def test_each_dataset_goes_on_where_it_was_whoever_is_killed(tmp_path: Path, alone: Path) -> None:
    kills = (1, 0, "pretrain"), (2, 0, "extra"), (0, 0, "events"), (2, 1, "evaluate")
    trained(tmp_path / "killed", 3, *kills)
    assert counted(tmp_path / "killed") == counted(alone)
    assert result(tmp_path / "killed") == expected(alone)


@pytest.mark.soak
def test_the_loss_of_all_workers_goes_back_to_the_checkpoint_in_every_dataset(
    tmp_path: Path, alone: Path
) -> None:
    trained(tmp_path / "killed", 2, (0, 0, "extra"), (1, 0, "extra"), more=("--checkpoint_steps", "5"))
    found = counted(tmp_path / "killed")
    assert found.keys() == counted(alone).keys()
    assert {found["pretrain", 0, row] for row in range(130)} == {1}  # it was in the checkpoint
    assert result(tmp_path / "killed") == expected(alone)
