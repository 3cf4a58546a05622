"""`edl run` on several machines: which one is the first, and what each needs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.main import _options, main
from edl.cli.nodes import is_first

GROUP = """
import os, sys, time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "EDL_HOST")
print("ranks", int(total), *(os.environ[name] for name in names), flush=True)
if sys.argv[1:] == ["wait"] and int(total) == 4:
    Path(f"there-{os.environ['RANK']}").touch()
    time.sleep(60)
dist.barrier()
"""
ELASTIC = """
from pathlib import Path
import time

import torch
from torch.utils.data import DataLoader

import edl.elastic

model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.linspace(-1, 1, 400).reshape(-1, 1)
sampler = edl.elastic.sampler(len(rows), batch_size=20, epochs=8)
loader = DataLoader(rows, batch_sampler=sampler)
edl.elastic.checkpoint(model, optimizer)
steps = 0


@edl.elastic.run
def train():
    global steps
    for epoch in sampler.epochs():
        for x in loader:
            optimizer.zero_grad()
            ((model(x) - 3 * x - 1) ** 2).mean().backward()
            optimizer.step()
            steps += 1
            time.sleep(0.02)
            if steps == 5:
                Path(f"there-{edl.elastic.rank()}").touch()


train()
print("weights", *(f"{float(value.detach()):.4f}" for value in model.parameters()), flush=True)
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Machines:
    """Commands on machines that are addresses of the loopback device."""

    def __init__(self, folder: Path, script: str) -> None:
        self._folder = folder
        self._port = free_port()
        (folder / "script.py").write_text(script)

    @contextmanager
    def run(
        self, number: int, nodes: str, *arguments: str, checkpoint_steps: int = 1000
    ) -> Iterator[subprocess.Popen[str]]:
        host = f"127.0.0.{number + 1}"
        command = [
            *(sys.executable, "-m", "edl.cli.main", "run", "--nnodes", nodes, "--nproc_per_node", "2"),
            *("--rdzv_endpoint", f"127.0.0.1:{self._port}", "--node_rank", str(number), "--local_addr", host),
            *("--token_file", "token", "--threads", "1", "--checkpoint_steps", str(checkpoint_steps)),
            *("script.py", *arguments),
        ]
        process = subprocess.Popen(
            command, cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def lose(self, process: subprocess.Popen[str]) -> None:
        """End a machine with all its processes, as a power cut does."""
        for pid in [*descendants(process.pid), process.pid]:
            os.kill(pid, signal.SIGKILL)

    def wait_for_workers(self, numbers: range) -> None:
        """Wait until the workers have come to the middle of their script."""
        paths = [self._folder / f"there-{number}" for number in numbers]
        watcher = subprocess.run(
            ["sh", "-c", 'for f in "$@"; do until [ -e "$f" ]; do sleep 0.05; done; done', "sh", *paths],
            timeout=90,
            check=True,
        )
        assert watcher.returncode == 0


def descendants(pid: int) -> list[int]:
    """The processes below one, the last ones first."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    children = [int(child) for child in path.read_text().split()] if path.exists() else []
    return [below for child in children for below in (*descendants(child), child)]


def ranks(out: str) -> list[list[str]]:
    return sorted(line.split()[2:] for line in out.splitlines() if "] ranks " in line)


@pytest.mark.soak
def test_a_script_for_torchrun_runs_on_two_machines(tmp_path: Path) -> None:
    machines = Machines(tmp_path, GROUP)
    with machines.run(0, "2") as first, machines.run(1, "2") as second:
        out, other = first.communicate(timeout=120)[0], second.communicate(timeout=120)[0]
    assert (first.returncode, second.returncode) == (0, 0), out + other
    assert ranks(out) == [["4", "0", "4", "0", "0", "127.0.0.1"], ["4", "1", "4", "1", "0", "127.0.0.1"]]
    assert ranks(other) == [["4", "2", "4", "0", "1", "127.0.0.2"], ["4", "3", "4", "1", "1", "127.0.0.2"]]


@pytest.mark.soak
def test_after_the_loss_of_a_machine_a_script_starts_again_on_the_other(tmp_path: Path) -> None:
    machines = Machines(tmp_path, GROUP)
    with machines.run(0, "1:2", "wait") as first, machines.run(1, "1:2", "wait") as second:
        machines.wait_for_workers(range(4))
        machines.lose(second)
        out = first.communicate(timeout=120)[0]
    assert first.returncode == 0, out
    assert ranks(out)[:2] == [["2", "0", "2", "0", "0", "127.0.0.1"], ["2", "1", "2", "1", "0", "127.0.0.1"]]


def test_a_loop_of_edl_elastic_goes_on_without_a_lost_machine(tmp_path: Path) -> None:
    machines = Machines(tmp_path, ELASTIC)
    with machines.run(0, "1:2") as first, machines.run(1, "1:2") as second:
        machines.wait_for_workers(range(4))
        machines.lose(second)
        out = first.communicate(timeout=120)[0]
    assert first.returncode == 0, out
    weights = {line.partition("weights ")[2] for line in out.splitlines() if "] weights " in line}
    assert len(weights) == 1, out
    assert [float(value) for value in weights.pop().split()] == pytest.approx([3, 1], abs=0.1)
    assert "epoch 8 done at step 160" in out


@pytest.mark.soak
def test_after_the_loss_of_the_first_machine_its_job_is_resumed_and_the_others_join_again(
    tmp_path: Path,
) -> None:
    machines = Machines(tmp_path, ELASTIC.replace("epochs=8", "epochs=60"))
    with machines.run(1, "1:2", checkpoint_steps=20) as second:
        with machines.run(0, "1:2", checkpoint_steps=20) as first:
            assert first.stdout is not None
            job = first.stdout.readline().split()[1]
            lines = iter(first.stdout.readline, "")
            assert any("epoch 3 done" in line for line in lines)
            machines.lose(first)
        resume = [sys.executable, "-m", "edl.cli.main", "run", "--resume", job]
        again = subprocess.run(resume, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
        other = second.communicate(timeout=60)[0]
    assert (again.returncode, second.returncode) == (0, 0), again.stdout + again.stderr + other
    weights = {
        line.partition("weights ")[2] for line in (again.stdout + other).splitlines() if "weights" in line
    }
    assert len(weights) == 1


def read_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = exit_codes.FAILED
) -> str:
    assert main(["run", *arguments]) == code
    return capsys.readouterr().err


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("x.py").write_text("")
    return "x.py"


def test_what_a_run_on_several_machines_needs_is_named(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "needs the address of the first one\nhint: --rdzv_endpoint" in read_error(
        ["--nnodes", "2", script], capsys
    )
    endpoint = ["--rdzv_endpoint", "127.0.0.1:29400"]
    assert "needs a join token" in read_error(["--nnodes", "2", *endpoint, script], capsys)
    err = read_error(["--nnodes", "2", "--rdzv_endpoint", "127.0.0.1:x", script], capsys)
    assert "--rdzv_endpoint 127.0.0.1:x has no port" in err
    assert "--token_file is for runs on several machines" in read_error(["--token_file", "t", script], capsys)


@pytest.mark.parametrize("nodes", ["0", "3:2", "a", "2:", "-1"])
def test_a_number_of_machines_is_one_or_a_range(nodes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", f"--nnodes={nodes}", "x.py"])
    assert "neither a number of machines nor a range" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["--rdzv_endpoint", "127.0.0.1:29400"], True),
        (["--rdzv_endpoint", "localhost"], True),
        (["--rdzv_endpoint", "192.0.2.7:29400"], False),
        (["--rdzv_endpoint", "192.0.2.7:29400", "--node_rank", "0"], True),
        (["--rdzv_endpoint", "127.0.0.1:29400", "--node_rank", "1"], False),
    ],
)
def test_the_machine_with_the_address_of_the_endpoint_is_the_first(arguments: list[str], first: bool) -> None:
    assert is_first(_options(["run", "--nnodes", "2", *arguments, "x.py"])) is first


def test_an_agent_with_another_token_is_turned_away(tmp_path: Path) -> None:
    machines = Machines(tmp_path, "print('never', flush=True)\n")
    with machines.run(0, "2") as first:
        assert first.stdout is not None
        first.stdout.readline()  # the job has its token
        (tmp_path / "other").write_text("0123456789abcdef0123")
        (tmp_path / "other").chmod(0o600)
        (tmp_path / "other").replace(tmp_path / "token")
        with machines.run(1, "2") as second:
            out = second.communicate(timeout=60)[0]
        assert second.returncode == 1
        assert "the first machine has another join token, or serves another job" in out
