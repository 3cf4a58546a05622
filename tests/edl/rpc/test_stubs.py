"""The generated stubs are those of proto/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from edl import rpc


def test_the_stubs_are_what_make_stubs_writes(tmp_path: Path, repository: Path) -> None:
    """In a process of its own: protoc's library and gRPC's do not bear each other."""
    subprocess.run([sys.executable, "-m", "tests.stubs", tmp_path], cwd=repository, check=True, timeout=120)
    written = sorted(tmp_path.iterdir())
    assert [path.name for path in written] == ["control_pb2.py", "control_pb2.pyi", "control_pb2_grpc.py"]
    for path in written:
        ours = Path(rpc.__file__).parent / path.name
        assert path.read_bytes() == ours.read_bytes(), f"run make stubs: {path.name} has changed"
