"""Programs in images, run in a container of this machine by docker or podman.

A container sees the rows of the query, read-only, and the folder of the results. It has no network, no environment of
this process, and its user is this process's. Its standard input ends with this process, and the program then ends.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edl.runnable import VARIABLE, RunnablePlace

ENGINES = ("docker", "podman")
PERMITTED = "SQLFLOW_IMAGES"  # variable with the beginnings of images that statements may run here
STANDARD_INPUT = 0


def find_engine() -> str:
    """Return the path of docker or podman, empty if neither is here."""
    return next(filter(None, map(shutil.which, ENGINES)), "")


def is_permitted(image: str) -> bool:
    """Return True if the image begins with a text of the variable SQLFLOW_IMAGES."""
    beginnings = [text.strip() for text in os.environ.get(PERMITTED, "").split(",")]
    return any(image.startswith(text) for text in beginnings if text)


def write_command(
    engine: str, image: str, program: str, arguments: Sequence[str], place: RunnablePlace
) -> list[str]:
    """Return the command that runs a program of the image. program: its file in a folder of the image's model path."""
    rows, results = Path(place.rows).parent, Path(place.results)
    results.mkdir(parents=True, exist_ok=True)
    user = f"--user={os.getuid()}:{os.getgid()}"
    keep = ["--userns=keep-id"] if Path(engine).name == "podman" and os.getuid() else []
    variables = {
        VARIABLE: msgspec.json.encode(place).decode(),
        "PYTHONUNBUFFERED": "1",
        "HOME": "/tmp",  # noqa: S108 - the user has no other in the image
    }
    return [
        engine, "run", "--rm", "--interactive", "--network=none", "--security-opt=no-new-privileges", user, *keep,
        f"--volume={rows}:{rows}:ro", f"--volume={results}:{results}",
        *(f"--env={name}={value}" for name, value in variables.items()),
        "--entrypoint=python", image,
        "-P", "-m", "edl.entrypoints.runnable", str(STANDARD_INPUT), program, *arguments,
    ]  # fmt: skip
