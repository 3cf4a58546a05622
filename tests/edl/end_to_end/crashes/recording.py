"""Records of a run: made by processes that have `recorder/sitecustomize.py`, and read again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

RECORDER = Path(__file__).parent / "recorder"
REPOSITORY = Path(__file__).parents[4]
CLIENT = "tests.edl.end_to_end.crashes.client"
JOBS, MODEL = Path("sqlflow-edl", "jobs"), Path("out", "model.zip")  # in the folder that is recorded
SECONDS = 240.0  # until a run has failed


class Operation(NamedTuple):
    """Operation on a path, relative to the recorded folder. `more` is as in `recorder/sitecustomize.py`."""

    pid: int
    what: str
    path: str
    more: tuple[bytes | int | str, ...]


def record(kind: str, folder: Path) -> list[Operation]:
    """Run the job of a kind in a process of its own, with the state folder `folder`; return what was done to that."""
    for each in (folder / JOBS, (folder / MODEL).parent):
        each.mkdir(parents=True)
    log = folder.with_name(f"{folder.name}.record")
    environment = {
        **os.environ,
        "EDL_TESTING_RECORDED": str(folder),
        "EDL_TESTING_RECORD": str(log),
        "PYTHONPATH": f"{RECORDER}:{REPOSITORY}",
        "XDG_STATE_HOME": str(folder),
    }
    command = [sys.executable, "-m", CLIENT, kind, str(folder / MODEL)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, run.stderr
    return list(_operations(log, folder))


def _operations(log: Path, folder: Path) -> Iterator[Operation]:
    data, at = memoryview(log.read_bytes()), 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        pid, what, path, *more = msgspec.msgpack.decode(data[at + 4 : at + 4 + size])
        at += 4 + size
        inside = [
            each.removeprefix(f"{folder}/") if isinstance(each, str) else each for each in (path, *more)
        ]
        yield Operation(pid, what, inside[0], (*inside[1:],))
