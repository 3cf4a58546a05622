"""A database server that all processes of a test run use.

The first of them starts it, in a process that waits until the last has let go of a lock, however it ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

REPOSITORY = Path(__file__).parents[1]


class Server(Protocol):
    port: int


@contextlib.contextmanager
def port_of(folder: Path, module: str) -> Iterator[int]:
    """The port of the server that `python -m module` starts in this folder; it is gone when none uses it any more."""
    folder.mkdir(exist_ok=True)
    with (folder / "users").open("w") as users, (folder / "starting").open("w") as starting:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(starting, fcntl.LOCK_EX)
        port = folder / "port"
        if not port.exists():
            said = subprocess.run(
                [sys.executable, "-m", module, folder],
                cwd=REPOSITORY, stdout=subprocess.PIPE, start_new_session=True, check=True,
            ).stdout  # fmt: skip
            if not said:
                raise RuntimeError(f"python -m {module} {folder} could not start its server")
            port.write_bytes(said)
        fcntl.flock(starting, fcntl.LOCK_UN)
        yield int(port.read_text(encoding="utf-8"))


def serve(running: Callable[[Path], AbstractContextManager[Server]]) -> None:
    """The main function of such a module: prints the port of a server that is there while somebody holds the lock.

    Who comes when it goes waits until it has gone, and starts another.
    """
    if os.fork():  # whoever started us waits for the port, and not for the end
        return
    folder = Path(sys.argv[1])
    with (folder / "users").open() as users, running(folder) as server:
        print(server.port, flush=True)
        os.close(sys.stdout.fileno())
        fcntl.flock(users, fcntl.LOCK_EX)
        (folder / "port").unlink()
    os._exit(0)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
