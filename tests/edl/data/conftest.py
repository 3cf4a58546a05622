"""A database in memory for each test that asks for one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from edl.data import Source, connect


@pytest.fixture
def source() -> Iterator[Source]:
    opened = connect("duckdb:")
    yield opened
    opened.close()


@pytest.fixture
def in_another_process() -> Callable[[str], str]:
    """Runs a Python program to its end and gives what it printed."""

    def run(program: str) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    return run
