"""Programs that run as an account for which the rights of files count, even where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

_OF_ROOT = "-dac_override,-dac_read_search,-fowner"  # capabilities that make root ignore the rights of files


def run_without_privileges(program: str, *arguments: str) -> str:
    """Run a Python program and return its output; skip the test where root cannot give its capabilities up."""
    command = [sys.executable, "-c", program, *arguments]
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed, and root ignores the rights of files")
        command = ["setpriv", "--bounding-set", _OF_ROOT, "--inh-caps", _OF_ROOT, "--", *command]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
