"""A script's training loop in several workers, of which some are killed: the same rows, and the same weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.run_folder import ClusterFolder

SCRIPT = Path(__file__).with_name("script.py")
ROWS, EPOCHS, STEPS = 610, 5, 65
Kill = tuple[int, int, int]


def arguments(folder: Path, kills: list[Kill], pause: float, loaders: int, micro: int) -> list[str]:
    return [str(SCRIPT), str(folder), json.dumps(kills), str(pause), str(loaders), str(micro)]


def trained(
    folder: Path,
    workers: int,
    *kills: Kill,
    pause: float = 0.0,
    loaders: int = 0,
    micro: int = 0,
    more: tuple[str, ...] = (),
) -> str:
    """What `edl run` has printed."""
    folder.mkdir()
    command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", str(workers), *more]
    return subprocess.run(
        [*command, *arguments(folder, [*kills], pause, loaders, micro)],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    ).stderr


def weights(folder: Path) -> list[float]:
    found: list[float] = json.loads((folder / "weights").read_text())
    return found


def counted(folder: Path) -> tuple[Counter[tuple[int, int]], set[int]]:
    """How often each row of each epoch was in a step, and the sizes of the groups."""
    rows, sizes = Counter[tuple[int, int]](), set()
    for file in folder.glob("rows-*"):
        for line in file.read_text().splitlines():
            epoch, size, found = json.loads(line)
            rows.update((epoch, row) for row in found)
            sizes.add(size)
    return rows, sizes


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the script in one process, without a master."""
    folder = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, *arguments(folder, [], 0.0, 0, 0)], check=True, timeout=120)
    return folder


def test_a_killed_worker_costs_no_row_and_no_step(tmp_path: Path, alone: Path) -> None:
    said = trained(tmp_path / "killed", 3, (1, 0, 1), pause=0.01)
    rows, sizes = counted(tmp_path / "killed")
    assert rows == counted(alone)[0] == Counter({(e, r): 1 for e in range(EPOCHS) for r in range(ROWS)})
    assert {2, 3} <= sizes
    assert weights(tmp_path / "killed") == pytest.approx(weights(alone), abs=1e-5)
    assert f"epoch {EPOCHS} done at step {STEPS}" in said
    assert job_folder.jobs() == []


@pytest.mark.soak
def test_replacements_join_and_continue_whoever_is_killed(tmp_path: Path, alone: Path) -> None:
    kills = [(rank, 0, epoch) for epoch, rank in enumerate((2, 0, 1), 1)] + [(0, 1, 4)]
    trained(tmp_path / "killed", 3, *kills, pause=0.2)
    rows, sizes = counted(tmp_path / "killed")
    assert set(rows.values()) == {1}
    assert len(rows) == EPOCHS * ROWS
    assert {2, 3} <= sizes
    assert weights(tmp_path / "killed") == pytest.approx(weights(alone), abs=1e-5)


@pytest.mark.soak
def test_a_loader_reads_ahead_and_micro_batches_are_accumulated(tmp_path: Path, alone: Path) -> None:
    trained(tmp_path / "killed", 2, (1, 0, 1), (0, 0, 3), pause=0.05, loaders=2, micro=7)
    rows, _ = counted(tmp_path / "killed")
    assert len(rows) == EPOCHS * ROWS  # parts before the last of a step may be computed again
    assert weights(tmp_path / "killed") == pytest.approx(weights(alone), abs=1e-5)


@pytest.mark.soak
def test_the_loss_of_all_workers_goes_back_to_the_checkpoint(tmp_path: Path, alone: Path) -> None:
    trained(tmp_path / "killed", 2, (0, 0, 2), (1, 0, 2), pause=0.1, more=("--checkpoint_steps", "10"))
    rows, _ = counted(tmp_path / "killed")
    assert len(rows) == EPOCHS * ROWS
    assert {rows[0, row] for row in range(ROWS)} == {1}  # the first epoch was in the checkpoint
    assert weights(tmp_path / "killed") == pytest.approx(weights(alone), abs=1e-5)


@pytest.mark.soak
def test_a_killed_master_is_replaced_and_no_row_is_lost(tmp_path: Path, alone: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    command = [
        sys.executable,
        "-m",
        "edl.cli.main",
        "run",
        "--workers",
        "2",
        *arguments(folder, [], 0.1, 0, 0),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("epoch 2"):
                (job,) = job_folder.jobs()
                master = ClusterFolder(job.path).process("master")
                assert master is not None
                os.kill(master.pid, signal.SIGKILL)
                break
        running.communicate(timeout=120)
    assert running.returncode == 0
    assert set(counted(folder)[0].values()) == {1}
    assert weights(folder) == pytest.approx(weights(alone), abs=1e-5)
