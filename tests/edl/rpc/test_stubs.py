"""Generated stubs: the same as in the checkout, and the libraries that they accept."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from edl import rpc


def test_the_stubs_are_what_make_stubs_writes(tmp_path: Path, repository: Path) -> None:
    """In a process of its own: protoc's library and gRPC's do not bear each other."""
    subprocess.run([sys.executable, "-m", "tests.stubs", tmp_path], cwd=repository, check=True, timeout=120)
    written = sorted(tmp_path.iterdir())
    assert [path.name for path in written] == ["control_pb2.py", "control_pb2.pyi", "control_pb2_grpc.py"]
    for path in written:
        ours = Path(rpc.__file__).parent / path.name
        assert path.read_bytes() == ours.read_bytes(), f"run make stubs: {path.name} has changed"


def test_the_oldest_libraries_that_are_allowed_are_those_that_the_stubs_accept(repository: Path) -> None:
    config = ConfigParser()
    config.read(repository / "setup.cfg")
    required = map(Requirement, config["options"]["install_requires"].split("\n")[1:])
    lowest = {each.name: min(Version(bound.version) for bound in each.specifier) for each in required}
    stubs = Path(rpc.__file__).parent
    [protobuf] = re.findall(r"Protobuf Python Version: (\S+)", (stubs / "control_pb2.py").read_text())
    [grpc] = re.findall(r"GRPC_GENERATED_VERSION = '(\S+)'", (stubs / "control_pb2_grpc.py").read_text())
    assert lowest["protobuf"] == Version(protobuf)
    assert lowest["grpcio"] == Version(grpc)
