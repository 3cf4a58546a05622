"""Why an instance ended."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cluster.exit_reason import Exit, MemoryCounter, counter_of, find_reason


@pytest.mark.parametrize(
    ("code", "asked", "starved", "reason"),
    [
        (0, False, False, "done"),
        (0, True, False, "stopped"),
        (1, False, False, "failed"),
        (1, True, False, "stopped"),
        (exit_codes.PREEMPTED, False, False, "preempted"),
        (exit_codes.ABANDONED, False, False, "lost"),
        (-signal.SIGKILL, False, False, "killed"),
        (-signal.SIGKILL, False, True, "out of memory"),
        (-signal.SIGKILL, True, True, "stopped"),
        (-signal.SIGTERM, False, False, "killed"),
        (-signal.SIGSEGV, False, False, "failed"),
    ],
)
def test_a_reason_follows_from_the_exit_code_and_what_was_asked(
    code: int, asked: bool, starved: bool, reason: str
) -> None:
    assert find_reason(Exit(code, starved), asked=asked) == reason


def test_an_end_in_words() -> None:
    assert str(Exit(3)) == "exit code 3"
    assert str(Exit(-9)) == "killed by SIGKILL"
    assert str(Exit(-9, starved=True)) == "killed by SIGKILL because memory ran out"
    assert str(Exit(-99)) == "killed by signal 99"


def test_each_process_that_memory_ran_out_for_is_told_once(tmp_path: Path) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom 7\noom_kill 3\noom_group_kill 9\n")
    memory = MemoryCounter(counter)
    assert not memory.exit(-9).starved
    counter.write_text("oom 7\noom_kill 5\n")
    assert not memory.exit(-15).starved
    assert not memory.exit(0).starved
    assert [memory.exit(-9).starved for _ in range(3)] == [True, True, False]


def test_without_a_counter_nothing_ran_out(tmp_path: Path) -> None:
    assert not MemoryCounter(tmp_path / "nothing").exit(-9).starved


@pytest.mark.parametrize(
    ("groups", "file"),
    [
        ("0::/user/job\n", "user/job/memory.events"),
        ("0::/user/job\n", "memory.events"),
        ("4:memory:/job\n3:cpu,cpuacct:/x:y\n0::/\n", "memory/job/memory.oom_control"),
        ("4:memory:/job\n0::/\n", "memory/memory.oom_control"),
    ],
)
def test_the_counter_of_a_control_group_is_found(tmp_path: Path, groups: str, file: str) -> None:
    (tmp_path / "cgroup").write_text(groups)
    counter = tmp_path / "fs" / file
    counter.parent.mkdir(parents=True)
    counter.write_text("oom_kill 1\n")
    assert counter_of(tmp_path / "cgroup", tmp_path / "fs") == counter


def test_this_machine_has_a_counter_or_none_that_is_read() -> None:
    assert not MemoryCounter().exit(-9).starved
