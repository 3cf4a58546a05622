"""Processes that end with who started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from edl import exit_codes
from tests.edl.cluster.local.conftest import ends

FOLLOW = """
import subprocess, sys, threading
from edl.cluster.local.parent_watch import follow

follow(int(sys.argv[1]))
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, flush=True)
threading.Event().wait()
"""

FOLLOW_MASTERS = """
import sys, threading
from edl.cluster.local.parent_watch import follow_masters

follow_masters(sys.argv[1], longest=0.05, look_secs=0.005)
threading.Event().wait()
"""

CHILD = """
import sys
from edl.cluster.local.parent_watch import die_with_parent

die_with_parent(int(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""

PARENT = """
import os, signal, subprocess, sys

command = [sys.executable, "-c", sys.argv[1], str(os.getpid())]
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
signal.pause()
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


@pytest.mark.parametrize(("own_group", "code"), [(False, exit_codes.ABANDONED), (True, -signal.SIGKILL)])
def test_a_process_ends_when_its_lifeline_does(pipe: tuple[int, int], own_group: bool, code: int) -> None:
    reading, writing = pipe
    command = [sys.executable, "-c", FOLLOW, str(reading)]
    with subprocess.Popen(
        command, pass_fds=(reading,), stdout=subprocess.PIPE, start_new_session=own_group
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        os.write(writing, b"still here")
        os.close(writing)
        assert process.wait(60) == code
    if own_group:
        ends(child)
    else:
        os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel of Linux")
def test_a_process_without_threads_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    ends(child)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel of Linux")
def test_a_process_ends_at_once_if_its_parent_has_gone_already() -> None:
    code = "from edl.cluster.local.parent_watch import die_with_parent; die_with_parent(1)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == exit_codes.ABANDONED


def test_a_container_waits_for_masters_as_long_as_they_come_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]
        command = [sys.executable, "-c", FOLLOW_MASTERS, f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        for _ in range(40):
            master.accept()[0].close()
        assert process.poll() is None
    _, said = process.communicate(timeout=60)
    assert process.returncode == exit_codes.ABANDONED
    assert said.endswith(b" exiting: the job has had no master for 0.05 s\n")
