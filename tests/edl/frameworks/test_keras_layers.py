"""Import of the layers that generated programs use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.soak
def test_a_program_prints_nothing_of_tensorflow_when_it_imports_edl_before_keras() -> None:
    program = "from edl.keras import concatenated\nimport keras\nprint(keras.backend.backend())"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TF_", "KERAS_"))
    }
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert (ran.stdout, ran.stderr) == ("tensorflow\n", "")
