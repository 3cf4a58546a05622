"""The stubs in the package are those of the .proto files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import stubs

pytest.importorskip("grpc_tools")


def test_the_stubs_are_what_make_stubs_writes(repository: Path, tmp_path: Path) -> None:
    written = stubs.generate(tmp_path)
    kept = repository / "runtime" / "edl" / "rpc"
    assert {path.name for path in written} == {path.name for path in kept.glob("*_pb2*.py*")}
    for path in written:
        assert (kept / path.name).read_bytes() == path.read_bytes(), f"{path.name}: run make stubs"
