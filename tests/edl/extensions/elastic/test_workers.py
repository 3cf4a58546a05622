"""A script's training loop in several workers, of which some are killed: the same rows, and the same weights."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cluster import LEAVE_GRACE
from edl.extensions import elastic
from edl.extensions.elastic.script import ElasticScript
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder

SCRIPT, KERAS = (Path(__file__).with_name(name) for name in ("script.py", "keras_script.py"))
ROWS, EPOCHS, STEPS = 610, 5, 65
Kill = tuple[int, int, int]


def arguments(
    folder: Path, kills: list[Kill], pause: float, loaders: int, micro: int, script: Path = SCRIPT
) -> list[str]:
    return [str(script), str(folder), json.dumps(kills), str(pause), str(loaders), str(micro)]


def trained(
    folder: Path,
    workers: int,
    *kills: Kill,
    pause: float = 0.0,
    loaders: int = 0,
    micro: int = 0,
    more: tuple[str, ...] = (),
    script: Path = SCRIPT,
) -> str:
    """Run the script with `edl run`; return its output."""
    folder.mkdir()
    command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", str(workers), *more]
    return subprocess.run(
        [*command, *arguments(folder, [*kills], pause, loaders, micro, script)],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    ).stderr


def weights(folder: Path) -> list[float]:
    found: list[float] = json.loads((folder / "weights").read_text())
    return found


def counted(folder: Path) -> tuple[Counter[tuple[int, int]], set[int]]:
    """Count the steps of each row of each epoch; return them with the sizes of the groups."""
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments(folder, [], 0.0, 0, 0))
        patch.setattr(elastic, "_script", ElasticScript())
        runpy.run_path(str(SCRIPT))
    return folder


def test_a_killed_worker_costs_no_row_and_no_step(tmp_path: Path, alone: Path) -> None:
    said = trained(tmp_path / "killed", 3, (1, 0, 1), pause=0.01)
    rows, sizes = counted(tmp_path / "killed")
    assert rows == counted(alone)[0] == Counter({(e, r): 1 for e in range(EPOCHS) for r in range(ROWS)})
    assert {2, 3} <= sizes
    worlds = [json.loads(line) for line in (tmp_path / "killed" / "worlds-0-0").read_text().splitlines()]
    assert worlds[0][0] is None
    assert [before for before, *_ in worlds[1:]] == [size for _, _, size, *_ in worlds[:-1]]
    assert [3, 2] in [[before, size] for before, _, size, *_ in worlds]
    assert all((members[rank], restarts[rank]) == ("worker-0", 0) for _, rank, _, members, restarts in worlds)
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
def test_a_loop_of_keras_goes_on_without_a_killed_worker(tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "alone", tmp_path / "killed"
    undisturbed.mkdir()
    subprocess.run([sys.executable, *arguments(undisturbed, [], 0.0, 0, 0, KERAS)], check=True, timeout=120)
    trained(killed, 3, (1, 0, 1), (0, 0, 3), pause=0.1, micro=7, script=KERAS)
    rows, sizes = counted(killed)
    assert len(rows) == EPOCHS * ROWS
    assert {2, 3} <= sizes
    assert weights(killed) == pytest.approx(weights(undisturbed), abs=1e-5)


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
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_script_is_resumed_from_its_checkpoint_after_its_client_ends(
    tmp_path: Path, alone: Path, workers: int, number: signal.Signals
) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    edl = [sys.executable, "-m", "edl.cli.main", "run"]
    steps = ["--checkpoint_steps", "5"] if number == signal.SIGKILL else []
    command = [*edl, "--workers", str(workers), *steps, *arguments(folder, [], 0.1, 0, 0)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as client:
        taken = folder / "rows-0-0"
        while not taken.exists() or len(taken.read_text().splitlines()) < 20:
            assert client.poll() is None, client.communicate()
            time.sleep(0.05)
        client.send_signal(number)
        said = client.communicate(timeout=60)[1]
    [job] = job_folder.jobs()
    supervisor = ClusterFolder(job.path).process("supervisor")
    while supervisor is not None and supervisor.runs:  # it sees the death of its client
        time.sleep(0.05)
    assert job.can_resume
    if number == signal.SIGTERM:
        assert (client.returncode, job.status().state) == (exit_codes.TERMINATED, "interrupted")
        assert f"`edl run --resume {job.path}` continues the script" in said
    subprocess.run([*edl, "--resume", job.id], check=True, timeout=120)
    rows, _ = counted(folder)
    assert len(rows) == EPOCHS * ROWS
    assert {rows[0, row] for row in range(ROWS)} == {1}  # the first epoch was in the checkpoint
    assert weights(folder) == pytest.approx(weights(alone), abs=1e-5)
    assert job_folder.jobs() == []


@pytest.mark.soak
def test_a_worker_that_is_asked_to_leave_gets_the_seconds_left_when_the_others_go_on(
    tmp_path: Path, alone: Path
) -> None:
    folder = tmp_path / "left"
    folder.mkdir()
    edl = [sys.executable, "-m", "edl.cli.main", "run", "--workers", "2"]
    with subprocess.Popen(
        [*edl, *arguments(folder, [], 0.1, 0, 0)], stderr=subprocess.PIPE, text=True
    ) as client:
        taken = folder / "rows-1-0"
        while not taken.exists() or len(taken.read_text().splitlines()) < 5:
            assert client.poll() is None, client.communicate()
            time.sleep(0.05)
        os.kill(int((folder / "pid-1").read_text()), signal.SIGTERM)
        assert client.wait(60) == 0, client.communicate()
    seconds, left = json.loads((folder / "left-1-0").read_text())
    assert 0 < left <= seconds <= LEAVE_GRACE
    assert not (folder / "left-0-0").exists()
    rows, _ = counted(folder)
    assert (len(rows), set(rows.values())) == (EPOCHS * ROWS, {1})
    assert weights(folder) == pytest.approx(weights(alone), abs=1e-5)


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


ROWS_ONLY = """
import edl, os
data = edl.elastic.dataset(100, batch_size=12, epochs=2)
@edl.elastic.run
def read():
    for epoch in data.epochs():
        for rows in data:
            for row in rows:
                print("row", epoch, row)
