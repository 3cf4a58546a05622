"""Generates the stubs of the RPC surface: `python -m tests.stubs FOLDER`, as `make stubs` does."""

from __future__ import annotations

import sys
from pathlib import Path

PROTO = Path(__file__).parent.parent / "proto"


def generate(folder: Path) -> list[Path]:
    """Write the stubs of every .proto file into the package `edl.rpc` in `folder`; the files."""
    from grpc_tools import protoc

    for file in sorted(PROTO.glob("*.proto")):
        arguments = ["protoc", f"-I{PROTO}", f"--python_out={folder}", f"--pyi_out={folder}"]
        if protoc.main([*arguments, f"--grpc_python_out={folder}", file.name]):
            raise SystemExit(f"protoc refuses {file}")
    written = sorted(folder.glob("*_pb2*.py*"))
    for path in written:  # protoc writes an import of a top-level module
        text = path.read_text()
        path.write_text(text.replace("\nimport control_pb2 as", "\nfrom edl.rpc import control_pb2 as"))
    return written


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
