"""Which process is which."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edl.jobs.process import command, start_time


def test_a_running_process_has_one_start_time() -> None:
    mine = start_time(os.getpid())
    assert mine is not None
    assert mine == start_time(os.getpid())


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere a process is known by its id alone"
)
def test_two_processes_have_different_start_times() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        theirs = start_time(child.pid)
        assert theirs is not None
        assert theirs != start_time(1)
        child.communicate(b"\n")


def test_a_process_that_ended_has_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert start_time(child.pid) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_ended_and_was_not_waited_for_has_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(child.pid) is None
    child.wait()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_is_named_by_its_program_and_subcommand_without_what_may_be_secret(tmp_path: Path) -> None:
    program = tmp_path / "sqlflow"
    program.write_text("print('ready', flush=True); input()")
    known = {
        (str(program), "run", "--password", "secret"): "sqlflow run",
        (str(program), "--token", "secret"): "sqlflow",
        ("-c", "print('ready', flush=True); input()", "secret"): "python",
    }
    for words, name in known.items():
        with subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            assert command(child.pid) == name
            child.communicate(b"\n")
    assert command(child.pid) == ""