read()
"""


@pytest.mark.soak
def test_workers_share_the_rows_of_a_loop_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS_ONLY, encoding="utf-8")
    command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", "2", str(tmp_path / "rows.py")]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120
    ).stdout.splitlines()
    found = Counter(line.partition("row ")[2] for line in said if "row " in line)
    assert found == Counter({f"{epoch} {row}": 1 for epoch in range(2) for row in range(100)})
    assert {line.partition("]")[0] for line in said} == {"[worker-0", "[worker-1"}


@pytest.mark.soak
def test_twenty_kills_at_any_moment_change_no_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHS", "90")
    (tmp_path / "alone").mkdir()
    subprocess.run([sys.executable, *arguments(tmp_path / "alone", [], 0.0, 0, 0)], check=True, timeout=120)
    (tmp_path / "killed").mkdir()
    command = [sys.executable, "-m", "edl.cli.main", "run", "--workers", "3"]
    kills, formed = 0, Counter[str]()
    with subprocess.Popen(
        [*command, *arguments(tmp_path / "killed", [], 0.1, 0, 0)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            _, _, group = line.strip().partition("in group ")
            formed[group] += group.count("worker-") == 3
            if formed[group] == 3 and kills < 20:  # all of them have begun
                pid = (tmp_path / "killed" / f"pid-{kills * 2 % 3}").read_text()
                os.kill(int(pid), signal.SIGKILL)
                kills += 1
    assert (running.returncode, kills) == (0, 20)
    assert weights(tmp_path / "killed") == pytest.approx(weights(tmp_path / "alone"), abs=1e-5)
