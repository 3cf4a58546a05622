"""Ends of processes, each seen once."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from edl.cluster.exit_reason import Exit
from edl.cluster.local.children import Children, spawn
from tests.edl.cluster.local.conftest import ends

PAUSE = [sys.executable, "-c", "import signal; signal.pause()"]


def started(tmp_path: Path, code: str) -> int:
    return spawn([sys.executable, "-c", code], environment=dict(os.environ), log=tmp_path / "logs" / "x.log")


def ended(pid: int) -> None:
    """Wait until it has ended, and leave it to be reaped."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize("peeks", [True, False])
def test_every_end_is_told_once_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peeks: bool
) -> None:
    children, seen = Children(), []
    pids = [started(tmp_path, f"raise SystemExit({code})") for code in (3, 4)]
    for pid in pids:
        children.watch(pid, seen.append)
        ended(pid)
    if not peeks:
        monkeypatch.delattr(os, "waitid")
    children.reap()
    children.reap()
    assert sorted(how.code for how in seen) == [3, 4]


@pytest.mark.parametrize("peeks", [True, False])
def test_the_group_of_a_process_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peeks: bool
) -> None:
    children, seen = Children(), []
    code = f"import subprocess; print(subprocess.Popen({PAUSE!r}).pid)"
    pid = started(tmp_path, code)
    children.watch(pid, seen.append)
    ended(pid)
    if not peeks:
        monkeypatch.delattr(os, "waitid")
    children.reap()
    assert seen == [Exit(0)]
    ends(int((tmp_path / "logs" / "x.log").read_text()))


def test_who_ends_before_it_is_known_is_asked_about(tmp_path: Path) -> None:
    children, seen = Children(), []
    pid = started(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    ended(pid)
    children.before_unwatched = lambda: children.watch(pid, seen.append)
    children.reap()
    assert seen == [Exit(-signal.SIGKILL)]
