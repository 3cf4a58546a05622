"""Master that waits for its job: `python -P -m edl.cluster.local.waiting_master DESCRIPTOR MODULE`.

It imports the module of the master, reads one line from the socket of its supervisor, `Begin`, and runs the module with
these arguments; the socket is then the master's connection. It ends with its supervisor.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import msgspec

from edl import exit_codes
from edl.cluster.local.messages import Begin
from edl.cluster.logs import log_to
from edl.jobs.cluster_folder import ClusterFolder


def main(arguments: list[str]) -> int:
    module = import_module(arguments[1])
    line = read_line(int(arguments[0]))
    if not line:
        return exit_codes.ABANDONED
    begin = msgspec.json.decode(line, type=Begin)
    log_to(ClusterFolder(Path(begin.arguments[0])).log("master"))
    code: int = module.main(begin.arguments)
    return code


def read_line(descriptor: int) -> bytes:
    """Read up to the end of the line and no further; empty at the end of the input."""
    line = bytearray()
    while not line.endswith(b"\n"):
        character = os.read(descriptor, 1)
        if not character:
            return b""
        line += character
    return bytes(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
