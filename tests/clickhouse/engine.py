"""ClickHouse of chdb behind its HTTP interface, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "SQLFLOW_EDL_CHDB"  # a Python that has chdb, if this one has not
MISSING = f"no chdb (pip install chdb, and {VARIABLE}=…/python if it is in another environment)"


def interpreter() -> str | None:
    """Return a Python that has chdb."""
    return os.environ.get(VARIABLE) or (sys.executable if importlib.util.find_spec("chdb") else None)


@contextmanager
def running(python: str, folder: Path) -> Iterator[str]:
    """Run the server, and yield its URL."""
    front = Path(__file__).with_name("front.py")
    with subprocess.Popen([python, str(front), str(folder)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def make_database(server: str, name: str) -> None:
    for statement in (f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}"):
        urllib.request.urlopen(server, data=statement.encode()).close()  # noqa: S310
