"""Who is told to leave before it has begun."""

from __future__ import annotations

import subprocess
import sys

from edl import exit_codes

FIRST = """
import os, signal, sys
from edl.cluster.local.signals import block_sigterm
block_sigterm()
os.kill(os.getpid(), signal.SIGTERM)
print("held back", flush=True)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
THEN = """
from edl.cluster.local.signals import end_on_sigterm
print("became another", flush=True)
end_on_sigterm()
print("still there", flush=True)
"""


def test_what_a_process_is_told_before_an_exec_is_heard_after_it() -> None:
    command = [sys.executable, "-c", FIRST, THEN]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["held back", "became another"]
    assert (done.returncode, done.stderr) == (exit_codes.PREEMPTED, "terminated before it started\n")
